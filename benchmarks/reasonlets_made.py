"""Made procedural memories for the benchmarks: lineages, runs and verdicts in bulk, the same at every call."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl

import mnemokit as mk
from mnemokit.reasonlets import graph as graph_content
from mnemokit.reasonlets import run_counts
from mnemokit.store import fetch, lend

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
GRAPH = graph_content.canonical({"nodes": [{"id": "look"}, {"id": "act"}], "edges": [{"src": "look", "dst": "act"}]})
INSTANT = pl.Datetime("us", "UTC")


def lineages(n: int, *, deepest: int = 50, per_lineage: int = 20, seed: int = 1) -> pl.DataFrame:
    """Rows of the table reasonlets: lineages of about ``per_lineage`` versions, none deeper than ``deepest``."""
    rng = np.random.default_rng(seed)
    parent, depth, root = np.full(n, -1), np.zeros(n, dtype=np.int64), np.arange(n)
    number, high_water = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    starts = rng.random(n) < 1 / per_lineage
    starts[0] = True
    back = rng.integers(1, 4, n)
    first = 0
    for i in range(n):
        if starts[i]:
            first = i
            continue
        above = max(first, i - back[i])
        if depth[above] >= deepest:
            above = first
        parent[i], depth[i], root[i] = above, depth[above] + 1, root[above]
        high_water[root[i]] += 1
        number[i] = high_water[root[i]]
    # Random ids, as the memory gives them: text that starts alike would flatter the joins.
    digits = rng.bytes(12 * n).hex()
    ids = pl.Series([f"rl_{digits[24 * i : 24 * i + 24]}" for i in range(n)])
    seq = np.arange(1, n + 1)
    return pl.DataFrame(
        {"reasonlet_id": ids, "root_id": ids.gather(root), "version_no": number, "depth": depth, "seq": seq}
    ).with_columns(
        parent_id=pl.when(pl.Series(parent >= 0)).then(ids.gather(np.maximum(parent, 0))),
        parent_no=pl.when(pl.Series(parent >= 0)).then(pl.Series(parent + 1)),
        version="1." + pl.col("version_no").cast(pl.String),
        scope=pl.lit("shop"),
        question="question number " + (pl.Series(root) % 50_000).cast(pl.String) + " of the shop",
        graph=pl.lit(GRAPH.text),
        graph_hash=pl.lit(GRAPH.hash),
        ts_captured=pl.lit(BEGIN).cast(INSTANT) + pl.duration(seconds="seq"),
    )


def runs(reasonlets: pl.DataFrame, n: int, *, seed: int = 2) -> pl.DataFrame:
    """Rows of the table runs: many for few reasonlets and few for many, six in ten a success."""
    rng = np.random.default_rng(seed)
    pick = (rng.beta(0.8, 2.0, n) * reasonlets.height).astype(np.int64)
    seq = np.arange(n) + reasonlets.height + 1
    return pl.DataFrame({"seq": seq, "reasonlet_no": pick + 1}).with_columns(
        run_id="run_" + pl.col("seq").cast(pl.String).str.zfill(24),
        reasonlet_id=reasonlets["reasonlet_id"].gather(pick),
        outcome=pl.Series(np.array(["success", "failure", None], dtype=object)[rng.choice(3, n, p=[0.58, 0.4, 0.02])]),
        ts_run=pl.lit(BEGIN).cast(INSTANT) + pl.duration(seconds="seq"),
    )


def feedback(made: pl.DataFrame, n: int, *, seed: int = 3) -> pl.DataFrame:
    """Rows of the table feedback: verdicts on random runs, some runs judged more than once."""
    rng = np.random.default_rng(seed)
    judged = made[rng.integers(0, made.height, n)]
    return judged.select("run_id", "reasonlet_no", run_no="seq").with_columns(
        feedback_id=pl.format("fb_{}", pl.int_range(pl.len())),
        outcome=pl.Series(np.where(rng.random(n) < 0.5, "success", "failure")),
        ts_given=pl.lit(BEGIN).cast(INSTANT) + pl.duration(seconds=pl.int_range(pl.len())),
        seq=pl.int_range(pl.len(), dtype=pl.Int64) + 100_000_000,
    )


def fill(mem: mk.memory.Memory, tables: dict[str, pl.DataFrame]) -> None:
    """Put made rows into the tables of a memory."""

    def work(con):
        for table, rows in tables.items():
            with lend(con, made=rows):
                con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM made")
        con.execute("INSERT INTO lineages SELECT root_id, max(version_no) FROM reasonlets GROUP BY root_id")
        run_counts.count_anew(con, fetch(con, "SELECT seq FROM reasonlets"))
        con.execute("UPDATE counters SET next_free = 1000000000 WHERE name = 'seq'")

    mem._store.write(work)
