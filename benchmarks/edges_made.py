"""Made passings for the benchmarks of the edge memory: text keys, in order of time, a year long."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000
EXECUTORS = 500


def made_passings(n: int, edges: int, *, days: int = 365, seed: int = 1) -> pl.DataFrame:
    """Passings over so many edges between 500 executors in two versions each; a third of the edges are wishes."""
    rng = np.random.default_rng(seed)
    names = pl.Series([f"executor_{i:04d}" for i in range(EXECUTORS)])
    edge = rng.integers(0, edges, n)
    src, version, nth = edge % EXECUTORS, edge // EXECUTORS % 2, edge // (2 * EXECUTORS)
    ts = int(BEGIN.timestamp()) * 1_000_000 + np.sort(rng.integers(0, days * DAY_US, n))
    return pl.DataFrame(
        {
            "src_executor": names.gather(src),
            "src_version": pl.Series(["1.0.0", "1.1.0"]).gather(version),
            "dst_executor": names.gather((src * 7 + nth) % EXECUTORS),
            "dst_version": pl.Series(["1.0.0", "2.0.0", None]).gather(nth % 3),
            "ts": pl.Series(ts).cast(pl.Datetime("us", "UTC")),
        }
    )
