"""Every benchmark runs, at a size that takes seconds, and prints lines of JSON with sizes, machine and versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SMALL = {
    "bench_changes": ["2000"],
    "bench_edges_ager": ["--edges", "2000", "--nights", "2"],
    "bench_edges_fold": ["5000", "100", "--runs", "1"],
    "bench_edges_reads": ["--edges", "2000", "--weights", "2000"],
    "bench_edges_store": ["5000", "100"],
    "bench_evaluate": ["2000"],
    "bench_reasonlets_capture": ["200", "5"],
    "bench_reasonlets_lineage": ["2000"],
    "bench_reasonlets_rank": ["1000", "5000"],
    "bench_reasonlets_recall": ["500", "2000", "10"],
    "bench_replay": ["10000", "--longer", "1"],
    "bench_turn_log": ["400"],
}
NEEDS_A_CLUSTER_OR_MINUTES = {"bench_spark"}


def test_every_benchmark_has_a_small_size() -> None:
    assert {path.stem for path in BENCHMARKS.glob("bench_*.py")} == SMALL.keys() | NEEDS_A_CLUSTER_OR_MINUTES


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_prints_lines_of_json(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *SMALL[name]]
    env = os.environ | {"TMPDIR": str(tmp_path), "POLARS_MAX_THREADS": "2"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines
    for line in lines:
        assert {"benchmark", "machine", "python", "mnemokit", "duckdb", "polars"} <= line.keys()
