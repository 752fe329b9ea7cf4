"""Past one machine: what a replay on Spark costs per core, step by step, beside one machine, and what a hot edge does.

    python benchmarks/bench_spark.py [PASSINGS]

Each run has a process of its own. Spark runs in ``local[N]`` with N the cores there are: its sorting and shuffling are
real, its network is not. A small replay comes first, so that Java is warm. Beside the seconds by the clock stand those
of processor time (Java, Python workers and driver together), which hardly depend on what else the machine does; two
sizes of the same log give the cost of one more passing, without that of starting up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from importlib import metadata
from pathlib import Path

import polars as pl
from bench_replay import made_log
from common import emit, timed

import mnemokit as mk

TABLES = ("turns", "rejects", "passings", "mnest_events", "mnests", "ager_runs")
CORES = len(os.sched_getaffinity(0))


def one_machine(folder: Path, log: Path) -> None:
    """The same log into a DuckDB file, with all cores."""
    with mk.open(folder / "memory.duckdb") as mem:
        report, seconds = timed(lambda: mem.replay(log, captures="none", progress=False))
    emit(
        "one machine",
        log=log.stem,
        passings=report.passings,
        seconds=seconds,
        cpu_seconds=time.process_time(),
        passings_per_second=round(report.passings / seconds),
    )


def on_one_core(folder: Path, log: Path) -> None:
    """The pure functions alone, as a worker runs them: what one core can do for a bucket, and for a hot edge."""
    import numpy as np

    from mnemokit.instants import to_us
    from mnemokit.records import EdgeParams
    from mnemokit.replay.ticks import Bounds, daily_ticks
    from mnemokit.spark.columns import ROWS_HELD
    from mnemokit.spark.folding import PASSED, fold_bucket
    from mnemokit.spark.steps import numbered_passings
    from mnemokit.turns.passings import grouped

    turns = mk.read_turns(log).with_columns(log_row=pl.int_range(pl.len(), dtype=pl.Int64))
    turns = turns.with_columns(session_row=pl.col("log_row").min().over("source", "session_id"))
    begun = time.process_time()
    passings = pl.concat(list(numbered_passings(turns.iter_slices(ROWS_HELD), grouped)))
    derived = time.process_time() - begun
    ordered = passings.rename({"nth": "seq"}).with_columns(untimed=pl.lit(value=False)).select(list(PASSED))
    ordered = ordered.sort("ts", "seq")
    ticks = daily_ticks(Bounds(ordered["ts"].min(), ordered["ts"].max()), EdgeParams().tick_hour)
    instants = np.array([to_us(tick) for tick in ticks], dtype=np.int64)
    begun = time.process_time()
    rows = sum(frame.height for _, frame in fold_bucket(ordered.iter_slices(ROWS_HELD), instants, EdgeParams()))
    folded = time.process_time() - begun
    emit(
        "the pure functions, per core",
        log=log.stem,
        passings=passings.height,
        rows=rows,
        derived_per_cpu_second=round(passings.height / derived),
        folded_per_cpu_second=round(passings.height / folded),
    )
    del folder


def on_spark(folder: Path, log: Path) -> None:
    """The log on Spark; the seconds of each step are those between its tables' completion."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.memory", "4g")
        .config("spark.local.dir", str(folder / "spark"))
        .getOrCreate()
    )
    made_log(2_000).write_parquet(folder / "warm.parquet")
    mk.spark.replay(spark, folder / "warm.parquet", folder / "warm")
    out = folder / "out"
    watch = Watch()
    begun, spent = time.time(), cpu_seconds()
    report = mk.spark.replay(spark, log, out)
    watch.done.set()
    spent = cpu_seconds() - spent
    ends = {table: (out / table / "_SUCCESS").stat().st_mtime for table in TABLES}
    mib = {table: sum(file.stat().st_size for file in (out / table).glob("*.parquet")) / 2**20 for table in TABLES}
    spark.stop()
    emit(
        "spark",
        log=log.stem,
        cores=CORES,
        passings=report.passings,
        mnests=report.mnests,
        ticks=report.ticks,
        seconds=report.seconds,
        cpu_seconds=spent,
        passings_per_cpu_second=round(report.passings / spent),
        seconds_turns=ends["turns"] - begun,
        seconds_passings=ends["passings"] - ends["rejects"],
        seconds_fold=ends["mnest_events"] - ends["passings"],
        seconds_rest=ends["ager_runs"] - ends["mnest_events"],
        bytes_per_turn_in=round(log.stat().st_size / report.turns, 1),
        bytes_per_passing_out=round(sum(mib.values()) * 2**20 / report.passings, 1),
        largest_worker_gib=watch.largest_worker,
        java_gib=watch.java,
        pyspark=metadata.version("pyspark"),
    )


class Watch:
    """The largest memory, in GiB, of any one Python worker and of Java, while it lasts."""

    def __init__(self) -> None:
        self.largest_worker = self.java = 0.0
        self.done = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self.done.wait(0.2):
            for pid in children(os.getpid()):
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    name = Path(f"/proc/{pid}/comm").read_text().strip()
                except OSError:
                    continue
                gib = pages * os.sysconf("SC_PAGE_SIZE") / 2**30
                if name == "java":
                    self.java = max(self.java, gib)
                elif name.startswith("python"):
                    self.largest_worker = max(self.largest_worker, gib)


def cpu_seconds() -> float:
    """Processor time of this process and of all below it, those that have ended included."""
    spent = 0
    for pid in [*children(os.getpid()), os.getpid()]:
        try:
            spent += sum(int(ticks) for ticks in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15])
        except OSError:
            continue
    return spent / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """All processes below this one."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            parents[int(folder.name)] = int(stat.rsplit(")", 1)[1].split()[1])
    found, new = [], [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found


def hot(log: pl.DataFrame) -> pl.DataFrame:
    """The same log as if there were one tool only: all passings are of one edge, and no other core can help."""
    return log.with_columns(executor=pl.lit("tool"))


STEPS = {"one": one_machine, "core": on_one_core, "spark": on_spark}


def main() -> None:
    """Make the logs once, then run each step in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passings", type=int, nargs="?", default=4_000_000)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--log", type=Path)
    args = parser.parse_args()
    if args.step:
        with tempfile.TemporaryDirectory() as name:
            STEPS[args.step](Path(name), args.log)
        return
    with tempfile.TemporaryDirectory() as name:
        logs = [Path(name) / f"{log}.parquet" for log in ("many_edges_quarter", "many_edges", "one_edge")]
        log = made_log(args.passings)
        log.head(log.height // 4).write_parquet(logs[0])
        log.write_parquet(logs[1])
        hot(log).write_parquet(logs[2])
        del log
        quarter, many, one = logs
        for step, path in (
            ("one", many),
            ("core", many),
            ("core", one),
            ("spark", quarter),
            ("spark", many),
            ("spark", one),
        ):
            subprocess.run([sys.executable, __file__, "--step", step, "--log", str(path)], check=True)


if __name__ == "__main__":
    main()
