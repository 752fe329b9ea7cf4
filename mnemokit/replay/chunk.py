"""One chunk of a replay, in one transaction: its turns are stored, its passings derived and folded into the edges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from mnemokit.errors import CorruptLog
from mnemokit.mnests import bulk as mnest_bulk
from mnemokit.replay.forgotten import without_forgotten
from mnemokit.replay.policies import Policies
from mnemokit.replay.ticks import Bounds, passing_bounds, ticks_to_add
from mnemokit.store import Connection, Store, fetch, lend, query, take_numbers
from mnemokit.turns.frame import TURN_KEY, TURNS_SCHEMA

_EDGE = ["src_executor", "src_version", "dst_executor", "dst_version"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """What was read for one transaction.

    Attributes:
        turns: Canonical turns, in the order of the log.
        rejects: Records that cannot be used, with the column source.
        ignored: How many records were no steps.
        readers: The reader of each source.
        why: Why those readers were taken.
    """

    turns: pl.DataFrame
    rejects: pl.DataFrame
    ignored: int
    readers: dict[str, str]
    why: set[str]

    @property
    def sources(self) -> list[str]:
        """The sources of this chunk, sorted."""
        return sorted(self.readers)

    @property
    def records(self) -> int:
        """How many records were read for this chunk."""
        return self.turns.height + self.rejects.height + self.ignored


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What one chunk did to the store."""

    turns: int
    passings: int
    duplicates: int
    rejects: int
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
    distinct = _without_repeats(chunk.turns)
    kept, rejects = without_forgotten(con, store, distinct, chunk.rejects)
    if strict and rejects.height:
        row = rejects.row(0, named=True)
        raise CorruptLog(f"{row['file']}: {row['place']}: {row['reason']}; strict: nothing was written")
    fresh = _without_stored(con, kept)
    first_no = take_numbers(con, "turn_no", fresh.height)
    fresh = fresh.with_columns(turn_no=pl.int_range(pl.len(), dtype=pl.Int64) + first_no)
    passings, stale = _new_passings(con, fresh, policies, store.edge_params.decay_lambda)
    with lend(con, fresh=fresh.select(*TURNS_SCHEMA, "turn_no"), found=rejects):
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
        duplicates=chunk.turns.height - (distinct.height - kept.height) - fresh.height,
        rejects=rejects.height,
        ticks=len(ticks),
    )


def untimed_instants(seq: pl.Expr) -> pl.Expr:
    """Where a log has no times, the order of arrival stands for them: microseconds since 1970."""
    return pl.from_epoch(seq, time_unit="us").dt.replace_time_zone("UTC")


def _without_repeats(turns: pl.DataFrame) -> pl.DataFrame:
    """The first row of each turn, in the order of the log."""
    # Only rows whose hashes meet can be repeats; a log mostly has none, and then no text is compared.
    suspect = turns.select(key=pl.struct(TURN_KEY).hash()).get_column("key").is_duplicated()
    if not suspect.any():
        return turns
    rows = turns.select(TURN_KEY).with_row_index("row").filter(suspect)
    repeats = rows.filter(~pl.struct(TURN_KEY).is_first_distinct()).get_column("row")
    keep = pl.int_range(turns.height, dtype=pl.UInt32, eager=True).is_in(repeats.implode()).not_()
    return turns.filter(keep)


def _without_stored(con: Connection, turns: pl.DataFrame) -> pl.DataFrame:
    sources = turns.get_column("source").unique().to_list()
    known = con.execute("SELECT 1 FROM turns WHERE list_contains(?, source) LIMIT 1", [sources]).fetchall()
    if not known:
        return turns
    numbered = turns.with_columns(arrival=pl.int_range(pl.len(), dtype=pl.Int64))
    with lend(con, arriving=numbered.select("arrival", *TURN_KEY)):
        stored = fetch(con, query("replay_stored_keys"))
    if stored.height:
        numbered = numbered.join(stored, on="arrival", how="anti", maintain_order="left")
    return numbered.drop("arrival")


def _new_passings(
    con: Connection, fresh: pl.DataFrame, policies: Policies, decay_lambda: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Passings that these turns bring, and those that they disprove.

    Where a session goes on from earlier chunks, its passings are derived from all of it; what was stored already is not
    new, and a stored passing that a step in between makes untrue is taken back.
    """
    with lend(con, arriving=fresh.select("source", "session_id").unique()):
        continued = fetch(con, query("replay_continued_turns"))
    stale = pl.DataFrame(schema={"turn_no": pl.Int64, **dict.fromkeys(_EDGE, pl.String), "times": pl.Int64})
    together = pl.concat([continued, fresh], how="diagonal") if continued.height else fresh
    derived = policies.derive_passings(together)
    if "turn_no" not in derived.columns:
        numbers = together.select(*TURN_KEY, "turn_no")
        derived = derived.join(numbers, on=list(TURN_KEY), how="left", maintain_order="left")
    if continued.height:
        with lend(con, continued=continued.select("turn_no")):
            stored = fetch(con, query("replay_stored_passings"))
        derived = derived.with_columns(nth=pl.int_range(pl.len()).over("turn_no", *_EDGE) + 1)
        counted = derived.join(stored, on=["turn_no", *_EDGE], how="left", nulls_equal=True, maintain_order="left")
        derived = counted.filter(pl.col("nth") > pl.col("times").fill_null(0)).drop("nth", "times")
        still = counted.group_by("turn_no", *_EDGE).agg(now=pl.len().cast(pl.Int64))
        stale = (
            stored.join(still, on=["turn_no", *_EDGE], how="left", nulls_equal=True)
            .with_columns(times=pl.col("times") - pl.col("now").fill_null(0))
            .filter(pl.col("times") > 0)
            .drop("now")
        )
    first = take_numbers(con, "seq", derived.height)
    seq = pl.int_range(pl.len(), dtype=pl.Int64) + first
    return (
        derived.with_columns(seq=seq).with_columns(
            untimed=pl.col("ts").is_null(),
            ts=pl.coalesce("ts", untimed_instants(pl.col("seq"))),
            decay_lambda=pl.col("decay_lambda").fill_null(decay_lambda),
        ),
        stale,
    )


def _ticks(con: Connection, store: Store, passings: pl.DataFrame, bounds: Bounds | None) -> list[datetime]:
    if bounds is None:
        return []
    there = passing_bounds(con)
    timed = passings.filter(~pl.col("untimed")).select(first=pl.col("ts").min(), last=pl.col("ts").max())
    there = there.including(Bounds(*timed.row(0)))
    stored = frozenset(row[0] for row in con.execute("SELECT ts_ager FROM ager_runs").fetchall())
    return ticks_to_add(there, when_begun=bounds, stored=stored, hour=store.edge_params.tick_hour)
