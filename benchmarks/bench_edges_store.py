"""The store: 10 M passings go in, in one transaction; then 1,000 late ones, as a replay or an ager meets them.

    python benchmarks/bench_edges_store.py [PASSINGS] [EDGES]

``ratio`` is against the barest DuckDB statement for the same rows: inserting ready events, or nothing to compare with.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import timedelta
from pathlib import Path

import polars as pl
from common import emit, timed
from edges_made import made_passings

from mnemokit.mnests.namespace import Mnests, ingest
from mnemokit.replay.ticks import Bounds, daily_ticks
from mnemokit.store import Connection, Store, fetch, lend

LATE = 1_000


def main() -> None:
    """Fill a store, then come late."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("passings", type=int, nargs="?", default=10_000_000)
    arguments.add_argument("edges", type=int, nargs="?", default=100_000)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.duckdb"
        store = Store(path)
        frame = made_passings(given.passings, given.edges).with_row_index("seq")
        frame = frame.with_columns(pl.col("seq").cast(pl.Int64), turn_no=pl.col("seq").cast(pl.Int64))
        take_in(store, frame, given.edges)
        come_late(store, frame, given.edges)
        bare(store, Path(folder), given.edges)
        store.close()


def take_in(store: Store, frame: pl.DataFrame, edges: int) -> None:
    """All passings with their nightly ticks, in one transaction."""
    ticks = daily_ticks(Bounds(*frame.select(first=pl.col("ts").min(), last=pl.col("ts").max()).row(0)), 3)
    _, seconds = timed(lambda: store.write(lambda con: ingest(con, store.edge_params, frame, ticks=ticks)))
    mnests = Mnests(store).stats().total_mnests
    emit(
        "edges_take_in",
        passings=frame.height,
        edges=edges,
        mnests=mnests,
        nights=len(ticks),
        seconds=seconds,
        per_second=round(frame.height / seconds),
    )


def come_late(store: Store, frame: pl.DataFrame, edges: int) -> None:
    """A thousand passings from the first half of the year, three times."""
    half = frame.filter(pl.col("ts") < frame["ts"].min() + timedelta(days=180))
    best = float("inf")
    for run in range(3):
        late = half.sample(LATE, seed=run).with_columns(
            seq=pl.col("seq") + frame.height * (run + 1), ts=pl.col("ts") + pl.duration(milliseconds=run + 1)
        )
        done, seconds = timed(lambda late=late: store.write(lambda con: ingest(con, store.edge_params, late)).refolded)
        best = min(best, seconds)
    emit("edges_late", late=LATE, into=frame.height, edges=edges, refolded=done, seconds=best)


def bare(store: Store, folder: Path, edges: int) -> None:
    """Insert the same events, ready made, into an empty table of another file."""
    with store.read() as con:
        events = fetch(con, "SELECT * EXCLUDE (tags) FROM edge_events")
    other = Store(folder / "bare.duckdb")

    def insert(con: Connection) -> None:
        with lend(con, ready=events):
            con.execute("INSERT INTO edge_events BY NAME SELECT * FROM ready")

    _, seconds = timed(lambda: other.write(insert))
    emit("edges_bare_insert", events=events.height, edges=edges, seconds=seconds)
    other.close()


if __name__ == "__main__":
    main()
