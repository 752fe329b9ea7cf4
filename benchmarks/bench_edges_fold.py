"""The fold: passings in Parquet, with text keys, become trajectory and mnests in memory, the nightly ager inside.

    python benchmarks/bench_edges_fold.py [PASSINGS] [EDGES] [--runs N]

Every run is a process of its own, so that its peak of memory is its own; the time is from opening the Parquet file to
holding the result, without starting Python.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
from common import emit, timed
from edges_made import made_passings

import mnemokit as mk


def fold(path: Path, edges: int) -> None:
    """Fold a file, in this process."""
    folded, seconds = timed(lambda: mk.fold_passings(pl.scan_parquet(path), ager="daily"))
    rows = folded.events.filter(pl.col("kind") == "passing").height
    emit(
        "edges_fold",
        passings=rows,
        edges=edges,
        mnests=folded.mnests.height,
        nights=folded.ager_runs.height,
        seconds=seconds,
        per_second=round(rows / seconds),
    )


def main() -> None:
    """Make the file, then fold it in fresh processes."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("passings", type=int, nargs="?", default=10_000_000)
    arguments.add_argument("edges", type=int, nargs="?", default=100_000)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--file", type=Path, help="fold this file, here and now")
    given = arguments.parse_args()
    if given.file is not None:
        fold(given.file, given.edges)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passings.parquet"
        made_passings(given.passings, given.edges).write_parquet(path)
        for _ in range(given.runs):
            command = [sys.executable, __file__, str(given.passings), str(given.edges), "--file", str(path)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
