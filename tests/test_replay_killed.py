"""A replay that is killed resumes, and ends as one that nobody disturbed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk

CHILD = """
import sys, mnemokit as mk
turns = mk.datasets.tau2()
mem = mk.open(sys.argv[1])
print("ready", flush=True)
mem.replay(turns, chunk_rows=400)
print("done", flush=True)
"""

POINTS = 10


def comparable(mem: mk.Memory) -> dict[str, pl.DataFrame]:
    edges = mem.frame("mnests").drop("mnest_id").with_columns(pl.col("weight", "weight_at").round(12))
    runs = mem.frame("runs").join(mem.frame("reasonlets").select("reasonlet_id", "version", "scope"), on="reasonlet_id")
    return {
        "turns": mem.frame("turns").sort("session_id", "step"),
        "edges": edges.sort([*edges.columns[:4], "state"]),
        "runs": runs.select("session_id", "version", "scope", "outcome", "ts_run").sort("session_id"),
        "ticks": mem.frame("ager_runs").select("ts_ager", "kind"),
    }


@pytest.fixture(scope="module")
def undisturbed() -> tuple[dict[str, pl.DataFrame], float]:
    with mk.open() as mem:
        started = time.perf_counter()
        mem.replay(mk.datasets.tau2(), chunk_rows=400)
        return comparable(mem), time.perf_counter() - started


@pytest.mark.parametrize("point", range(POINTS))
def test_a_killed_replay_resumes_and_ends_equal_to_an_undisturbed_one(
    point: int, tmp_path: Path, undisturbed: tuple[dict[str, pl.DataFrame], float]
) -> None:
    whole, seconds = undisturbed
    path = tmp_path / "m.duckdb"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(seconds * random.Random(point).uniform(0.02, 1.0))
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with mk.open(path) as mem:
        there = mem.frame("turns").height
        report = mem.replay(mk.datasets.tau2(), chunk_rows=400)
        assert report.duplicates == there
        for name, frame in comparable(mem).items():
            assert frame.equals(whole[name]), name
        assert mem.sql("SELECT count(*) AS n FROM replays WHERE NOT finished")["n"].item() == 0
