"""What a model was fitted on, so that it is never scored on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.metrics import Ints
from mnemokit.evaluate.passing_log import PassingLog
from mnemokit.evaluate.run_log import RunLog

Keys = NDArray[np.uint64]

FITTED_LATER = "scored before some of what it was fitted on"
"""Note on a fit whose training period goes on beyond the first row that it is scored on."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A model that was fitted.

    Attributes:
        name: What it is called in a table.
        trained_on: Keys of the rows it was fitted on, `run_keys` or `passing_keys`.
        trained_until: When the last of what it was fitted on became known, microseconds.
    """

    name: str
    trained_on: Keys
    trained_until: int


def notes_on_fits(models: Sequence[object], keys: Callable[[], Keys], us: Ints) -> dict[str, str]:
    """Refuse to score a fit on what it was fitted on, and say which fits are scored on what came before that.

    Args:
        models: The models that are to be scored; those that are no fits pass.
        keys: Gives the keys of the rows that are to be scored; only asked if there is a fit.
        us: When those rows were, microseconds.

    Returns:
        Name of the fit to what is to be said against its scores.

    Raises:
        InvalidInput: If one of the rows is among those that a model was fitted on.
    """
    fits = [model for model in models if isinstance(model, Trained)]
    if not fits:
        return {}
    scored = keys()
    for fit in fits:
        shared = int(np.isin(scored, fit.trained_on).sum())
        if shared:
            raise InvalidInput(
                f"{fit.name} was fitted on {shared} of these {scored.size} rows, and would look better than it is; "
                "nothing was scored; score it on a later period (since=) or on other sessions (sessions=)"
            )
    return {fit.name: FITTED_LATER for fit in fits if us.size and int(us.min()) < fit.trained_until}


def run_keys(log: RunLog, rows: Ints) -> Keys:
    """What tells runs apart in any memory that the log is in: session, instant, scope and question.

    A log without scopes and questions has its procedures' ids instead.
    """
    named = pl.coalesce("question", pl.when(pl.col("scope").is_null()).then("reasonlet_id"))
    return _keys(log.rows, rows, "ts_run", pl.col("scope"), named.alias("named"))


def passing_keys(log: PassingLog, rows: Ints) -> Keys:
    """What tells passings apart in any memory, whatever is made of versions: session, instant and executors."""
    return _keys(log.rows, rows, "ts", pl.col("src_executor"), pl.col("dst_executor"))


def _keys(log: pl.DataFrame, rows: Ints, ts: str, *what: pl.Expr) -> Keys:
    """Hashes of what a log says of its rows; ids and row numbers differ from store to store and are no part of it."""
    # The session column has the source's label too, and where there is no session an id of the store.
    sourced = pl.when(pl.col("session_id").is_not_null()).then("session")
    told = log.with_columns(sourced=sourced).select(
        "session_id",
        pl.when(~pl.col("untimed")).then(pl.col(ts).cast(pl.Int64)).alias("instant"),
        # What has no time carries a number of the store as its instant; its place in its session is the log's own. As
        # sessions of other logs are often numbered alike, the label says which log; instants say it without one.
        pl.when("untimed").then("sourced").alias("source"),
        pl.when("untimed").then(pl.col("untimed").cum_sum().over("sourced")).alias("place"),
        *what,
    )
    return told[rows].select(pl.struct(pl.all()).hash(seed=1)).to_series().to_numpy()
