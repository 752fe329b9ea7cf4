"""The runs of procedures in order of time, with what was learnt of each and when: what run models predict from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.intervals import OWN_SESSION
from mnemokit.evaluate.metrics import Floats, Ints, summed
from mnemokit.evaluate.past import Events, Past
from mnemokit.frames import INSTANT

LEVELS = ("reasonlet_id", "scope", "question", "executor_version")
"""Columns by which models may pool runs."""

_NEEDED_RUNS = ("run_id", "reasonlet_id", "outcome", "ts_run")
_ROWS = (
    "run_id",
    "reasonlet_id",
    "parent_id",
    "version",
    "depth",
    "scope",
    "question",
    "executor_version",
    "session_id",
    "session",
    "ts_run",
    "untimed",
    "y",
)
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RunLog:
    """Runs in order of time, in columns of numbers. Make one with `run_log`.

    Attributes:
        rows: One row per run: ``run_id, reasonlet_id, parent_id, version, depth, scope, question, executor_version,
            session_id, session, ts_run, untimed, y`` (1, 0, or null where what happened is not known).
        us: When each ran, microseconds.
        y: What happened in the end, the latest verdict included; NaN if unknown.
        reasonlet: Number of each run's procedure.
        parent: Number of its parent's procedure, -1 without one that was there before.
        event_run: What was learnt: about which run,
        event_us: when,
        event_n: how many counted runs that adds (1, 0 or -1),
        event_s: and how many successes.
    """

    rows: pl.DataFrame
    us: Ints
    y: Floats
    reasonlet: Ints
    parent: Ints
    event_run: Ints
    event_us: Ints
    event_n: Floats
    event_s: Floats
    _pasts: dict[tuple[str, ...], Past] = field(default_factory=dict[tuple[str, ...], Past], repr=False)
    _codes: dict[tuple[str, ...], Ints] = field(default_factory=dict[tuple[str, ...], Ints], repr=False)

    def past(self, *levels: str) -> Past:
        """What was learnt before each run about runs that share these columns with it.

        Args:
            levels: Some of `LEVELS`; none: about all runs.

        Returns:
            A question per run, in the order of ``rows``; ask it for ``count``, ``sum(event_n)``, ...

        Raises:
            InvalidInput: If a column is none of `LEVELS`.

        Example:
            >>> from mnemokit.evaluate.reading import run_log_of
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     for day in ("2025-08-01", "2025-08-02"):
            ...         _ = mem.reasonlets.capture("s", "q", {}, outcome="success", at=f"{day}T00:00:00Z")
            ...     log = run_log_of(mem)
            >>> log.past("scope").sum(log.event_s).tolist()
            [0.0, 1.0]
        """
        if levels not in self._pasts:
            code = self.code(*levels)
            self._pasts[levels] = self.past_of(code, code)
        return self._pasts[levels]

    @property
    def past_of_parent(self) -> Past:
        """What was learnt before each run about its procedure's parent."""
        if ("parent",) not in self._pasts:
            self._pasts["parent",] = self.past_of(self.reasonlet, self.parent)
        return self._pasts["parent",]

    def known_before(self, us: int) -> Floats:
        """What was known of each run's outcome strictly before an instant (microseconds); NaN where nothing was."""
        told = self.event_us < us
        n, s = (summed(self.event_run[told], values[told], self.us.size) for values in (self.event_n, self.event_s))
        return np.where(n > 0, s, np.nan)

    @cached_property
    def past_events(self) -> Events:
        """What was learnt, to be asked about by the procedure's number."""
        return Events(self.reasonlet[self.event_run], self.event_us, self.us[self.event_run])

    def past_of(self, event_code: Ints, query_code: Ints) -> Past:
        """What was learnt before each run about the runs whose ``event_code`` is the run's ``query_code``."""
        events = Events(event_code[self.event_run], self.event_us, self.us[self.event_run])
        return events.before(query_code, self.us)

    def code(self, *levels: str) -> Ints:
        """Numbers of the distinct combinations of these columns; runs that lack a value form a group of their own."""
        if levels not in self._codes:
            unknown = [name for name in levels if name not in LEVELS]
            if unknown:
                raise InvalidInput(f"runs cannot be pooled by {unknown[0]!r}; choose from {', '.join(LEVELS)}")
            self._codes[levels] = (
                self.rows.select(pl.struct(levels).rank("dense")).to_series().to_numpy().astype(np.int64)
                if levels
                else np.zeros(self.us.size, dtype=np.int64)
            )
        return self._codes[levels]


