"""Replay: logged turns become memory, exactly once.

    batches of turns --chunks--> turns, passings with their ager nights --at the end--> captures

A chunk is one transaction. What a chunk does depends only on what the store holds already, so a replay that was killed
goes on where it stopped when it is called again, and small chunks give what large ones give. Captures are made last,
in the order of time, because a session may be spread over chunks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from mnemokit.errors import CorruptLog, InvalidInput, MnemokitError, NotFound, ReadOnly
from mnemokit.instants import present
from mnemokit.progress import Progress
from mnemokit.records import ReplayReport
from mnemokit.replay import captures as replay_captures
from mnemokit.replay.ahead import one_ahead
from mnemokit.replay.chunk import Chunk, ChunkResult, commit
from mnemokit.replay.parents import PARENTS, ParentPolicy
from mnemokit.replay.policies import Policies
from mnemokit.replay.removal import remove_source
from mnemokit.replay.ticks import Bounds, stored_bounds
from mnemokit.store import Connection, Store, take_numbers
from mnemokit.turns.derive import CAPTURES, PASSINGS, CapturesPolicy, PassingsPolicy, needs_values
from mnemokit.turns.frame import zone_of
from mnemokit.turns.protocol import TurnBatch
from mnemokit.turns.reading import PathLike, frame_batches, read_batches

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
        if self.tz is not None:
            zone_of(self.tz)
        for what, policy, known in (
            ("passings", self.passings, PASSINGS),
            ("captures", self.captures, CAPTURES),
            ("parents", self.parents, PARENTS),
        ):
            if isinstance(policy, str) and policy not in known:
                raise InvalidInput(f"{what}={policy!r} is no policy; use one of {', '.join(known)}; nothing was read")


def replay(store: Store, turns: PathLike | list[PathLike] | pl.DataFrame, options: ReplayOptions) -> ReplayReport:
    """Turn logged turns into memory; see ``Memory.replay``."""
    if store.read_only:
        raise ReadOnly(f"{store.name} was opened with read_only=True; nothing was replayed")
    started = time.perf_counter()
    counts = _Counts()
    with Progress(options.progress) as progress:
        run = _Run(store, options, counts, progress)
        if options.strict or options.dry_run:
            # One transaction for all of it: nothing is written unless everything is, or nothing at all.
            try:
                store.write(lambda con: run.all_at_once(con, _batches(turns, options)))
            except _DryRunEnd:
                counts.why.add("dry run: nothing was written")
        else:
            run.in_chunks(_batches(turns, options))
    return counts.report(seconds=time.perf_counter() - started, dry_run=options.dry_run)


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
    rejects: int = 0
    ignored: int = 0
    ticks: int = 0
    sessions: int = 0
    sources: set[str] = field(default_factory=set[str])
    why: set[str] = field(default_factory=set[str])
    kinds: dict[str, int] = field(default_factory=dict[str, int])

    def report(self, *, seconds: float, dry_run: bool) -> ReplayReport:
        return ReplayReport(
            turns=self.turns,
            passings=self.passings,
            captures=self.captures,
            duplicates=self.duplicates,
            rejects=self.rejects,
            ignored=self.ignored,
            seconds=seconds,
            sessions=self.sessions,
            ticks=self.ticks,
            source=", ".join(sorted(self.sources)),
            why="; ".join(sorted(self.why)),
            dry_run=dry_run,
            capture_kinds=dict(sorted(self.kinds.items())),
        )


@dataclass
class _Call:
    """One row of table replays: where this call (or the unfinished one that it takes up) began."""

    replay_no: int
    first_turn_no: int
    bounds: Bounds


class _Run:
    def __init__(self, store: Store, options: ReplayOptions, counts: _Counts, progress: Progress) -> None:
        self.store = store
        self.options = options
        self.counts = counts
        self.progress = progress
        self.policies = Policies(options.passings, options.captures, options.parents)
        self.call: _Call | None = None
        self.now = present()

    def in_chunks(self, batches: Iterator[TurnBatch]) -> None:
        try:
            for chunk in one_ahead(_chunks(batches, self.options, self.policies)):
                self._note(chunk, *self.store.write(lambda con, chunk=chunk: self._commit(con, chunk)))
        except CorruptLog as error:
            if self.counts.turns:
                raise CorruptLog(
                    f"{error}; {self.counts.turns:,} turns of what was read before are in the store; "
                    "mend the file and run it again, nothing is doubled"
                ) from error
            raise
        if self.call is None:
            return
        if not self.policies.captures_nothing():
            for piece in replay_captures.slices(
                self.store, self.call.first_turn_no, sorted(self.counts.sources), self.policies
            ):
                self._note_captures(self.store.write(lambda con, piece=piece: self._capture(con, piece)))
        self.store.write(self._finish)

    def all_at_once(self, con: Connection, batches: Iterator[TurnBatch]) -> None:
        for chunk in one_ahead(_chunks(batches, self.options, self.policies)):
            self._note(chunk, *self._commit(con, chunk))
        if self.call is not None:
            if not self.policies.captures_nothing():
                for piece in replay_captures.slices_within(
                    con, self.call.first_turn_no, sorted(self.counts.sources), self.policies
                ):
                    self._note_captures(self._capture(con, piece))
            self._finish(con)
        if self.options.dry_run:
            raise _DryRunEnd("a dry run writes nothing")

    def _commit(self, con: Connection, chunk: Chunk) -> tuple[ChunkResult, _Call]:
        call = self.call or _begin(con, chunk.sources, self.options.ager, self.now)
        result = commit(
            con,
            self.store,
            chunk,
            policies=self.policies.knowing(chunk.readers),
            bounds=call.bounds if self.options.ager else None,
            now=self.now,
            strict=self.options.strict,
        )
        con.execute(
            "UPDATE replays SET turns = turns + $turns, sources = list_sort(list_distinct(sources || $sources)) "
            "WHERE replay_no = $replay_no",
            {"turns": result.turns, "sources": chunk.sources, "replay_no": call.replay_no},
        )
        return result, call

    def _capture(self, con: Connection, piece: pl.DataFrame) -> dict[str, int]:
        return replay_captures.capture(con, self.store, piece, self.policies)

    def _finish(self, con: Connection) -> None:
        if self.call is not None:
            self.counts.sessions = replay_captures.sessions_since(con, self.call.first_turn_no)
            con.execute("UPDATE replays SET finished = TRUE WHERE replay_no = ?", [self.call.replay_no])

    def _note(self, chunk: Chunk, result: ChunkResult, call: _Call) -> None:
        self.call = call
        self.policies = self.policies.knowing(chunk.readers)
        counts = self.counts
        counts.turns += result.turns
        counts.passings += result.passings
        counts.duplicates += result.duplicates
        counts.rejects += result.rejects
        counts.ignored += chunk.ignored
        counts.ticks += result.ticks
        counts.sources.update(chunk.sources)
        counts.why.update(chunk.why)
        self.progress.advance(chunk.records)

    def _note_captures(self, kinds: dict[str, int]) -> None:
        for kind, n in kinds.items():
            self.counts.kinds[kind] = self.counts.kinds.get(kind, 0) + n
            self.counts.captures += n


def _begin(con: Connection, sources: list[str], ager: str | None, now: datetime) -> _Call:
    """Take up an unfinished call that read the same source, or begin a new one."""
    rows = con.execute(
        "SELECT replay_no, first_turn_no, base_first, base_last FROM replays "
        "WHERE NOT finished AND list_has_any(sources, $sources) AND ager IS NOT DISTINCT FROM $ager "
        "ORDER BY replay_no LIMIT 1",
        {"sources": sources, "ager": ager},
    ).fetchall()
    if rows:
        replay_no, first_turn_no, base_first, base_last = rows[0]
        return _Call(replay_no, first_turn_no, Bounds(base_first, base_last))
    bounds = stored_bounds(con)
    replay_no = take_numbers(con, "replay_no")
    (first_turn_no,) = con.execute("SELECT next_free FROM counters WHERE name = 'turn_no'").fetchall()[0]
    con.execute(
        "INSERT INTO replays VALUES ($replay_no, $sources, $ager, $first_turn_no, $first, $last, $now, 0, FALSE)",
        {
            "replay_no": replay_no,
            "sources": sources,
            "ager": ager,
            "first_turn_no": first_turn_no,
            "first": bounds.first,
            "last": bounds.last,
            "now": now,
        },
    )
    return _Call(replay_no, first_turn_no, bounds)


def _batches(turns: PathLike | list[PathLike] | pl.DataFrame, options: ReplayOptions) -> Iterator[TurnBatch]:
    if isinstance(turns, pl.DataFrame):
        return frame_batches(turns, label=options.label, tz=options.tz, batch_rows=options.chunk_rows)
    return read_batches(
        turns,
        options.source,
        tz=options.tz,
        label=options.label,
        include_values=needs_values(options.passings),
    )


def _chunks(batches: Iterator[TurnBatch], options: ReplayOptions, policies: Policies) -> Iterator[Chunk]:
    """Batches put together until there are enough rows for a transaction."""
    held: list[TurnBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.turns.height + batch.rejects.height
        if rows >= options.chunk_rows:
            yield _chunk(held, options.label, policies)
            held, rows = [], 0
    if held:
        yield _chunk(held, options.label, policies)


def _chunk(batches: list[TurnBatch], label: str | None, policies: Policies) -> Chunk:
    readers: dict[str, str] = {}
    for batch in batches:
        names = batch.turns.get_column("source").unique().to_list() or [label or batch.reader]
        # A frame is read by no reader: the policies of its rows are those of the source that they name.
        readers.update((name, batch.reader or name) for name in names)
    return Chunk.of(
        pl.concat([batch.turns for batch in batches], how="diagonal"),
        pl.concat([batch.rejects.with_columns(source=pl.lit(label or batch.reader or "turns")) for batch in batches]),
        ignored=sum(batch.ignored for batch in batches),
        readers=readers,
        why={f"{batch.reader}: {batch.why}" for batch in batches if batch.why},
        policies=policies,
    )
