"""Rates with what they rest on: procedures, groups of sessions, and executors that fail."""

from __future__ import annotations

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    BLUE,
    GREY,
    VERMILION,
    Drawing,
    HasFrames,
    drawable,
    frame_of,
    left_out,
    need,
    need_positive,
    nothing,
    question,
    short,
    with_interval,
)
from mnemokit.given_frames import Frame

MOST_BARS = 100
_RANKED = ("reasonlet_id", "version", "n", "s", "prior", "prior_source", "rate", "rate_low", "rate_high")


def rates(ranked: Frame, *, top: int = 25) -> Drawing:
    """Which procedures succeed, and how sure is that?

    A dot is the rate, the bar its 95 % credible interval, the tick the prior it was drawn towards.

    Args:
        ranked: Procedures as ``mem.reasonlets.rank()`` gives them, best first.
        top: How many to show, 1 to 100, from the top. The title says how many were left out.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing, or ``top`` is out of its range.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
        ...     chart = mk.charts.rates(mem.reasonlets.rank())
        >>> chart.to_dict()["title"]["text"]
        'Which procedures succeed, and how sure is that?'
    """
    need_positive(top, "top", "rates", MOST_BARS)
    title = "Which procedures succeed, and how sure is that?"
    ranked = drawable(ranked, "ranked")
    need(ranked, _RANKED, "rates")
    if ranked.is_empty():
        return nothing(title, "There are no reasonlets to rank.")
    named = ranked.select(
        *_RANKED, words=pl.col("question" if "question" in ranked.columns else "reasonlet_id")
    ).with_columns(
        pl.col("words").map_elements(short, return_dtype=pl.String, skip_nulls=False),
        record=pl.format("{}/{}", "s", "n"),
    )
    shown = _in_rows(named.head(top), pl.format("{} · {}", "words", "version"))
    missing = named.slice(top).select(pl.format("{} · {}", "words", "version"))["words"].to_list()
    tooltip = [
        alt.Tooltip("words:N", title="question"),
        alt.Tooltip("version:N"),
        alt.Tooltip("record:N", title="succeeded"),
        alt.Tooltip("rate:Q", format=".3f"),
        alt.Tooltip("rate_low:Q", title="95 % interval from", format=".3f"),
        alt.Tooltip("rate_high:Q", title="to", format=".3f"),
        alt.Tooltip("prior:Q", format=".3f"),
        alt.Tooltip("prior_source:N", title="prior from"),
    ]
    base = alt.Chart(shown).encode(y=_rows(shown), tooltip=tooltip)
    x = _share("rate:Q", "rate of success")
    bars = base.mark_rule(strokeWidth=5, opacity=0.35, color=BLUE).encode(
        x=_share("rate_low:Q", "rate of success"), x2="rate_high:Q"
    )
    dots = base.mark_point(filled=True, size=60, color=BLUE, opacity=1).encode(x=x)
    priors = base.mark_tick(color=GREY, thickness=2, size=13).encode(x=_share("prior:Q", "rate of success"))
    return alt.layer(bars, priors, dots, _records(shown)).properties(
        title=question(
            title,
            "Dot: rate; bar: 95 % credible interval; tick: the prior, one half or what the parent hands down. "
            "Right: successes / counted runs.",
            left_out("procedures", shown.height, missing, "ranked lower"),
        ),
        width=420,
        height=19 * shown.height,
    )


def outcomes(
    source: Frame | HasFrames, *, by: str = "executor_version", of: str = "sessions", top: int = 40
) -> Drawing:
    """How many sessions of each group succeeded, and how sure is the difference?

    Every session counts once. A bar is the 95 % interval; groups whose bars overlap widely are not told apart.

    Args:
        source: Turns (``mem.frame("turns")``), or a memory; or a frame with ``s`` and ``n`` per group already.
        by: The column that makes the groups.
        of: What is counted, for the words of the chart.
        top: How many groups to show, 1 to 100: those with most sessions.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing.

    Example:
        >>> groups = pl.DataFrame({"executor_version": ["a", "b"], "s": [82, 111], "n": [140, 140]})
        >>> outcomes(groups).to_dict()["title"]["text"]
        'How many sessions succeeded, by executor version?'
    """
    need_positive(top, "top", "outcomes", MOST_BARS)
    words = by.replace("_", " ")
    title = f"How many {of} succeeded, by {words}?"
    groups = frame_of(source, "turns")
    if not {"s", "n"} <= set(groups.columns):
        groups = sessions_by(groups, by)
    need(groups, (by, "s", "n"), "outcomes")
    known = groups.filter(pl.col("n") > 0).sort(["n", by], descending=[True, False], maintain_order=True)
    if known.is_empty():
        return nothing(title, "No outcome is known.")
    counted = with_interval(known.with_columns(pl.col(by).fill_null("(none)"))).with_columns(
        record=pl.format("{}/{}", "s", "n")
    )
    shown = _in_rows(counted.head(top), pl.col(by))
    return _bars(shown, f"{of} that succeeded", BLUE).properties(
        title=question(
            title,
            f"Dot: share of {of}; bar: 95 % credible interval; right: successes / {of} with a known outcome.",
            left_out("groups", shown.height, counted.slice(top)[by].to_list(), f"with fewer {of}"),
        ),
        width=420,
        height=24 * shown.height,
    )


