"""Edges of two groups side by side: which differences are more than chance, and what each rests on."""

from __future__ import annotations

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    BLUE,
    GREY,
    Drawing,
    drawable,
    left_out,
    need,
    need_positive,
    nothing,
    question,
)
from mnemokit.given_frames import Frame

MOST_ROWS = 60
_NEEDED = ("src_executor", "dst_executor", "uses_a", "left_a", "uses_b", "left_b", "difference", "low", "high")


def differences(edges: Frame, *, names: tuple[str, str] = ("a", "b"), top: int = 20) -> Drawing:
    """Which edges really differ between two groups?

    A dot is the difference of the shares (of all that left the first executor, how much went to the second), the bar
    its 95 % interval over sessions. Beside it stand the counts.

    Args:
        edges: Differences as ``mk.evaluate.compare(mem, by=...).edges()`` gives them, best supported first.
        names: What the two groups are called.
        top: How many edges to show, 1 to 60, from the top.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing, or ``top`` is out of its range.

    Example:
        >>> edges = pl.DataFrame({
        ...     "src_executor": ["find"], "dst_executor": ["buy"], "uses_a": [9], "left_a": [10], "uses_b": [4],
        ...     "left_b": [10], "difference": [-0.5], "low": [-0.8], "high": [-0.1],
        ... })
        >>> differences(edges, names=("old", "new")).to_dict()["title"]["text"]
        'Which edges really differ between old and new?'
    """
    need_positive(top, "top", "differences", MOST_ROWS)
    title = f"Which edges really differ between {names[0]} and {names[1]}?"
    edges = drawable(edges, "edges")
    need(edges, _NEEDED, "differences")
    told = edges.filter(pl.col("difference").is_not_null())
    if told.is_empty():
        return nothing(title, "No edge is there to be compared.")
    named = told.with_columns(
        name=pl.format("{} → {}", "src_executor", "dst_executor"),
        counts=pl.format("{}/{}, {}/{}", "uses_a", "left_a", "uses_b", "left_b"),
    )
    shown = named.head(top).with_row_index("row")
    shown = shown.with_columns(
        line=pl.col("row").cast(pl.String).str.zfill(4) + pl.col("name"),
        first=pl.format("{}: {} of {} passings from there", pl.lit(names[0]), "uses_a", "left_a"),
        second=pl.format("{}: {} of {} passings from there", pl.lit(names[1]), "uses_b", "left_b"),
    ).select("line", "name", "counts", "first", "second", "difference", "low", "high")
    base = alt.Chart(shown).encode(
        y=alt.Y(
            "line:N",
            title=None,
            scale=alt.Scale(domain=shown["line"].to_list()),
            axis=alt.Axis(labelExpr="slice(datum.label, 4)", labelLimit=360, ticks=False, domain=False),
        ),
        tooltip=[
            alt.Tooltip("name:N", title="edge"),
            alt.Tooltip("first:N"),
            alt.Tooltip("second:N"),
            alt.Tooltip("difference:Q", format="+.1%"),
            alt.Tooltip("low:Q", title="95 % interval from", format="+.1%"),
            alt.Tooltip("high:Q", title="to", format="+.1%"),
        ],
    )
    axis = alt.Axis(format="+.0%")
    words = "difference of the shares, second minus first"
    scale = alt.Scale(domain=[-1, 1])
    layers = [
        alt.Chart(pl.DataFrame({"difference": [0.0]}))
        .mark_rule(color=GREY, strokeDash=[3, 3])
        .encode(x=alt.X("difference:Q", title=words, scale=scale, axis=axis)),
        base.mark_rule(strokeWidth=5, opacity=0.35, color=BLUE).encode(
            x=alt.X("low:Q", title=words, scale=scale, axis=axis), x2="high:Q"
        ),
        base.mark_point(filled=True, size=60, opacity=1, color=BLUE).encode(
            x=alt.X("difference:Q", title=words, scale=scale, axis=axis)
        ),
        base.mark_text(align="left", fontSize=10, dx=6).encode(x=alt.value("width"), text="counts:N"),
    ]
    return alt.LayerChart(layer=layers).properties(
        title=question(
            title,
            f"Of all that left the first executor, the share that went to the second; right: {names[1]} is higher. "
            f"Bar: 95 % interval over sessions. Counts: {names[0]}, then {names[1]}.",
            left_out("edges", shown.height, named.slice(top)["name"].to_list(), "those less supported"),
        ),
        width=420,
        height=20 * shown.height,
    )
