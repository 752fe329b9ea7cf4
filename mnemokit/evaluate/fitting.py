"""The parameters that would have been best on a training period, to be scored on what came later.

A fit maximises the prequential likelihood: the product of the probabilities given, one after another, to what happened.
For the prior's strength k that is empirical Bayes: by the chain rule the product is the marginal likelihood of the
record. What a fit was made from it remembers, and it refuses to be scored on it. The fit is the model: one made by hand
from its ``params`` remembers nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput, NotEnoughData
from mnemokit.evaluate.edge_loss import EdgeLoss
from mnemokit.evaluate.edge_models import MnestWeights, Weigher
from mnemokit.evaluate.intervals import MIN_SESSIONS, without_session
from mnemokit.evaluate.metrics import Floats, Ints, log_loss
from mnemokit.evaluate.passing_log import PassingLog
from mnemokit.evaluate.predictions import scored_mask
from mnemokit.evaluate.run_log import RunLog
from mnemokit.evaluate.run_models import HalfLife, Hierarchical, PowerLaw, RankRule, RunModel
from mnemokit.evaluate.table import joined, note_on_rows_drawn
from mnemokit.evaluate.training import Trained, passing_keys, run_keys
from mnemokit.instants import Instant, as_utc, to_us
from mnemokit.records import EdgeParams, RankParams

CURVE_POINTS = 21
"""Points of the curve of each parameter."""

CURVE_SCHEMA: dict[str, pl.DataType] = {
    "parameter": pl.String(),
    "value": pl.Float64(),
    "log_loss": pl.Float64(),
    "best": pl.Boolean(),
}


_RANK, _EDGE = RankParams(), EdgeParams()


@dataclass(frozen=True)
class Bounds:
    """Where a parameter is looked for: on a log scale from low to high, from a start."""

    start: float
    low: float
    high: float


RUN_FAMILIES: Mapping[str, Mapping[str, Bounds]] = {
    "rank_rule": {"k": Bounds(_RANK.k, 0.05, 200.0)},
    "rank_rule_half_life": {"k": Bounds(_RANK.k, 0.05, 200.0), "half_life_days": Bounds(30.0, 0.05, 3650.0)},
    "half_life": {"half_life_days": Bounds(7.0, 0.05, 3650.0)},
    "power_law": {"exponent": Bounds(0.5, 0.02, 4.0), "k": Bounds(1.0, 0.05, 200.0)},
    "hierarchical": {"k": Bounds(_RANK.k, 0.05, 200.0)},
    "hierarchical_half_life": {"k": Bounds(_RANK.k, 0.05, 200.0), "half_life_days": Bounds(30.0, 0.05, 3650.0)},
}
"""Models of runs that can be fitted, and their parameters."""

EDGE_FAMILIES: Mapping[str, Mapping[str, Bounds]] = {
    "mnest_weights": {
        "decay_lambda": Bounds(_EDGE.decay_lambda, 1e-5, 20.0),
        "reinforcement": Bounds(_EDGE.reinforcement, 0.005, 1.0),
        "start_weight": Bounds(_EDGE.start_weight, 0.005, 1.0),
    },
    "mnest_decay": {"decay_lambda": Bounds(_EDGE.decay_lambda, 1e-5, 20.0)},
}
"""Rules of edges that can be fitted, and their parameters."""


@dataclass(frozen=True, kw_only=True)
class Fit(Trained):
    """Parameters found on a training period.

    It is a model itself, of runs or of edges: give it to `score` in ``models``. It refuses to be scored on rows that it
    was fitted on.

    Attributes:
        target: ``runs`` or ``next_executor``.
        family: Which model.
        params: Parameter to the value found.
        log_loss: Mean log loss on the training period, nats per row, at those values ...
        start_log_loss: ... and at the start values.
        curve: Columns ``parameter, value, log_loss, best``: each parameter varied, the others as found. A flat curve
            means that the data do not say.
        n: Training rows.
        n_sessions: Sessions they came from.
        evaluations: How often the likelihood was computed.
        note: What is to be said against it; empty if nothing is.
        name: What it is called in a table: the family and ``_fitted``.
    """

    target: str
    family: str
    params: Mapping[str, float]
    log_loss: float
    start_log_loss: float
    curve: pl.DataFrame
    n: int
    n_sessions: int
    evaluations: int
    note: str


@dataclass(frozen=True, kw_only=True)
class RunFit(Fit):
    """A fitted model of runs."""

    def predict(self, log: RunLog) -> Floats:
        """What the model says of every run."""
        return run_family(self.family, self.params, self.name).predict(log)


@dataclass(frozen=True, kw_only=True)
class EdgeFit(Fit):
    """A fitted edge rule.

    Attributes:
        edge_params: The rule of the log it was fitted on, with the values found in it.
    """

    edge_params: EdgeParams

    def weigher(self, log: PassingLog) -> Weigher:
        """How the model weighs candidates."""
        return MnestWeights(self.edge_params, name=self.name).weigher(log)


def fit_runs(
    log: RunLog,
    family: str = "rank_rule",
    *,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
) -> RunFit:
    """Fit a model of runs on a training period.

    Args:
        log: The runs; later ones may be in it, and are not looked at.
        family: One of `RUN_FAMILIES`.
        until: Runs before this instant are the training period, with what was known of their outcomes before it: a
            verdict given later is not looked at, and a run of which nothing was known yet is no training row.
        sessions: Or: runs of these sessions are, with their latest verdicts.

    Raises:
        InvalidInput: If the family is none, or no training period is named.
        NotEnoughData: If fewer than `intervals.MIN_SESSIONS` sessions are in it.
    """
    bounds = _family(RUN_FAMILIES, family)
    _need_period(until, sessions)
    end = None if until is None else to_us(as_utc(until, "until"))
    known = log.y if end is None else log.known_before(end)
    rows = np.flatnonzero(scored_mask(log.rows, "ts_run", None, until, sessions) & ~np.isnan(known))
    n_sessions = _need_rows(log.rows[rows])
    y = known[rows]

    def loss(values: Mapping[str, float]) -> float:
        return log_loss(y, run_family(family, values, family).predict(log)[rows])

    found, at_start, evaluations = minimise(loss, bounds)
    name = f"{family}_fitted"
    return RunFit(
        target="runs",
        family=family,
        params=found,
        log_loss=loss(found),
        start_log_loss=at_start,
        curve=_curve(loss, bounds, found),
        n=rows.size,
        n_sessions=n_sessions,
        evaluations=evaluations,
        note=_note(found, bounds, log.rows[rows]),
        name=name,
        trained_on=run_keys(log, rows),
        trained_until=_last_told(log, rows, end),
    )


def fit_edges(
    log: PassingLog,
    family: str = "mnest_weights",
    *,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
) -> EdgeFit:
    """Fit the edge rule on a training period, by the likelihood of which executor came next.

    Only the ratio of start weight and reinforcement matters to that likelihood, except where the cap or the ager's
    threshold is met: the curve shows how much the data say.

    Args:
        log: The passings; later ones may be in it, and are not looked at.
        family: One of `EDGE_FAMILIES`.
        until: Passings before this instant are the training period.
        sessions: Or: passings of these sessions are.

    Raises:
        InvalidInput: If the family is none, or no training period is named.
        NotEnoughData: If fewer than `intervals.MIN_SESSIONS` sessions are in it.
    """
    bounds = _family(EDGE_FAMILIES, family)
    _need_period(until, sessions)
    rows = np.flatnonzero(scored_mask(log.rows, "ts", None, until, sessions))
    n_sessions = _need_rows(log.rows[rows])
    scored = EdgeLoss(log, rows)

    def loss(values: Mapping[str, float]) -> float:
        return scored.log_loss(dataclasses.replace(log.params, **values))

    found, at_start, evaluations = minimise(loss, bounds)
    name = f"{family}_fitted"
    return EdgeFit(
        target="next_executor",
        family=family,
        params=found,
        log_loss=loss(found),
        start_log_loss=at_start,
        curve=_curve(loss, bounds, found),
        n=rows.size,
        n_sessions=n_sessions,
        evaluations=evaluations,
        note=_note(found, bounds, log.rows[rows]),
        name=name,
        edge_params=dataclasses.replace(log.params, **found),
        trained_on=passing_keys(log, rows),
        trained_until=int(log.us[rows].max()),
    )


def run_family(family: str, values: Mapping[str, float], name: str) -> RunModel:
    """A model of runs by family and parameters."""
    k = values.get("k", _RANK.k)
    half_life = values.get("half_life_days")
    if family.startswith("rank_rule"):
        return RankRule(RankParams(k=k), half_life_days=half_life, name=name)
    if family.startswith("hierarchical"):
        return Hierarchical(k=k, half_life_days=half_life, name=name)
    if family == "power_law":
        return PowerLaw(exponent=values["exponent"], k=k, name=name)
    return HalfLife(days=values["half_life_days"], name=name)


def minimise(
    loss: Callable[[Mapping[str, float]], float], bounds: Mapping[str, Bounds]
) -> tuple[dict[str, float], float, int]:
    """The parameters of least loss, by Nelder and Mead on the log scale, from the best of a coarse grid.

    Returns:
        The parameters, the loss at the start values, and how often the loss was computed.
    """
    from scipy import optimize

    names = list(bounds)
    low = np.log([bounds[name].low for name in names])
    high = np.log([bounds[name].high for name in names])
    start = np.log([bounds[name].start for name in names])
    count = 0

    def at(point: Floats) -> float:
        nonlocal count
        count += 1
        clipped = np.clip(point, low, high)
        return loss(dict(zip(names, np.exp(clipped).tolist(), strict=True)))

    points = [start]
    for i in range(len(names)):
        for share in (0.15, 0.4, 0.6, 0.85):
            point = start.copy()
            point[i] = low[i] + share * (high[i] - low[i])
            points.append(point)
    values = [at(point) for point in points]
    best = points[int(np.argmin(values))]
    options = {"xatol": 1e-3, "fatol": 1e-8, "maxfev": 150 * len(names)}
    end: Floats = np.asarray(optimize.minimize(at, best, method="Nelder-Mead", options=options).x, dtype=np.float64)
    found = np.exp(np.clip(end, low, high))
    return dict(zip(names, found.tolist(), strict=True)), values[0], count


def _curve(
    loss: Callable[[Mapping[str, float]], float], bounds: Mapping[str, Bounds], found: Mapping[str, float]
) -> pl.DataFrame:
    rows: list[tuple[str, float, float, bool]] = []
    for name, bound in bounds.items():
        grid = np.append(np.geomspace(bound.low, bound.high, CURVE_POINTS), found[name])
        rows += [(name, value, loss({**found, name: value}), value == found[name]) for value in np.sort(grid).tolist()]
    return pl.DataFrame(rows, schema=CURVE_SCHEMA, orient="row")


def _note(found: Mapping[str, float], bounds: Mapping[str, Bounds], rows: pl.DataFrame) -> str:
    """A parameter at the border of where it was looked for is not found; rows without session are no sessions."""
    at_border = [
        name for name, value in found.items() if not bounds[name].low * 1.01 < value < bounds[name].high * 0.99
    ]
    border = f"{', '.join(at_border)} lies at the border of what was searched" if at_border else None
    alone = int(without_session(rows["session"]).sum())
    return joined(border, note_on_rows_drawn(rows.height, alone)) or ""


def _last_told(log: RunLog, rows: Ints, end: int | None) -> int:
    """When the last of what is known of these runs was learnt, verdicts included; before ``end`` if there is one."""
    trained = np.zeros(log.us.size, dtype=np.bool_)
    trained[rows] = True
    told = trained[log.event_run] if end is None else trained[log.event_run] & (log.event_us < end)
    return int(log.event_us[told].max())


def _family(families: Mapping[str, Mapping[str, Bounds]], family: str) -> Mapping[str, Bounds]:
    if family not in families:
        raise InvalidInput(f"{family!r} cannot be fitted; choose from {', '.join(families)}")
    return families[family]


def _need_period(until: Instant | None, sessions: Collection[str] | None) -> None:
    if until is None and sessions is None:
        raise InvalidInput(
            "a fit needs a training period: until=, so that what comes later is left to score it on; or sessions="
        )


def _need_rows(rows: pl.DataFrame) -> int:
    n_sessions = rows["session"].n_unique()
    if n_sessions < MIN_SESSIONS:
        raise NotEnoughData(
            f"{rows.height} rows of {n_sessions} session{'' if n_sessions == 1 else 's'} are too few to fit anything "
            f"({MIN_SESSIONS} sessions needed)"
        )
    return n_sessions
