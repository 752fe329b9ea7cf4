"""Outcomes that a session tells only after it was captured."""

from __future__ import annotations

import polars as pl

from mnemokit.reasonlets import run_counts
from mnemokit.store import Connection, lend, query


def make_known(con: Connection, captures: pl.DataFrame, receipts: pl.DataFrame) -> None:
    """Give runs that were captured without an outcome the one that their session tells now.

    A known outcome is never changed, so that a second time does nothing; a verdict on the run stands above it.

    Args:
        con: In a transaction.
        captures: What the sessions are now: columns source, session_id, outcome.
        receipts: What became of each capture, in the same order: columns run_id and written.
    """
    told = (
        pl.concat([captures.select("source", "session_id", "outcome"), receipts], how="horizontal")
        .filter(~pl.col("written") & pl.col("outcome").is_not_null() & pl.col("run_id").is_not_null())
        .select("source", "session_id", "outcome", "run_id")
    )
    if told.height == 0:
        return
    with lend(con, told=told):
        touched = [row[0] for row in con.execute(query("replay_outcomes_known")).fetchall()]
    if touched:
        run_counts.count_anew(con, pl.DataFrame({"seq": touched}, schema={"seq": pl.Int64}))
