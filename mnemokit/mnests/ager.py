"""Agers over the edges that nothing else happened to.

A record keeps the weight it was last written with, and the view ``mnests`` brings it to the newest ager, so that an
ager writes only what it ends. Nearly all of that are active records of edges without a decaying one: a tick demotes
them in place, and writes its instant only. The others (what merges, a proto that is purged, what several ticks find at
different instants, edges somebody acted on) are folded from their records.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.fold.edge_keys import KEYS, pair_numbers
from mnemokit.fold.edge_life import DEMOTE_SEQ
from mnemokit.fold.edge_weights import LIVE_STATES, live_floor
from mnemokit.fold.edges import fold_edges
from mnemokit.fold.frames import EDGES, INSTANT, NIGHTS
from mnemokit.fold.kernel import Ints
from mnemokit.instants import from_us
from mnemokit.mnests import tables
from mnemokit.mnests.writing import write_continued
from mnemokit.records import EdgeParams, MnestState
from mnemokit.store import Connection, fetch, lend, query


def age_apart(
    con: Connection, params: EdgeParams, ticks: Ints, horizon: tables.Horizon, apart: pl.DataFrame
) -> pl.DataFrame:
    """Let ticks pass over all edges but those apart.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        ticks: Ager instants that are new, ascending; at least one.
        horizon: How far the store had lived before.
        apart: Column edge_no: edges that are aged elsewhere, together with what else is new to them.

    Returns:
        The counts of each tick.
    """
    now = from_us(int(ticks[-1]))
    met = fetch(con, query("mnest_night"), {"now": now, **_floors(params)})
    ended = met["ended"].drop_nulls().explode().struct.unnest()
    if apart.height:
        ended = ended.join(apart, on="edge_no", how="anti")
    demoted = _merely_demoted(con, ended, acted=horizon.act is not None) if len(ticks) == 1 else ended.clear()
    if len(ticks) == 1:
        waiting = _waiting_now(con, met["n"].item(), met["protos"].item(), now, apart)
    else:
        with lend(con, lent_edges=apart):
            waiting = fetch(con, query("mnest_waiting"), {"now": now})
    nights = [_waiting_nights(waiting, ticks, 1)]
    if not ended.height:
        return nights[0]
    if demoted.height:
        _demote(con, demoted, now)
        nights.append(no_nights(ticks).with_columns(demoted_to_decaying=pl.lit(demoted.height, pl.Int64)))
    folded = tables.edge_frame(ended.join(demoted, on="edge_no", how="anti")["edge_no"])
    if folded.height:
        before = tables.whole_records_of(con, folded)
        # The fold counts these itself.
        live = before.filter(pl.col("state").is_in(LIVE_STATES) & ~pl.col("untimed"))
        live = live.select("state", since=pl.col("ts_last").dt.timestamp("us"), n=pl.lit(1))
        nights += [_waiting_nights(live, ticks, -1), _fold_ending(con, params, ticks, before)]
    return pl.concat(nights)


def no_nights(ticks: Ints) -> pl.DataFrame:
    """A row per tick: ts_ager, and counts of nothing."""
    zero = np.zeros(len(ticks), dtype=np.int64)
    return pl.DataFrame({"ts_ager": pl.Series(ticks, dtype=pl.Int64).cast(INSTANT)} | dict.fromkeys(NIGHTS, zero))


def _merely_demoted(con: Connection, ended: pl.DataFrame, *, acted: bool) -> pl.DataFrame:
    """Those of the ended records that are demoted in place: active, with no decaying record to merge into.

    Edges of pairs that somebody acted on, if there are any, are left to the fold.
    """
    active = ended.filter(~pl.col("is_proto"))
    if not active.height:
        return active
    with lend(con, lent_edges=active.select("edge_no")):
        taken = [fetch(con, query("mnest_decaying_among"))]
        if acted:
            taken.append(fetch(con, query("mnest_acted_among")))
    return active.join(pl.concat(taken), on="edge_no", how="anti")


def _demote(con: Connection, records: pl.DataFrame, now: datetime) -> None:
    events = records.select(
        "mnest_no",
        "edge_no",
        "weight",
        seq=pl.lit(DEMOTE_SEQ),
        ts=pl.lit(now).cast(INSTANT),
        kind=pl.lit("demote"),
        old_state=pl.lit(MnestState.ACTIVE.value),
        new_state=pl.lit(MnestState.DECAYING.value),
    )
    with lend(con, lent_records=events):
        con.execute(query("mnest_demote"), {"now": now})
        con.execute("INSERT INTO edge_events BY NAME SELECT * FROM lent_records ORDER BY mnest_no")


def _fold_ending(con: Connection, params: EdgeParams, ticks: Ints, before: pl.DataFrame) -> pl.DataFrame:
    """Fold these records through the ticks, from what they were before; returns the counts of each tick."""
    edges = before.unique("edge_no").select("edge_no", *KEYS).sort("edge_no").with_columns(pair_numbers())
    no_facts = pl.DataFrame(schema=tables.HISTORY)
    folded = fold_edges(no_facts, edges.select(list(EDGES)), ticks, params, prior=before)
    write_continued(con, params, edges, folded, no_facts, before.select("mnest_id", mnest_no="life"), ticks)
    return folded.nights


def _waiting_now(con: Connection, n: int, protos: int, now: datetime, apart: pl.DataFrame) -> pl.DataFrame:
    """Live records, those of the edges apart left out, that wait for one tick: state, since, n."""
    if apart.height:
        with lend(con, lent_edges=apart):
            n_apart, protos_apart = con.execute(query("mnest_waiting_among"), {"now": now}).fetchall()[0]
        n, protos = n - n_apart, protos - protos_apart
    # One tick is after all that waits for it, whenever that was.
    states = [MnestState.PROTO.value, MnestState.ACTIVE.value]
    return pl.DataFrame({"state": states, "since": [0] * 2, "n": [protos, n - protos]})


def _waiting_nights(waiting: pl.DataFrame, ticks: Ints, sign: int) -> pl.DataFrame:
    """How many of these live records (state, since, n) each tick decays, if none ends them."""
    first = np.searchsorted(ticks, waiting["since"].to_numpy(), side="right")
    n, proto = sign * waiting["n"].to_numpy(), (waiting["state"] == MnestState.PROTO.value).to_numpy()
    return no_nights(ticks).with_columns(
        decayed=np.cumsum(np.bincount(first, n, len(ticks)))[: len(ticks)].astype(np.int64),
        decayed_protos=np.cumsum(np.bincount(first, n * proto, len(ticks)))[: len(ticks)].astype(np.int64),
    )


def _floors(params: EdgeParams) -> dict[str, object]:
    return {
        "proto_floor": live_floor(MnestState.PROTO, params),
        "active_floor": live_floor(MnestState.ACTIVE, params),
    }
