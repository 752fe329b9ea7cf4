"""Who earned what: recalled, shown, followed, succeeded; and is a version better than its parent?"""

from __future__ import annotations

import numpy as np
import polars as pl

from mnemokit.evaluate.metrics import Floats
from mnemokit.evaluate.reading import runs_of
from mnemokit.memory import Memory
from mnemokit.records import RankParams

CREDIT_SCHEMA: dict[str, pl.DataType] = {
    "reasonlet_id": pl.String(),
    "version": pl.String(),
    "parent_id": pl.String(),
    "scope": pl.String(),
    "question": pl.String(),
    "recalls": pl.Int64(),
    "shown": pl.Int64(),
    "shown_first": pl.Int64(),
    "followed": pl.Int64(),
    "followed_succeeded": pl.Int64(),
    "n": pl.Int64(),
    "s": pl.Int64(),
    "sessions": pl.Int64(),
    "never_shown": pl.Boolean(),
    "parent_n": pl.Int64(),
    "parent_s": pl.Int64(),
    "p_better": pl.Float64(),
    "gain_low": pl.Float64(),
    "gain_high": pl.Float64(),
    "note": pl.String(),
}
"""Columns of `credit`. ``recalls``: recalls in its scope since it was captured; ``shown``: lists it was in. ``n``,
``s``: counted runs and successes, followed or not. ``p_better``: probability that its true rate is above its parent's;
``gain_low``, ``gain_high``: 95 % interval of the difference of the two rates."""

DRAWS = 4000
"""Quantile points of the gain's interval."""


def credit(mem: Memory) -> pl.DataFrame:
    """Audit every procedure of a memory: was it recalled, shown, followed, did it succeed, does it beat its parent?

    Args:
        mem: A memory; it is only read.

    Returns:
        A frame of `CREDIT_SCHEMA`, newest lineages' failures and neglected procedures included, in the order captured.

    Raises:
        InvalidInput: If the memory is closed.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     mk.evaluate.credit(mem).height
        0
    """
    runs, reasonlets, _ = runs_of(mem)
    return credit_of(reasonlets, runs, mem.frame("recalls"), mem.frame("recall_rows"), params=mem.rank_params)


def credit_of(
    reasonlets: pl.DataFrame,
    runs: pl.DataFrame,
    recalls: pl.DataFrame,
    recall_rows: pl.DataFrame,
    *,
    params: RankParams | None = None,
) -> pl.DataFrame:
    """As `credit`, on frames with the columns of ``mem.frame``.

    Args:
        reasonlets: The procedures.
        runs: Their runs, with ``verdict``.
        recalls: The recalls.
        recall_rows: What they showed.
        params: Gives the strength k of the neutral prior of the posteriors, Beta(s + k/2, n - s + k/2).
    """
    rule = params or RankParams()
    counted = pl.col("verdict").is_not_null()
    good = pl.col("verdict") == "success"
    ran = runs.group_by("reasonlet_id").agg(
        n=counted.sum().cast(pl.Int64),
        s=good.sum().cast(pl.Int64),
        followed=pl.col("recall_id").is_not_null().sum().cast(pl.Int64),
        followed_succeeded=(pl.col("recall_id").is_not_null() & good).sum().cast(pl.Int64),
        sessions=pl.coalesce("session_id", "run_id").n_unique().cast(pl.Int64),
    )
    shown = recall_rows.group_by("reasonlet_id").agg(
        shown=pl.len().cast(pl.Int64), shown_first=(pl.col("rank") == 1).sum().cast(pl.Int64)
    )
    kept = (
        reasonlets.join(ran, on="reasonlet_id", how="left", maintain_order="left")
        .join(shown, on="reasonlet_id", how="left", maintain_order="left")
        .join(_chances(reasonlets, recalls), on="reasonlet_id", how="left", maintain_order="left")
    )
    counts = ["n", "s", "followed", "followed_succeeded", "sessions", "shown", "shown_first", "recalls"]
    kept = kept.with_columns(pl.col(counts).fill_null(0))
    parents = kept.select(parent_id="reasonlet_id", parent_n="n", parent_s="s")
    kept = kept.join(parents, on="parent_id", how="left", maintain_order="left").with_columns(
        never_shown=(pl.col("recalls") > 0) & (pl.col("shown") == 0)
    )
    child = pl.col("parent_n").is_not_null()
    said = (
        pl.when(child.not_())
        .then(pl.lit(None, dtype=pl.String))
        .when(pl.min_horizontal("n", "parent_n") == 0)
        .then(pl.lit("one of the two never ran: the prior speaks alone"))
        .when(pl.min_horizontal("n", "parent_n") < 5)
        .then(pl.lit("fewer than five runs on one side"))
    )
    p, low, high = _gains(kept, rule.k)
    return (
        kept.with_columns(
            p_better=pl.Series(p, dtype=pl.Float64),
            gain_low=pl.Series(low, dtype=pl.Float64),
            gain_high=pl.Series(high, dtype=pl.Float64),
            note=said,
        )
        .with_columns(pl.when(child).then(pl.col("p_better", "gain_low", "gain_high")))
        .select(pl.col(name).cast(dtype) for name, dtype in CREDIT_SCHEMA.items())
    )


