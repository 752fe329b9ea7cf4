"""Weights at an instant for 10 M edges; walks through 1 M.

python benchmarks/bench_edges_reads.py [--edges N] [--weights N]
"""

from __future__ import annotations

import argparse
from datetime import timedelta

import polars as pl
from common import best_of, emit
from mnests_made import DAY0, filled, made_mnests

import mnemokit as mk
from mnemokit.mnests.namespace import Mnests
from mnemokit.mnests.walk import edges_in_frame, walk


def weights_at(n: int) -> None:
    """What 10 M weights have faded to."""
    frame = made_mnests(n).select("weight", "ts_last", "decay_lambda", "untimed")
    seconds = best_of(lambda: mk.decay(frame, at=DAY0 + timedelta(days=100)), 3)
    emit("edges_weights_at", edges=n, seconds=seconds)


def walks(frame: pl.DataFrame) -> None:
    """Depth 3 in the whole store; depth 5 in a complete graph of 21 executors whose paths all look alike."""
    mnests = Mnests(filled(frame))
    seconds = best_of(lambda: mnests.walk("executor_00007", max_depth=3), 5)
    emit("edges_walk", edges=frame.height, depth=3, seconds=seconds)
    names = [f"n{n:02d}" for n in range(21)]
    rows = [
        (f"mn_{a}{b}", a, "1", b, "1", 0.3 if a == "n00" else 1.0, "active") for a in names for b in names if a != b
    ]
    columns = ["mnest_id", "src_executor", "src_version", "dst_executor", "dst_version", "weight_at", "state"]
    complete = edges_in_frame(pl.DataFrame(rows, schema=columns, orient="row"), ["active"])
    seconds = best_of(lambda: walk(complete, "n00", max_depth=5), 3)
    emit("edges_walk_complete", executors=21, depth=5, seconds=seconds)


def main() -> None:
    """All of them."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--edges", type=int, default=1_000_000)
    arguments.add_argument("--weights", type=int, default=10_000_000)
    given = arguments.parse_args()
    frame = made_mnests(given.edges)
    walks(frame)
    del frame
    weights_at(given.weights)


if __name__ == "__main__":
    main()
