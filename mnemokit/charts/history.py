"""An edge over time: its weight growing with its passings and fading between them."""

from __future__ import annotations

from datetime import datetime, timedelta

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    GREY,
    Drawing,
    HasFrames,
    drawable,
    frame_of,
    from_categories,
    left_out,
    need,
    need_positive,
    nothing,
    question,
    short,
    utc_axis,
    utc_text,
)
from mnemokit.fold.edge_weights import fraction_left
from mnemokit.given_frames import Frame, is_frame
from mnemokit.instants import DAY_US, Instant, as_utc
from mnemokit.records import EdgeParams

MOST_EDGES = 8
MOST_POINTS = 4_500
MOST_MARKS = 80
_GRID = 300
_VERSION_CHARS = 30
_NEEDED = ("mnest_id", "ts", "kind", "weight", "src_executor", "src_version", "dst_executor", "dst_version")
_EDGE = ["src_executor", "src_version", "dst_executor", "dst_version"]
_EVENT_SHAPES = {
    "passing": "circle",
    "demote": "triangle-down",
    "merge": "diamond",
    "promote": "triangle-up",
    "transition": "square",
    "purge": "cross",
}


def weight_history(
    source: Frame | HasFrames,
    *,
    mnest_id: str | None = None,
    src: str | None = None,
    dst: str | None = None,
    decay_lambda: float | Frame | None = None,
    since: Instant | None = None,
    until: Instant | None = None,
    top: int = 1,
    params: EdgeParams | None = None,
) -> Drawing:
    """How did an edge's weight grow with its passings, and fade between them?

    Between two events the curve is the exact exponential ``w * exp(-lambda * days)``, not a straight line; after the
    last event it shows what happens if nothing comes (dashed). Every event is a dot, and the line at which an ager
    demotes is drawn.

    Args:
        source: Events (``mem.frame("mnest_events")``), or a memory.
        mnest_id: Only this record and its edge's other records.
        src: Only edges from this executor.
        dst: Only edges to this executor.
        decay_lambda: Decay rate per day; or a frame of mnests, each edge with its own rate. With a memory it is the
            memory's mnests; else left out: the default rate.
        since: Where the picture starts (UTC); left out: at the first event.
        until: Where it ends (UTC); left out: a quarter of the span, and at least a week, after the last event.
        top: How many edges to draw, 1 to 8: those with most passings. The title says which were left out.
        params: The edge rule, for the line of demotion.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If the frame is no frame of events, or an instant is naive.

    Example:
        >>> from datetime import datetime, UTC
        >>> events = pl.DataFrame({"mnest_id": ["mn_1"], "ts": [datetime(2025, 1, 1, tzinfo=UTC)], "kind": ["passing"],
        ...     "weight": [0.3], "src_executor": ["find"], "src_version": ["1"], "dst_executor": ["buy"],
        ...     "dst_version": ["1"]})
        >>> "find" in weight_history(events).to_json()
        True
    """
    need_positive(top, "top", "weight_history", MOST_EDGES)
    title = "How did the edge's weight grow with its passings, and fade between them?"
    events = frame_of(source, "mnest_events")
    need(events, _NEEDED, "weight_history")
    if decay_lambda is None and isinstance(source, HasFrames) and not is_frame(source):
        decay_lambda = source.frame("mnests")
    rates = (
        decay_lambda
        if decay_lambda is None or isinstance(decay_lambda, (int, float))
        else drawable(decay_lambda, "decay_lambda")
    )
    rule = params or EdgeParams()
    events = _of_edges(events.filter(pl.col("weight").is_not_null()), mnest_id, src, dst)
    if events.is_empty():
        return nothing(title, "There are no events of such an edge.")
    events, shown, missing = _busiest(events, top)
    events = _with_rate(events, rates, rule)
    start, end = _span(events, since, until)
    curves, dots = _curves(events, start, end)
    untimed = int(events["untimed"].sum()) if "untimed" in events.columns else 0
    unmarked = events.filter(pl.col("ts").is_between(start, end)).height - dots.height
    heading = question(
        title,
        f"Between events the exact exponential ({_rates(events)} per day); dashed: if nothing comes. "
        f"Below {rule.demote_below:g} an ager demotes.",
        left_out("edges", len(shown), missing, "those with fewer passings"),
        f"{unmarked:,} of the events have no mark of their own, since they are more than {MOST_MARKS}."
        if unmarked
        else None,
        f"{untimed:,} of the events come from a log without times: they have an order only." if untimed else None,
    )
    return _draw(curves, dots, shown, rule).properties(title=heading, width=640, height=260)


