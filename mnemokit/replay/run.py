"""Replay: logged turns become memory, exactly once.

    batches of turns --chunks--> turns, passings with their ager nights --at the end--> captures

A chunk is one transaction. What a chunk does depends only on what the store holds already, so a replay that was killed
goes on where it stopped when it is called again, and small chunks give what large ones give. Captures are made last,
in the order of time, because a session may be spread over chunks.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import cast

import polars as pl

from mnemokit.errors import CorruptLog, InvalidInput, MnemokitError, NotFound, ReadOnly
from mnemokit.given_frames import Frame, as_polars, is_frame
from mnemokit.instants import present
from mnemokit.progress import Progress
from mnemokit.records import ReplayReport
from mnemokit.replay import captures as replay_captures
from mnemokit.replay.ahead import one_ahead
from mnemokit.replay.chunk import Chunk, ChunkResult, commit
from mnemokit.replay.expected import records_expected
from mnemokit.replay.forgotten import FORGOTTEN
from mnemokit.replay.parents import PARENTS, ParentPolicy
from mnemokit.replay.policies import READER, Policies
from mnemokit.replay.removal import remove_source
from mnemokit.replay.ticks import Bounds, stored_bounds
from mnemokit.store import Connection, Store, query, take_numbers
from mnemokit.turns.derive import CAPTURES, PASSINGS, CapturesPolicy, PassingsPolicy, needs_values
from mnemokit.turns.frame import MAX_NAME_CHARS, zone_of
from mnemokit.turns.protocol import TurnBatch
from mnemokit.turns.readers import reader_named
from mnemokit.turns.readers.canonical import NAME as CANONICAL
from mnemokit.turns.reading import PathLike, RejectedRecords, commonest, frame_batches, read_batches

AGERS = ("daily", None)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What a caller may ask of a replay; see ``Memory.replay``."""

    source: str = "auto"
    label: str | None = None
    ager: str | None = "daily"
    strict: bool = False
    dry_run: bool = False
    tz: str | None = None
    passings: str | PassingsPolicy | None = None
    captures: str | CapturesPolicy | None = None
    parents: str | ParentPolicy = "same_question"
    chunk_rows: int = 2_000_000
    progress: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what no replay can do."""
        if self.ager not in AGERS:
            raise InvalidInput(f"ager={self.ager!r} is unknown; use 'daily' or None; nothing was read")
        if self.chunk_rows < 1:
            raise InvalidInput(f"chunk_rows must be at least 1, not {self.chunk_rows}; nothing was read")
        if self.label is not None and not 0 < len(self.label) <= MAX_NAME_CHARS:
            raise InvalidInput(f"label must be a text of 1 to {MAX_NAME_CHARS} characters; nothing was read")
        if self.tz is not None:
            zone_of(self.tz)
        for what, policy, known in (
            ("passings", self.passings, PASSINGS),
            ("captures", self.captures, CAPTURES),
            ("parents", self.parents, PARENTS),
        ):
            if isinstance(policy, str) and policy not in known:
                raise InvalidInput(f"{what}={policy!r} is no policy; use one of {', '.join(known)}; nothing was read")


def replay(store: Store, given: PathLike | list[PathLike] | Frame, options: ReplayOptions) -> ReplayReport:
    """Turn logged turns into memory; see ``Memory.replay``."""
    if store.read_only:
        raise ReadOnly(f"{store.name} was opened with read_only=True; nothing was replayed")
    started = time.perf_counter()
    turns = as_polars(given, "turns") if is_frame(given) else cast("PathLike | list[PathLike]", given)
    with Progress(options.progress) as progress:
        progress.begin("records", records_expected(turns) if progress.shown else None)
        run = _Run(store, options, progress)
        if options.strict or options.dry_run:
            # A dry run ends by an error of its own, which rolls everything back.
            with suppress(_DryRunEnd):
                store.write(lambda con: run.all_at_once(con, _batches(turns, options)))
        else:
            run.in_chunks(_batches(turns, options))
    report = run.counts.report(seconds=time.perf_counter() - started, dry_run=options.dry_run)
    # What an erasure refuses was meant to be refused.
    if report.reject_reasons.keys() - {FORGOTTEN} and not report.turns + report.duplicates:
        warnings.warn(
            f"not one of {report.rejects} records could be used ({commonest(report.reject_reasons)}); "
            "mem.frame('rejects') has them with their reasons",
            RejectedRecords,
            stacklevel=3,
        )
    return report


def remove(store: Store, source: str) -> ReplayReport:
    """Take a mistaken replay back; see ``Memory.remove_source``."""
    started = time.perf_counter()
    removed = store.write(lambda con: remove_source(con, store, source))
    if removed.turns == 0 and removed.rejects == 0:
        raise NotFound(f"no source {source!r} was replayed into {store.name}; nothing was removed")
    return ReplayReport(
        turns=removed.turns,
        passings=removed.passings,
        captures=removed.runs,
        rejects=removed.rejects,
        ticks=removed.ticks,
        source=source,
        seconds=time.perf_counter() - started,
    )


class _DryRunEnd(MnemokitError):
    """Rolls a dry run back when everything was counted."""


@dataclass
class _Counts:
    turns: int = 0
    passings: int = 0
    captures: int = 0
    duplicates: int = 0
    ignored: int = 0
    ticks: int = 0
    sessions: int = 0
    rejects: Counter[str] = field(default_factory=Counter[str])
    sources: set[str] = field(default_factory=set[str])
    why: set[str] = field(default_factory=set[str])
    kinds: dict[str, int] = field(default_factory=dict[str, int])

    def report(self, *, seconds: float, dry_run: bool) -> ReplayReport:
        return ReplayReport(
            turns=self.turns,
            passings=self.passings,
            captures=self.captures,
            duplicates=self.duplicates,
            rejects=self.rejects.total(),
            reject_reasons=dict(self.rejects.most_common()),
            ignored=self.ignored,
            seconds=seconds,
            sessions=self.sessions,
            ticks=self.ticks,
            source=", ".join(sorted(self.sources)),
            why="; ".join(sorted(self.why)),
            dry_run=dry_run,
            capture_kinds=dict(sorted(self.kinds.items())),
        )


@dataclass(frozen=True, slots=True)
class _Call:
    """Where a call stands: its row of table replays, and what it took up of earlier calls that stopped.

    Attributes:
        replay_no: Its own row.
        first_turn_no: Turns from here on may lack their capture.
        bounds: Ticks there were when it, or the earliest call with its ager that it took up, began.
        bounds_of: The row of that call.
        sources: Sources that it met so far.
        taken_up: Rows of this call and of those that it took up.
    """

    replay_no: int
    first_turn_no: int
    bounds: Bounds
    bounds_of: int
    sources: frozenset[str]
    taken_up: tuple[int, ...]


class _Run:
    def __init__(self, store: Store, options: ReplayOptions, progress: Progress) -> None:
        self.store = store
        self.options = options
        self.progress = progress
        self.policies = Policies(options.passings, options.captures, options.parents)
        self.counts = _Counts()
        self.call: _Call | None = None
        self.now = present()

    def in_chunks(self, batches: Iterator[TurnBatch]) -> None:
        try:
            for chunk in one_ahead(_chunks(batches, self.options, self.policies, self.progress)):
                self._note(chunk, *self.store.write(lambda con, chunk=chunk: self._commit(con, chunk)))
        except (CorruptLog, InvalidInput) as error:
            if self.counts.turns:
                raise type(error)(
                    f"{error}; {self.counts.turns:,} turns of what was read before are in the store; "
                    "mend it and run it again, nothing is doubled"
                ) from error
            raise
        if self.call is None:
            return
        call = self.call
        with self.store.read() as con:
            sessions = self._to_capture(con, call)
        for piece in self._in_slices(sessions):
            self._note_captures(piece, self.store.write(lambda con, piece=piece: self._capture(con, piece)))
        self.store.write(lambda con: self._finish(con, call))

    def all_at_once(self, con: Connection, batches: Iterator[TurnBatch]) -> None:
        # A transaction that met another writer is run again from the start.
        self.counts, self.call = _Counts(), None
        # By this thread itself, which holds the store: a policy that reads the same memory would wait for it for ever.
        for chunk in _chunks(batches, self.options, self.policies, self.progress):
            self._note(chunk, *self._commit(con, chunk))
        if self.call is not None:
            for piece in self._in_slices(self._to_capture(con, self.call)):
                self._note_captures(piece, self._capture(con, piece))
            self._finish(con, self.call)
        if self.options.dry_run:
            self.counts.why.add("dry run: nothing was written")
            raise _DryRunEnd("a dry run writes nothing")

    def _commit(self, con: Connection, chunk: Chunk) -> tuple[ChunkResult, _Call]:
        call = self.call or _begin(con, chunk.sources, self.options.ager, self.now)
        if not call.sources.issuperset(chunk.sources):
            call = _with_sources(con, call, chunk.sources, self.options.ager)
        result = commit(
            con,
            self.store,
            chunk,
            policies=self.policies,
            bounds=call.bounds if self.options.ager else None,
            now=self.now,
            strict=self.options.strict,
        )
        # Not finished, whatever another call of the same sources said meanwhile: it could not know of these turns.
        con.execute(
            "UPDATE replays SET turns = turns + $turns, sources = $sources, finished = FALSE "
            "WHERE replay_no = $replay_no",
            {"turns": result.turns, "sources": sorted(call.sources), "replay_no": call.replay_no},
        )
        return result, call

    def _to_capture(self, con: Connection, call: _Call) -> pl.DataFrame:
        found = replay_captures.sessions_to_capture(con, call.first_turn_no, sorted(call.sources))
        return found.clear() if self.policies.captures_nothing() else found

    def _in_slices(self, sessions: pl.DataFrame) -> Iterator[pl.DataFrame]:
        self.progress.begin("captures", sessions.height)
        return replay_captures.in_slices(sessions, self.policies)

    def _capture(self, con: Connection, piece: pl.DataFrame) -> dict[str, int]:
        return replay_captures.capture(con, self.store, piece, self.policies)

    def _finish(self, con: Connection, call: _Call) -> None:
        sources = sorted(call.sources)
        self.counts.sessions = replay_captures.sessions_since(con, call.first_turn_no, sources)
        con.execute(query("replay_finish"), {"sources": sources, "taken_up": list(call.taken_up)})

    def _note(self, chunk: Chunk, result: ChunkResult, call: _Call) -> None:
        self.call = call
        counts = self.counts
        counts.turns += result.turns
        counts.passings += result.passings
        counts.duplicates += result.duplicates
        counts.rejects.update(result.rejects)
        counts.ignored += chunk.ignored
        counts.ticks += result.ticks
        counts.sources.update(chunk.sources)
        counts.why.update(chunk.why)

    def _note_captures(self, piece: pl.DataFrame, kinds: dict[str, int]) -> None:
        for kind, n in kinds.items():
            self.counts.kinds[kind] = self.counts.kinds.get(kind, 0) + n
            self.counts.captures += n
        self.progress.advance(piece.height)


def _begin(con: Connection, sources: list[str], ager: str | None, now: datetime) -> _Call:
    """Begin a call, with what calls that stopped left of its first sources."""
    replay_no = take_numbers(con, "replay_no")
    (first_turn_no,) = con.execute("SELECT next_free FROM counters WHERE name = 'turn_no'").fetchall()[0]
    begun = _Call(replay_no, first_turn_no, stored_bounds(con), replay_no, frozenset(), (replay_no,))
    call = _with_sources(con, begun, sources, ager)
    con.execute(
        "INSERT INTO replays VALUES ($replay_no, $sources, $ager, $first_turn_no, $first, $last, $now, 0, FALSE)",
        {
            "replay_no": replay_no,
            "sources": sources,
            "ager": ager,
            "first_turn_no": call.first_turn_no,
            "first": call.bounds.first,
            "last": call.bounds.last,
            "now": now,
        },
    )
    return call


def _with_sources(con: Connection, call: _Call, sources: list[str], ager: str | None) -> _Call:
    """The call with more sources, taking up every call that stopped before it had captured one of them."""
    rows = con.execute(query("replay_unfinished"), {"sources": sources, "ager": ager, "own": call.replay_no}).fetchall()
    for replay_no, first_turn_no, same_ager, base_first, base_last in rows:
        if replay_no in call.taken_up:
            continue
        if same_ager and replay_no < call.bounds_of:
            call = replace(call, bounds=Bounds(base_first, base_last), bounds_of=replay_no)
        call = replace(call, first_turn_no=min(call.first_turn_no, first_turn_no), taken_up=(*call.taken_up, replay_no))
    return replace(call, sources=call.sources.union(sources))


def _batches(turns: PathLike | list[PathLike] | pl.DataFrame, options: ReplayOptions) -> Iterator[TurnBatch]:
    # The label is put on later (see _named): a row of turns goes by the policies of the source that it brings.
    if isinstance(turns, pl.DataFrame):
        if options.source != "auto":
            reader_named(options.source)  # a frame needs none, and a name that is none is a mistake all the same
        return frame_batches(turns, tz=options.tz, batch_rows=options.chunk_rows)
    return read_batches(turns, options.source, tz=options.tz, include_values=needs_values(options.passings))


def _chunks(
    batches: Iterator[TurnBatch], options: ReplayOptions, policies: Policies, progress: Progress
) -> Iterator[Chunk]:
    """Batches put together until there are enough rows for a transaction."""
    held: list[TurnBatch] = []
    rows = 0
    for batch in batches:
        held.append(_named(batch, options.label))
        rows += batch.turns.height + batch.rejects.height
        progress.advance(batch.records)
        if rows >= options.chunk_rows:
            yield _chunk(held, options.label, policies)
            held, rows = [], 0
    if held:
        yield _chunk(held, options.label, policies)


def _named(batch: TurnBatch, label: str | None) -> TurnBatch:
    """The batch with the sources that its rows get in the store, and their reader where it is not the source."""
    source = pl.lit(label) if label is not None else pl.col("source")
    rejects = batch.rejects.with_columns(
        source=pl.lit(label) if label is not None else pl.col("source").fill_null(batch.reader or CANONICAL)
    )
    own = batch.reader in ("", CANONICAL)
    if own and label is None:
        return replace(batch, rejects=rejects)
    reader = pl.col("source") if own else pl.lit(batch.reader)
    turns = batch.turns.with_columns(reader.alias(READER)).with_columns(source.alias("source"))
    if (turns[READER] == turns["source"]).all():
        turns = turns.drop(READER)
    return replace(batch, turns=turns, rejects=rejects)


def _chunk(batches: list[TurnBatch], label: str | None, policies: Policies) -> Chunk:
    turns = pl.concat([batch.turns for batch in batches], how="diagonal")
    rejects = pl.concat([batch.rejects for batch in batches])
    sources = {*turns.get_column("source").unique(), *rejects.get_column("source").unique()}
    return Chunk.of(
        turns,
        rejects,
        ignored=sum(batch.ignored for batch in batches),
        sources=sorted(sources or {label or batch.reader or CANONICAL for batch in batches}),
        why={f"{batch.reader}: {batch.why}" for batch in batches if batch.why},
        policies=policies,
    )
