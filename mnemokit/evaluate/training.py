"""What a model was fitted on, so that it is never scored on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.metrics import Ints
from mnemokit.evaluate.passing_log import PassingLog
from mnemokit.evaluate.run_log import RunLog

Keys = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A model that was fitted.

    Attributes:
        name: What it is called in a table.
        trained_on: Keys of the rows it was fitted on, `run_keys` or `passing_keys`.
    """

    name: str
    trained_on: Keys


def refuse_training_rows(model: object, keys: Keys) -> None:
    """Refuse to score a fit on what it was fitted on.

    Raises:
        InvalidInput: If one of the rows is among them.
    """
    if isinstance(model, Trained):
        shared = int(np.isin(keys, model.trained_on).sum())
        if shared:
            raise InvalidInput(
                f"{model.name} was fitted on {shared} of these {keys.size} rows, and would look better than it is; "
                "nothing was scored; score it on a later period (since=) or on other sessions (sessions=)"
            )


def run_keys(log: RunLog, rows: Ints) -> Keys:
    """What tells runs apart."""
    return log.rows[rows].select(pl.col("run_id").hash(seed=1)).to_series().to_numpy()


def passing_keys(log: PassingLog, rows: Ints) -> Keys:
    """What tells passings apart: the session, the instant and the edge."""
    return log.rows[rows].select(pl.struct(pl.exclude("untimed")).hash(seed=1)).to_series().to_numpy()
