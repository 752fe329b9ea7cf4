"""The edge memory's tables, read set by set: edges, facts, ticks, lives, records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.fold.edge_keys import KEYS, number_keys
from mnemokit.fold.frames import INSTANT, TAGS, Schema
from mnemokit.fold.kernel import Ints
from mnemokit.records import AgerStats
from mnemokit.store import Connection, fetch, lend, query, take_numbers

HISTORY: Schema = {
    "seq": pl.Int64(),
    "edge_no": pl.Int32(),
    "mnest_no": pl.Int32(),
    "ts": INSTANT,
    "kind": pl.String(),
    "untimed": pl.Boolean(),
    "turn_no": pl.Int64(),
    "turn_id": pl.String(),
    "decay_lambda": pl.Float64(),
    "tags": TAGS,
    "desired_sig": pl.String(),
    "old_state": pl.String(),
    "new_state": pl.String(),
    "reason": pl.String(),
    "detail": pl.String(),
}
"""Facts as they are stored; mnest_no is null for a fact that is new."""

QUERY_USES: Schema = {
    "query": pl.String(),
    "tool": pl.String(),
    "args_shape": pl.String(),
    "uses": pl.Int64(),
    "ok": pl.Int64(),
    "fail": pl.Int64(),
    "ts_first": INSTANT,
    "ts_last": INSTANT,
}
"""Columns of uses of canonical queries."""


def edge_frame(edge_nos: pl.Series | Sequence[int]) -> pl.DataFrame:
    """Edge numbers as a frame to lend."""
    return pl.DataFrame({"edge_no": pl.Series(edge_nos, dtype=pl.Int32)}).unique()


def edges_for(con: Connection, keys: pl.DataFrame) -> pl.Series:
    """Edge numbers of these keys (``KEYS``, each once), in their order; edges not met before get a number."""
    numbered = keys.select(KEYS).with_row_index("key_no")
    with lend(con, lent_keys=numbered):
        known = fetch(con, query("mnest_known_edges"))
        if known.height < keys.height:
            new = numbered.join(known.select(pl.col("key_no").cast(pl.UInt32)), on="key_no", how="anti")
            first = take_numbers(con, "edge_no", new.height)
            new = new.with_columns(edge_no=pl.int_range(first, first + new.height, dtype=pl.Int32()))
            with lend(con, lent_edges=new):
                con.execute(
                    "INSERT INTO edges BY NAME "
                    "SELECT edge_no, src_executor, src_version, dst_executor, dst_version FROM lent_edges"
                )
            known = pl.concat(
                [known.select(pl.col("key_no").cast(pl.UInt32), pl.col("edge_no").cast(pl.Int32)),
                 new.select("key_no", "edge_no")]
            )  # fmt: skip
    return known.sort("key_no")["edge_no"].cast(pl.Int32)


def number_edges(con: Connection, passings: pl.DataFrame) -> pl.Series:
    """The edge number of each passing."""
    place, keys = number_keys(passings)
    return edges_for(con, keys).gather(pl.Series(place))


def pair_edges(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """Every edge of the pairs that these edges belong to: ``mnemokit.fold.frames.EDGES``, ``KEYS`` and ts_acted."""
    with lend(con, lent_edges=edges):
        return fetch(con, query("mnest_edges_of_pairs")).with_columns(pl.col("edge_no", "pair_no").cast(pl.Int32))


def edges_of(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """These edges: edge_no, ``KEYS`` and ts_acted."""
    with lend(con, lent_edges=edges):
        return fetch(con, query("mnest_edges_of")).with_columns(pl.col("edge_no").cast(pl.Int32))


def ticks_so_far(con: Connection) -> Ints:
    """All ager instants, ascending, in microseconds since 1970."""
    rows = con.execute("SELECT DISTINCT epoch_us(ts_ager) AS tick FROM ager_runs ORDER BY tick").fetchall()
    return np.array([tick for (tick,) in rows], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Horizon:
    """How far the edges have lived.

    Attributes:
        ager: The newest ager instant.
        act: When somebody last changed a record by hand.
        use: The newest passing.
    """

    ager: datetime | None
    act: datetime | None
    use: datetime | None

    @property
    def facts(self) -> datetime | None:
        """The newest instant that any record lived through, agers aside."""
        return max((moment for moment in (self.act, self.use) if moment is not None), default=None)

    def is_after(self, moment: datetime) -> bool:
        """Is there a fact or a tick later than this?"""
        return any(known is not None and moment < known for known in (self.ager, self.facts))


def horizon(con: Connection) -> Horizon:
    """How far the edges have lived by now."""
    return Horizon(*con.execute(query("mnest_horizon")).fetchall()[0])


def facts_of(con: Connection, edges: pl.DataFrame, before: datetime | None = None) -> pl.DataFrame:
    """Facts of these edges, up to an instant if one is given, in order of time: ``HISTORY``."""
    with lend(con, lent_edges=edges):
        found = fetch(con, query("mnest_facts_of"), {"before": before})
    return found.select(pl.col(name).cast(dtype) for name, dtype in HISTORY.items())


def records_of(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """Records of these edges, for a fold to go on from."""
    with lend(con, lent_edges=edges):
        return fetch(con, query("mnest_records_of")).with_columns(pl.col("life", "edge_no").cast(pl.Int32))


def whole_records_of(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """The same, with mnest_id and ``KEYS``."""
    with lend(con, lent_edges=edges):
        found = fetch(con, "SELECT * RENAME (mnest_no AS life) FROM mnests SEMI JOIN lent_edges USING (edge_no)")
    return found.with_columns(pl.col("life", "edge_no").cast(pl.Int32))


def lives_of(con: Connection, edges: pl.DataFrame) -> pl.DataFrame:
    """Every life that these edges ever had: mnest_no, mnest_id, edge_no, record_no."""
    with lend(con, lent_edges=edges):
        return fetch(con, query("mnest_lives_of"))


def numbers_of(con: Connection, mnest_ids: pl.Series) -> pl.Series:
    """The numbers of these records, in their order."""
    lives = fetch(con, "SELECT mnest_no, mnest_id FROM mnest_lives WHERE list_contains($ids, mnest_id)",
                  {"ids": mnest_ids.to_list()})  # fmt: skip
    found = mnest_ids.to_frame("mnest_id").join(lives, on="mnest_id", how="left", maintain_order="left")
    return found["mnest_no"].cast(pl.Int32)


def add_tick(con: Connection, now: datetime, stats: AgerStats, kind: str, params_json: str, seconds: float) -> None:
    """Note one ager instant with what it did."""
    con.execute(
        query("mnest_add_tick"),
        {"now": now, "kind": kind, "params": params_json, "seconds": seconds, **asdict(stats)},
    )


def add_ticks(con: Connection, nights: pl.DataFrame, kind: str, params_json: str, seconds: float) -> None:
    """Note ager instants with their counts: ts_ager and the counts that there are."""
    rows = nights.with_columns(
        kind=pl.lit(kind), params=pl.lit(params_json), seconds=pl.lit(seconds / max(1, nights.height))
    )
    with lend(con, lent_nights=rows):
        con.execute("INSERT INTO ager_runs BY NAME SELECT * FROM lent_nights")
