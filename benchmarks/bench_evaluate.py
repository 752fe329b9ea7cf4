"""Evaluate: 100 edge rules over 1 M passings, 100 ranking rules over 1 M runs, and one score of each.

    python benchmarks/bench_evaluate.py [ROWS]

The ratio is to the fold alone (the memory's kernel under each rule, no score), or to numpy's own sums of the same rows.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime

import numpy as np
import polars as pl
from common import emit, timed

from mnemokit.evaluate.edge_models import sorted_rows
from mnemokit.evaluate.next_executor import predict_next_log
from mnemokit.evaluate.passing_log import PassingLog, passing_log
from mnemokit.evaluate.procedures import predict_log
from mnemokit.evaluate.run_log import RunLog, run_log
from mnemokit.evaluate.sweeping import sweep_logs
from mnemokit.fold.kernel import fold_rows
from mnemokit.records import EdgeParams

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
YEAR_SECONDS = 365 * 86_400


def passings(n: int) -> pl.DataFrame:
    """A year of passings over up to 10,000 edges of 500 sources, some much more often than others."""
    rng = np.random.default_rng(1)
    edge = np.minimum((rng.pareto(1.1, n) * 50).astype(np.int64), 9_999)
    return pl.DataFrame({"edge": edge, "seconds": np.sort(rng.integers(0, YEAR_SECONDS, n))}).select(
        src_executor=pl.format("tool_{}", pl.col("edge") % 500),
        dst_executor=pl.format("tool_{}", pl.col("edge") // 500),
        ts=pl.lit(BEGIN) + pl.duration(seconds="seconds"),
        session_id=pl.format("session-{}", pl.int_range(pl.len()) // 20),
    )


def runs(n: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A year of runs of 50,000 procedures, nine in ten of them versions of an earlier one."""
    rng = np.random.default_rng(2)
    which = rng.integers(0, 50_000, n)
    rate = rng.random(50_000)
    frame = pl.DataFrame({"which": which, "seconds": np.sort(rng.integers(0, YEAR_SECONDS, n))}).select(
        run_id=pl.format("run-{}", pl.int_range(pl.len())),
        reasonlet_id=pl.format("rl-{}", "which"),
        outcome=pl.Series(np.where(rng.random(n) < rate[which], "success", "failure")),
        ts_run=pl.lit(BEGIN) + pl.duration(seconds="seconds"),
        session_id=pl.format("session-{}", pl.int_range(pl.len()) // 10),
    )
    number = np.arange(50_000)
    parent = np.where((rng.random(50_000) < 0.9) & (number > 0), (rng.random(50_000) * number).astype(np.int64), -1)
    reasonlets = pl.DataFrame({"number": number, "parent": parent}).select(
        reasonlet_id=pl.format("rl-{}", "number"),
        parent_id=pl.when(pl.col("parent") >= 0).then(pl.format("rl-{}", "parent")),
        scope=pl.lit("scope"),
        question=pl.format("question {}", pl.col("number") % 2_000),
    )
    return frame, reasonlets


def sweep_edges(log: PassingLog) -> None:
    """100 edge rules, scored by which executor came next."""
    lambdas, gains = np.geomspace(0.001, 1.0, 20).tolist(), [0.05, 0.10, 0.15, 0.20, 0.30]
    cpu = time.process_time()
    table, seconds = timed(lambda: sweep_logs({"decay_lambda": lambdas, "reinforcement": gains}, passings=log))
    cpu = time.process_time() - cpu
    rules = [EdgeParams(decay_lambda=rate, reinforcement=gain) for rate in lambdas[::4] for gain in gains[::2]]
    _, bare = timed(lambda: [fold_rows(sorted_rows(log, rule), log.ticks, rule) for rule in rules])
    bare *= table.height / len(rules)
    emit(
        "evaluate: sweep of edge rules",
        rules=table.height,
        passings=log.us.size,
        edges=log.edge_src.size,
        seconds=seconds,
        cpu_seconds=cpu,
        bare_fold_seconds=bare,
        ratio=seconds / bare,
    )


def sweep_ranks(log: RunLog) -> None:
    """100 ranking rules, scored by success."""
    grid = {"k": np.geomspace(0.1, 100.0, 50).tolist(), "parent_rate": ["smoothed", "raw"]}
    table, seconds = timed(lambda: sweep_logs(grid, runs=log))
    past = log.past("reasonlet_id")
    _, bare = timed(lambda: [(past.sum(log.event_s), past.sum(log.event_n)) for _ in range(10)])
    emit(
        "evaluate: sweep of ranking rules",
        rules=table.height // 2,
        runs=log.us.size,
        seconds=seconds,
        bare_sums_seconds=bare * 10,
        ratio=seconds / (bare * 10),
    )


def main() -> None:
    """Make the logs and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    n = parser.parse_args().rows
    frame = passings(n)
    edge_log, seconds = timed(lambda: passing_log(frame))
    emit("evaluate: passings put in order", passings=n, seconds=seconds)
    sweep_edges(edge_log)
    made, seconds = timed(lambda: predict_next_log(edge_log, models=[]))
    emit("evaluate: next executor predicted", passings=n, models=len(made.p), seconds=seconds)
    ran, reasonlets = runs(n)
    rank_log, seconds = timed(lambda: run_log(ran, reasonlets))
    emit("evaluate: runs put in order", runs=n, seconds=seconds)
    sweep_ranks(rank_log)
    predicted, seconds = timed(lambda: predict_log(rank_log))
    emit("evaluate: runs predicted", runs=n, models=len(predicted.p), seconds=seconds)
    table, seconds = timed(lambda: predicted.table(replicates=200))
    emit("evaluate: table of runs, 200 draws", rows=table.height, sessions=predicted.n_sessions, seconds=seconds)


if __name__ == "__main__":
    main()
