"""How good a procedure is believed to be: its own record, drawn towards a prior that it inherits from its parent.

Four SQL texts are the rule: ``sql/rank_counted.sql`` (runs and verdicts to records), ``rank_records.sql`` (each with
its parent's), ``rank_rates.sql`` (priors and rates) and ``rank_best.sql`` (the order). They run inside a store over
its tables, and in ``rank`` over frames that never touch a store; a recall shares the rates.

    own(x)   = (s + k/2) / (n + k)                      s successes among n counted runs
    prior(x) = max(1/2, own(parent)), 1/2 without one   one level, upward only
    rate(x)  = (s + k*prior(x)) / (n + k)               interval: Beta(s + k*prior, n - s + k*(1 - prior))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import cast

import duckdb
import numpy as np
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.frames import FLOAT, INSTANT, INT, TEXT, conform
from mnemokit.given_frames import as_polars
from mnemokit.instants import Instant, as_utc
from mnemokit.reasonlets.columns import why_unfit
from mnemokit.reasonlets.keys import checked_number, checked_words
from mnemokit.records import OUTCOMES, ParentRate, RankParams
from mnemokit.store import Connection, fetch, lend, query

MANY = 5_000
"""From so many intervals on, their ends are worked out beside each other, on two cores."""

_Inverse = Callable[[np.ndarray, np.ndarray, float], np.ndarray]

RANK_SCHEMA: dict[str, pl.DataType] = {
    "reasonlet_id": TEXT,
    "version": TEXT,
    "parent_id": TEXT,
    "n": INT,
    "s": INT,
    "prior": FLOAT,
    "prior_source": TEXT,
    "rate": FLOAT,
    "rate_low": FLOAT,
    "rate_high": FLOAT,
    "own": FLOAT,
    "parent_rate": FLOAT,
    "scope": TEXT,
    "question": TEXT,
    "ts_captured": INSTANT,
}


_DEFAULT = RankParams()


def rank(
    reasonlets: pl.DataFrame,
    runs: pl.DataFrame,
    feedback: pl.DataFrame | None = None,
    at: Instant | None = None,
    k: float = _DEFAULT.k,
    parent_rate: ParentRate = _DEFAULT.parent_rate,
    scope: str | None = None,
    *,
    interval: float = _DEFAULT.interval,
) -> pl.DataFrame:
    """Rank reasonlets that are given as frames; the same rule, and the same SQL, as in a store.

    Args:
        reasonlets: ``reasonlet_id`` and ``parent_id`` at least; ``version``, ``scope``, ``question`` and
            ``ts_captured`` (Datetime with a time zone, like every instant) where there are any.
        runs: ``reasonlet_id`` and ``outcome`` (success, failure or null); ``run_id`` if there is feedback, ``ts_run``
            to be read as of a time. A column ``verdict``, as ``mem.frame("runs")`` has it, is used if no feedback is
            given.
        feedback: ``run_id``, ``outcome``, ``ts_given``; the latest verdict on a run replaces the run's own outcome, of
            equally late ones the one in the later row.
        at: As of this instant: later captures, runs and feedback are left out. None uses every row.
        k: Strength of the prior, in runs.
        parent_rate: ``"smoothed"``: a version inherits its parent's ``own`` rate; ``"raw"``: s/n of the parent.
        scope: Only this scope.
        interval: Mass of the equal-tailed credible interval.

    Returns:
        One row per reasonlet, best first: ``reasonlet_id, version, parent_id, n, s, prior, prior_source`` (parent or
        neutral), ``rate, rate_low, rate_high``, and what they were made of: ``own``, ``parent_rate`` (null without a
        live parent), ``scope, question, ts_captured``. Ties: more runs, then newer, then id.

    Raises:
        InvalidInput: If a needed column is missing, of another type or without a time zone, an outcome is none, k is
            not positive, or ``at`` is naive.

    Example:
        >>> reasonlets = pl.DataFrame({"reasonlet_id": ["a", "b"], "parent_id": [None, "a"]})
        >>> runs = pl.DataFrame({"reasonlet_id": ["a"] * 10, "outcome": ["success"] * 9 + ["failure"]})
        >>> runs = runs.with_row_index("run_id").with_columns(pl.col("run_id").cast(pl.String))
        >>> rank(reasonlets, runs).select("reasonlet_id", "n", "s", pl.col("prior", "rate").round(4)).rows()
        [('a', 10, 9, 0.5, 0.8333), ('b', 0, 0, 0.8333, 0.8333)]
    """
    params = RankParams(
        k=checked_number(k, "k"), parent_rate=parent_rate, interval=checked_number(interval, "interval")
    )
    moment, name = None if at is None else as_utc(at), checked_words(scope, "scope")
    with duckdb.connect(":memory:") as con:
        con.execute("SET TimeZone = 'UTC'")
        with lend(con, **_numbered(reasonlets, runs, feedback, moment)):
            return ranked(con, params, at=moment, scope=name)


def ranked(
    con: Connection,
    params: RankParams,
    *,
    at: datetime | None = None,
    scope: str | None = None,
    among: list[int] | None = None,
) -> pl.DataFrame:
    """Rank the reasonlets that a connection sees; see ``rank`` for the columns.

    Args:
        con: A connection that has the tables reasonlets, runs and feedback.
        params: The ranking rule.
        at: As of this instant; None: as it stands.
        scope: Only this scope.
        among: Only the reasonlets of these ``seq`` numbers, and their parents.
    """
    values = {"at": at, "scope": scope, **rule_values(params)}
    rule = " ".join(query(part) for part in ("rank_counted", "rank_records", "rank_rates", "rank_best"))
    if among is None:
        rows = fetch(con, f"WITH {rule}", values)
    else:
        with lend(con, among=pl.DataFrame({"seq": among}, schema={"seq": INT})):
            rows = fetch(con, f"WITH {query('rank_among')} {rule}", values)
    return conform(with_intervals(rows, params), RANK_SCHEMA)


def rule_values(params: RankParams) -> dict[str, object]:
    """The values that ``sql/rank_rates.sql`` takes from the parameters."""
    return {"k": float(params.k), "raw": params.parent_rate == "raw"}


def with_intervals(rows: pl.DataFrame, params: RankParams) -> pl.DataFrame:
    """Add ``rate_low`` and ``rate_high`` to rows with ``n``, ``s`` and ``prior``; row order is kept.

    The equal-tailed interval of Beta(s + k*prior, n - s + k*(1 - prior)) is computed once per distinct (s, n, prior).
    """
    if rows.height < MANY:
        # So few take less time than finding which of them are equal.
        return rows.with_columns(*_ends(rows, params))
    distinct = rows.select("s", "n", "prior").unique()
    known = distinct.with_columns(*_ends(distinct, params))
    # Only the key is joined, so that ids and questions are not copied.
    found = rows.select("s", "n", "prior").join(known, on=["s", "n", "prior"], how="left", maintain_order="left")
    return rows.with_columns(found["rate_low"], found["rate_high"])


def _ends(rows: pl.DataFrame, params: RankParams) -> tuple[pl.Series, pl.Series]:
    s, n, prior = (rows[name].to_numpy() for name in ("s", "n", "prior"))
    low, high = beta_interval(s + params.k * prior, n - s + params.k * (1 - prior), params.interval)
    return pl.Series("rate_low", low, dtype=FLOAT), pl.Series("rate_high", high, dtype=FLOAT)


def beta_interval(alpha: np.ndarray, beta: np.ndarray, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """Equal-tailed intervals of Beta(alpha, beta); a zero parameter is a point mass (at 0 or at 1).

    Example:
        >>> low, high = beta_interval(np.array([1.0, 3.0]), np.array([1.0, 0.0]), 0.95)
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([0.025, 1.0], [0.975, 1.0])
    """
    tail = (1 - mass) / 2
    spread = (alpha > 0) & (beta > 0)
    inside_alpha, inside_beta = np.where(spread, alpha, 1.0), np.where(spread, beta, 1.0)
    point = np.where(alpha > 0, 1.0, 0.0)
    if alpha.size < MANY:
        low, high = (inverse(inside_alpha, inside_beta, tail) for inverse in _inverses())
    else:
        with ThreadPoolExecutor(max_workers=2) as both:
            parts = [both.submit(inverse, inside_alpha, inside_beta, tail) for inverse in _inverses()]
            low, high = (part.result() for part in parts)
    return np.where(spread, low, point), np.where(spread, high, point)


def _inverses() -> tuple[_Inverse, _Inverse]:
    """The quantile of a Beta distribution from below and from above."""
    from scipy import special

    return cast("_Inverse", special.betaincinv), cast("_Inverse", special.betainccinv)


def needed_params(params: RankParams, k: float | None, parent_rate: ParentRate | None) -> RankParams:
    """The parameters of one call: the store's own, with what the caller gave in their place."""
    strength = None if k is None else checked_number(k, "k")
    given = {name: value for name, value in (("k", strength), ("parent_rate", parent_rate)) if value is not None}
    return dataclasses.replace(params, **given) if given else params


