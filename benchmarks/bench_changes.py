"""Memory writes: a store of a million changes answers a timeline, forgets a person with 10,000 of them, and writes on.

    python benchmarks/bench_changes.py [CHANGES]

One line of JSON per question. ``ratio`` is against the barest DuckDB statement that reads or changes the same rows.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from common import best_of, emit, timed

import mnemokit as mk

BATCH = 100_000
OF_THE_FORGOTTEN = 10_000
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)


def made_writes(first: int, n: int, total: int) -> pl.DataFrame:
    """Writes first .. first + n of a year: 1,000 learners, visitors in some, a fifth made from an earlier trace."""
    number = np.arange(first, first + n)
    seconds = number * (365 * 86_400 // total)
    every = total // OF_THE_FORGOTTEN
    return pl.DataFrame({"n": number, "seconds": seconds}).select(
        session_id=pl.format("session-{}", pl.col("n") // 20),
        brain_id=pl.format("brain-{}", pl.col("n") // 20 % 1000),
        user_id=pl.format("learner-{}", pl.col("n") // 20 % 1000),
        contributor_ids=pl.when(pl.col("n") % every == 0)
        .then(pl.lit(pl.Series([["the visitor"]])).first())
        .when(pl.col("n") % 7 == 0)
        .then(pl.concat_list(pl.format("visitor-{}", pl.col("n") % 5000)))
        .otherwise(pl.lit(pl.Series([[]], dtype=pl.List(pl.String))).first()),
        trace_key=pl.format("note-{}", "n"),
        content=pl.format("what was said as number {}, in words of some length: {}", "n", pl.col("n") * 7919 % 100_003),
        tags=pl.concat_list(pl.format("tag-{}", pl.col("n") % 10)),
        parents=pl.when((pl.col("n") % 5 == 1) & (pl.col("n") % every > 1) & (pl.col("n") % 20 > 1))
        .then(pl.concat_list(pl.format("note-{}", pl.col("n") - 1)))
        .otherwise(pl.lit(pl.Series([[]], dtype=pl.List(pl.String))).first()),
        ts=pl.lit(BEGIN) + pl.duration(seconds="seconds"),
    )


def main() -> None:
    """Build the store, then ask."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("changes", type=int, nargs="?", default=1_000_000)
    total = arguments.parse_args().changes
    with tempfile.TemporaryDirectory() as folder, mk.open(Path(folder) / "m.duckdb") as mem:
        ask(mem, total)


def ask(mem: mk.Memory, total: int) -> None:
    """Every question once."""
    seconds = 0.0
    for first in range(0, total, BATCH):
        frame = made_writes(first, min(BATCH, total - first), total)
        seconds += timed(lambda frame=frame: mem.changes.import_writes(frame))[1]
    emit("changes_import", changes=total, seconds=seconds, per_second=total / seconds)

    with mem.session("session-live", user_id="learner-1", brain_id="brain-1") as session:
        trace = session.add("the trace that is asked about", contributor_ids=["visitor-7"]).trace_ids[0]
        for n in range(10):
            session.update(trace, content=f"the trace that is asked about, version {n}")
        writes = 20
        _, taken = timed(lambda: [session.add(f"one more {n}", contributor_ids=["visitor-8"]) for n in range(writes)])
        emit("changes_write", changes=total, seconds=taken / writes)
        last = session.update(trace, tags=["late"])

    timeline = best_of(lambda: mem.changes.timeline(trace), 5)
    bare = best_of(lambda: mem.sql("SELECT * FROM change_traces WHERE trace_id = ?", [trace]), 5)
    rows = mem.changes.timeline(trace).height
    emit("changes_timeline", changes=total, rows=rows, seconds=timeline, ratio=timeline / bare, wanted_seconds=0.05)
    emit("changes_impact", changes=total, seconds=best_of(lambda: mem.changes.impact(last.change_id), 3))
    emit("changes_revert", changes=total, seconds=timed(lambda: mem.changes.revert(last.change_id))[1])

    half = BEGIN + timedelta(days=180)
    past, seconds = timed(lambda: mem.frame("traces", at=half))
    emit("changes_traces_at", changes=total, rows=past.height, seconds=seconds)
    opened, seconds = timed(mem.changes.recover)
    emit("changes_recovery_of_nothing", changes=total, settled=opened.height, seconds=seconds)

    cpu = time.process_time()
    receipt, seconds = timed(lambda: mem.changes.forget_user("the visitor"))
    cpu = time.process_time() - cpu
    emit(
        "changes_forget_user",
        changes=total,
        blanked=receipt.changes,
        traces=receipt.traces,
        seconds=seconds,
        cpu_seconds=cpu,
        load=os.getloadavg()[0],
        wanted_seconds=2.0,
    )
    audit, seconds = timed(mem.changes.audit)
    emit("changes_audit", changes=total, ok=audit.ok, left=audit.left_of_forgotten.height, seconds=seconds)


if __name__ == "__main__":
    main()