def _of_edges(events: pl.DataFrame, mnest_id: str | None, src: str | None, dst: str | None) -> pl.DataFrame:
    if mnest_id is not None:
        edge = events.filter(pl.col("mnest_id") == mnest_id).select(_EDGE).unique()
        events = events.join(edge, on=_EDGE, how="semi", nulls_equal=True, maintain_order="left")
    if src is not None:
        events = events.filter(pl.col("src_executor") == src)
    if dst is not None:
        events = events.filter(pl.col("dst_executor") == dst)
    return events.with_columns(
        edge=pl.when(pl.col("src_version") == pl.col("dst_version"))
        .then(pl.format("{} → {}, both {}", "src_executor", "dst_executor", _shortened("src_version")))
        .when(pl.col("dst_version").is_null())
        .then(pl.format("{} {} → {} (wanted)", "src_executor", _shortened("src_version"), "dst_executor"))
        .otherwise(
            pl.format(
                "{} {} → {} {}",
                "src_executor",
                _shortened("src_version"),
                "dst_executor",
                _shortened("dst_version"),
            )
        )
    )


def _shortened(version: str) -> pl.Expr:
    return pl.col(version).map_elements(lambda text: short(text, _VERSION_CHARS), return_dtype=pl.String)


def _busiest(events: pl.DataFrame, top: int) -> tuple[pl.DataFrame, list[str], list[str]]:
    names = (
        events.group_by("edge")
        .agg((pl.col("kind") == "passing").sum().alias("passings"))
        .sort(["passings", "edge"], descending=[True, False])["edge"]
        .to_list()
    )
    return events.filter(pl.col("edge").is_in(names[:top])), names[:top], names[top:]


def _with_rate(events: pl.DataFrame, rate: float | pl.DataFrame | None, rule: EdgeParams) -> pl.DataFrame:
    if not isinstance(rate, pl.DataFrame):
        return events.with_columns(rate=pl.lit(rule.decay_lambda if rate is None else float(rate)))
    need(rate, (*_EDGE, "decay_lambda"), "weight_history")
    own = rate.group_by(_EDGE).agg(pl.col("decay_lambda").first().alias("rate"))
    return events.join(own, on=_EDGE, how="left", nulls_equal=True, maintain_order="left").with_columns(
        pl.col("rate").fill_null(rule.decay_lambda)
    )


def _span(events: pl.DataFrame, since: Instant | None, until: Instant | None) -> tuple[datetime, datetime]:
    instants: list[datetime] = events["ts"].to_list()
    first, last = min(instants), max(instants)
    start = first if since is None else as_utc(since, "since")
    end = last + max((last - first) / 4, timedelta(days=7)) if until is None else as_utc(until, "until")
    return start, max(end, start + timedelta(seconds=1))


