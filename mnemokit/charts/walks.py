"""Walks along the edges: the strongest paths that start at an executor."""

from __future__ import annotations

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    GREY,
    Drawing,
    drawable,
    left_out,
    need,
    need_positive,
    nothing,
    question,
    short,
    weight_colour,
)
from mnemokit.errors import InvalidInput
from mnemokit.given_frames import Frame

MOST_PATHS = 60
_NAME_CHARS = 26
_COLUMN = 165


def walk_paths(walk: Frame, *, top: int = 20) -> Drawing:
    """Which paths lead on from here, and how strong are they?

    A row is a path, a column a step; colour is the path's mean weight.

    Args:
        walk: Paths as ``mem.mnests.walk(start)`` gives them.
        top: How many paths to show, 1 to 60: the strongest. The title says how many were left out, and whether the
            walk itself was cut off.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing.

    Example:
        >>> walk = pl.DataFrame({"executors": [["find", "buy"]], "mean_weight": [0.45], "depth": [1]})
        >>> walk_paths(walk.with_columns(truncated=False)).to_dict()["title"]["text"]
        'Which paths lead on from find, and how strong are they?'
    """
    need_positive(top, "top", "walk_paths", MOST_PATHS)
    walk = drawable(walk, "walk")
    need(walk, ("executors", "mean_weight", "depth", "truncated"), "walk_paths")
    if not isinstance(walk.schema["executors"], pl.List):
        raise InvalidInput("charts.walk_paths: column 'executors' must hold lists of names; nothing was drawn")
    if walk.is_empty():
        return nothing("Which paths lead on from here?", "No edge leads on from here.")
    order = walk.sort(["mean_weight", "depth"], descending=[True, False], maintain_order=True).with_row_index("row")
    order = order.with_columns(version=_versions(order))
    shown = order.head(top)
    steps = (
        shown.select("row", "executors", "version", "mean_weight", "depth")
        .with_columns(step=pl.int_ranges(0, pl.col("executors").list.len(), dtype=pl.Int64))
        .with_columns(path=pl.col("executors").list.join(" → "))
        .explode("executors", "step", empty_as_null=True)
        .with_columns(
            name=pl.col("executors").map_elements(lambda name: short(name, _NAME_CHARS), return_dtype=pl.String)
        )
    )
    starts = steps.filter(pl.col("step") == 0)["executors"].unique().to_list()
    start = short(starts[0]) if len(starts) == 1 else "here"
    longest = max(steps["step"].to_list())
    x = alt.X(
        "step:Q",
        title="steps from the start",
        scale=alt.Scale(domain=[-0.1, longest + 0.95], nice=False),
        axis=alt.Axis(values=list(range(longest + 1)), format="d", grid=False),
    )
    # A path is named by its versions, if there are several; the row's number in front keeps the names apart.
    steps = steps.with_columns(line=pl.col("row").cast(pl.String).str.zfill(4) + pl.col("version"))
    y = alt.Y(
        "line:N",
        title=None,
        axis=alt.Axis(labelExpr="slice(datum.label, 4)", labelLimit=200, ticks=False, domain=False),
    )
    base = alt.Chart(steps).encode(
        y=y,
        tooltip=[
            alt.Tooltip("path:N"),
            alt.Tooltip("mean_weight:Q", title="mean weight", format=".3f"),
            alt.Tooltip("executors:N", title="executor"),
        ],
    )
    lines = base.mark_line(strokeWidth=2, color=GREY, opacity=0.6).encode(x=x, detail="line:N")
    dots = base.mark_circle(size=90, opacity=1, stroke="#555555", strokeWidth=0.6).encode(
        x=x, color=weight_colour("mean_weight", "mean weight of the path, 0 to 1")
    )
    names = base.mark_text(align="left", dx=8, dy=-7, fontSize=10).encode(x=x, text="name:N")
    truncated = bool(walk["truncated"].any())
    ends = order.slice(top)["executors"].list.last()
    # Each end is named once; how many paths there are is counted all the same.
    missing = [*ends.unique(maintain_order=True), *ends.filter(~ends.is_first_distinct())]
    return alt.layer(lines, dots, names).properties(
        title=question(
            f"Which paths lead on from {start}, and how strong are they?",
            "One row is one path, the strongest on top.",
            left_out("paths", shown.height, missing, "the weaker ones, which end at"),
            "The walk itself was cut off at its limit: there are more paths than these." if truncated else None,
        ),
        width=_COLUMN * (longest + 1),
        height=alt.Step(26),
    )


def _versions(paths: pl.DataFrame) -> pl.Series:
    """What tells the versions of paths apart: the one of a path, or those of its steps; nothing, if all have one."""
    if "versions" not in paths.columns:
        return pl.Series("version", [""] * paths.height, dtype=pl.String)
    told = paths["versions"].list.unique(maintain_order=True)
    if told.explode(empty_as_null=True).n_unique() <= 1:
        return pl.Series("version", [""] * paths.height, dtype=pl.String)
    return (
        told.list.eval(pl.element().fill_null("wanted"))
        .list.join(" → ")
        .map_elements(lambda text: short(text, _NAME_CHARS), return_dtype=pl.String)
    )
