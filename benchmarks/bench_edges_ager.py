"""One ager night over 1 M edges against the bare UPDATE that brings the same rows up to date, both committed.

python benchmarks/bench_edges_ager.py [--edges N] [--nights N]

Stores in a file and in memory; nights that end nothing, and nights that demote some. Where records are demoted, the
bare UPDATE sets their state too (``bare_update``); ``bare_decay`` only sets weight and ts_last. The nights of all go
in turns. The last line is of a store in which somebody changed one record by hand.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median

import polars as pl
from common import emit, timed
from mnests_made import DAY0, filled, made_mnests

from mnemokit.mnests.namespace import Mnests
from mnemokit.store import Connection, Store

FADED = "weight * exp(-decay_lambda * (epoch_us($now) - epoch_us(ts_last)) / 86400000000.0)"
WAITING = "WHERE state IN ('active', 'proto') AND NOT untimed AND ts_last < $now"
DECAY = f"UPDATE mnest_records SET weight = {FADED}, ts_last = $now {WAITING}"
DECAY_AND_DEMOTE = f"""
UPDATE mnest_records
SET weight = {FADED}, ts_last = $now,
    state = CASE WHEN state = 'active' AND {FADED} < 0.2 THEN 'decaying' ELSE state END
{WAITING}
"""


def ager(frame: pl.DataFrame, nights: int, *, some_end: bool, folder: Path | None, by_hand: bool = False) -> None:
    """Nights of the ager, and of the bare statements in stores of their own."""
    frame = frame if some_end else frame.with_columns(weight=pl.lit(1.0))
    names = ("ours", "decay", "demote")
    ours, decay, demote = (filled(frame, folder / f"{name}.duckdb" if folder else None) for name in names)
    if by_hand:
        Mnests(ours).transition_state(frame["mnest_id"][0], "superseded", at=DAY0 + timedelta(days=30))

    def bare(store: Store, sql: str) -> float:
        def work(con: Connection) -> None:
            con.execute(sql, {"now": now})

        return timed(lambda: store.write(work))[1]

    times: list[tuple[float, float, float]] = []
    demoted = decayed = 0
    # The first night meets records of every age, which no later one does.
    for night in range(nights + 1):
        now = DAY0 + timedelta(days=31 + night)
        stats, seconds = timed(partial(Mnests(ours).apply_ager, now))
        times.append((seconds, bare(decay, DECAY), bare(demote, DECAY_AND_DEMOTE)))
        if night:
            demoted, decayed = demoted + stats.demoted_to_decaying, decayed + stats.decayed
    kept = times[1:]
    emit(
        "edges_ager",
        where="a file" if folder else "memory",
        by_hand=by_hand,
        edges=frame.height,
        nights=nights,
        decayed_a_night=decayed // nights,
        demoted_a_night=demoted // nights,
        seconds=median(ours for ours, _, _ in kept),
        bare_update=median(full if some_end else decay for _, decay, full in kept),
        bare_decay=median(decay for _, decay, _ in kept),
        ratio=median(ours / (full if some_end else decay) for ours, decay, full in kept),
        ratio_to_bare_decay=median(ours / decay for ours, decay, _ in kept),
    )


def main() -> None:
    """All five."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--edges", type=int, default=1_000_000)
    arguments.add_argument("--nights", type=int, default=7)
    given = arguments.parse_args()
    frame = made_mnests(given.edges)
    for in_file in (True, False):
        for some_end in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                ager(frame, given.nights, some_end=some_end, folder=Path(folder) if in_file else None)
    with tempfile.TemporaryDirectory() as folder:
        ager(frame, given.nights, some_end=True, folder=Path(folder), by_hand=True)


if __name__ == "__main__":
    main()
