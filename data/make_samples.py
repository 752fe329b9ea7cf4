"""Make the sample frames of this folder from raw logs: python data/make_samples.py RAW_FOLDER [OUT_FOLDER].

RAW_FOLDER holds a folder per log, as data/README.md lists them. Every known total is checked before a file is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from mnemokit.turns import derive_captures, derive_passings, read_memory_writes, read_turns

MAX_BYTES = 1_000_000


def main() -> None:
    """Read the raw logs, check the totals, write the samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path, help="folder with the raw logs")
    parser.add_argument("out", type=Path, nargs="?", default=Path(__file__).parent, help="where the samples go")
    given = parser.parse_args()
    make_tau2(given.raw, given.out)
    make_agb(given.raw, given.out)
    make_reflexion(given.raw, given.out)
    make_generative_agents(given.raw, given.out)


def make_tau2(raw: Path, out: Path) -> None:
    """280 sessions of two agents in three domains."""
    turns = read_turns(raw / "tau2", "tau2")
    sessions = turns.unique("session_id")
    rewarded = sessions.filter(session_outcome="success").group_by("executor_version").len().sort("len")["len"]
    parallel = turns.group_by("session_id", "parallel_group").len().filter(pl.col("len") > 1)
    check("tau2 sessions", sessions.height, 280)
    check("tau2 calls", turns.height, 3866)
    check("tau2 calls by the user side", turns.filter(requestor="user").height, 902)
    check("tau2 errors", turns.filter(ok=False).height, 49)
    check("tau2 messages with parallel calls", parallel.height, 154)
    check("tau2 rewarded sessions", rewarded.to_list(), [82, 111])
    check("tau2 grouped passings", derive_passings(turns, "grouped").height, 4087)
    check("tau2 successive passings", derive_passings(turns, "successive").height, 3586)
    write(turns, out / "tau2_turns.parquet")


def make_agb(raw: Path, out: Path) -> None:
    """Benchmark runs of eight agents over a month."""
    turns = read_turns(raw / "agb_reports", "agb")
    attempted = turns.filter(pl.col("executor").is_not_null())
    check("agb runs", turns["session_id"].n_unique(), 463)
    check("agb attempted tests", attempted.height, 4698)
    check("agb tests that went well", attempted.filter(ok=True).height, 2176)
    check("agb passings", derive_passings(turns, "grouped").height, 0)
    check("agb captures", derive_captures(turns, "attempt").height, 4698)
    write(turns, out / "agb_turns.parquet")


def make_reflexion(raw: Path, out: Path) -> None:
    """Attempts at tasks, trial after trial, and the notes between them."""
    turns = read_turns(raw / "reflexion", "reflexion")
    writes = read_memory_writes(raw / "reflexion", "reflexion")
    main = turns.filter(scope="alfworld_runs/reflexion_run_logs")
    notes = writes.filter(pl.col("brain_id").str.starts_with("alfworld_runs/reflexion_run_logs/"))
    check("reflexion attempts", main.height, 334)
    check("reflexion successes", main.filter(session_outcome="success").height, 134)
    check("reflexion failures", main.filter(session_outcome="failure").height, 200)
    check("reflexion notes", notes.height, 200)
    write(turns, out / "reflexion_turns.parquet")
    write(writes, out / "reflexion_memory.parquet")


def make_generative_agents(raw: Path, out: Path) -> None:
    """Three personas and what they remember."""
    turns = read_turns(raw / "generative_agents", "generative_agents")
    writes = read_memory_writes(raw / "generative_agents", "generative_agents")
    check("generative_agents personas", turns.height, 3)
    check("generative_agents nodes", writes.height, 2105)
    check("generative_agents texts", writes["content"].null_count(), 2105)
    write(turns, out / "generative_agents_turns.parquet")
    write(writes, out / "generative_agents_memory.parquet")


def check(what: str, have: object, want: object) -> None:
    """Stop with a clear line if a total is not the known one."""
    if have != want:
        raise SystemExit(f"{what}: {have}, but {want} are known; nothing further was written")


def write(frame: pl.DataFrame, path: Path) -> None:
    """Write a sample, and say its size."""
    frame.write_parquet(path, compression="zstd", compression_level=19)
    size = path.stat().st_size
    check(f"{path.name} is below {MAX_BYTES} bytes", size < MAX_BYTES, True)
    print(f"{path.name}: {frame.height} rows, {size} bytes")


if __name__ == "__main__":
    main()
