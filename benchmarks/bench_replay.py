"""Replay: a log of 10 M passings in Parquet with text keys becomes committed turns, events and mnests.

    python benchmarks/bench_replay.py [PASSINGS] [--captures] [--longer TIMES]

Each size runs in a process of its own, so that its peak of memory is its own. The same recurrence is also done row by
row in SQLite, in one transaction and with a commit per row (on fewer rows, scaled).
"""

from __future__ import annotations

import argparse
import math
import sqlite3
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from common import emit, timed

import mnemokit as mk
from mnemokit.replay.ticks import Bounds, daily_ticks

TURNS_PER_SESSION = 101
YEAR = timedelta(days=365)
MEMORY_LIMIT = "500MB"
"""Of DuckDB, which otherwise keeps in memory as much of the file as there is room for."""
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)


def made_log(passings: int, *, part: int = 0, parts: int = 1) -> pl.DataFrame:
    """Sessions of 101 turns over a year, in order of time, walking over about 100,000 edges between 1,000 tools.

    A log too large to be made at once is made in parts, each with its share of the year.
    """
    rng = np.random.default_rng(1 + part)
    sessions = passings // (TURNS_PER_SESSION - 1)
    share = int(YEAR.total_seconds()) // parts
    starts = np.sort(rng.integers(0, share, sessions)) + part * share
    # Each tool hands on to 100 others, some much more often than others.
    rank = (rng.pareto(1.2, size=(sessions, TURNS_PER_SESSION)) * 4).astype(np.int64) % 100
    tool = np.empty((sessions, TURNS_PER_SESSION), dtype=np.int64)
    tool[:, 0] = rng.integers(0, 1000, sessions)
    for step in range(1, TURNS_PER_SESSION):
        tool[:, step] = (tool[:, step - 1] * 37 + rank[:, step] * 11 + 5) % 1000
    ts = starts[:, None] + np.arange(TURNS_PER_SESSION) * 20
    steps = np.tile(np.arange(TURNS_PER_SESSION), sessions)
    session = np.repeat(np.arange(sessions) + part * sessions, TURNS_PER_SESSION)
    return pl.DataFrame({"session": session, "step": steps, "tool": tool.ravel(), "seconds": ts.ravel()}).select(
        session_id=pl.format("session-{}", pl.col("session").cast(pl.String).str.zfill(9)),
        turn_id=pl.format("turn-{}-{}", "session", "step"),
        step="step",
        executor=pl.format("tool_{}", pl.col("tool").cast(pl.String).str.zfill(4)),
        executor_version=pl.lit("2025.1"),
        ts=pl.lit(BEGIN) + pl.duration(seconds="seconds"),
        ok=pl.lit(value=True),
        question=pl.format("question {}", pl.col("session") % 5000),
        session_outcome=pl.when(pl.col("session") % 3 > 0).then(pl.lit("success")).otherwise(pl.lit("failure")),
    )


def replay(folder: Path, *, captures: bool) -> None:
    """Replay the Parquet files of a folder into a new store, in this process."""
    with mk.open(folder / "memory.duckdb", memory_limit=MEMORY_LIMIT) as mem:
        report, seconds = timed(
            lambda: mem.replay(str(folder / "turns-*.parquet"), captures=None if captures else "none", progress=False)
        )
        edges = mem.frame("mnests")
        emit(
            "replay of Parquet into a store",
            turns=report.turns,
            passings=report.passings,
            captures=report.captures,
            edges=edges.height,
            ticks=report.ticks,
            memory_limit=MEMORY_LIMIT,
            seconds=seconds,
            passings_per_second=round(report.passings / seconds),
            file_mib=round((folder / "memory.duckdb").stat().st_size / 2**20),
        )


