"""Predictions made only from the past, with what happened: one row each, and the table and curves made of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.intervals import REPLICATES, session_numbers, without_session
from mnemokit.evaluate.metrics import BINS, Floats, bin_table
from mnemokit.evaluate.table import Scored, probability_losses, tabulate
from mnemokit.instants import Instant, as_utc


@dataclass(frozen=True)
class Predictions:
    """What every model said before each thing happened, and what happened.

    Attributes:
        target: ``runs``, ``next_executor`` or ``recall``.
        rows: What each prediction was about, one row each; column ``session`` says whose it is.
        p: Model to the probability it gave: of success (runs), or to the executor that came next. Empty for recall,
            which gives none.
        losses: Model, then metric, then row values whose mean is the metric.
        seconds: What each model took.
        baselines: The models that others are compared with.
        y: What happened, where the target is a probability of success.
        note: Said of the whole, for instance what was left out.
        notes: Model to what is to be said against its numbers.
    """

    target: str
    rows: pl.DataFrame
    p: Mapping[str, Floats]
    losses: Mapping[str, Mapping[str, Floats]]
    seconds: Mapping[str, float]
    baselines: Sequence[str]
    y: Floats | None = None
    note: str = ""
    notes: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def n_sessions(self) -> int:
        """How many sessions stand behind the predictions."""
        return self.rows["session"].n_unique()

    def table(
        self,
        by: Sequence[str] = (),
        *,
        rng: np.random.Generator | None = None,
        replicates: int = REPLICATES,
    ) -> pl.DataFrame:
        """The tidy result: every model and metric with a 95 % interval, and its differences from every baseline.

        Args:
            by: Columns of ``rows`` to also make the table by, for instance ``["scope", "depth"]``.
            rng: Draws sessions; left out, a generator with the documented seed.
            replicates: Draws of the bootstrap.

        Returns:
            A frame of `table.RESULT_SCHEMA`.

        Raises:
            InvalidInput: If a column does not exist.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {}, outcome="success", at="2025-08-01T00:00:00Z")
            ...     made = mk.evaluate.predictions(mem)
            >>> made.table().filter(model="rank_rule", metric="brier").select("versus", "value", "n").rows()[0]
            (None, 0.25, 1)
        """
        for column in by:
            if column not in self.rows.columns:
                raise InvalidInput(
                    f"there is no column {column!r} to group by; there are {', '.join(self.rows.columns)}"
                )
        scored = Scored(
            target=self.target,
            session=session_numbers(self.rows["session"]),
            n_sessions=self.n_sessions,
            losses=self.losses,
            seconds=self.seconds,
            baselines=self.baselines,
            y=self.y,
            p=self.p if self.y is not None else {},
            groups={column: self.rows[column] for column in by},
            alone=without_session(self.rows["session"]),
            notes=self.notes,
        )
        return tabulate(scored, rng=rng, replicates=replicates)

    def long(self) -> pl.DataFrame:
        """The raw predictions, one row per prediction and model.

        Returns:
            The columns of ``rows``, ``model``, the row values of every metric (null where a row cannot be judged by it,
            or the model is not), and ``p`` (null where the target gives no probability). A metric whose row values are
            in ``rows`` already (``success`` of a recall) has no second column.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {}, outcome="success", at="2025-08-01T00:00:00Z")
            ...     made = mk.evaluate.predictions(mem)
            >>> made.long().filter(model="rank_rule").select("scope", "y", "p", "brier").rows()
            [('s', 1, 0.5, 0.25)]
        """
        metrics = dict.fromkeys(name for rows in self.losses.values() for name in rows if name not in self.rows.columns)
        parts = [
            self.rows.with_columns(
                model=pl.lit(model),
                **{name: _column(rows.get(name), self.rows.height) for name in metrics},
                p=_column(self.p.get(model), self.rows.height),
            )
            for model, rows in self.losses.items()
        ]
        return pl.concat(parts) if parts else self.rows.clear()

    def bins(self, bins: int = BINS) -> pl.DataFrame:
        """The calibration curve of every model.

        Args:
            bins: Into how many parts 0 to 1 is cut, all of one width.

        Returns:
            One row per model and bin that has a prediction: model, bin, from, to, n, s, predicted (mean), observed
            (share that came true), low, high (95 %); see `metrics.bin_table`.

        Raises:
            InvalidInput: If the target is no probability of success.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {}, outcome="success", at="2025-08-01T00:00:00Z")
            ...     made = mk.evaluate.predictions(mem)
            >>> made.bins().filter(model="rank_rule").select("from", "predicted", "observed").rows()
            [(0.5, 0.5, 1.0)]
        """
        if self.y is None:
            raise InvalidInput(f"{self.target} is no probability of success: there is no calibration curve of it")
        if self.y.size == 0:
            return bin_table([0.0], [0.5], bins).clear().with_columns(model=pl.lit(None, dtype=pl.String))
        return pl.concat(
            [bin_table(self.y, p, bins).with_columns(model=pl.lit(model)) for model, p in self.p.items()]
        ).select("model", pl.exclude("model"))


def _column(values: Floats | None, n: int) -> pl.Series:
    """Row values as a column; what is not known is null."""
    return pl.Series([None] * n if values is None else values, dtype=pl.Float64).fill_nan(None)


def probability_predictions(
    rows: pl.DataFrame,
    y: Floats,
    p: Mapping[str, Floats],
    seconds: Mapping[str, float],
    baselines: Sequence[str],
    note: str = "",
    notes: Mapping[str, str] | None = None,
) -> Predictions:
    """Predictions of a probability of success, with their losses."""
    return Predictions(
        target="runs",
        rows=rows,
        p=p,
        losses={model: probability_losses(y, said) for model, said in p.items()},
        seconds=seconds,
        baselines=baselines,
        y=y,
        note=note,
        notes=notes or {},
    )


def scored_mask(
    rows: pl.DataFrame, ts: str, since: Instant | None, until: Instant | None, sessions: Collection[str] | None
) -> np.ndarray:
    """Which rows are scored: from an instant on, before an instant, of these sessions.

    Args:
        rows: With column ``session_id``, null where a row has none.
        ts: Column of the instant.
        since: First instant that is scored.
        until: First instant that is no longer scored.
        sessions: Session ids that are scored; None for all.
    """
    keep = pl.lit(value=True)
    for bound, after in ((since, True), (until, False)):
        if bound is not None:
            moment = pl.lit(_moment(bound), pl.Datetime("us", "UTC"))
            keep = keep & (pl.col(ts) >= moment if after else pl.col(ts) < moment)
    if sessions is not None:
        keep = keep & pl.col("session_id").is_in(list(sessions)).fill_null(value=False)
    return rows.select(keep.alias("keep") & pl.col(ts).is_not_null()).to_series().to_numpy()


def _moment(bound: Instant) -> datetime:
    return as_utc(bound, "since/until")
