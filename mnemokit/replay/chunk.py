"""One chunk of a replay, in one transaction: its turns are stored, its passings derived and folded into the edges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.errors import CorruptLog, InvalidInput
from mnemokit.mnests import bulk as mnest_bulk
from mnemokit.replay.forgotten import without_forgotten
from mnemokit.replay.policies import READER, Policies
from mnemokit.replay.ticks import Bounds, passing_bounds, ticks_to_add
from mnemokit.store import Connection, Store, fetch, lend, query, take_numbers
from mnemokit.turns.frame import TURN_KEY, TURNS_SCHEMA, VALUE_COLUMNS

_EDGE = ["src_executor", "src_version", "dst_executor", "dst_version"]
_SESSION = ("source", "session_id")
_STALE = {"turn_no": pl.Int64, **dict.fromkeys(_EDGE, pl.String), "times": pl.Int64}


@dataclass(frozen=True, slots=True)
class Chunk:
    """What was read for one transaction.

    Attributes:
        turns: Canonical turns, in the order of the log, each once; turn_no is their place here. Hashed values where
            the policy looks at them, and the reader where it is not the source.
        passings: What these turns mean by themselves, with the turn_no of the destination's turn.
        repeats: How many rows of the log were turns that it had told of already.
        rejects: Records that cannot be used, with the column source.
        ignored: How many records were no steps.
        sources: The sources of this chunk, sorted.
        why: Why those readers were taken.
    """

    turns: pl.DataFrame
    passings: pl.DataFrame
    repeats: int
    rejects: pl.DataFrame
    ignored: int
    sources: list[str]
    why: set[str]

    @classmethod
    def of(
        cls,
        turns: pl.DataFrame,
        rejects: pl.DataFrame,
        *,
        ignored: int,
        sources: list[str],
        why: set[str],
        policies: Policies,
    ) -> Chunk:
        """Prepare what needs no look at the store."""
        distinct = _without_repeats(turns).with_columns(turn_no=pl.int_range(pl.len(), dtype=pl.Int64))
        passings = _derived(policies, distinct)
        return cls(distinct, passings, turns.height - distinct.height, rejects, ignored, sources, why)


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What one chunk did to the store; rejects are counted by reason."""

    turns: int
    passings: int
    duplicates: int
    rejects: dict[str, int]
    ticks: int


def commit(
    con: Connection,
    store: Store,
    chunk: Chunk,
    *,
    policies: Policies,
    bounds: Bounds | None,
    now: datetime,
    strict: bool,
) -> ChunkResult:
    """Store a chunk, inside the caller's transaction.

    Args:
        con: In a transaction.
        store: Whose parameters and keyed hash are used.
        chunk: What was read.
        policies: How passings are derived.
        bounds: Ticks there were when the replay began; None for a replay without an ager.
        now: When the rejects were read.
        strict: Stop at the first reject.

    Raises:
        CorruptLog: With ``strict``, if a record cannot be used.
    """
    kept, rejects = without_forgotten(con, store, chunk.turns, chunk.rejects)
    if strict and rejects.height:
        row = rejects.row(0, named=True)
        raise CorruptLog(f"{row['file']}: {row['place']}: {row['reason']}; strict: nothing was written")
    known = _known_sessions(con, kept)
    fresh = _without_stored(con, kept, known)
    passings = chunk.passings if kept.height == chunk.turns.height else _derived(policies, kept)
    first_no = take_numbers(con, "turn_no", fresh.height)
    if fresh.height == kept.height == chunk.turns.height:
        fresh, passings = (frame.with_columns(pl.col("turn_no") + first_no) for frame in (fresh, passings))
    else:
        fresh, passings = _numbered(fresh, passings, first_no, places=chunk.turns.height)
    stale = pl.DataFrame(schema=_STALE)
    if known.height:
        passings, stale = _of_whole_sessions(con, policies, fresh, passings, known)
    passings = _as_facts(con, passings, store.edge_params.decay_lambda)
    with lend(con, fresh=_stored_columns(fresh), found=rejects):
        con.execute(query("replay_insert_turns"))
        if rejects.height:
            con.execute(query("replay_insert_rejects"), {"now": now})
    ticks = _ticks(con, store, passings, bounds)
    if stale.height:
        mnest_bulk.withdraw_passings(con, store.edge_params, stale)
    if passings.height or ticks:
        mnest_bulk.ingest(con, store.edge_params, passings, ticks=ticks)
    return ChunkResult(
        turns=fresh.height,
        passings=passings.height,
        duplicates=chunk.repeats + kept.height - fresh.height,
        rejects=dict(rejects.group_by("reason").len().iter_rows()),
        ticks=len(ticks),
    )