# Frames given by a caller -------------------------------------------------------------------------------------------

_REASONLETS: dict[str, pl.DataType] = {
    "reasonlet_id": TEXT,
    "parent_id": TEXT,
    "version": TEXT,
    "scope": TEXT,
    "question": TEXT,
    "ts_captured": INSTANT,
}
_RUNS: dict[str, pl.DataType] = {"run_id": TEXT, "reasonlet_id": TEXT, "outcome": TEXT, "ts_run": INSTANT}
_FEEDBACK: dict[str, pl.DataType] = {"run_id": TEXT, "outcome": TEXT, "ts_given": INSTANT}
_UNTOUCHED = "nothing was ranked"
_LONG_AGO = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _numbered(
    reasonlets: pl.DataFrame, runs: pl.DataFrame, feedback: pl.DataFrame | None, at: datetime | None
) -> dict[str, pl.DataFrame]:
    """The frames as the rule's SQL sees a store's tables: rows known by numbers."""
    dated = () if at is None else ("ts_captured", "ts_run", "ts_given")
    versions = _complete(reasonlets, "reasonlets", _REASONLETS, {"reasonlet_id", "parent_id", *dated})
    twice = versions.filter(versions["reasonlet_id"].is_duplicated())
    if twice.height:
        raise InvalidInput(f"the reasonlets frame has {twice['reasonlet_id'][0]!r} twice; nothing was ranked")
    numbers = versions.select("reasonlet_id", no=pl.col("seq"))
    parents = numbers.rename({"reasonlet_id": "parent_id", "no": "parent_no"})
    identified = set[str]() if feedback is None else {"run_id"}
    made = _complete(
        _judged(as_polars(runs, "runs", _UNTOUCHED), feedback, at),
        "runs",
        _RUNS,
        {"reasonlet_id", "outcome", *identified, *dated},
    )
    given = pl.DataFrame(schema=_FEEDBACK) if feedback is None else feedback
    verdicts = _complete(given, "feedback", _FEEDBACK, {"run_id", "outcome", "ts_given"})
    judged = made.select("run_id", run_no=pl.col("seq"))
    return {
        "reasonlets": versions.join(parents, on="parent_id", how="left"),
        "runs": made.join(numbers.rename({"no": "reasonlet_no"}), on="reasonlet_id"),
        "feedback": verdicts.join(judged, on="run_id"),
    }