def run_log(runs: pl.DataFrame, reasonlets: pl.DataFrame, feedback: pl.DataFrame | None = None) -> RunLog:
    """Put runs in order of time and note what was learnt of each, and when.

    A run's own outcome is learnt when it ran, a verdict when it was given; the verdict then stands in the outcome's
    place. Runs of one instant are known to none of each other. What is learnt at one instant is learnt in the order of
    ``seq``, without it in the order of the ids of runs: the order of the rows means nothing.

    Args:
        runs: ``run_id, reasonlet_id, outcome, ts_run``; ``session_id``, ``source``, ``executor_version`` and ``seq``
            where there are any. A run without session is a session of its own.
        reasonlets: ``reasonlet_id, parent_id``; ``scope, question, version, ts_captured`` where there are any.
        feedback: ``run_id, outcome, ts_given``; ``seq`` where there is one. Of two verdicts on one run at one instant
            the one of the higher ``seq`` counts, without it the later row.

    Raises:
        InvalidInput: If a needed column is missing.

    Example:
        >>> from datetime import UTC, datetime
        >>> day = [datetime(2025, 8, d, tzinfo=UTC) for d in (1, 2)]
        >>> runs = pl.DataFrame({"run_id": ["x", "y"], "reasonlet_id": ["a", "a"], "outcome": ["success", None],
        ...                      "ts_run": day})
        >>> run_log(runs, pl.DataFrame({"reasonlet_id": ["a"], "parent_id": [None]})).y.tolist()
        [1.0, nan]
    """
    _need(runs, _NEEDED_RUNS, "runs")
    _need(reasonlets, ("reasonlet_id", "parent_id"), "reasonlets")
    rows = _in_order(runs, "ts_run").with_columns(
        *_optional(runs, ("session_id", "source", "executor_version")),
        untimed=pl.col("untimed").fill_null(value=False) if "untimed" in runs.columns else pl.lit(value=False),
    )
    rows = rows.join(_procedures(reasonlets), on="reasonlet_id", how="left", maintain_order="left")
    given = _verdicts(rows, feedback)
    final = given.unique("run", keep="last", maintain_order=True).select(
        run="run", verdict_y="y", judged=pl.lit(value=True)
    )
    rows = (
        rows.with_row_index("run")
        .with_columns(pl.col("run").cast(pl.Int64))
        .join(final, on="run", how="left", maintain_order="left")
    )
    rows = rows.with_columns(own_y=_outcome(pl.col("outcome"))).with_columns(
        y=pl.when(pl.col("judged").is_not_null()).then("verdict_y").otherwise("own_y"),
        session=pl.coalesce(
            pl.concat_str(pl.col("source").fill_null(""), pl.lit("\x1f"), "session_id"),
            pl.concat_str(pl.lit(OWN_SESSION), "run_id"),
        ),
        depth=pl.col("depth").fill_null(0),
    )
    us = rows["ts_run"].cast(pl.Int64).to_numpy()
    learnt = _learnt(rows, given)
    reasonlet, parent = _numbers(rows, us)
    return RunLog(
        rows=rows.select(_ROWS),
        us=us,
        y=rows["y"].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        reasonlet=reasonlet,
        parent=parent,
        event_run=learnt["run"].to_numpy(),
        event_us=learnt["us"].to_numpy(),
        event_n=learnt["dn"].cast(pl.Float64).to_numpy(),
        event_s=learnt["ds"].cast(pl.Float64).to_numpy(),
    )


def _verdicts(rows: pl.DataFrame, feedback: pl.DataFrame | None) -> pl.DataFrame:
    """Verdicts in the order they were given: run (row number), us (when they count from), y."""
    if feedback is None:
        if "verdict" in rows.columns and rows.filter(pl.col("verdict").ne_missing(pl.col("outcome"))).height:
            raise InvalidInput(
                "these runs carry verdicts of feedback, and when it was given is not known; give feedback= as well; "
                "nothing was scored"
            )
        return pl.DataFrame(schema={"run": pl.Int64, "us": pl.Int64, "y": pl.Int64})
    _need(feedback, ("run_id", "outcome", "ts_given"), "feedback")
    return (
        _in_order(feedback, "ts_given")
        .join(
            rows.select("run_id", "ts_run", run=pl.int_range(pl.len(), dtype=pl.Int64)),
            on="run_id",
            maintain_order="left",
        )
        .select(
            "run",
            us=pl.max_horizontal("ts_given", "ts_run").cast(pl.Int64),
            y=_outcome(pl.col("outcome")),
        )
    )