def untimed_instants(seq: pl.Expr) -> pl.Expr:
    """Where a log has no times, the order of arrival stands for them: microseconds since 1970."""
    return pl.from_epoch(seq, time_unit="us").dt.replace_time_zone("UTC")


def _without_repeats(turns: pl.DataFrame) -> pl.DataFrame:
    """The first row of each turn, in the order of the log."""
    # Only rows whose hashes meet can be repeats; a log mostly has none, and then no text is compared. (Sorting many
    # numbers takes a tenth of the time that a table of them takes.)
    keys = turns.select(key=pl.struct(TURN_KEY).hash()).get_column("key")
    ascending = np.sort(keys.to_numpy())
    if not (ascending[1:] == ascending[:-1]).any():
        return turns
    rows = turns.select(TURN_KEY).with_row_index("row").filter(keys.is_duplicated())
    repeats = rows.filter(~pl.struct(TURN_KEY).is_first_distinct()).get_column("row")
    keep = pl.int_range(turns.height, dtype=pl.UInt32, eager=True).is_in(repeats.implode()).not_()
    return turns.filter(keep)


def _derived(policies: Policies, turns: pl.DataFrame) -> pl.DataFrame:
    """The passings of these turns, with the turn_no of the destination's turn.

    Raises:
        InvalidInput: If a caller's own policy makes a passing to what is no turn.
    """
    own = callable(policies.passings)
    derived = policies.derive_passings(turns)
    if "turn_no" in derived.columns and not own and not derived.get_column("turn_no").has_nulls():
        return derived
    # What a caller's own policy says of the destination is its key; a number that it handed on may be another turn's.
    numbers = turns.select(*TURN_KEY, "turn_no")
    placed = derived.drop("turn_no", strict=False).join(numbers, on=list(TURN_KEY), how="left", maintain_order="left")
    nowhere = placed.filter(pl.col("turn_no").is_null())
    if nowhere.height:
        row = nowhere.row(0, named=True)
        name = getattr(policies.passings, "__name__", policies.passings)
        raise InvalidInput(
            f"the passings function {name!r} made a passing to "
            f"turn_id={row['turn_id']!r}, step={row['step']!r} of source={row['source']!r}, "
            f"session_id={row['session_id']!r}, which is no turn of this log; no turn of its chunk was written; "
            "give a passing the source, session_id, turn_id and step of its destination's row"
        )
    return placed


def _stored_columns(turns: pl.DataFrame) -> pl.DataFrame:
    """What a store keeps of turns: of hashed values and reader only what is there, as most logs have neither."""
    more = [name for name in (*VALUE_COLUMNS, READER) if name in turns.columns]
    there = [name for name in more if turns.get_column(name).null_count() < turns.height]
    return turns.select(*TURNS_SCHEMA, *there, "turn_no")


def _known_sessions(con: Connection, turns: pl.DataFrame) -> pl.DataFrame:
    """The sessions of these turns that the store has turns of already: source and session_id."""
    with lend(con, arriving=_sessions(turns)):
        return fetch(con, query("replay_known_sessions"))


