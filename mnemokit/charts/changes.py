"""Memory writes over time: what was kept, what was undone, what was taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    BLUE,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    Drawing,
    HasFrames,
    count_size,
    frame_of,
    left_out,
    need,
    need_positive,
    nothing,
    question,
    short,
    utc_axis,
    utc_text,
)
from mnemokit.given_frames import Frame
from mnemokit.instants import DAY_US

MOST_LANES = 60
MOST_CHANGES = 1_500
_VERDICTS = {
    "kept": (BLUE, "circle"),
    "reverted": (ORANGE, "triangle-left"),
    "undone_unrecorded": (PURPLE, "diamond"),
    "undone_forgotten": (VERMILION, "cross"),
    "forgotten": (VERMILION, "triangle-down"),
    "candidate": (GREY, "square"),
}
_FIRST_REAL_DAY = datetime(1970, 1, 2, tzinfo=UTC)
_WHEN = (
    pl.when(pl.col("ts_candidate") >= _FIRST_REAL_DAY).then(utc_text("ts_candidate")).otherwise(pl.lit("no time told"))
)
_BUCKETS = ("1h", "6h", "1d", "1w", "1mo", "1y")


def change_timeline(source: Frame | HasFrames, *, by: str = "actor", top: int = 20) -> Drawing:
    """What was written to memory when, and what became of it?

    A mark is a memory write, its colour and shape its verdict. More than 1,500 writes are counted per lane and
    stretch of time before they are drawn, and the title says so.

    Args:
        source: Changes (``mem.frame("session_changes")``), or a memory.
        by: The column that makes the lanes, for instance ``actor``, ``session_id``, ``user_id`` or ``brain_id``.
        top: How many lanes to show, 1 to 60: those with most writes.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing, or ``top`` is out of its range.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
        ...     _ = session.add("likes tea", at="2025-08-01T00:00:00Z")
        ...     chart = mk.charts.change_timeline(mem)
        >>> chart.to_dict()["title"]["text"]
        'What was written to memory when, and what became of it?'
    """
    need_positive(top, "top", "change_timeline", MOST_LANES)
    title = "What was written to memory when, and what became of it?"
    changes = frame_of(source, "session_changes")
    need(changes, ("change_id", "verdict", "ts_candidate", by), "change_timeline")
    if changes.is_empty():
        return nothing(title, "Nothing was written by a session.")
    named = changes.select(
        "change_id",
        _became(changes),
        "ts_candidate",
        lane=pl.col(by).fill_null("(none)"),
        actor=pl.col("actor") if "actor" in changes.columns else pl.lit(None, dtype=pl.String),
        reason=pl.col("reason") if "reason" in changes.columns else pl.lit(None, dtype=pl.String),
    ).with_columns(pl.col("lane").map_elements(short, return_dtype=pl.String))
    untimed = named.filter(pl.col("ts_candidate") < _FIRST_REAL_DAY).height
    # Beside writes with times, those without one have no place on the axis.
    ordered = untimed == named.height
    placed = _in_order(named) if ordered else named.filter(pl.col("ts_candidate") >= _FIRST_REAL_DAY)
    lanes = placed.group_by("lane").len().sort(["len", "lane"], descending=[True, False])["lane"].to_list()
    drawn = placed.filter(pl.col("lane").is_in(lanes[:top]))
    drawn, every = _bucketed(drawn)
    x = utc_axis("ts_candidate", "when it was written, UTC")
    if ordered:
        x = alt.X(
            "ts_candidate:T",
            title="order in the log, which has no times",
            scale=alt.Scale(type="utc"),
            axis=alt.Axis(labels=False, ticks=False),
        )
    used = [verdict for verdict in _VERDICTS if verdict in drawn["verdict"].unique().to_list()]
    counts = ", ".join(
        f"{count:,} {verdict.replace('_', ' ')}"
        for verdict, count in named.group_by("verdict")
        .len()
        .sort(["len", "verdict"], descending=[True, False])
        .iter_rows()
    )
    size = count_size("writes", "writes", max(drawn["writes"].to_list()), 420) if every else alt.value(90)
    return (
        alt.Chart(drawn)
        .mark_point(filled=True, opacity=0.85)
        .encode(
            x=x,
            y=alt.Y(
                "lane:N",
                title=by.replace("_", " "),
                scale=alt.Scale(domain=sorted(lanes[:top])),
                axis=alt.Axis(labelLimit=240, grid=True),
            ),
            color=alt.Color(
                "verdict:N",
                title="what became of it",
                scale=alt.Scale(domain=used, range=[_VERDICTS[verdict][0] for verdict in used]),
            ),
            shape=alt.Shape(
                "verdict:N",
                title="what became of it",
                scale=alt.Scale(domain=used, range=[_VERDICTS[verdict][1] for verdict in used]),
            ),
            size=size,
            tooltip=[
                alt.Tooltip("when:N", title="written"),
                alt.Tooltip("lane:N", title=by.replace("_", " ")),
                alt.Tooltip("verdict:N"),
                *(
                    [alt.Tooltip("writes:Q", format=",")]
                    if every
                    else [alt.Tooltip("actor:N"), alt.Tooltip("change_id:N", title="change"), alt.Tooltip("reason:N")]
                ),
            ],
        )
        .properties(
            title=question(
                title,
                f"{named.height:,} writes: {counts}.",
                left_out("lanes", min(top, len(lanes)), lanes[top:], "those with fewer writes"),
                f"{untimed:,} of them come from a log without times: they have an order only"
                f"{'.' if ordered else ', and no place here.'}"
                if untimed
                else None,
                f"More than {MOST_CHANGES:,} writes: counted {'in stretches' if ordered else f'per {every}'}."
                if every
                else None,
            ),
            width=560,
            height=28 * min(top, len(lanes)),
        )
    )


def _in_order(changes: pl.DataFrame) -> pl.DataFrame:
    """Changes without times, spread evenly over the first day, since their own instants tell an order only."""
    place = (pl.col("ts_candidate").rank("ordinal").cast(pl.Int64) - 1) * (DAY_US // changes.height)
    return changes.with_columns(
        ts_candidate=pl.lit(_FIRST_REAL_DAY - timedelta(days=1)) + pl.duration(microseconds=place)
    )


def _became(changes: pl.DataFrame) -> pl.Expr:
    """The verdict; or forgotten, for a write that was kept and then lost its words with a person."""
    verdict = pl.col("verdict").fill_null("candidate")
    if "ts_forgotten" not in changes.columns:
        return verdict
    later = pl.col("ts_forgotten").is_not_null() & (verdict != "undone_forgotten")
    return pl.when(later).then(pl.lit("forgotten")).otherwise(verdict).alias("verdict")


def _bucketed(changes: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The changes as they are; or counted per lane, verdict and stretch of time, if they are many."""
    if changes.height <= MOST_CHANGES:
        return changes.with_columns(when=_WHEN), ""
    counted, every = changes, ""
    for every in _BUCKETS:
        counted = (
            changes.with_columns(pl.col("ts_candidate").dt.truncate(every))
            .group_by("lane", "verdict", "ts_candidate")
            .agg(pl.len().alias("writes"))
            .sort("ts_candidate", "lane", "verdict")
        )
        if counted.height <= MOST_CHANGES:
            break
    return counted.with_columns(when=_WHEN), every