def frame_to_store(folder: Path) -> None:
    """A ready frame of passings, with its nightly ticks, into a new store."""
    from mnemokit.mnests import bulk as mnest_bulk

    turns = pl.read_parquet(folder / "turns-0.parquet")
    frame = (
        turns.select(
            seq=pl.int_range(pl.len(), dtype=pl.Int64),
            src_executor=pl.col("executor").shift(1),
            src_version=pl.col("executor_version").shift(1),
            dst_executor="executor",
            dst_version="executor_version",
            ts="ts",
            step="step",
        )
        .filter(pl.col("step") > 0)
        .drop("step")
    )
    ticks = daily_ticks(Bounds(frame["ts"].min(), frame["ts"].max()), 3)
    with mk.open(folder / "frame.duckdb") as mem:
        store = mem._store
        _, seconds = timed(
            lambda: store.write(lambda con: mnest_bulk.ingest(con, store.edge_params, frame, ticks=ticks))
        )
        emit("a ready frame of passings into a store", passings=frame.height, ticks=len(ticks), seconds=seconds)


def sqlite_rows(folder: Path) -> None:
    """The same recurrence row by row in SQLite, as an online store does it: nights as they come, a lookup per row."""
    turns = pl.scan_parquet(folder / "turns-0.parquet").head(300_000).collect()
    rows = (
        turns.select(a=pl.col("executor").shift(1), b="executor", ts=pl.col("ts").dt.epoch("s"), step="step")
        .filter(pl.col("step") > 0)
        .drop("step")
        .rows()
    )
    for name, commit_each, n in (("one transaction", False, len(rows)), ("a commit per row", True, 5_000)):
        con = sqlite3.connect(folder / f"rows-{commit_each}.sqlite")
        con.execute("CREATE TABLE mnests (src, dst, weight, uses, ts_last, PRIMARY KEY (src, dst))")
        con.execute("CREATE TABLE events (src, dst, ts, delta)")
        con.commit()
        _, seconds = timed(lambda con=con, n=n, commit_each=commit_each: _one_by_one(con, rows[:n], commit_each))
        con.close()
        emit("row by row in SQLite", how=name, passings=n, seconds=seconds, passings_per_second=round(n / seconds))


def _one_by_one(con: sqlite3.Connection, rows: list[tuple], commit_each: bool) -> None:
    for src, dst, ts in rows:
        found = con.execute("SELECT weight, uses, ts_last FROM mnests WHERE src = ? AND dst = ?", (src, dst)).fetchone()
        if found is None:
            con.execute("INSERT INTO mnests VALUES (?, ?, 0.3, 1, ?)", (src, dst, ts))
            delta = 0.3
        else:
            weight = min(1.0, found[0] * math.exp(-0.018 * (ts - found[2]) / 86400) + 0.15)
            con.execute(
                "UPDATE mnests SET weight = ?, uses = uses + 1, ts_last = ? WHERE src = ? AND dst = ?",
                (weight, ts, src, dst),
            )
            delta = weight - found[0]
        con.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (src, dst, ts, delta))
        if commit_each:
            con.commit()
    con.commit()


STEPS = ("replay", "frame", "sqlite")


def step(name: str, folder: Path, *, captures: bool) -> None:
    """One measurement."""
    if name == "replay":
        replay(folder, captures=captures)
    elif name == "frame":
        frame_to_store(folder)
    else:
        sqlite_rows(folder)


def apart(name: str, folder: Path, *, captures: bool) -> None:
    """The same in a process of its own."""
    extra = ["--captures"] if captures else []
    subprocess.run([sys.executable, __file__, "--step", name, "--folder", str(folder), *extra], check=True)


def main() -> None:
    """Make the log once, then run each step in a process of its own; last, the replay of a log that is longer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("passings", type=int, nargs="?", default=10_000_000)
    parser.add_argument("--captures", action="store_true")
    parser.add_argument("--longer", type=int, default=5, help="how many times as long the last log is; 1 leaves it out")
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    if args.step:
        step(args.step, args.folder, captures=args.captures)
        return
    with tempfile.TemporaryDirectory() as name:
        made_log(args.passings).write_parquet(Path(name) / "turns-0.parquet")
        for each in STEPS:
            apart(each, Path(name), captures=args.captures)
    if args.longer > 1:
        with tempfile.TemporaryDirectory() as name:
            for part in range(args.longer):
                log = made_log(args.passings, part=part, parts=args.longer)
                log.write_parquet(Path(name) / f"turns-{part}.parquet")
                del log
            apart("replay", Path(name), captures=args.captures)


if __name__ == "__main__":
    main()
