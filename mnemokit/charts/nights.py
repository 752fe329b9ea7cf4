"""What the nights of the ager did to the edges."""

from __future__ import annotations

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    Drawing,
    HasFrames,
    frame_of,
    from_categories,
    need,
    nothing,
    question,
    utc_axis,
    utc_text,
)
from mnemokit.given_frames import Frame

MOST_TICKS = 200
MOST_POINTS = 40


def ager_nights(source: Frame | HasFrames) -> Drawing:
    """What did each run of the ager do to the edges?

    Above: edges brought up to date; below: edges demoted, merged and purged. Beyond 200 runs, days, weeks or months are
    summed, and the title says so.

    Args:
        source: Runs of the ager (``mem.frame("ager_runs")``), or a memory.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If the frame is no frame of ager runs.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
        ...     _ = mem.mnests.apply_ager("2025-09-01T00:00:00Z")
        ...     chart = mk.charts.ager_nights(mem)
        >>> chart.to_dict()["title"]["text"]
        'What did each night of the ager do to the edges?'
    """
    title = "What did each night of the ager do to the edges?"
    runs = frame_of(source, "ager_runs")
    need(runs, ("ts_ager", "decayed", "demoted_to_decaying", "merged", "purged_protos"), "ager_nights")
    if runs.is_empty():
        return nothing(title, "The ager never ran.")
    ticks, summed = _ticks(runs)
    kinds = {
        "demoted_to_decaying": "demoted to decaying",
        "merged": "of these, merged",
        "purged_protos": "protos purged",
    }
    changes = (
        ticks.with_columns(utc_text("ts_ager").alias("when"))
        .unpivot(on=list(kinds), index=["ts_ager", "when"], variable_name="kind", value_name="edges")
        .with_columns(pl.col("kind").replace(kinds))
        .filter(pl.col("edges") > 0)
    )
    x = utc_axis("ts_ager", "run of the ager, UTC")
    names = list(kinds.values())
    scale, seen = from_categories(names), [name for name in names if name in changes["kind"].unique().to_list()]
    above = (
        alt.Chart(ticks.with_columns(utc_text("ts_ager").alias("when")))
        .mark_area(line=True, point=ticks.height <= MOST_POINTS, opacity=0.25, interpolate="step-after")
        .encode(
            x=x,
            y=alt.Y("decayed:Q", title="edges decayed per run", axis=_whole(ticks["decayed"])),
            tooltip=[
                alt.Tooltip("when:N", title="ager"),
                alt.Tooltip("decayed:Q", title="edges decayed per run", format=",.1f"),
            ],
        )
        .properties(width=640, height=110)
    )
    below = (
        alt.Chart(changes)
        .mark_point(filled=True, size=55, opacity=0.85)
        .encode(
            x=x,
            y=alt.Y("edges:Q", title="edges changed", axis=_whole(changes["edges"])),
            color=alt.Color("kind:N", title=None, scale=scale, legend=alt.Legend(values=seen)),
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=names), legend=alt.Legend(values=seen)),
            tooltip=[
                alt.Tooltip("when:N", title="ager"),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("edges:Q", title="edges", format=","),
            ],
        )
        .properties(width=640, height=110)
    )
    panels = [above, below] if seen else [above]
    quiet = runs.filter(pl.sum_horizontal(list(kinds)) == 0).height
    return (
        alt.VConcatChart(vconcat=panels)
        .resolve_scale(x="shared")
        .properties(
            title=question(
                title,
                f"{runs.height:,} {'run' if runs.height == 1 else 'runs'}, of which {quiet:,} changed no edge's state.",
                f"Added up by {summed} (above: the mean), since {MOST_TICKS} runs are the most that can be told apart."
                if summed
                else None,
            )
        )
    )


def _ticks(runs: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Runs as they are, or summed by day, week or month if they are many; and by which."""
    columns = ["decayed", "demoted_to_decaying", "merged", "purged_protos"]
    ordered = runs.select("ts_ager", *columns).sort("ts_ager")
    if ordered.height <= MOST_TICKS:
        return ordered, ""
    summed = ordered
    for every, name in (("1d", "day"), ("1w", "week"), ("1mo", "month"), ("1y", "year")):
        summed = ordered.group_by_dynamic("ts_ager", every=every).agg(
            pl.col("decayed").mean(), pl.col(columns[1:]).sum()
        )
        if summed.height <= MOST_TICKS:
            return summed, name
    return summed, "year"


def _whole(counts: pl.Series) -> alt.Axis:
    """An axis of whole numbers: Vega would set ticks between them where the highest is small."""
    highest = int(max([0, *counts.drop_nulls().to_list()]))
    return alt.Axis(format=",d", tickMinStep=1, values=list(range(highest + 1)) if highest < 5 else alt.Undefined)
