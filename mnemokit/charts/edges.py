"""Edges as heatmaps: how strong each hand-over is, and where two memories differ."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import numpy.typing as npt
import polars as pl
import rustworkx as rx

from mnemokit.charts.parts import (
    GREY,
    Drawing,
    HasFrames,
    frame_of,
    left_out,
    need,
    need_positive,
    nothing,
    question,
    utc_text,
    weight_colour,
)
from mnemokit.errors import InvalidInput
from mnemokit.instants import Instant

MOST_EXECUTORS = 60
MOST_PANELS = 4
_STEP = 16
_KEY = ("src_executor", "dst_executor")
_NEEDED = ("src_executor", "src_version", "dst_executor", "dst_version", "weight", "uses", "state")


def edge_weights(
    source: pl.DataFrame | HasFrames,
    *,
    at: Instant | None = None,
    top: int = 30,
    states: Sequence[str] = ("active",),
    by_version: bool = False,
) -> Drawing:
    """Which executor hands its output to which, and how strong is the edge?

    A heatmap of sending executors by receiving ones. Edges of several versions between the same two executors are one
    cell, coloured by the heaviest of them. Executors that hand work to each other stand together.

    Args:
        source: A frame of mnests (``mem.frame("mnests")``), or a memory. Column ``weight_at`` is drawn if there is
            one, else ``weight`` (0 to 1).
        at: With a memory: the instant (UTC) to show.
        top: How many executors to show, 1 to 60: those with most passings. The title says which were left out.
        states: States of edges to show.
        by_version: A panel for each version of the sending executor, at most four, on the same axes.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If the frame is no frame of mnests.

    Example:
        >>> mnests = pl.DataFrame({"src_executor": ["find"], "src_version": ["1"], "dst_executor": ["buy"],
        ...     "dst_version": ["1"], "weight": [0.45], "uses": [2], "state": ["active"]})
        >>> edge_weights(mnests).to_dict()["mark"]["type"]
        'rect'
    """
    need_positive(top, "top", "edge_weights", MOST_EXECUTORS)
    title = "Which executor hands its output to which, and how strong is the edge?"
    mnests = frame_of(source, "mnests", at)
    need(mnests, _NEEDED, "edge_weights")
    edges = _with_drawn_weight(mnests).filter(pl.col("state").is_in(list(states)))
    if edges.is_empty():
        return nothing(title, f"There are no edges in state {' or '.join(states)}.")
    panel = ["src_version"] if by_version else []
    panels, unseen = _busiest_versions(edges) if by_version else ([], [])
    if by_version:
        edges = edges.filter(pl.col("src_version").is_in(panels))
    names, missing = _busiest_executors(edges, top)
    cells = (
        edges.filter(pl.col("src_executor").is_in(names), pl.col("dst_executor").is_in(names))
        .group_by(*_KEY, *panel, maintain_order=True)
        .agg(
            pl.col("drawn").max().alias("weight"),
            pl.col("uses").sum(),
            pl.len().alias("edges"),
            *([utc_text("ts_used").max().alias("last")] if "ts_used" in edges.columns else []),
        )
    )
    passings, all_passings = (int(frame["uses"].sum()) for frame in (cells, edges))
    chart = _heatmap(cells, names, weight_colour("weight", "weight, 0 to 1"))
    heading = question(
        title,
        f"{cells.height:,} cells, {passings:,} passings. A cell is coloured by its heaviest edge; "
        "an edge is telemetry: B was called with A's output, or after it.",
        left_out(
            "executors", len(names), missing, "the least used", f" ({1 - passings / all_passings:.0%} of the passings)"
        ),
        left_out("versions", len(panels), unseen, "the least used"),
    )
    if not by_version:
        return chart.properties(title=heading)
    return chart.facet(column=alt.Column("src_version:N", title="version of the sending executor")).properties(
        title=heading
    )


def edge_diff(
    before: pl.DataFrame | HasFrames,
    after: pl.DataFrame | HasFrames,
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
        before: Mnests of the first side, a frame or a memory.
        after: Mnests of the second side.
        names: What the two sides are called.
        top: How many executors to show, 1 to 60: those with most passings on both sides together.
        min_uses: Leave out pairs with fewer passings, both sides together.
        states: States of edges to compare.

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
    sides = [_side(frame_of(side, "mnests"), states) for side in (before, after)]
    pairs = (
        sides[0]
        .join(sides[1], on=_KEY, how="full", coalesce=True, suffix="_b")
        .with_columns(pl.col("weight", "weight_b").fill_null(0.0), pl.col("uses", "uses_b").fill_null(0))
    )
    pairs = pairs.with_columns(
        difference=pl.col("weight_b") - pl.col("weight"), passings=pl.col("uses") + pl.col("uses_b")
    )
    enough = pairs.filter(pl.col("passings") >= min_uses).sort(_KEY)
    if enough.is_empty():
        return nothing(title, f"Neither side has an edge with {min_uses:,} or more passings.")
    order, missing = _busiest_executors(enough.with_columns(uses=pl.col("passings")), top)
    cells = enough.filter(pl.col("src_executor").is_in(order), pl.col("dst_executor").is_in(order))
    # The sides' names go into the data, as text: a tooltip's title would be written into a program.
    cells = cells.with_columns(
        first=pl.format("{}: weight {}, {} passings", pl.lit(names[0]), pl.col("weight").round(3), "uses"),
        second=pl.format("{}: weight {}, {} passings", pl.lit(names[1]), pl.col("weight_b").round(3), "uses_b"),
    )
    few = pairs.height - enough.height
    most = max(cells["passings"].to_list())
    return (
        _grid(cells, order)
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
                left_out("executors", len(order), missing, "the least used"),
            )
        )
    )


def _with_drawn_weight(mnests: pl.DataFrame) -> pl.DataFrame:
    return mnests.with_columns(drawn=pl.col("weight_at" if "weight_at" in mnests.columns else "weight"))


def _side(mnests: pl.DataFrame, states: Sequence[str]) -> pl.DataFrame:
    need(mnests, _NEEDED, "edge_diff")
    return (
        _with_drawn_weight(mnests)
        .filter(pl.col("state").is_in(list(states)))
        .group_by(_KEY)
        .agg(pl.col("drawn").max().alias("weight"), pl.col("uses").sum())
    )


def _busiest_versions(edges: pl.DataFrame) -> tuple[list[str], list[str]]:
    versions = (
        edges.group_by("src_version")
        .agg(pl.col("uses").sum())
        .sort(["uses", "src_version"], descending=[True, False])["src_version"]
        .to_list()
    )
    return sorted(versions[:MOST_PANELS]), versions[MOST_PANELS:]


def _busiest_executors(edges: pl.DataFrame, top: int) -> tuple[list[str], list[str]]:
    """Names to draw, those that work together side by side, and the names that are left out."""
    busy = (
        pl.concat([edges.select(pl.col(end).alias("executor"), "uses") for end in _KEY])
        .group_by("executor")
        .agg(pl.col("uses").sum())
        .sort(["uses", "executor"], descending=[True, False])["executor"]
        .to_list()
    )
    return _side_by_side(edges, busy[:top]), busy[top:]


def _side_by_side(edges: pl.DataFrame, names: list[str]) -> list[str]:
    """Order names so that those with strong edges between them are neighbours.

    Group by group (what no edge joins stays apart), in the order of the Fiedler vector: the second eigenvector of the
    normalised Laplacian, which puts what belongs together at the same end of a line.
    """
    place = {name: number for number, name in enumerate(names)}
    strength = np.zeros((len(names), len(names)))
    pairs = edges.filter(pl.all_horizontal(pl.col(_KEY).is_in(names))).group_by(_KEY).agg(pl.col("uses").sum())
    for src, dst, uses in pairs.sort(_KEY).iter_rows():
        if src != dst:
            strength[place[src], place[dst]] += uses
            strength[place[dst], place[src]] += uses
    graph: rx.PyGraph[int, float] = rx.PyGraph.from_adjacency_matrix(strength)
    groups = [sorted(group) for group in rx.connected_components(graph)]
    ordered: list[str] = []
    for group in sorted(groups, key=lambda group: (-len(group), group)):
        line = _fiedler(strength[np.ix_(group, group)]) if len(group) > 2 else np.zeros(len(group))
        places: list[int] = np.argsort(line, kind="stable").tolist()
        ordered.extend(names[group[number]] for number in places)
    return ordered


def _fiedler(strength: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    root = 1 / np.sqrt(strength.sum(axis=1))
    laplacian = np.eye(len(strength)) - root[:, None] * strength * root[None, :]
    vectors: npt.NDArray[np.float64] = np.linalg.eigh(laplacian).eigenvectors
    line: npt.NDArray[np.float64] = root * vectors[:, 1]
    # The sign of an eigenvector means nothing; the busiest executor comes first. Equal places stay equal.
    sign = 1.0 if line[0] <= 0 else -1.0
    return (line * sign).round(9)


def _heatmap(cells: pl.DataFrame, names: list[str], colour: alt.Color) -> alt.Chart:
    return (
        _grid(cells, names)
        .mark_rect()
        .encode(
            color=colour,
            tooltip=[
                alt.Tooltip("src_executor:N", title="from"),
                alt.Tooltip("dst_executor:N", title="to"),
                alt.Tooltip("weight:Q", title="weight", format=".3f"),
                alt.Tooltip("uses:Q", title="passings", format=","),
                alt.Tooltip("edges:Q", title="edges (versions)"),
                *([alt.Tooltip("last:N", title="last passing")] if "last" in cells.columns else []),
            ],
        )
    )


def _grid(cells: pl.DataFrame, names: list[str]) -> alt.Chart:
    # The order of names is told by the domains: a list to sort by would be written into a program as text.
    return (
        alt.Chart(cells)
        .encode(
            x=alt.X(
                "dst_executor:N",
                title="receiving executor",
                scale=alt.Scale(domain=names),
                axis=alt.Axis(labelAngle=-50, labelLimit=170, grid=True, gridOpacity=0.25, tickBand="extent"),
            ),
            y=alt.Y(
                "src_executor:N",
                title="sending executor",
                scale=alt.Scale(domain=names),
                axis=alt.Axis(labelLimit=190, grid=True, gridOpacity=0.25, tickBand="extent"),
            ),
        )
        .properties(width=alt.Step(_STEP), height=alt.Step(_STEP))
    )
