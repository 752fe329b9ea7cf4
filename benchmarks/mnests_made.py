"""Made records of edges, and a store that holds them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from mnemokit.store import Connection, Store, lend

DAY0 = datetime(2025, 3, 1, 12, tzinfo=UTC)
EXECUTORS = 10_000


def made_mnests(n: int, seed: int = 1) -> pl.DataFrame:
    """Active records between 10,000 executors, last brought up to date somewhere in a month."""
    rng = np.random.default_rng(seed)
    names = pl.Series([f"executor_{i:05d}" for i in range(EXECUTORS)])
    src = rng.integers(0, EXECUTORS, n)
    ts = pl.lit(DAY0, pl.Datetime("us", "UTC")) + pl.duration(seconds="seconds")
    frame = pl.DataFrame({"seconds": rng.integers(0, 30 * 86400, n), "number": np.arange(n)})
    return frame.select(
        mnest_id=pl.format("mn_{}", pl.col("number").cast(pl.String).str.zfill(24)),
        src_executor=names.gather(src),
        src_version=pl.lit("1.0.0"),
        dst_executor=names.gather(rng.integers(0, EXECUTORS, n)),
        dst_version=pl.lit("1.0.0"),
        weight=pl.Series(np.minimum(1.0, 0.25 + 1.5 * rng.random(n))),
        uses=pl.lit(3, pl.Int64),
        ts_first=ts,
        ts_last=ts,
        ts_used=ts,
        decay_lambda=pl.lit(0.018),
        state=pl.lit("active"),
        tags=pl.lit([], pl.List(pl.String)),
        untimed=pl.lit(value=False),
        mnest_no=pl.col("number").cast(pl.Int32) + 1,
        edge_no=pl.col("number").cast(pl.Int32) + 1,
    )


def filled(frame: pl.DataFrame, path: Path | None = None) -> Store:
    """A store that holds these records, and their edges and lives; in memory if it has no path."""
    store = Store(path)

    def fill(con: Connection) -> None:
        with lend(con, ready=frame):
            con.execute("INSERT INTO mnest_records BY NAME SELECT * FROM ready")
            con.execute(
                "INSERT INTO edges BY NAME "
                "SELECT edge_no, src_executor, src_version, dst_executor, dst_version FROM ready"
            )
            con.execute("INSERT INTO mnest_lives SELECT mnest_no, mnest_id, edge_no, mnest_no FROM ready")

    store.write(fill)
    return store
