"""The ager on 1 M edges against its bare UPDATE; weights at an instant for 10 M edges; walks.

python benchmarks/bench_edges_reads.py [--edges N] [--weights N]
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
from common import best_of, emit, timed

import mnemokit as mk
from mnemokit.mnests.namespace import Mnests
from mnemokit.mnests.walk import edges_in_frame, walk
from mnemokit.store import Connection, Store, lend, query

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


def filled(frame: pl.DataFrame) -> Store:
    """A store that holds these records, and their edges and lives."""
    store = Store()

    def fill(con: Connection) -> None:
        with lend(con, ready=frame):
            con.execute("INSERT INTO mnests BY NAME SELECT * FROM ready")
            con.execute(
                "INSERT INTO edges BY NAME "
                "SELECT edge_no, src_executor, src_version, dst_executor, dst_version FROM ready"
            )
            con.execute("INSERT INTO mnest_lives SELECT mnest_no, mnest_id, edge_no, mnest_no FROM ready")

    store.write(fill)
    return store


def ager(frame: pl.DataFrame) -> None:
    """One ager run, some of whose edges end, and its UPDATE alone in a store of its own."""
    store, other = filled(frame), filled(frame)
    now = DAY0 + timedelta(days=31)
    bare, ours = float("inf"), float("inf")
    for night in range(4):
        later = now + timedelta(days=night)

        def update(con: Connection, later: datetime = later) -> None:
            con.execute(query("mnest_age"), {"now": later})

        bare = min(bare, timed(lambda work=update: other.write(work))[1])
        stats, seconds = timed(lambda later=later: Mnests(store).apply_ager(later))
        ours = min(ours, seconds)
    emit(
        "edges_ager",
        edges=frame.height,
        decayed=stats.decayed,
        demoted=stats.demoted_to_decaying,
        seconds=ours,
        bare_update=bare,
        ratio=ours / bare,
    )


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
    ager(frame)
    ager(frame.with_columns(weight=pl.lit(0.9)))
    walks(frame)
    del frame
    weights_at(given.weights)


if __name__ == "__main__":
    main()
