"""The turn log: turns per second of one process by each policy of syncing, of batches, and of four processes at once.

    python benchmarks/bench_turn_log.py [TURNS]

Rates are by the clock on the wall; ``cpu_seconds`` are those of the writers, for a machine that does other work too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

from common import emit, timed

import mnemokit as mk

PROCESSES = 4
SYNCED_TURNS = 2_000
"""Each of them waits for the disk."""
RUNS = 3


def write(path: str, turns: int, fsync: str, who: int) -> float:
    """Append turns one by one; returns the CPU seconds that it took."""
    with mk.TurnLog(path, fsync=fsync, rotate_bytes=32 * 2**20) as log:
        started = time.process_time()
        for step in range(turns):
            log.append(
                session_id=f"session-{who}",
                step=step,
                executor="find_files",
                executor_version="2025.1",
                ok=True,
                user_id="u1",
                scope="shop",
            )
        return time.process_time() - started


def one_process(folder: Path, turns: int, fsync: str) -> None:
    """The best of several runs."""
    runs = [timed(lambda run=run: write(str(folder / f"{fsync}-{run}.jsonl"), turns, fsync, 0)) for run in range(RUNS)]
    cpu, seconds = min(runs, key=lambda run: run[1])
    emit(
        "turns appended one by one, one process",
        fsync=fsync,
        turns=turns,
        seconds=seconds,
        cpu_seconds=cpu,
        turns_per_second=round(turns / seconds),
        turns_per_cpu_second=round(turns / cpu),
    )


def in_batches(folder: Path, turns: int, size: int = 1_000) -> None:
    """Turns written a thousand at a time."""
    row = {"session_id": "session-0", "executor": "find_files", "executor_version": "2025.1", "ok": True}
    batches = [[row | {"step": step} for step in range(start, start + size)] for start in range(0, turns, size)]
    with mk.TurnLog(folder / "batches.jsonl") as log:
        _, seconds = timed(lambda: [log.append_many(batch) for batch in batches])
    emit(
        "turns appended in batches, one process",
        fsync="never",
        turns=turns,
        batch=size,
        seconds=seconds,
        turns_per_second=round(turns / seconds),
    )


def many_processes(folder: Path, turns: int) -> None:
    """Several processes that append to one file at once, and a replay of what they wrote."""
    path = str(folder / "shared.jsonl")
    share = turns // PROCESSES
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        pool.starmap(write, [(str(folder / "warm.jsonl"), 10, "never", who) for who in range(PROCESSES)])
        cpu, seconds = timed(
            lambda: pool.starmap(write, [(path, share, "never", who) for who in range(PROCESSES)], chunksize=1)
        )
    with mk.open() as mem:
        report, replay_seconds = timed(lambda: mem.replay(str(folder / "shared*.jsonl"), progress=False))
    emit(
        "turns appended one by one, several processes",
        fsync="never",
        processes=PROCESSES,
        turns=share * PROCESSES,
        seconds=seconds,
        cpu_seconds=sum(cpu),
        turns_per_second=round(share * PROCESSES / seconds),
        replayed=report.turns,
        rejects=report.rejects,
        replay_seconds=replay_seconds,
    )


def main() -> None:
    """Every figure, one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", type=int, nargs="?", default=200_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one_process(folder, args.turns, "never")
        one_process(folder, args.turns, "rotate")
        one_process(folder, min(args.turns, SYNCED_TURNS), "always")
        in_batches(folder, args.turns)
        many_processes(folder, args.turns)


if __name__ == "__main__":
    main()
