"""What changed between two states of the edge memory: two instants of one store, or two stores."""

from __future__ import annotations

import polars as pl

from mnemokit.fold.edge_keys import KEYS
from mnemokit.fold.edge_weights import LIVE_STATES
from mnemokit.fold.frames import Schema

DIFF: Schema = {
    **dict.fromkeys(KEYS, pl.String()),
    "change": pl.String(),
    "weight_before": pl.Float64(),
    "weight_after": pl.Float64(),
    "delta": pl.Float64(),
    "state_before": pl.String(),
    "state_after": pl.String(),
    "n_before": pl.Int64(),
    "n_after": pl.Int64(),
    "n": pl.Int64(),
    "sessions_before": pl.Int64(),
    "sessions_after": pl.Int64(),
    "sessions": pl.Int64(),
}
"""Columns of a diff. ``n_*`` are the passings that an edge ever had by then, ``sessions_*`` the logged sessions they
came from (calls without a logged turn are in no session); ``n`` and ``sessions`` are what lies behind the change."""

SAME = 1e-9
"""Weights that differ by less are the same."""


def diff(before: pl.DataFrame, after: pl.DataFrame, *, behind: pl.DataFrame | None = None) -> pl.DataFrame:
    """Compare two frames of edges.

    Args:
        before: Per edge and state: ``KEYS``, state, weight_at, n, sessions (passings and sessions behind the edge).
        after: The same, later or elsewhere.
        behind: ``KEYS``, n and sessions of what happened in between; None where the two are different stores, whose
            counts are then added up.

    Returns:
        A row per edge that is live (active or proto) on either side, with the columns of ``DIFF``; the largest change
        of weight first. born: live only after; gone: live before, and no record after; demoted, superseded: live
        before, and only such a record after; grown, faded, same: live on both sides.
    """
    sides = [_side(frame, name) for frame, name in ((before, "before"), (after, "after"))]
    both = sides[0].join(sides[1], on=list(KEYS), how="full", coalesce=True, nulls_equal=True)
    live_before, live_after = (pl.col(f"live_{side}").fill_null(value=False) for side in ("before", "after"))
    weight = [pl.when(pl.col(f"live_{side}")).then(f"weight_{side}").fill_null(0.0) for side in ("before", "after")]
    both = both.filter(live_before | live_after).with_columns(delta=weight[1] - weight[0])
    change = (
        pl.when(~live_before).then(pl.lit("born"))
        .when(pl.col("state_after").is_null()).then(pl.lit("gone"))
        .when(~live_after & (pl.col("state_after") == "decaying")).then(pl.lit("demoted"))
        .when(~live_after).then(pl.lit("superseded"))
        .when(pl.col("delta") > SAME).then(pl.lit("grown"))
        .when(pl.col("delta") < -SAME).then(pl.lit("faded"))
        .otherwise(pl.lit("same"))
    )  # fmt: skip
    counts = pl.col("n_before", "n_after", "sessions_before", "sessions_after").fill_null(0)
    both = both.with_columns(counts, change=change)
    if behind is None:
        both = both.with_columns(
            n=pl.col("n_before") + pl.col("n_after"),
            sessions=pl.col("sessions_before") + pl.col("sessions_after"),
        )
    else:
        both = both.join(behind, on=list(KEYS), how="left", nulls_equal=True).with_columns(
            pl.col("n", "sessions").fill_null(0)
        )
    return both.select(pl.col(name).cast(dtype) for name, dtype in DIFF.items()).sort(
        pl.col("delta").abs(), *KEYS, descending=[True] + [False] * len(KEYS), nulls_last=False
    )


def _side(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Each edge once: its live record if it has one, else the one that was kept last."""
    live = pl.col("state").is_in(LIVE_STATES)
    return (
        frame.with_columns(live=live)
        .sort("live", pl.col("state") == "decaying", descending=True)
        .group_by(KEYS, maintain_order=True)
        .first()
        .select(
            *KEYS,
            pl.col("live").alias(f"live_{name}"),
            pl.col("state").alias(f"state_{name}"),
            pl.col("weight_at").alias(f"weight_{name}"),
            pl.col("n").alias(f"n_{name}"),
            pl.col("sessions").alias(f"sessions_{name}"),
        )
    )
