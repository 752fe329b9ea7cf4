"""Would the ranking have been right? The probability of success it gave just before each run, against what happened."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.metrics import Floats
from mnemokit.evaluate.naming import with_baselines
from mnemokit.evaluate.predictions import Predictions, probability_predictions, scored_mask
from mnemokit.evaluate.run_log import RunLog, run_log
from mnemokit.evaluate.run_models import RankRule, RunModel, run_baselines, run_rivals
from mnemokit.evaluate.training import notes_on_fits, run_keys
from mnemokit.instants import Instant
from mnemokit.records import RankParams


def predict_runs(
    runs: pl.DataFrame,
    reasonlets: pl.DataFrame,
    feedback: pl.DataFrame | None = None,
    *,
    models: Sequence[RunModel] | None = None,
    rank_params: RankParams | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
) -> Predictions:
    """Test, then learn, run by run in order of time: what would each model have said of each run before it ran?

    All runs of one instant are predicted before any of them is learnt. Learning goes on through the scored rows; which
    rows are scored is chosen by ``since``, ``until`` and ``sessions``.

    Args:
        runs: As `run_log` takes them.
        reasonlets: As `run_log` takes them.
        feedback: As `run_log` takes it.
        models: Models beside the memory's rule and the baselines, which are always there; None adds the rivals of
            `run_models.run_rivals`.
        rank_params: The memory's rule; the default one if left out.
        since: Only runs from this instant on are scored.
        until: Only runs before this instant are scored.
        sessions: Only runs of these sessions are scored.

    Returns:
        The predictions; ``.table()`` makes the result frame of them. Runs whose outcome is unknown are learnt from by
        none and scored by none; the note says how many there were.

    Raises:
        InvalidInput: If a column is missing, two models have one name, or one has that of a baseline.

    Example:
        >>> from datetime import UTC, datetime, timedelta
        >>> start = datetime(2025, 8, 1, tzinfo=UTC)
        >>> runs = pl.DataFrame({"run_id": ["1", "2", "3"], "reasonlet_id": ["a"] * 3, "outcome": ["success"] * 3,
        ...                      "ts_run": [start + timedelta(days=d) for d in range(3)]})
        >>> reasonlets = pl.DataFrame({"reasonlet_id": ["a"], "parent_id": [None]})
        >>> [round(float(p), 4) for p in predict_runs(runs, reasonlets).p["rank_rule"]]
        [0.5, 0.6667, 0.75]
    """
    return predict_log(
        run_log(runs, reasonlets, feedback),
        models=models,
        rank_params=rank_params,
        since=since,
        until=until,
        sessions=sessions,
    )


def predict_log(
    log: RunLog,
    *,
    models: Sequence[RunModel] | None = None,
    rank_params: RankParams | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    sessions: Collection[str] | None = None,
) -> Predictions:
    """As `predict_runs`, from a log that was put in order already."""
    baselines = run_baselines()
    own = RankRule(rank_params or RankParams())
    every = with_baselines([own, *(run_rivals() if models is None else models)], baselines)
    inside = scored_mask(log.rows, "ts_run", since, until, sessions)
    keep = np.flatnonzero(inside & ~np.isnan(log.y))
    notes = notes_on_fits(every, lambda: run_keys(log, keep), log.us[keep])
    unknown = int(inside.sum()) - keep.size
    p: dict[str, Floats] = {}
    seconds: dict[str, float] = {}
    for model in every:
        begun = time.perf_counter()
        said = np.asarray(model.predict(log), dtype=np.float64)
        seconds[model.name] = time.perf_counter() - begun
        if said.shape != log.us.shape or not ((said >= 0) & (said <= 1)).all():
            raise InvalidInput(
                f"the model {model.name!r} must give one number from 0 to 1 for each of the {log.us.size} runs; "
                "nothing was scored"
            )
        p[model.name] = said[keep]
    return probability_predictions(
        log.rows[keep],
        log.y[keep],
        p,
        seconds,
        [baseline.name for baseline in baselines],
        note=f"{unknown} run{'' if unknown == 1 else 's'} of unknown outcome left out" if unknown else "",
        notes=notes,
    )