def tool_errors(source: Frame | HasFrames, *, top: int = 20) -> Drawing:
    """Which executors fail, and how often?

    Args:
        source: Turns (``mem.frame("turns")``), or a memory; or a frame with ``executor``, ``s`` failed and ``n`` calls.
        top: How many executors to show, 1 to 100: those with most errors; executors without an error are not drawn.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing, or ``top`` is out of its range.

    Example:
        >>> calls = pl.DataFrame({"executor": ["find", "buy"], "s": [1, 0], "n": [10, 5]})
        >>> tool_errors(calls).to_dict()["title"]["text"]
        'Which executors fail, and how often?'
    """
    need_positive(top, "top", "tool_errors", MOST_BARS)
    title = "Which executors fail, and how often?"
    calls = frame_of(source, "turns")
    counted = with_interval(calls if {"executor", "s", "n"} <= set(calls.columns) else errors_by_executor(calls))
    failing = counted.filter(pl.col("s") > 0).with_columns(record=pl.format("{}/{}", "s", "n"))
    if failing.is_empty():
        return nothing(title, "No call is known to have failed.")
    shown = _in_rows(failing.head(top), pl.col("executor"))
    return _bars(shown, "calls that failed", VERMILION).properties(
        title=question(
            title,
            "Dot: share of calls; bar: 95 % credible interval; right: failed / calls whose outcome the log tells.",
            left_out("failing executors", shown.height, failing.slice(top)["executor"].to_list(), "with fewer errors"),
        ),
        width=420,
        height=19 * shown.height,
    )


def sessions_by(turns: pl.DataFrame, by: str) -> pl.DataFrame:
    """Sessions per group: ``by``, ``s`` succeeded, ``n`` with a known outcome, ``unknown`` without one.

    Raises:
        InvalidInput: If a column is missing.
    """
    need(turns, ("source", "session_id", by, "session_outcome"), "outcomes")
    return (
        turns.group_by("source", "session_id", by)
        .agg(pl.col("session_outcome").first())
        .group_by(by)
        .agg(
            (pl.col("session_outcome") == "success").sum().cast(pl.Int64).alias("s"),
            pl.col("session_outcome").is_not_null().sum().cast(pl.Int64).alias("n"),
            pl.col("session_outcome").is_null().sum().cast(pl.Int64).alias("unknown"),
        )
        .sort(by, nulls_last=True)
    )


def errors_by_executor(turns: pl.DataFrame) -> pl.DataFrame:
    """Calls per executor: ``s`` failed, ``n`` whose outcome is told, ``calls`` all; most errors first.

    Raises:
        InvalidInput: If a column is missing.
    """
    need(turns, ("executor", "ok"), "tool_errors")
    return (
        turns.filter(pl.col("executor").is_not_null())
        .group_by("executor")
        .agg(
            (~pl.col("ok")).sum().cast(pl.Int64).alias("s"),
            pl.col("ok").is_not_null().sum().cast(pl.Int64).alias("n"),
            pl.len().cast(pl.Int64).alias("calls"),
        )
        .sort(["s", "n", "executor"], descending=[True, True, False])
    )


def _bars(shown: pl.DataFrame, axis: str, colour: str) -> alt.LayerChart:
    tooltip = [
        alt.Tooltip("name:N", title="group"),
        alt.Tooltip("record:N", title="count"),
        alt.Tooltip("rate:Q", title="share", format=".1%"),
        alt.Tooltip("low:Q", title="95 % interval from", format=".1%"),
        alt.Tooltip("high:Q", title="to", format=".1%"),
    ]
    base = alt.Chart(shown).encode(y=_rows(shown), tooltip=tooltip)
    bars = base.mark_rule(strokeWidth=5, opacity=0.35, color=colour).encode(x=_share("low:Q", axis), x2="high:Q")
    dots = base.mark_point(filled=True, size=60, color=colour, opacity=1).encode(x=_share("rate:Q", axis))
    return alt.LayerChart(layer=[bars, dots, _records(shown)])


def _records(shown: pl.DataFrame) -> alt.Chart:
    """The counts, in a column of their own at the right edge."""
    return (
        alt.Chart(shown)
        .mark_text(align="left", fontSize=10, dx=6)
        .encode(y=_rows(shown), x=alt.value("width"), text="record:N")
    )


def _in_rows(frame: pl.DataFrame, name: pl.Expr) -> pl.DataFrame:
    """Rows get sortable names that are never the same, whatever their words are."""
    return frame.with_row_index("row").with_columns(name=name, line=pl.col("row").cast(pl.String).str.zfill(4) + name)


def _rows(shown: pl.DataFrame) -> alt.Y:
    return alt.Y(
        "line:N",
        title=None,
        scale=alt.Scale(domain=shown["line"].to_list()),
        axis=alt.Axis(labelExpr="slice(datum.label, 4)", labelLimit=330, ticks=False, domain=False),
    )


def _share(field: str, title: str) -> alt.X:
    return alt.X(field, title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format=".0%"))
