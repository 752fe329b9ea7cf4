"""The demo: what two versions of a real agent learned from 280 real sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mnemokit import datasets, terminal
from mnemokit.memory import Memory
from mnemokit.page import report
from mnemokit.turns.derive import derive_passings


@dataclass(frozen=True, slots=True)
class Facts:
    """What can be counted in a frame of turns, before any memory is made of it."""

    sessions: int
    calls: int
    user_calls: int
    errors: int
    grouped: int
    successive: int


def count_facts(turns: pl.DataFrame) -> Facts:
    """Count sessions, calls, errors and passings.

    Example:
        >>> from mnemokit import datasets
        >>> count_facts(datasets.tau2()).calls
        3866
    """
    calls = turns.filter(pl.col("executor").is_not_null())
    return Facts(
        sessions=turns.select("source", "session_id").unique().height,
        calls=calls.height,
        user_calls=calls.filter(pl.col("requestor") == "user").height,
        errors=calls.filter(~pl.col("ok")).height,
        grouped=derive_passings(turns, "grouped").height,
        successive=derive_passings(turns, "successive").height,
    )


def success_by_version(turns: pl.DataFrame) -> pl.DataFrame:
    """Sessions and successes of each executor_version.

    Returns:
        Columns executor_version, sessions, successes, rate.
    """
    return (
        turns.group_by("session_id")
        .agg(pl.col("executor_version").first(), pl.col("session_outcome").first())
        .group_by("executor_version")
        .agg(sessions=pl.len(), successes=(pl.col("session_outcome") == "success").sum())
        .sort("executor_version")
        .with_columns(rate=pl.col("successes") / pl.col("sessions"))
    )


def show_demo(mem: Memory, page: Path) -> None:
    """Replay the bundled log into a memory, print what it learned, and write the page."""
    turns = datasets.tau2()
    facts = count_facts(turns)
    replayed = mem.replay(turns, progress=False)
    kinds = replayed.capture_kinds
    terminal.say(
        f"The log: {facts.sessions:,} sessions, {facts.calls:,} tool calls ({facts.user_calls:,} by the user side), "
        f"{facts.errors:,} tool errors.\n"
        f"Passings: {facts.grouped:,} grouped (parallel calls count as one step) and {facts.successive:,} successive.\n"
        f"Procedures: {kinds.get('new_reasonlet', 0):,} new reasonlets, {kinds.get('new_version', 0):,} versions and "
        f"{kinds.get('execution_only', 0):,} plain runs.\n"
        f"{terminal.account(replayed)}\n"
    )
    terminal.show(success_by_version(turns), title="Rewarded sessions by agent version", top=10, json=False)
    ranked = mem.reasonlets.rank()
    terminal.show(terminal.ranking(ranked), title="Ranked procedures", top=10, json=False)
    edges = mem.frame("mnests").filter(pl.col("state") == "active")
    strongest = edges.sort("weight", "uses", descending=True)
    terminal.show(
        terminal.edges(strongest), title="Strongest edges (as of the last night of the log)", top=10, json=False
    )
    start = strongest["src_executor"][0]
    terminal.show(terminal.paths(mem.mnests.walk(start)), title=f"Where work goes from {start}", top=5, json=False)
    terminal.say(f"The page: {report(mem, page).resolve()}  (open it in a browser; it needs no network)")
