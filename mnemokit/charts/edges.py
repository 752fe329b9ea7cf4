"""Edges as a heatmap: how strong each hand-over is."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from mnemokit.charts.grid import KEY, MOST_EXECUTORS, NEEDED, busiest_executors, grid, with_drawn_weight
from mnemokit.charts.parts import (
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
from mnemokit.instants import Instant

MOST_PANELS = 4


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
    need(mnests, NEEDED, "edge_weights")
    edges = with_drawn_weight(mnests).filter(pl.col("state").is_in(list(states)))
    if edges.is_empty():
        return nothing(title, f"There are no edges in state {' or '.join(states)}.")
    panel = ["src_version"] if by_version else []
    panels, unseen = _busiest_versions(edges) if by_version else ([], [])
    if by_version:
        edges = edges.filter(pl.col("src_version").is_in(panels))
    names, missing = busiest_executors(edges, top)
    cells = (
        edges.filter(pl.col("src_executor").is_in(names), pl.col("dst_executor").is_in(names))
        .group_by(*KEY, *panel, maintain_order=True)
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


def _busiest_versions(edges: pl.DataFrame) -> tuple[list[str], list[str]]:
    versions = (
        edges.group_by("src_version")
        .agg(pl.col("uses").sum())
        .sort(["uses", "src_version"], descending=[True, False])["src_version"]
        .to_list()
    )
    return sorted(versions[:MOST_PANELS]), versions[MOST_PANELS:]


def _heatmap(cells: pl.DataFrame, names: list[str], colour: alt.Color) -> alt.Chart:
    return (
        grid(cells, names)
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
