"""Is a group one thing? What else differs between two groups, which a difference between them could be due to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from mnemokit.evaluate.comparing.groups import OUTCOME_KEYS, Groups
from mnemokit.evaluate.comparing.resampling import REPLICATES, Sums, interval_of_differences
from mnemokit.evaluate.intervals import SEED

MOST_VALUES = 50
"""An attribute with more values than this is a name, not a property, and is left out."""

CONFOUNDS_SCHEMA: dict[str, pl.DataType] = {
    "attribute": pl.String(),
    "value": pl.String(),
    "sessions_a": pl.Int64(),
    "sessions_b": pl.Int64(),
    "share_a": pl.Float64(),
    "share_b": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n_sessions": pl.Int64(),
    "cramers_v": pl.Float64(),
    "warning": pl.String(),
}


def confounds(
    groups: Groups,
    *,
    ignore: Sequence[str] | None = None,
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """What else tells the two groups apart?

    Args:
        groups: The sessions.
        ignore: Attributes left out; None leaves out those that say how a session went (`groups.OUTCOME_KEYS`).
        rng: Draws sessions; left out, a generator with the documented seed.
        replicates: How often.

    Returns:
        One row per attribute and value, attributes that differ most first: ``attribute, value, sessions_a, sessions_b,
        share_a, share_b, difference`` (share_b less share_a), ``low, high`` (95 %, sessions drawn within each group;
        -1 to 1 where a group has fewer than `MIN_SESSIONS`), ``n_sessions`` (of both groups), ``cramers_v`` (of the
        attribute and the group: 0 unrelated, 1 one decides the other) and ``warning`` (only in one group, or spread
        unevenly; null otherwise). An attribute that is the same everywhere is left out.
    """
    left_out = {groups.by} | (set(ignore) if ignore is not None else {f"meta.{key}" for key in OUTCOME_KEYS})
    wanted = [
        name
        for name in groups.sessions.columns
        if (name in ("executor_version", "scope", "source", "requestor") or name.startswith("meta."))
        and name not in left_out
        and 1 < groups.sessions[name].n_unique() <= MOST_VALUES
    ]
    generator = np.random.default_rng(SEED) if rng is None else rng
    parts = [_attribute(groups, name, generator, replicates) for name in wanted]
    if not parts:
        return pl.DataFrame(schema=CONFOUNDS_SCHEMA)
    return pl.concat(parts).sort("cramers_v", "attribute", "value", descending=[True, False, False], nulls_last=True)


def _attribute(groups: Groups, name: str, rng: np.random.Generator, replicates: int) -> pl.DataFrame:
    held = groups.sessions.select("group", value=pl.col(name).cast(pl.String))
    values = held["value"].unique().sort()
    sides = [_holding(held.filter(group=label)["value"], values) for label in (groups.a, groups.b)]
    low, high = interval_of_differences(*sides, rng=rng, replicates=replicates)
    rows = pl.DataFrame(
        {
            "value": values,
            "sessions_a": sides[0].top.sum(axis=0),
            "sessions_b": sides[1].top.sum(axis=0),
            "share_a": sides[0].shares(),
            "share_b": sides[1].shares(),
            "low": low,
            "high": high,
        }
    ).with_columns(
        attribute=pl.lit(name), difference=pl.col("share_b") - pl.col("share_a"), n_sessions=pl.lit(held.height)
    )
    v = cramers_v(rows.select("sessions_a", "sessions_b").to_numpy().astype(np.float64))
    only = pl.when(pl.col("sessions_b") == 0).then(pl.lit(groups.a)).otherwise(pl.lit(groups.b))
    uneven = (pl.col("share_a") - pl.col("share_b")).abs() > 0.2
    warning = (
        pl.when((pl.col("sessions_a") == 0) | (pl.col("sessions_b") == 0))
        .then(pl.format("only in {}: a difference between the groups may be its doing", only))
        .when(uneven)
        .then(pl.lit("much more common in one group"))
    )
    return rows.with_columns(cramers_v=pl.lit(v), warning=warning).select(
        pl.col(column).cast(dtype) for column, dtype in CONFOUNDS_SCHEMA.items()
    )


def _holding(held: pl.Series, values: pl.Series) -> Sums:
    """Which session has which value: a row per session, a column per value."""
    top = np.zeros((held.len(), values.len()))
    for column, value in enumerate(values.to_list()):
        top[:, column] = held.eq_missing(value).to_numpy()
    return Sums(top, np.ones_like(top))


def cramers_v(counts: np.ndarray) -> float:
    """Cramer's V of a table of counts: 0 unrelated, 1 one side decides the other; 0 where a side has one value.

    Example:
        >>> cramers_v(np.array([[10.0, 0.0], [0.0, 10.0]]))
        1.0
    """
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    total, least = counts.sum(), min(counts.shape) - 1
    if least < 1:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    return float(np.sqrt(((counts - expected) ** 2 / expected).sum() / total / least))
