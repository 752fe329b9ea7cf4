"""What every benchmark prints: one line of JSON with sizes, seconds, ratios, and where it ran."""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections.abc import Callable
from importlib import metadata
from typing import TypeVar

T = TypeVar("T")

PACKAGES = ("mnemokit", "duckdb", "polars", "pyarrow", "numpy")


def emit(benchmark: str, **figures: object) -> None:
    """Print the line."""
    row: dict[str, object] = {"benchmark": benchmark}
    row |= {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}
    row["peak_gib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3)
    row["machine"] = f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores"
    row["python"] = platform.python_version()
    row |= {name: metadata.version(name) for name in PACKAGES}
    print(json.dumps(row), flush=True)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result, and how many seconds it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def best_of(work: Callable[[], object], runs: int) -> float:
    """The shortest of several runs, in seconds."""
    return min(timed(work)[1] for _ in range(runs))