def _curves(events: pl.DataFrame, start: datetime, end: datetime) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Points of the curves (a piece per record and gap), and the events as dots (none, if they are too many)."""
    order = ["mnest_id", "ts", *(["seq"] if "seq" in events.columns else [])]
    pieces = (
        events.sort(order)
        .with_columns(next=pl.col("ts").shift(-1).over("mnest_id"))
        .with_columns(ahead=pl.col("next").is_null(), next=pl.col("next").fill_null(end))
        .with_columns(
            next=pl.when(pl.col("kind") == "purge").then("ts").otherwise(pl.min_horizontal("next", pl.lit(end)))
        )
        .with_columns(begin=pl.max_horizontal("ts", pl.lit(start)))
        .filter(pl.col("begin") <= pl.col("next"))
        .with_row_index("piece")
    )
    inside = events.filter(pl.col("ts").is_between(start, end))
    few = 2 * pieces.height + inside.height + _GRID * pieces["mnest_id"].n_unique() <= MOST_POINTS
    if not few:
        step = max(1, pieces.height * 2 // MOST_POINTS + 1)
        pieces = pieces.filter((pl.col("piece") % step == 0) | pl.col("ahead"))
    span = (end - start) / timedelta(microseconds=1)
    points = (
        pieces.with_columns(
            length=(pl.col("next") - pl.col("begin")).dt.total_microseconds(),
        )
        .with_columns(count=(1 + (pl.col("length") / span * _GRID).ceil()).cast(pl.Int64))
        .with_columns(number=pl.int_ranges(0, pl.col("count") + 0, dtype=pl.Int64))
        .explode("number", empty_as_null=True)
        .with_columns(
            at=pl.col("begin")
            + pl.duration(
                microseconds=(
                    pl.col("length") * pl.col("number") / pl.max_horizontal(pl.col("count") - 1, pl.lit(1))
                ).round()
            )
        )
        .with_columns(
            weight=pl.col("weight")
            * fraction_left(
                pl.col("rate"), (pl.col("at") - pl.col("ts")).dt.total_microseconds() / DAY_US, pl.Expr.exp
            ),
            when=utc_text("at"),
            line=pl.format("{} {}", "mnest_id", pl.col("ahead").cast(pl.String)),
        )
    )
    kept = points.select("edge", "line", "ahead", "at", "when", "weight", "piece", "number").sort(
        ["line", "piece", "number"]
    )
    marked = inside if inside.height <= MOST_MARKS else inside.filter(pl.col("kind") != "passing")
    dots = marked.select("edge", "kind", "weight", at="ts", when=utc_text("ts"))
    return kept.head(MOST_POINTS), dots.head(MOST_MARKS)


def _draw(curves: pl.DataFrame, dots: pl.DataFrame, shown: list[str], rule: EdgeParams) -> alt.LayerChart:
    tips = [
        alt.Tooltip("edge:N"),
        alt.Tooltip("when:N", title="at"),
        alt.Tooltip("weight:Q", format=".4f"),
    ]
    y = alt.Y("weight:Q", title="weight, 0 to 1", scale=alt.Scale(domain=[0, 1]))
    lines = (
        alt.Chart(curves)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=utc_axis("at"),
            y=y,
            detail="line:N",
            order="at:T",
            color=alt.Color(
                "edge:N",
                title="edge",
                scale=from_categories(shown),
                legend=alt.Legend(labelLimit=640, orient="bottom", columns=1),
            ),
            strokeDash=alt.StrokeDash(
                "ahead:N", scale=alt.Scale(domain=[False, True], range=[[1, 0], [5, 4]]), legend=None
            ),
            tooltip=tips,
        )
    )
    threshold = (
        alt.Chart(pl.DataFrame({"weight": [rule.demote_below]})).mark_rule(color=GREY, strokeDash=[2, 3]).encode(y=y)
    )
    marks = (
        alt.Chart(dots)
        .mark_point(filled=False, size=42, opacity=1, fill="white", stroke="#777777", strokeWidth=1.2)
        .encode(
            x=utc_axis("at"),
            y=y,
            shape=alt.Shape(
                "kind:N",
                title="event",
                scale=alt.Scale(domain=list(_EVENT_SHAPES), range=list(_EVENT_SHAPES.values())),
                legend=alt.Legend(
                    orient="bottom",
                    values=sorted(dots["kind"].unique().to_list()),
                ),
            ),
            tooltip=[alt.Tooltip("kind:N", title="event"), *tips],
        )
    )
    return alt.LayerChart(layer=[threshold, lines, marks] if dots.height else [threshold, lines])


def _rates(events: pl.DataFrame) -> str:
    rates = events["rate"].unique().sort().to_list()
    return f"lambda {rates[0]:g}" if len(rates) == 1 else f"lambda {rates[0]:g} to {rates[-1]:g}"