def _complete(given: object, name: str, columns: dict[str, pl.DataType], needed: set[str]) -> pl.DataFrame:
    """The frame's columns that the rule reads, neutral where they are missing, and ``seq``, the order of the rows."""
    frame = as_polars(given, name, _UNTOUCHED)
    missing = [column for column in columns if column in needed and column not in frame.columns]
    if missing:
        raise InvalidInput(
            f"the {name} frame has no column {', '.join(missing)}; it has {', '.join(frame.columns)}; "
            "nothing was ranked"
        )
    for column, dtype in columns.items():
        if column in frame.columns:
            _check_type(frame, name, column, dtype)
    read = frame.select(
        *(
            (pl.col(column) if column in frame.columns else _neutral(dtype)).cast(dtype).alias(column)
            for column, dtype in columns.items()
        ),
        seq=pl.int_range(pl.len(), dtype=pl.Int64),
    )
    # Where no time is asked for, a row without an instant counts as any other.
    undated = [column for column, dtype in columns.items() if dtype == INSTANT and column not in needed]
    read = read.with_columns(pl.col(undated).fill_null(_LONG_AGO))
    if "outcome" in columns:
        for outcome, row in (
            read.filter(~pl.col("outcome").is_in(OUTCOMES)).select("outcome", "seq").head(1).iter_rows()
        ):
            raise InvalidInput(
                f"row {row} of the {name} frame has the outcome {outcome!r}; an outcome is 'success', 'failure' or "
                "null; nothing was ranked"
            )
    return read


def _check_type(frame: pl.DataFrame, name: str, column: str, wanted: pl.DataType) -> None:
    given = frame.schema[column]
    # Ids and versions may be numbers; they are read as their digits.
    digits = wanted == TEXT and column not in ("outcome", "verdict") and given.is_numeric()
    why = None if digits else why_unfit(given, wanted)
    if why is not None:
        raise InvalidInput(f"the {name} frame's column {column} {why}; {_UNTOUCHED}; cast it first")


def _neutral(dtype: pl.DataType) -> pl.Expr:
    return pl.lit(_LONG_AGO) if dtype == INSTANT else pl.lit(None)


def _judged(runs: pl.DataFrame, feedback: pl.DataFrame | None, at: datetime | None) -> pl.DataFrame:
    """Runs whose outcome is the verdict they carry, if their feedback is not given beside them."""
    if feedback is not None or "verdict" not in runs.columns or "outcome" not in runs.columns:
        return runs
    for column in ("outcome", "verdict"):
        _check_type(runs, "runs", column, TEXT)
    if at is not None and runs.filter(pl.col("verdict").ne_missing(pl.col("outcome"))).height:
        raise InvalidInput(
            "these runs carry verdicts of feedback, which may be later than `at`; give feedback= as well; "
            "nothing was ranked"
        )
    return runs.with_columns(outcome=pl.col("verdict"))
