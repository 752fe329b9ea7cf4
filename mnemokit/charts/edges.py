"""Edges as a heatmap: how strong each hand-over is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import altair as alt
import polars as pl

from mnemokit.charts.grid import KEY, MOST_EXECUTORS, NEEDED, busiest_executors, grid, not_shown, with_drawn_weight
from mnemokit.charts.parts import (
    Drawing,
    HasFrames,
    count_colour,
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
from mnemokit.given_frames import Frame, is_frame
from mnemokit.instants import Instant

MOST_PANELS = 4


def edge_weights(
    source: Frame | HasFrames,
    *,
    at: Instant | None = None,
    top: int = 30,
    states: Sequence[str] = ("active",),
    by_version: bool = False,
    by: Literal["weight", "uses", "sessions"] = "weight",
) -> Drawing:
    """Which executor hands its output to which, and how strong is the edge?

    A heatmap of sending executors by receiving ones. Edges of several versions between the same two executors are one
    cell, coloured by the heaviest of them. Executors that hand work to each other stand together.

    Args:
        source: A frame of mnests (``mem.frame("mnests")``), or a memory. Column ``weight_at`` is drawn if there is
            one, else ``weight`` (0 to 1).
        at: With a memory: the instant (UTC) to show.
        top: How many executors to show, 1 to 60: those with most passings. The title says which were left out.
        states: States of edges to show. The title counts the edges in other states.
        by_version: A panel for each version of the sending executor, at most four, on the same axes.
        by: What the colour is: the ``weight``; or, where a busy day brings all weights near 1, the passings (``uses``)
            or the ``sessions`` in which there were any. Sessions are known of a memory only, by the turns of its log.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If the frame is no frame of mnests, or ``by`` is none of these.

    Example:
        >>> mnests = pl.DataFrame({"src_executor": ["find"], "src_version": ["1"], "dst_executor": ["buy"],
        ...     "dst_version": ["1"], "weight": [0.45], "uses": [2], "state": ["active"]})
        >>> edge_weights(mnests).to_dict()["mark"]["type"]
        'rect'
    """
    need_positive(top, "top", "edge_weights", MOST_EXECUTORS)
    if by not in _COLOURED_BY:
        raise InvalidInput(f"charts.edge_weights: by must be {', '.join(_COLOURED_BY)}, not {by!r}; nothing was drawn")
    title = f"Which executor hands its output to which, and {_COLOURED_BY[by]}?"
    mnests = frame_of(source, "mnests", at)
    need(mnests, NEEDED, "edge_weights")
    edges = with_drawn_weight(mnests).filter(pl.col("state").is_in(list(states)))
    faded = not_shown(mnests, states)
    if edges.is_empty():
        return nothing(title, f"There are no edges in state {' or '.join(states)}.", faded)
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
            *([_last(edges)] if "ts_used" in edges.columns else []),
        )
    )
    if by == "sessions":
        cells = cells.join(_sessions(source, edges, panel, at), on=[*KEY, *panel], how="left").with_columns(
            pl.col("sessions").fill_null(0)
        )
    passings, all_passings = (int(frame["uses"].sum()) for frame in (cells, edges))
    colour = weight_colour("weight", "weight, 0 to 1")
    if by != "weight":
        colour = count_colour(by, "passings" if by == "uses" else "sessions", max(cells[by].to_list(), default=1))
    chart = _heatmap(cells, names, colour)
    heading = question(
        title,
        f"{cells.height:,} cells, {passings:,} passings. {_CELL_WORDS[by]}; "
        "an edge is telemetry: B was called with A's output, or after it.",
        left_out(
            "executors", len(names), missing, "the least used", f" ({1 - passings / all_passings:.0%} of the passings)"
        ),
        left_out("versions", len(panels), unseen, "the least used"),
        faded,
    )
    if not by_version:
        return chart.properties(title=heading)
    return chart.facet(column=alt.Column("src_version:N", title="version of the sending executor")).properties(
        title=heading
    )


_COLOURED_BY = {"weight": "how strong is the edge", "uses": "how often", "sessions": "in how many sessions"}
_CELL_WORDS = {
    "weight": "A cell is coloured by its heaviest edge",
    "uses": "A cell is coloured by the passings of its edges",
    "sessions": "A cell is coloured by the sessions with a passing that a log tells of",
}
_EDGE = ("src_executor", "src_version", "dst_executor", "dst_version")


def _sessions(source: Frame | HasFrames, edges: pl.DataFrame, panel: list[str], at: Instant | None) -> pl.DataFrame:
    """In how many sessions these edges had a passing, for each cell.

    Raises:
        InvalidInput: If the source is no memory, since a frame of mnests does not tell its turns.
    """
    if is_frame(source) or not isinstance(source, HasFrames):
        raise InvalidInput(
            "charts.edge_weights: by='sessions' needs the memory, since a frame of mnests does not tell in which "
            "sessions an edge was used; nothing was drawn"
        )
    sessions = source.frame("turns", at).select("turn_id", "source", "session_id").unique()
    return (
        source.frame("mnest_events", at)
        .filter(pl.col("kind") == "passing")
        .join(edges.select(_EDGE).unique(), on=_EDGE, how="semi", nulls_equal=True)
        .join(sessions, on="turn_id")
        .group_by(*KEY, *panel)
        .agg(pl.struct("source", "session_id").n_unique().cast(pl.Int64).alias("sessions"))
    )


def _last(edges: pl.DataFrame) -> pl.Expr:
    """The last passing in words; a passing of a log without times has an order only."""
    timed = ~pl.col("untimed").fill_null(value=False) if "untimed" in edges.columns else pl.lit(value=True)
    return pl.when(timed).then(utc_text("ts_used")).max().fill_null("no time told").alias("last")


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
                *([alt.Tooltip("sessions:Q", format=",")] if "sessions" in cells.columns else []),
                *([alt.Tooltip("last:N", title="last passing")] if "last" in cells.columns else []),
            ],
        )
    )
