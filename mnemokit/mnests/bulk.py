"""The edge memory's bulk doors: many passings and ticks in, or passings taken back, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.fold.frames import INSTANT
from mnemokit.instants import from_us
from mnemokit.mnests import tables
from mnemokit.mnests.applying import Applied, apply, refold, with_acted_pairs
from mnemokit.reasonlets.keys import write_alone
from mnemokit.records import EdgeParams, params_to_json
from mnemokit.store import Connection, fetch, lend, query


def ingest(
    con: Connection,
    params: EdgeParams,
    passings: pl.DataFrame,
    *,
    ticks: Sequence[datetime] = (),
) -> Applied:
    """Take in passings and ager instants, in order or late.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        passings: Columns src_executor, src_version, dst_executor, dst_version (null: it does not exist), ts, seq;
            and, where they differ from their defaults, untimed, turn_no, turn_id, tags, desired_sig, decay_lambda.
            A column dst_exists is not needed: it says what a null dst_version says.
        ticks: New ager instants; those that the store has already are left out.

    Returns:
        What each passing and tick did.

    Raises:
        InvalidInput: If a column is missing.
    """
    missing = [name for name in ("seq", "ts", *tables.KEYS) if name not in passings.columns]
    if missing:
        raise InvalidInput(f"passings need the columns {', '.join(missing)}; nothing was written")
    edge_no = tables.number_edges(con, passings)
    columns = [name for name in tables.HISTORY if name in passings.columns and name not in ("edge_no", "mnest_no")]
    return apply(con, params, passings.select(edge_no.alias("edge_no"), *columns), ticks)


def withdraw(con: Connection, params: EdgeParams, turn_nos: pl.DataFrame, ticks_now: Sequence[datetime]) -> int:
    """Take passings back, as if they had never been, and leave only the daily ticks that remain.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        turn_nos: Column turn_no: turns whose passings go.
        ticks_now: All daily ticks there should be; explicit ager calls stay whatever this says.

    Returns:
        How many passings were taken back.
    """
    write_alone(con)
    with lend(con, lent_turns=turn_nos.select(pl.col("turn_no").cast(pl.Int64)).unique()):
        touched = fetch(con, query("mnest_edges_of_turns"))
        con.execute("DELETE FROM edge_events WHERE turn_no IN (SELECT turn_no FROM lent_turns)")
    old = tables.ticks_so_far(con)
    _set_daily_ticks(con, params, ticks_now)
    new = tables.ticks_so_far(con)
    changed = np.setxor1d(old, new)
    edges = touched.select("edge_no")
    if len(changed):
        last = from_us(int(changed[-1]))
        begun = "SELECT edge_no FROM edge_events GROUP BY edge_no HAVING min(ts) < $last"
        edges = pl.concat([edges, fetch(con, begun, {"last": last})])
    edges = with_acted_pairs(con, tables.edge_frame(edges["edge_no"]))
    if edges.height:
        refold(con, params, edges, None, new)
    return int(touched["passings"].sum())


def withdraw_passings(con: Connection, params: EdgeParams, passings: pl.DataFrame) -> None:
    """Take some passings of turns back, as if they had never been; the ticks stay.

    Args:
        con: The connection, inside a transaction.
        params: The store's edge rule.
        passings: Columns turn_no, src_executor, src_version, dst_executor, dst_version and times: how many of the
            passings that this turn made over this edge go, the last ones first.
    """
    write_alone(con)
    gone = passings.select(
        pl.col("turn_no").cast(pl.Int64), tables.number_edges(con, passings).alias("edge_no"), "times"
    )
    edges = with_acted_pairs(con, tables.edge_frame(gone["edge_no"]))
    with lend(con, lent_gone=gone):
        con.execute(query("mnest_withdraw_passings"))
    if edges.height:
        refold(con, params, edges, None, tables.ticks_so_far(con))


def _set_daily_ticks(con: Connection, params: EdgeParams, ticks: Sequence[datetime]) -> None:
    """Make the daily ticks exactly these."""
    kept = pl.DataFrame({"ts_ager": list(ticks)}, schema={"ts_ager": INSTANT}).unique()
    with lend(con, lent_ticks=kept):
        con.execute("DELETE FROM ager_runs WHERE kind = 'daily' AND ts_ager NOT IN (SELECT ts_ager FROM lent_ticks)")
        new = fetch(con, "SELECT ts_ager FROM lent_ticks ANTI JOIN ager_runs USING (ts_ager) ORDER BY ts_ager")
    if new.height:
        tables.add_ticks(con, new, "daily", params_to_json(params), 0.0)