_DEFAULT = RankParams()


def probability_better(s: Floats, n: Floats, parent_s: Floats, parent_n: Floats, k: float = _DEFAULT.k) -> Floats:
    """Probability that a rate is above another one, each with posterior Beta(s + k/2, n - s + k/2).

    ``P(X > Y) = integral of phi(z) F_Y(Q_X(Phi(z))) dz``: the trapezoid rule, which is exact to rounding for such
    an integrand, over z from -9 to 9.

    Example:
        >>> probability_better(np.array([9.0]), np.array([10.0]), np.array([9.0]), np.array([10.0])).round(6).tolist()
        [0.5]
    """
    from scipy import special

    z = np.linspace(-9.0, 9.0, 301)
    density = np.exp(-z * z / 2.0) / np.sqrt(2.0 * np.pi) * (z[1] - z[0])
    tail: Floats = special.ndtr(-np.abs(z))
    alpha, beta = (s + k / 2)[:, None], (n - s + k / 2)[:, None]
    from_below: Floats = special.betaincinv(alpha, beta, tail)
    from_above: Floats = special.betainccinv(alpha, beta, tail)
    quantile = np.where(z < 0, from_below, from_above)
    below: Floats = special.betainc((parent_s + k / 2)[:, None], (parent_n - parent_s + k / 2)[:, None], quantile)
    return (below * density).sum(axis=1)


def _gains(kept: pl.DataFrame, k: float) -> tuple[Floats, Floats, Floats]:
    """Probability of being better than the parent, and the interval of the gain; once per distinct record."""
    columns = ["s", "n", "parent_s", "parent_n"]
    distinct = kept.select(columns).unique().drop_nulls()
    if distinct.is_empty():
        nothing = np.full(kept.height, np.nan)
        return nothing, nothing, nothing
    s, n, parent_s, parent_n = (distinct[name].cast(pl.Float64).to_numpy() for name in columns)
    low, high = _gain_interval(s, n, parent_s, parent_n, k)
    told = distinct.with_columns(
        p=pl.Series(probability_better(s, n, parent_s, parent_n, k)), low=pl.Series(low), high=pl.Series(high)
    )
    joined = kept.select(columns).join(told, on=columns, how="left", maintain_order="left")
    return joined["p"].to_numpy(), joined["low"].to_numpy(), joined["high"].to_numpy()


def _gain_interval(s: Floats, n: Floats, parent_s: Floats, parent_n: Floats, k: float) -> tuple[Floats, Floats]:
    """95 % interval of the difference of two independent Betas, from one fixed set of pairs of quantiles."""
    from scipy import special

    # A rank-1 lattice (the golden ratio) covers the square of quantile pairs evenly, with no random numbers.
    i = np.arange(DRAWS)
    u, v = (i + 0.5) / DRAWS, (i * 0.6180339887498949 + 0.5) % 1.0
    low, high = np.empty(s.size), np.empty(s.size)
    for row in range(s.size):
        mine: Floats = special.betaincinv(s[row] + k / 2, n[row] - s[row] + k / 2, u)
        theirs: Floats = special.betaincinv(parent_s[row] + k / 2, parent_n[row] - parent_s[row] + k / 2, v)
        low[row], high[row] = np.quantile(mine - theirs, [0.025, 0.975])
    return low, high


def _chances(reasonlets: pl.DataFrame, recalls: pl.DataFrame) -> pl.DataFrame:
    """How many recalls there were in each procedure's scope since it was captured."""
    asked = recalls.select("scope", ts="ts_recalled").sort("ts")
    asked = asked.with_columns(so_far=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("scope"))
    total = asked.group_by("scope").agg(total=pl.len().cast(pl.Int64))
    before = reasonlets.select("reasonlet_id", "scope", ts="ts_captured").sort("ts")
    return (
        before.join_asof(asked, on="ts", by="scope", allow_exact_matches=False, check_sortedness=False)
        .join(total, on="scope", how="left")
        .select("reasonlet_id", recalls=pl.col("total").fill_null(0) - pl.col("so_far").fill_null(0))
    )
