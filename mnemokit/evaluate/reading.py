"""What evaluation reads from a memory: frames, and the logs made of them. Nothing is ever written."""

from __future__ import annotations

import polars as pl

from mnemokit.evaluate.passing_log import PassingLog, passing_log
from mnemokit.evaluate.run_log import RunLog, run_log
from mnemokit.memory import Memory
from mnemokit.store import query


def runs_of(mem: Memory) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Runs (with ``executor_version``, as their provenance says), reasonlets and feedback of a memory."""
    runs = mem.frame("runs").with_columns(
        executor_version=pl.col("provenance").str.json_path_match("$.executor_version")
    )
    return runs, mem.frame("reasonlets"), mem.frame("feedback")


def run_log_of(mem: Memory) -> RunLog:
    """A memory's runs in order of time, those of one instant in the order they were written in."""
    runs, reasonlets, feedback = runs_of(mem)
    return run_log(runs.with_row_index("seq"), reasonlets, feedback.with_row_index("seq"))


def passings_of(mem: Memory) -> pl.DataFrame:
    """A memory's passings, with the session each was logged in."""
    return mem.sql(query("evaluate_passings"))


def passing_log_of(mem: Memory, *, versions: str = "separate") -> PassingLog:
    """A memory's passings in order of time, with the instants at which its ager looked."""
    ticks = mem.frame("ager_runs")["ts_ager"]
    return passing_log(passings_of(mem), ager=ticks, params=mem.edge_params, versions=versions)


def turns_of(mem: Memory) -> pl.DataFrame:
    """A memory's turns."""
    return mem.frame("turns")