def _without_stored(con: Connection, turns: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Turns that the store does not hold already; those can only be in sessions that it knows."""
    if not known.height:
        return turns
    arriving = turns.select(*TURN_KEY, "turn_no").join(known, on=list(_SESSION), how="semi")
    with lend(con, arriving=arriving):
        stored = fetch(con, query("replay_stored_keys"))
    return turns.filter(~pl.col("turn_no").is_in(stored["turn_no"].implode())) if stored.height else turns


def _numbered(
    fresh: pl.DataFrame, passings: pl.DataFrame, first_no: int, *, places: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number the turns that are left, and say so in their passings; the passings of the others go."""
    left = np.zeros(places, dtype=np.bool_)
    left[fresh.get_column("turn_no").to_numpy()] = True
    numbers = np.cumsum(left) - 1 + first_no
    passings = passings.filter(pl.Series(left).gather(passings.get_column("turn_no")))
    turn_no = pl.Series("turn_no", numbers)

    def renumbered(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(turn_no.gather(frame.get_column("turn_no")))

    return renumbered(fresh), renumbered(passings)


def _of_whole_sessions(
    con: Connection, policies: Policies, fresh: pl.DataFrame, passings: pl.DataFrame, known: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Derive sessions that go on from all of their turns.

    What was stored already is not new, and a stored passing that a step in between makes untrue is taken back; but
    where a policy looks at values that are gone, the passings of stored turns stay as they stand.

    Returns:
        The passings that are new, and how many of the stored ones are true no longer.
    """
    going_on = fresh.join(known, on=list(_SESSION), how="semi", maintain_order="left")
    with lend(con, arriving=_sessions(going_on)):
        continued = fetch(con, query("replay_continued_turns"))
    with lend(con, continued=continued.select("turn_no")):
        stored = fetch(con, query("replay_stored_passings"))
    whole = pl.concat([continued, going_on], how="diagonal")
    derived = _derived(policies, whole)
    derived = derived.with_columns(nth=pl.int_range(pl.len()).over("turn_no", *_EDGE) + 1)
    counted = derived.join(stored, on=["turn_no", *_EDGE], how="left", nulls_equal=True, maintain_order="left")
    new = counted.filter(pl.col("nth") > pl.col("times").fill_null(0)).drop("nth", "times")
    still = counted.group_by("turn_no", *_EDGE).agg(now=pl.len().cast(pl.Int64))
    stale = (
        stored.join(still, on=["turn_no", *_EDGE], how="left", nulls_equal=True)
        .with_columns(times=pl.col("times") - pl.col("now").fill_null(0))
        .filter(pl.col("times") > 0)
        .drop("now")
    )
    unknown = _without_values(policies, continued, whole)
    if unknown.len():
        new, stale = (frame.filter(~pl.col("turn_no").is_in(unknown.implode())) for frame in (new, stale))
    others = passings.filter(~pl.col("turn_no").is_in(going_on["turn_no"].implode()))
    return pl.concat([new, others], how="diagonal"), stale


def _without_values(policies: Policies, continued: pl.DataFrame, whole: pl.DataFrame) -> pl.Series:
    """Stored turns of whose passings nothing can be said any more, by number.

    Those of sessions in which values tell the passings and are known for some steps only: an erasure took the others,
    or the store is older than they are. In a session without any value the order of the steps tells all.
    """
    known = pl.col("arg_values").is_not_null()
    blind = policies.looking_at_values(continued).filter(pl.col("executor").is_not_null() & ~known).select(_SESSION)
    if blind.height == 0:
        return pl.Series("turn_no", [], dtype=pl.Int64)
    seeing = whole.filter(known).select(_SESSION)
    both = blind.join(seeing, on=_SESSION, how="semi")
    return continued.join(both, on=_SESSION, how="semi").get_column("turn_no")


def _as_facts(con: Connection, passings: pl.DataFrame, decay_lambda: float) -> pl.DataFrame:
    """Passings with a place in the order of all that is stored, an instant and a rate."""
    first = take_numbers(con, "seq", passings.height)
    facts = passings.with_columns(seq=pl.int_range(pl.len(), dtype=pl.Int64) + first)
    untimed = passings.get_column("ts").is_null()
    facts = facts.with_columns(untimed=untimed)
    if untimed.any():
        facts = facts.with_columns(ts=pl.coalesce("ts", untimed_instants(pl.col("seq"))))
    # Where no passing has a rate of its own, all have the store's without saying so.
    if passings.get_column("decay_lambda").null_count() == passings.height:
        return facts.drop("decay_lambda")
    return facts.with_columns(pl.col("decay_lambda").fill_null(decay_lambda))


def _sessions(turns: pl.DataFrame) -> pl.DataFrame:
    """The sessions of these turns, each once: source and session_id."""
    # Turns of a session mostly come together, so that few rows are left to compare.
    begins = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in _SESSION)
    return turns.select(_SESSION).filter(begins | (pl.int_range(pl.len()) == 0)).unique()


def _ticks(con: Connection, store: Store, passings: pl.DataFrame, bounds: Bounds | None) -> list[datetime]:
    if bounds is None:
        return []
    there = passing_bounds(con)
    timed = passings.filter(~pl.col("untimed")).select(first=pl.col("ts").min(), last=pl.col("ts").max())
    there = there.including(Bounds(*timed.row(0)))
    stored = frozenset(row[0] for row in con.execute("SELECT ts_ager FROM ager_runs").fetchall())
    return ticks_to_add(there, when_begun=bounds, stored=stored, hour=store.edge_params.tick_hour)
