"""Many rules over one stored log, without touching the store: what would each of them have scored?"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.edge_loss import EdgeLoss
from mnemokit.evaluate.intervals import (
    MIN_SESSIONS,
    SEED,
    draws_of_means,
    per_session,
    session_numbers,
    without_session,
)
from mnemokit.evaluate.metrics import Floats, Ints
from mnemokit.evaluate.passing_log import PassingLog
from mnemokit.evaluate.predictions import scored_mask
from mnemokit.evaluate.run_log import RunLog
from mnemokit.evaluate.run_models import RankRule
from mnemokit.evaluate.table import interval_of, note_on, probability_losses, widest_range
from mnemokit.instants import Instant
from mnemokit.records import EdgeParams, RankParams

Value = float | str | None
Grid = Mapping[str, Sequence[Value]]

EDGE_PARAMS = ("decay_lambda", "reinforcement", "start_weight", "max_weight", "demote_below", "purge_below")
"""Parameters that change what the edges say (`records.EdgeParams`)."""

RUN_PARAMS = ("k", "parent_rate", "half_life_days")
"""Parameters that change what the ranking says: prior strength, inheritance, and an optional half-life of runs."""


SWEEP_REPLICATES = 1000
"""Draws of the bootstrap of a sweep, unless told otherwise: fewer than of a table, as there are many rows."""


def sweep_logs(
    grid: Grid,
    *,
    runs: RunLog | None = None,
    passings: PassingLog | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
    rng: np.random.Generator | None = None,
    replicates: int = SWEEP_REPLICATES,
) -> pl.DataFrame:
    """Score every combination of the grid; see `mnemokit.evaluate.sweep`.

    Args:
        grid: Parameter to the values to try, of `EDGE_PARAMS` and `RUN_PARAMS`.
        runs: The runs; needed for parameters of the ranking.
        passings: The passings; needed for parameters of the edges.
        since: Only what happened from this instant on is scored.
        until: Only what happened before this instant is scored.
        sessions: Only these sessions are scored.
        rng: Draws sessions; left out, a generator with the documented seed.
        replicates: Draws of the bootstrap, the same for every combination.

    Returns:
        One row per combination and metric: the grid's columns, then ``model, target, metric, value, low, high,
        n_sessions, n, seconds, note``. Metrics: log_loss of next_executor; log_loss and brier of runs. Value null where
        there was nothing to score.

    Raises:
        InvalidInput: If a parameter or a value is not one.

    Example:
        >>> from mnemokit.evaluate.passing_log import passing_log
        >>> frame = pl.DataFrame({"src_executor": ["a"] * 4, "dst_executor": ["b", "b", "c", "b"]})
        >>> table = sweep_logs({"reinforcement": [0.1, 0.2]}, passings=passing_log(frame))
        >>> table.select("reinforcement", "metric", "n").rows()
        [(0.1, 'log_loss', 4), (0.2, 'log_loss', 4)]
    """
    names = list(grid)
    unknown = [name for name in names if name not in EDGE_PARAMS + RUN_PARAMS]
    if unknown:
        raise InvalidInput(
            f"{unknown[0]!r} cannot be swept; choose from {', '.join(EDGE_PARAMS + RUN_PARAMS)}; nothing was scored"
        )
    parts: list[pl.DataFrame] = []
    edge_names = [name for name in names if name in EDGE_PARAMS]
    run_names = [name for name in names if name in RUN_PARAMS]
    every = pl.DataFrame(list(itertools.product(*grid.values())), schema=_schema(grid), orient="row")
    if passings is not None and (edge_names or not run_names):
        rows = np.flatnonzero(scored_mask(passings.rows, "ts", since, until, sessions))
        swept = Swept(passings.rows[rows]["session"], np.random.default_rng(SEED) if rng is None else rng, replicates)
        scored = _sweep_edges({name: grid[name] for name in edge_names}, passings, rows, swept)
        parts.append(_spread(every, scored, edge_names))
    if runs is not None and (run_names or not edge_names):
        rows = np.flatnonzero(scored_mask(runs.rows, "ts_run", since, until, sessions) & ~np.isnan(runs.y))
        swept = Swept(runs.rows[rows]["session"], np.random.default_rng(SEED) if rng is None else rng, replicates)
        scored = _sweep_runs({name: grid[name] for name in run_names}, runs, rows, swept)
        parts.append(_spread(every, scored, run_names))
    if not parts:
        raise InvalidInput("there is nothing to sweep: give the runs or the passings that the parameters are about")
    return pl.concat(parts)


@dataclass(frozen=True)
class Scores:
    """What one combination scored by one metric.

    Attributes:
        values: Its parameters.
        about: Model, target and metric.
        loss: Sums of the row values by session.
        seconds: What its predictions took.
    """

    values: Sequence[Value]
    about: tuple[str, str, str]
    loss: Floats
    seconds: float


class Swept:
    """The rows that a sweep scores, in sessions that are drawn once for all combinations.

    Args:
        session: Each row's session.
        rng: Draws sessions.
        replicates: How often.
    """

    def __init__(self, session: pl.Series, rng: np.random.Generator, replicates: int) -> None:
        """Number the sessions once."""
        self.n = session.len()
        self.alone = int(without_session(session).sum())
        self.number = session_numbers(session)
        self.n_sessions = int(self.number.max(initial=-1)) + 1
        self.rng = rng
        self.replicates = replicates

    def by_session(self, losses: Floats) -> Floats:
        """Sums of row values by session."""
        return per_session(losses, self.number, self.n_sessions)

    def table(self, scores: Sequence[Scores], grid: Grid) -> pl.DataFrame:
        """One row per combination and metric, with its interval."""
        note = note_on(self.n, self.n_sessions, self.alone)
        drawn = self.n_sessions >= MIN_SESSIONS
        tops = np.stack([score.loss for score in scores]) if scores else np.empty((0, self.n_sessions))
        bottom = self.by_session(np.ones(self.n))
        sample = draws_of_means(tops, bottom, self.replicates if drawn else 0, self.rng)
        rows: list[tuple[object, ...]] = []
        for score, values in zip(scores, sample, strict=True):
            value = float(score.loss.sum()) / self.n if self.n else None
            low, high = interval_of(values, self.n_sessions, widest_range(score.about[2], difference=False))
            size = (self.n_sessions, self.n, score.seconds)
            rows.append((*score.values, *score.about, value, low, high, *size, note))
        return pl.DataFrame(rows, schema=_schema(grid) | _SCORES, orient="row", nan_to_null=True)


def changed_rule(rule: EdgeParams, values: Mapping[str, Value]) -> EdgeParams:
    """The edge rule with other numbers in it."""
    return dataclasses.replace(rule, **{name: _number(name, value) for name, value in values.items()})


def run_model(values: Mapping[str, Value], name: str = "rank_rule") -> RankRule:
    """The ranking rule with other numbers in it; ``half_life_days`` None never forgets."""
    given = dict(values)
    half_life = given.pop("half_life_days", None)
    parent_rate = given.pop("parent_rate", "smoothed")
    if parent_rate not in ("smoothed", "raw"):
        raise InvalidInput(f"parent_rate must be 'smoothed' or 'raw', not {parent_rate!r}; nothing was scored")
    return RankRule(
        RankParams(
            **{key: _number(key, value) for key, value in given.items()},
            parent_rate="raw" if parent_rate == "raw" else "smoothed",
        ),
        half_life_days=None if half_life is None else _number("half_life_days", half_life),
        name=name,
    )


def _sweep_edges(
    grid: Grid,
    log: PassingLog,
    rows: Ints,
    swept: Swept,
) -> pl.DataFrame:
    loss = EdgeLoss(log, rows)
    combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    # Without a decay in the grid every edge keeps the decay it came with.
    rules = [
        (changed_rule(log.params, values) if "decay_lambda" in grid or _one_decay(log) else None, values)
        for values in combinations
    ]
    if any(rule is None for rule, _ in rules) and set(grid):
        raise InvalidInput(
            "edges of this log decay at rates of their own; add decay_lambda to the grid, which then holds for all; "
            "nothing was scored"
        )

    def one(rule: tuple[EdgeParams | None, Mapping[str, Value]]) -> Scores:
        begun = time.perf_counter()
        losses = swept.by_session(loss.log_losses(rule[0]) if rows.size else np.empty(0))
        about = ("mnest_weights", "next_executor", "log_loss")
        return Scores(list(rule[1].values()), about, losses, time.perf_counter() - begun)

    done = [one(rule) for rule in rules[:1]]  # sorts what the others share
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        done += pool.map(one, rules[1:])
    return swept.table(done, grid)


def _sweep_runs(grid: Grid, log: RunLog, rows: Ints, swept: Swept) -> pl.DataFrame:
    y = log.y[rows]
    done: list[Scores] = []
    for combination in itertools.product(*grid.values()):
        values = dict(zip(grid, combination, strict=True))
        begun = time.perf_counter()
        p = run_model(values).predict(log)[rows]
        seconds = time.perf_counter() - begun
        for metric, losses in probability_losses(y, p).items():
            done.append(Scores(combination, ("rank_rule", "runs", metric), swept.by_session(losses), seconds))
    return swept.table(done, grid)


def _spread(every: pl.DataFrame, scored: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Each combination of the whole grid with the scores of the part of it that matters."""
    if not names:
        joined = every.join(scored, how="cross")
    else:
        joined = every.join(scored, on=names, how="left", nulls_equal=True, maintain_order="left_right")
    return joined.select(*every.columns, *_SCORES)


_SCORES: dict[str, pl.DataType] = {
    "model": pl.String(),
    "target": pl.String(),
    "metric": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n_sessions": pl.Int64(),
    "n": pl.Int64(),
    "seconds": pl.Float64(),
    "note": pl.String(),
}


def _schema(grid: Grid) -> dict[str, pl.DataType]:
    return {name: pl.String() if name == "parent_rate" else pl.Float64() for name in grid}


def _one_decay(log: PassingLog) -> bool:
    return bool((log.edge_lambda == log.params.decay_lambda).all())


def _number(name: str, value: Value) -> float:
    if not isinstance(value, (int, float)):
        raise InvalidInput(f"{name} must be a number, not {value!r}; nothing was scored")
    return float(value)
