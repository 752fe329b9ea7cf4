"""The order of steps inside sessions, as numbers, without sorting what is sorted already."""

from __future__ import annotations

import polars as pl

KEY = ("source", "session_id")


def session_numbers(frame: pl.DataFrame, known: pl.DataFrame | None = None) -> pl.Series:
    """Number the sessions of a frame from 0, in the order in which they first appear.

    A session is a pair of source and session_id. Works on the runs of equal neighbours, so that a frame whose
    sessions lie together costs one pass.

    Args:
        frame: Has the columns source and session_id.
        known: Sessions numbered before (source, session_id, session_no); others get null.

    Example:
        >>> session_numbers(pl.DataFrame({"source": ["x"] * 3, "session_id": ["b", "a", "b"]})).to_list()
        [0, 1, 0]
    """
    run = frame.select(session_no=pl.struct(KEY).rle_id()).get_column("session_no").cast(pl.Int64)
    if frame.height == 0:
        return run
    runs = frame.select(KEY).filter(run.diff().fill_null(1) != 0)
    if known is None:
        known = runs.unique(maintain_order=True).with_row_index("session_no")
        if known.height == runs.height:
            return run
    numbers = runs.join(known, on=KEY, how="left", maintain_order="left").get_column("session_no")
    return numbers.cast(pl.Int64).gather(run)


def ordered_steps(turns: pl.DataFrame) -> pl.DataFrame:
    """The steps with an executor, in order: sessions as they first appear, steps by number.

    An exact repeat (same session, turn and step) counts once.

    Args:
        turns: A canonical frame.

    Returns:
        One row per step: ``row`` (its place in ``turns``), ``session_no``, ``step`` and ``parallel_group``.
    """
    steps = (
        turns.select("step", "parallel_group", "executor")
        .with_columns(session_numbers(turns))
        .with_row_index("row")
        .filter(pl.col("executor").is_not_null())
        .select(pl.col("row").cast(pl.Int64), "session_no", "step", "parallel_group")
    )
    order = ["session_no", "step", "parallel_group"]
    if not _in_order(steps, order):
        steps = steps.sort(order)
    return _without_repeats(steps, turns)


def grouped_steps(turns: pl.DataFrame) -> pl.DataFrame:
    """The steps of `ordered_steps`, group by group; groups come by their first step.

    Returns:
        One row per step: ``row``, ``session_no``, ``group_no`` (numbers the groups of the whole frame without gaps) and
        ``alone`` (it is the only step of its group).
    """
    steps = ordered_steps(turns).with_columns(group_no=_runs("session_no", "parallel_group"))
    heads = steps.filter(pl.col("group_no").diff().fill_null(1) != 0)
    if not _ascending(heads) and heads.n_unique(["session_no", "parallel_group"]) < heads.height:
        # Groups that lie interleaved.
        first = pl.col("step").min().over("session_no", "parallel_group")
        steps = steps.with_columns(first=first).sort(
            "session_no", "first", "parallel_group", "step", maintain_order=True
        )
        steps = steps.with_columns(group_no=_runs("session_no", "parallel_group"))
    changes = pl.col("group_no").diff().fill_null(1) != 0
    last = pl.col("group_no").diff(-1).fill_null(-1) != 0
    return steps.select("row", "session_no", "group_no", alone=changes & last)


def _ascending(heads: pl.DataFrame) -> bool:
    """Are these groups all different for a reason that needs no table of them: in each session, every one is higher?"""
    higher = (pl.col("session_no").diff() > 0) | (pl.col("parallel_group").diff() > 0)
    return bool(heads.select(higher.slice(1).fill_null(value=False).all()).item())


def _runs(*names: str) -> pl.Expr:
    return pl.struct(*names).rle_id().cast(pl.Int64)


def _in_order(steps: pl.DataFrame, names: list[str]) -> bool:
    in_order = pl.lit(value=True)
    for name in reversed(names):
        change = pl.col(name).diff()
        in_order = (change > 0) | ((change == 0) & in_order)
    return bool(steps.select(in_order.fill_null(value=True).all()).item())


def _without_repeats(steps: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    tied = (pl.col("session_no").diff() == 0) & (pl.col("step").diff() == 0)
    if not bool(steps.select(tied.any()).item()):
        return steps
    names = turns.select("turn_id", "executor", "executor_version")
    return (
        pl.concat([steps, names[steps.get_column("row")]], how="horizontal")
        .sort("session_no", "step", "parallel_group", "turn_id", "executor", "executor_version")
        .unique(["session_no", "turn_id", "step"], keep="first", maintain_order=True)
        .select(steps.columns)
    )
