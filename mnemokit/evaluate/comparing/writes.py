"""Did the n-th memory write help? Attempts at the same task again and again, with a note more each time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput, NotEnoughData
from mnemokit.evaluate.comparing.groups import two_groups
from mnemokit.evaluate.comparing.resampling import ANY_DIFFERENCE, REPLICATES, interval_of_draws
from mnemokit.evaluate.intervals import SEED, Ratio, draws
from mnemokit.evaluate.metrics import Floats
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
    "pairs": pl.Int64(),
    "only_a": pl.Int64(),
    "only_b": pl.Int64(),
    "n_sessions": pl.Int64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "note": pl.String(),
}
"""Columns of `nth_write`. ``attempts, succeeded, rate`` of a group: all its attempts at this trial; ``notes``: held
when they began, on average. ``pairs``: tasks (over all trials: tasks and trials) that both groups tried; in ``only_a``
and ``only_b`` of them one group alone did better; ``n_sessions``: the attempts in pairs. ``difference``: success in b
less that in a, mean over the pairs, with its 95 % interval, tasks drawn."""


def nth_write(
    turns: pl.DataFrame,
    *,
    by: str = "scope",
    groups: Sequence[str] | None = None,
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Trial by trial: do those who wrote a note succeed more often than those who merely tried again?

    An attempt is made only where every attempt before it failed, so the rate of success falls from trial to trial
    whatever a note does: the easy tasks are gone. Comparing a group with itself over trials says nothing; comparing two
    groups on the same task at the same trial does, if both started from the same tasks. A task that only one group
    still tried is in that group's rate, but in no pair.

    The question is answered only if group a holds no notes. Where it holds some too, a note says so: the difference is
    then that of two runs with notes. Whether a note that is held was shown to the agent, these logs do not say.

    Args:
        turns: A frame of turns, a session per attempt, whose meta has ``trial`` (0 and up) and ``notes`` (notes held).
        by: What tells the group without notes from the one with notes.
        groups: The two, the one without first; None takes the two largest.
        rng: Draws tasks.
        replicates: How often.

    Returns:
        One row per trial, and one for all repeated trials together (trial null): see `WRITES_SCHEMA`. A task is a
        question, within its scope unless the groups are scopes. With fewer than `MIN_SESSIONS` tasks in pairs the
        interval is -1 to 1, with a note.

    Raises:
        InvalidInput: If the log does not say trial and notes.
        NotEnoughData: If there are not two groups, or no task was tried again.
    """
    split = two_groups(turns, by, groups)
    missing = [name for name in ("meta.trial", "meta.notes") if name not in split.sessions.columns]
    if missing:
        raise InvalidInput(
            f"these turns do not say {missing[0]}; it takes attempts with a trial and notes in their meta"
        )
    attempts = split.sessions.filter(pl.col("outcome").is_not_null()).select(
        "group",
        *(["question"] if by == "scope" else ["scope", "question"]),
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
    one, other = (attempts.filter(group=name) for name in (a, b))
    gain, in_pairs, tasks = _pairs(one, other)
    low, high = ANY_DIFFERENCE
    if tasks.height:
        statistic = Ratio(_floats(tasks["gain"]), _floats(tasks["n"]))
        drawn = draws([statistic], tasks.height, replicates, rng).T
        support = np.array([float(tasks.height)])
        low, high = (float(side[0]) for side in interval_of_draws(drawn, support, ANY_DIFFERENCE))
    return (
        trial,
        *_side(one),
        *_side(other),
        gain.size,
        int((gain < 0).sum()),
        int((gain > 0).sum()),
        in_pairs,
        float(gain.mean()) if gain.size else None,
        low,
        high,
        _said(one, other, tasks.height),
    )


def _side(attempts: pl.DataFrame) -> tuple[object, ...]:
    """Attempts, how many succeeded, their rate, and notes held on average."""
    good, notes = attempts["good"], attempts["notes"]
    return attempts.height, int(good.sum()), good.mean(), notes.mean()


def _pairs(one: pl.DataFrame, other: pl.DataFrame) -> tuple[Floats, int, pl.DataFrame]:
    """Gain of each task and trial that both groups tried, attempts behind them, and both added up by task."""
    task = [name for name in ("scope", "question") if name in one.columns]
    tried = [side.group_by(*task, "trial").agg(pl.col("good").mean(), n_sessions=pl.len()) for side in (one, other)]
    pairs = (
        tried[0]
        .join(tried[1], on=[*task, "trial"], suffix="_b")
        .with_columns(gain=pl.col("good_b") - pl.col("good"), n_sessions=pl.col("n_sessions") + pl.col("n_sessions_b"))
        .sort(*task, "trial")
    )
    by_task = pairs.group_by(task, maintain_order=True).agg(pl.col("gain").sum(), n=pl.len())
    return _floats(pairs["gain"]), int(pairs["n_sessions"].sum()), by_task


def _said(one: pl.DataFrame, other: pl.DataFrame, tasks: int) -> str | None:
    """What is to be said against the difference of one row."""
    if one.is_empty() or other.is_empty():
        size = "no attempt in one group"
    elif tasks == 0:
        size = "no task that both groups tried"
    else:
        said = note_on(tasks, tasks)
        size = None if said is None else said.replace("sessions", "tasks").replace("session", "task")
    held = [float(_floats(side["notes"].drop_nulls()).sum()) > 0 for side in (one, other)]
    if all(held):
        about = "both groups hold notes: this is not the difference that writing makes"
    else:
        about = None if any(held) or one.is_empty() or other.is_empty() else "neither group holds a note yet"
    return "; ".join(part for part in (size, about) if part is not None) or None


def _floats(values: pl.Series) -> Floats:
    return values.cast(pl.Float64).to_numpy()
