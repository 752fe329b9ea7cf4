"""Did the n-th memory write help? Attempts at the same task again and again, with a note more each time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput, NotEnoughData
from mnemokit.evaluate.comparing.groups import two_groups
from mnemokit.evaluate.intervals import MIN_SESSIONS, SEED, Ratio, draws, percentiles
from mnemokit.evaluate.table import note_on

WRITES_SCHEMA: dict[str, pl.DataType] = {
    "trial": pl.Int64(),
    "attempts_a": pl.Int64(),
    "succeeded_a": pl.Int64(),
    "rate_a": pl.Float64(),
    "notes_a": pl.Float64(),
    "attempts_b": pl.Int64(),
    "succeeded_b": pl.Int64(),
    "rate_b": pl.Float64(),
    "notes_b": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "note": pl.String(),
}
"""Columns of `nth_write`. Group a: without memory writes (or with fewer), b: with. ``notes``: held, on average."""


def nth_write(
    turns: pl.DataFrame,
    *,
    by: str = "scope",
    groups: Sequence[str] | None = None,
    rng: np.random.Generator | None = None,
    replicates: int = 1000,
) -> pl.DataFrame:
    """Trial by trial: do those who wrote a note succeed more often than those who merely tried again?

    An attempt is made only where every attempt before it failed, so the rate of success falls from trial to trial
    whatever a note does: the easy tasks are gone. Comparing a group with itself over trials says nothing; comparing two
    groups at the same trial does, if both started from the same tasks.

    Args:
        turns: A frame of turns, a session per attempt, whose meta has ``trial`` (0 and up) and ``notes`` (notes held).
        by: What tells the group without notes from the one with notes.
        groups: The two, the one without first; None takes the two largest.
        rng: Draws tasks.
        replicates: How often.

    Returns:
        One row per trial, and one for all repeated trials together (trial null): see `WRITES_SCHEMA`. The interval
        draws tasks within each group.

    Raises:
        InvalidInput: If the log does not say trial and notes.
        NotEnoughData: If one of the groups is empty.
    """
    split = two_groups(turns, by, groups)
    missing = [name for name in ("meta.trial", "meta.notes") if name not in split.sessions.columns]
    if missing:
        raise InvalidInput(
            f"these turns do not say {missing[0]}; it takes attempts with a trial and notes in their meta"
        )
    attempts = split.sessions.filter(pl.col("outcome").is_not_null()).select(
        "group",
        task="question",
        trial=pl.col("meta.trial").cast(pl.Int64),
        notes=pl.col("meta.notes").cast(pl.Float64),
        good=(pl.col("outcome") == "success").cast(pl.Float64),
    )
    generator = np.random.default_rng(SEED) if rng is None else rng
    trials: list[int | None] = [*attempts["trial"].drop_nulls().unique().sort().to_list()]
    repeated = attempts.filter(pl.col("trial") > 0)
    rows = [_row(attempts.filter(trial=trial), trial, split.a, split.b, generator, replicates) for trial in trials]
    if repeated.height == 0:
        raise NotEnoughData("no task was tried a second time: there is nothing that a note could have helped with")
    rows.append(_row(repeated, None, split.a, split.b, generator, replicates))
    return pl.DataFrame(rows, schema=WRITES_SCHEMA, orient="row", nan_to_null=True)


def _row(
    attempts: pl.DataFrame, trial: int | None, a: str, b: str, rng: np.random.Generator, replicates: int
) -> tuple[object, ...]:
    sides: list[tuple[object, ...]] = []
    samples: list[np.ndarray] = []
    sizes: list[int] = []
    rates: list[float] = []
    for name in (a, b):
        mine = attempts.filter(group=name)
        tasks = mine.group_by("task").agg(n=pl.len(), good=pl.col("good").sum()).sort("task")
        n = tasks.height
        rate = float(mine["good"].to_numpy().mean()) if n else 0.0
        notes = float(mine["notes"].to_numpy().mean()) if n else 0.0
        sides.append((mine.height, int(mine["good"].sum()), rate, notes) if n else (0, 0, None, None))
        sizes.append(n)
        rates.append(rate)
        statistic = Ratio(tasks["good"].to_numpy(), tasks["n"].cast(pl.Float64).to_numpy())
        samples.append(draws([statistic], n, replicates, rng)[0] if n >= MIN_SESSIONS else np.empty(0))
    low, high = -1.0, 1.0
    fewest = min(sizes)
    if fewest >= MIN_SESSIONS:
        low, high = percentiles(samples[1] - samples[0])
    said = note_on(fewest, fewest) if fewest else "no attempt in one group"
    note = None if said is None else said.replace("sessions", "tasks").replace("session", "task")
    return (trial, *sides[0], *sides[1], rates[1] - rates[0] if fewest else None, low, high, note)
