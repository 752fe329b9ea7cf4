"""How the runs of each reasonlet stand, kept beside the runs so that a recall need not count them all.

The table ``run_counts`` has one row per reasonlet and always equals what ``sql/rank_counted.sql`` counts as the store
stands. A write that adds runs adds to it; a write that takes runs or verdicts away counts the touched ones anew.
"""

from __future__ import annotations

import polars as pl

from mnemokit.store import Connection, lend, query


def start(con: Connection, reasonlet_no: int) -> None:
    """The row of a new reasonlet, before its first run is added."""
    con.execute("INSERT INTO run_counts VALUES (?, 0, 0)", [reasonlet_no])


def add(con: Connection, reasonlet_no: int, verdict: str | None, instead_of: str | None = None) -> None:
    """One more run with a verdict, or (with ``instead_of``) a verdict that takes another's place."""
    n = (verdict is not None) - (instead_of is not None)
    s = (verdict == "success") - (instead_of == "success")
    if n or s:
        con.execute(
            "UPDATE run_counts SET n = n + $n, s = s + $s WHERE reasonlet_no = $no",
            {"n": n, "s": s, "no": reasonlet_no},
        )


def verdict_of(con: Connection, run_no: int) -> str | None:
    """What counts for a run now: the latest verdict, else its own outcome."""
    return con.execute(query("verdict_of_run"), {"run_no": run_no}).fetchall()[0][0]


def add_batch(con: Connection, runs: pl.DataFrame, new: pl.DataFrame) -> None:
    """Many more runs.

    Args:
        con: In a transaction.
        runs: ``reasonlet_no`` and ``outcome`` of the runs.
        new: ``seq`` of the reasonlets that are new with them.
    """
    added = (
        pl.concat([runs.select("reasonlet_no", "outcome"), new.select(reasonlet_no="seq", outcome=None)])
        .group_by("reasonlet_no")
        .agg(n=pl.col("outcome").count().cast(pl.Int64), s=(pl.col("outcome") == "success").sum().cast(pl.Int64))
        .sort("reasonlet_no")
    )
    fresh = added.join(new.select(reasonlet_no="seq"), on="reasonlet_no", how="semi", maintain_order="left")
    known = added.join(fresh, on="reasonlet_no", how="anti")
    with lend(con, fresh_counts=fresh, known_counts=known):
        con.execute("INSERT INTO run_counts BY NAME SELECT * FROM fresh_counts")
        con.execute(
            "UPDATE run_counts SET n = run_counts.n + more.n, s = run_counts.s + more.s "
            "FROM known_counts AS more WHERE more.reasonlet_no = run_counts.reasonlet_no"
        )


def count_anew(con: Connection, touched: pl.DataFrame) -> None:
    """Count the runs of touched reasonlets (``seq``) anew; reasonlets that are gone lose their row."""
    with lend(con, among=touched.select("seq").unique()):
        con.execute("DELETE FROM run_counts WHERE reasonlet_no IN (SELECT seq FROM among)")
        con.execute(
            f"INSERT INTO run_counts WITH {query('rank_among')} {query('rank_counted')} {query('run_counts_anew')}",
            {"at": None},
        )
