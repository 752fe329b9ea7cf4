"""Reading the edge memory, as it stands or as of an instant.

As of an instant, the facts up to it and the ticks up to it are folded: what came later has not happened. Where the
instant is not before anything in the store, that is what stands, and only the weights have faded further.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from mnemokit.fold.edge_weights import weight_at
from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import EDGES, with_schema
from mnemokit.frames import conform, schema_of
from mnemokit.instants import to_us
from mnemokit.mnests import tables
from mnemokit.records import EdgeParams, MnestState
from mnemokit.store import Connection, fetch, lend, query

MNESTS = schema_of("mnests")
MNEST_EVENTS = schema_of("mnest_events")


@dataclass(frozen=True, slots=True)
class Mnest:
    """One weighted edge; see the columns of ``mem.frame("mnests")``."""

    mnest_id: str
    src_executor: str
    src_version: str
    dst_executor: str
    dst_version: str | None
    weight: float
    weight_at: float
    uses: int
    ts_first: datetime
    ts_last: datetime
    ts_used: datetime
    decay_lambda: float
    state: str
    tags: tuple[str, ...]
    desired_sig: str | None
    untimed: bool


@dataclass(frozen=True, slots=True)
class Flow:
    """Active edges one way: how many, their uses together, their mean weight (0.0 if there are none)."""

    edges: int
    uses: int
    mean_weight: float


@dataclass(frozen=True, slots=True)
class ExecutorSummary:
    """What passes out of an executor and into it, and how many protos want it."""

    executor: str
    outgoing: Flow
    incoming: Flow
    proto_incoming: int


@dataclass(frozen=True, slots=True)
class MnestStats:
    """How many records there are, in all and by state."""

    total_mnests: int
    active: int
    proto: int
    decaying: int
    superseded: int


def mnests_at(con: Connection, params: EdgeParams, at: datetime | None, executor: str | None = None) -> pl.DataFrame:
    """Records as they stand or as of an instant, all or those from and to an executor: the public columns."""
    if at is not None and tables.horizon(con).is_after(at):
        return _records_then(con, params, at, executor)
    standing = fetch(con, query("mnest_standing"), {"executor": executor})
    return conform(standing.with_columns(weight_at(at)), MNESTS)


def one_record(frame: pl.DataFrame) -> Mnest:
    """The only row of a frame of mnests."""
    row = frame.row(0, named=True)
    row["tags"] = tuple(row["tags"])
    return Mnest(**row)


def summarise(frame: pl.DataFrame, executor: str) -> ExecutorSummary:
    """What a frame of mnests says of an executor; means are of ``weight_at``."""
    active = frame.filter(pl.col("state") == MnestState.ACTIVE.value)
    wanted = frame.filter((pl.col("state") == MnestState.PROTO.value) & (pl.col("dst_executor") == executor))
    return ExecutorSummary(
        executor,
        outgoing=_flow(active.filter(pl.col("src_executor") == executor)),
        incoming=_flow(active.filter(pl.col("dst_executor") == executor)),
        proto_incoming=wanted.height,
    )


def superseded_for(con: Connection, mnest_id: str, at: datetime | None) -> list[str]:
    """Records whose place this one took when a version was superseded, and those whose place they had taken."""
    found: list[str] = []
    edges = fetch(con, "SELECT edge_no FROM mnest_lives WHERE mnest_id = $mnest_id", {"mnest_id": mnest_id})
    # A promoted record goes by the edge that it has now.
    now = fetch(con, "SELECT edge_no FROM mnest_records WHERE mnest_id = $mnest_id", {"mnest_id": mnest_id})
    frontier = pl.concat([edges, now]).cast(pl.Int32).unique()
    seen = frontier
    while frontier.height:
        with lend(con, lent_edges=tables.edges_of(con, frontier)):
            before = fetch(con, query("mnest_superseded_for"), {"at": at})
        found += before["mnest_id"].to_list()
        frontier = before.select(pl.col("edge_no").cast(pl.Int32)).unique().join(seen, on="edge_no", how="anti")
        seen = pl.concat([seen, frontier])
    return [one for one in dict.fromkeys(found) if one != mnest_id]


def count_states(frame: pl.DataFrame) -> MnestStats:
    """How many records are in each state."""
    counts = dict(frame.group_by("state").agg(pl.len()).iter_rows())
    return MnestStats(frame.height, *(counts.get(state.value, 0) for state in MnestState))


def _flow(edges: pl.DataFrame) -> Flow:
    mean = edges.select(pl.col("weight_at").mean().fill_null(0.0)).item()
    return Flow(edges.height, int(edges["uses"].sum()), float(mean))


def _records_then(con: Connection, params: EdgeParams, at: datetime, executor: str | None) -> pl.DataFrame:
    edges = fetch(con, query("mnest_edges_begun"), {"executor": executor})
    folded = fold_edges(
        tables.facts_of(con, edges.select("edge_no"), at),
        with_schema(edges, EDGES),
        _ticks_until(con, at),
        params,
    )
    lives = folded.lives.select("life", "mnest_no").join(
        tables.lives_of(con, edges.select("edge_no")).select("mnest_no", "mnest_id"), on="mnest_no", how="left"
    )  # fmt: skip
    then = folded.records.join(lives, on="life", how="left").join(edges, on="edge_no", how="left")
    return conform(then.sort("mnest_no").with_columns(weight_at(at)), MNESTS)


def _ticks_until(con: Connection, at: datetime) -> tables.Ints:
    ticks = tables.ticks_so_far(con)
    return ticks[ticks <= to_us(at)]