def _learnt(rows: pl.DataFrame, given: pl.DataFrame) -> pl.DataFrame:
    """Changes to the counted record, in order: run, us, dn, ds. A verdict undoes what it replaces."""
    told = pl.concat(
        [rows.select("run", us=pl.col("ts_run").cast(pl.Int64), y="own_y"), given.select("run", "us", "y")]
    ).sort("us", maintain_order=True)
    n, s = pl.col("y").is_not_null().cast(pl.Int64), pl.col("y").fill_null(0)
    return (
        told.with_columns(n=n, s=s)
        .with_columns(
            dn=pl.col("n") - pl.col("n").shift(1, fill_value=0).over("run"),
            ds=pl.col("s") - pl.col("s").shift(1, fill_value=0).over("run"),
        )
        .filter((pl.col("dn") != 0) | (pl.col("ds") != 0))
    )


def _in_order(frame: pl.DataFrame, ts: str) -> pl.DataFrame:
    """Rows by instant, ties by ``seq`` or else by the run's id, so that they depend on no order of rows."""
    return frame.sort(ts, "seq" if "seq" in frame.columns else "run_id", maintain_order=True)


def _procedures(reasonlets: pl.DataFrame) -> pl.DataFrame:
    """Procedures with their depth: how many versions above them are still there."""
    kept = reasonlets.with_columns(_optional(reasonlets, ("version", "scope", "question")))
    if "ts_captured" not in kept.columns:
        kept = kept.with_columns(ts_captured=pl.lit(None, dtype=INSTANT))
    kept = kept.with_columns(pl.col("parent_id").cast(pl.String))
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    above = kept.join(
        kept.select(parent_id="reasonlet_id", above=number), on="parent_id", how="left", maintain_order="left"
    )
    parent = above["above"].fill_null(-1).to_numpy()
    depth, at = (parent >= 0).astype(np.int64), parent.copy()
    for _ in range(40):  # steps double: enough for any depth there can be, and an end should links ever run in a circle
        if not (at >= 0).any():
            break
        depth += np.where(at >= 0, depth[at], 0)
        at = np.where(at >= 0, at[at], -1)
    return kept.select("reasonlet_id", "parent_id", "version", "scope", "question", "ts_captured").with_columns(
        depth=pl.Series(depth)
    )


def _numbers(rows: pl.DataFrame, us: Ints) -> tuple[Ints, Ints]:
    """Numbers of each run's procedure and of its parent, -1 where no parent was captured before the run."""
    known = (
        rows.select("reasonlet_id", "ts_captured").unique("reasonlet_id", maintain_order=True).with_row_index("number")
    )
    numbers = known.select("reasonlet_id", pl.col("number").cast(pl.Int64))
    reasonlet = rows.select("reasonlet_id").join(numbers, on="reasonlet_id", how="left", maintain_order="left")
    parent = rows.select(reasonlet_id="parent_id").join(
        known.select("reasonlet_id", pl.col("number").cast(pl.Int64), since=pl.col("ts_captured").cast(pl.Int64)),
        on="reasonlet_id",
        how="left",
        maintain_order="left",
    )
    there = parent["since"].fill_null(-_NEVER).to_numpy() < us
    number = parent["number"].fill_null(-1).to_numpy()
    return reasonlet["number"].to_numpy(), np.where(there, number, -1)


def _outcome(outcome: pl.Expr) -> pl.Expr:
    return pl.when(outcome == "success").then(1).when(outcome == "failure").then(0).cast(pl.Int64)


def _optional(frame: pl.DataFrame, names: Sequence[str]) -> list[pl.Expr]:
    """Columns that a frame may lack, as text."""
    return [(pl.col(name) if name in frame.columns else pl.lit(None)).cast(pl.String).alias(name) for name in names]


def _need(frame: pl.DataFrame, names: Sequence[str], what: str) -> None:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InvalidInput(
            f"the {what} frame has no column {', '.join(missing)}; it has {', '.join(frame.columns)}; "
            "nothing was scored"
        )
