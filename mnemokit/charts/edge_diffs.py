"""Edges of two memories, two versions or two times against each other."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from mnemokit.charts.grid import KEY, MOST_EXECUTORS, NEEDED, busiest_executors, grid, not_shown, with_drawn_weight
from mnemokit.charts.parts import (
    GREY,
    Drawing,
    HasFrames,
    drawable,
    frame_of,
    left_out,
    need,
    need_positive,
    nothing,
    question,
)
from mnemokit.errors import InvalidInput
from mnemokit.given_frames import Frame, is_frame

_DIFF = ("src_executor", "dst_executor", "weight_before", "weight_after", "n_before", "n_after", "n")


def edge_diff(
    before: Frame | HasFrames,
    after: Frame | HasFrames | None = None,
    *,
    names: tuple[str, str] = ("before", "after"),
    top: int = 30,
    min_uses: int = 1,
    states: Sequence[str] = ("active",),
) -> Drawing:
    """Which hand-overs differ between two memories, two versions or two times?

    Versions are folded together (an edge of one agent version never has its twin's version), so that the same two
    executors are compared. The colour is the difference of the weights, an absent edge counting 0; the area of a square
    is the number of passings behind it, so that a difference that rests on nothing looks like nothing.

    Args:
        before: Mnests of the first side, a frame or a memory; or, alone, what ``mem.mnests.diff(...)`` gives.
        after: Mnests of the second side.
        names: What the two sides are called.
        top: How many executors to show, 1 to 60: those with most passings on both sides together.
        min_uses: Leave out pairs with fewer passings, both sides together.
        states: States of edges to compare; a diff has chosen its own.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a frame is no frame of mnests.

    Example:
        >>> one = pl.DataFrame({"src_executor": ["find"], "src_version": ["1"], "dst_executor": ["buy"],
        ...     "dst_version": ["1"], "weight": [0.45], "uses": [2], "state": ["active"]})
        >>> edge_diff(one, one.with_columns(weight=0.30)).to_dict()["mark"]["type"]
        'square'
    """
    need_positive(top, "top", "edge_diff", MOST_EXECUTORS)
    if names[0] == names[1]:
        raise InvalidInput(f"charts.edge_diff: both sides are called {names[0]!r}; give two different names")
    title = f"Which hand-overs differ between {names[0]} and {names[1]}?"
    sides = [] if after is None else [frame_of(side, "mnests") for side in (before, after)]
    pairs = _of_sides(sides, states) if sides else _of_diff(before)
    enough = pairs.filter(pl.col("passings") >= min_uses).sort(KEY)
    if enough.is_empty():
        return nothing(title, f"Neither side has an edge with {min_uses:,} or more passings.")
    order, missing = busiest_executors(enough.with_columns(uses=pl.col("passings")), top)
    cells = enough.filter(pl.col("src_executor").is_in(order), pl.col("dst_executor").is_in(order))
    # The sides' names go into the data, as text: a tooltip's title would be written into a program.
    cells = cells.with_columns(
        first=pl.format("{}: weight {}, {} passings", pl.lit(names[0]), pl.col("weight").round(3), "uses"),
        second=pl.format("{}: weight {}, {} passings", pl.lit(names[1]), pl.col("weight_b").round(3), "uses_b"),
    )
    states_of = [side.select("state", "uses") for side in sides]
    unseen = not_shown(pl.concat(states_of, how="vertical_relaxed"), states) if sides else None
    few = pairs.height - enough.height
    most = max(cells["passings"].to_list())
    return (
        grid(cells, order)
        .mark_square(opacity=1, stroke="#666666", strokeWidth=0.4)
        .encode(
            size=alt.Size(
                "passings:Q",
                title="passings, both sides",
                scale=alt.Scale(type="sqrt", domain=[0, most], range=[10, 225]),
                legend=alt.Legend(
                    values=sorted({1, max(1, round(most / 4)), most}),
                    format=",d",
                    symbolFillColor=GREY,
                    symbolStrokeColor=GREY,
                ),
            ),
            color=alt.Color(
                "difference:Q",
                title="difference of weights",
                scale=alt.Scale(domain=[-1, 1], domainMid=0, range="diverging", interpolate="rgb"),
                legend=alt.Legend(format="+.1f", gradientLength=120, titleLimit=240),
            ),
            tooltip=[
                alt.Tooltip("src_executor:N", title="from"),
                alt.Tooltip("dst_executor:N", title="to"),
                alt.Tooltip("first:N"),
                alt.Tooltip("second:N"),
                alt.Tooltip("difference:Q", format="+.3f"),
            ],
        )
        .properties(
            title=question(
                title,
                f"Blue: heavier in {names[1]}; orange: heavier in {names[0]}; pale: the same. The area is the passings "
                "behind it: a small square is little evidence.",
                f"{few:,} pairs with fewer than {min_uses:,} passings left out." if few else None,
                unseen,
                left_out("executors", len(order), missing, "the least used"),
            )
        )
    )


def _of_sides(mnests: Sequence[pl.DataFrame], states: Sequence[str]) -> pl.DataFrame:
    """A row per pair of executors: weight and uses of the first side, weight_b and uses_b of the second."""
    first, second = (_side(side, states) for side in mnests)
    return (
        first.join(second, on=KEY, how="full", coalesce=True, suffix="_b")
        .with_columns(pl.col("weight", "weight_b").fill_null(0.0), pl.col("uses", "uses_b").fill_null(0))
        .with_columns(difference=pl.col("weight_b") - pl.col("weight"), passings=pl.col("uses") + pl.col("uses_b"))
    )


def _of_diff(diff: Frame | HasFrames) -> pl.DataFrame:
    """The same, of a diff. Its passings are those of both stores; or, of two times, all up to the later one."""
    if not is_frame(diff):
        raise InvalidInput("charts.edge_diff: give two sides, or a diff alone; nothing was drawn")
    diff = drawable(diff, "diff")
    need(diff, _DIFF, "edge_diff")
    return (
        diff.group_by(KEY)
        .agg(
            pl.col("weight_before").max().fill_null(0.0).alias("weight"),
            pl.col("weight_after").max().fill_null(0.0).alias("weight_b"),
            pl.col("n_before").sum().alias("uses"),
            pl.col("n_after").sum().alias("uses_b"),
            pl.max_horizontal("n_before", "n_after", "n").sum().alias("passings"),
        )
        .with_columns(difference=pl.col("weight_b") - pl.col("weight"))
    )


def _side(mnests: pl.DataFrame, states: Sequence[str]) -> pl.DataFrame:
    need(mnests, NEEDED, "edge_diff")
    return (
        with_drawn_weight(mnests)
        .filter(pl.col("state").is_in(list(states)))
        .group_by(KEY)
        .agg(pl.col("drawn").max().alias("weight"), pl.col("uses").sum())
    )
