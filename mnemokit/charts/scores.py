"""How good predictions were: calibration curves and score tables, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    BLUE,
    GREY,
    VERMILION,
    Drawing,
    count_size,
    drawable,
    from_categories,
    left_out,
    need,
    need_positive,
    nothing,
    question,
)
from mnemokit.errors import InvalidInput
from mnemokit.evaluate.table import SMALLER_IS_BETTER
from mnemokit.given_frames import Frame

MOST_MODELS = 40
_CURVES = 6
_OWN = frozenset({"rank_rule", "mnest_weights", "logged"})
_OWN_WORDS, _BASELINE = "this memory's own rule", "baseline"
_TIDY = frozenset(
    {"model", "baseline", "metric", "versus", "value", "low", "high", "n_sessions", "n", "seconds", "note", "by"}
)
_WIDE = 4.0
_SQUEEZED = 2.0
_HIGHER_IS_BETTER = frozenset(
    {"auc", "hit@1", "hit@3", "hit@5", "mrr", "coverage", "success", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10"}
)


def calibration(curve: Frame) -> Drawing:
    """When the memory said 70 %, did it happen 70 % of the time?

    Args:
        curve: One row per bin of predictions: ``predicted`` (their mean), ``observed`` (share that came true), ``n``;
            ``low`` and ``high`` of the share and ``model`` where there are any. No more than six models are drawn.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing.

    Example:
        >>> curve = pl.DataFrame({"predicted": [0.3, 0.7], "observed": [0.2, 0.8], "n": [10, 20]})
        >>> calibration(curve).to_dict()["title"]["text"]
        'When the memory gave a probability, did it come true as often?'
    """
    title = "When the memory gave a probability, did it come true as often?"
    curve = drawable(curve, "curve")
    need(curve, ("predicted", "observed", "n"), "calibration")
    bins = curve.filter(pl.col("n") > 0, pl.col("predicted").is_not_null(), pl.col("observed").is_not_null())
    if bins.is_empty():
        return nothing(title, "There are no scored predictions.")
    if "model" not in bins.columns:
        bins = bins.with_columns(model=pl.lit("the memory"))
    models = bins["model"].unique(maintain_order=True).to_list()
    bins = bins.filter(pl.col("model").is_in(models[:_CURVES]))
    colour = alt.Color(
        "model:N",
        title="model",
        scale=from_categories(models[:_CURVES]),
        legend=alt.Legend() if len(models) > 1 else None,
    )
    x = alt.X("predicted:Q", title="predicted probability", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("observed:Q", title="share that came true", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(bins).encode(
        color=colour,
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("predicted:Q", format=".3f"),
            alt.Tooltip("observed:Q", format=".3f"),
            alt.Tooltip("n:Q", title="predictions", format=","),
        ],
    )
    ideal = (
        alt.Chart(pl.DataFrame({"predicted": [0.0, 1.0], "observed": [0.0, 1.0]}))
        .mark_line(color=GREY, strokeDash=[3, 3])
        .encode(x=x, y=y)
    )
    dots = base.mark_circle(opacity=1).encode(
        x=x,
        y=y,
        size=count_size("n", "predictions", max(bins["n"].to_list()), 300),
    )
    layers = [ideal, base.mark_line(strokeWidth=1.5).encode(x=x, y=y), dots]
    intervals = {"low", "high"} <= set(bins.columns)
    if intervals:
        bars = base.mark_rule(strokeWidth=1.5, opacity=0.6)
        layers.insert(1, bars.encode(x=x, y=alt.Y("low:Q", title="share that came true"), y2="high:Q"))
    return alt.layer(*layers).properties(
        title=question(
            title,
            "On the dashed line it did; what is above it came true more often than said, what is below it less often."
            + (" Bars: 95 % intervals." if intervals else ""),
            left_out("models", min(len(models), _CURVES), models[_CURVES:], "the later ones"),
        ),
        width=360,
        height=360,
    )


def scores(table: Frame, *, metric: str | None = None, versus: str | None = None, top: int = 20) -> Drawing:
    """Which model predicts best, and can the baselines be told apart from it?

    Models are compared by paired differences, session by session: two whose bars overlap can differ all the same. Give
    ``versus`` to see that. Where one interval is several times wider than the others and would squeeze them, the axis
    is that of the others; an arrow marks it, and its numbers stand at the right.

    Args:
        table: Tidy scores, as ``mk.evaluate.score`` gives them: ``model``, ``metric``, ``value``, ``low``, ``high``;
            ``n_sessions`` and ``n`` for the tooltip, and ``baseline`` (true, false), which greys the baselines out,
            where there are any. Of scores by group the whole (``group`` all) is drawn, if it is there. Of a sweep
            (``mk.evaluate.sweep``) each row is named by its values.
        metric: Only this metric; left out, a panel for each.
        versus: Show the paired difference from this baseline instead; at the line of 0 there is none.
        top: How many models to show, 1 to 40: the first of the table.

    Returns:
        An Altair chart, one panel a metric, with its own axis.

    Raises:
        InvalidInput: If a column is missing, nothing was compared with that baseline, or ``top`` is out of its range.

    Example:
        >>> table = pl.DataFrame({"model": ["rule"], "metric": ["brier"], "value": [0.2], "low": [0.1], "high": [0.3]})
        >>> scores(table).to_dict()["title"]["text"]
        'Which model predicts best, and is the difference more than chance?'
    """
    need_positive(top, "top", "scores", MOST_MODELS)
    title = (
        "Which model predicts best, and is the difference more than chance?"
        if versus is None
        else f"Which model predicts better than {versus.replace('_', ' ')}?"
    )
    table = drawable(table, "table")
    need(table, ("model", "metric", "value", "low", "high", *(["versus"] if versus else [])), "scores")
    rows = _chosen(table, metric, versus)
    if rows.is_empty():
        return nothing(title, _why_nothing(table, metric, versus))
    rows, twice = _named(rows)
    models = rows["name"].unique(maintain_order=True).to_list()
    extra = [name for name in ("n_sessions", "n") if name in rows.columns]
    rows = rows.filter(pl.col("name").is_in(models[:top])).select(
        "name", "model", "metric", "value", "low", "high", _kind(rows), *extra
    )
    kinds = [kind for kind in _COLOURS if (rows["kind"] == kind).any()]
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    clipped = [_clipped(rows.filter(pl.col("metric") == name), versus) for name in metrics]
    panels = [
        _panel(part, name, models[:top], extra, versus, kinds) for name, part in zip(metrics, clipped, strict=True)
    ]
    heading = question(
        title,
        "Dot: score; bar: 95 % interval over sessions. Bars that overlap do not decide: models are compared session by "
        "session; versus= draws the differences."
        if versus is None
        else "Dot: difference, session by session; bar: 95 % interval. A bar that meets 0 tells no difference.",
        "Arrow: the bar goes on beyond the axis, which is drawn for the others; its numbers stand at the right."
        if any("beyond" in part.columns for part in clipped)
        else None,
        "Several rows have the same name: the table does not hold what tells them apart." if twice else None,
        left_out("models", min(len(models), top), models[top:], "the later ones"),
    )
    return alt.ConcatChart(concat=panels, columns=2 if len(panels) in (2, 4) else 3).properties(title=heading)


def _chosen(table: pl.DataFrame, metric: str | None, versus: str | None) -> pl.DataFrame:
    rows = table.filter(pl.col("value").is_not_null())
    if "versus" in rows.columns:
        rows = rows.filter(pl.col("versus").is_null() if versus is None else pl.col("versus") == versus)
    if metric is not None:
        rows = rows.filter(pl.col("metric") == metric)
    if "group" in rows.columns and (rows["group"] == "all").any():
        rows = rows.filter(pl.col("group") == "all")
    if versus is not None and rows.is_empty():
        known = table["versus"].drop_nulls().unique().sort().to_list()
        raise InvalidInput(
            f"charts.scores: nothing was compared with {versus!r}; there are {', '.join(known) or 'none'}"
        )
    return rows


def _why_nothing(table: pl.DataFrame, metric: str | None, versus: str | None) -> str:
    """Why there is no row: the rows may all be differences, which ``versus`` draws."""
    if versus is None and "versus" in table.columns:
        rows = table if metric is None else table.filter(pl.col("metric") == metric)
        known = rows.filter(pl.col("value").is_not_null())["versus"].drop_nulls().unique(maintain_order=True).to_list()
        if known:
            others = f", or from {len(known) - 1:,} more" if len(known) > 1 else ""
            return f"These rows are differences from {known[0]}{others}: draw them with versus={known[0]!r}."
    return "There is no score to show."


def _named(rows: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The rows with ``name``, and whether names stand for several rows all the same.

    A name is the model's; where a model has several rows of a metric, what tells them apart is added: the values of a
    sweep, a group, a target.
    """
    named = rows.with_columns(name=pl.col("model"))
    if not named.select("model", "metric").is_duplicated().any():
        return named, False
    apart = [name for name in rows.columns if name not in _TIDY and rows[name].n_unique() > 1]
    words = [pl.format("{} {}", pl.lit(name.replace("_", " ")), _value_words(rows, name)) for name in apart]
    if rows["model"].n_unique() > 1 or not words:
        words.insert(0, pl.col("model"))
    named = rows.with_columns(name=pl.concat_str(words, separator=", "))
    return named, bool(named.select("name", "metric").is_duplicated().any())


def _value_words(rows: pl.DataFrame, column: str) -> pl.Expr:
    if rows.schema[column].is_float():
        text = pl.col(column).map_elements(lambda value: f"{value:.6g}", return_dtype=pl.String)
    else:
        text = pl.col(column).cast(pl.String)
    return text.fill_null("none")


_COLOURS = {_OWN_WORDS: VERMILION, "other model": BLUE, _BASELINE: GREY}


def _kind(rows: pl.DataFrame) -> pl.Expr:
    """What a row is: the memory's own rule, as it stands; a baseline; or another model."""
    baseline = pl.col("baseline") if "baseline" in rows.columns else pl.lit(None, dtype=pl.Boolean)
    return (
        pl.when(baseline)
        .then(pl.lit(_BASELINE))
        .when(pl.col("model").is_in(list(_OWN)))
        .then(pl.lit(_OWN_WORDS))
        .otherwise(pl.lit("other model"))
        .alias("kind")
    )


def _clipped(rows: pl.DataFrame, versus: str | None) -> pl.DataFrame:
    """The rows; where a few wide intervals would squeeze the others, cut at the others' ends.

    Returns:
        The rows as they are; or with ``from``, ``to`` (the axis), ``beyond`` (which side a row goes on beyond, if any)
        and ``words`` (its numbers), ``low`` and ``high`` within the axis, and ``value`` null outside of it.
    """
    ends = rows.select(low=pl.min_horizontal("low", "value"), high=pl.max_horizontal("high", "value"))
    width = (ends["high"] - ends["low"]).to_list()
    wide = [_is_wide(each, width[:place] + width[place + 1 :]) for place, each in enumerate(width)]
    others = ends.filter(pl.Series([not each for each in wide], dtype=pl.Boolean))
    if all(wide):
        others = rows.select(low="value", high="value")
    if not any(wide):
        return rows
    at_zero = [0.0] if versus is not None else []
    first, last = min([*others["low"], *at_zero]), max([*others["high"], *at_zero])
    whole = max([*ends["high"], *at_zero]) - min([*ends["low"], *at_zero])
    if whole < _SQUEEZED * (last - first):
        return rows
    if all(wide):
        room = (last - first) / 8 or 0.5
        first, last = first - room, last + room
    below, above = pl.col("low") < first, pl.col("high") > last
    numbers = [pl.col(name).map_elements(_number_words, return_dtype=pl.String) for name in ("value", "low", "high")]
    return rows.with_columns(
        pl.lit(first).alias("from"),
        pl.lit(last).alias("to"),
        beyond=pl.when(below & above)
        .then(pl.lit("both"))
        .when(below)
        .then(pl.lit("left"))
        .when(above)
        .then(pl.lit("right")),
        words=pl.format("{} [{}, {}]", *numbers),
    ).with_columns(
        pl.col("low").clip(first, last),
        pl.col("high").clip(first, last),
        pl.when(pl.col("value").is_between(first, last)).then("value"),
    )


def _number_words(value: float) -> str:
    return f"{value:.3g}".replace("inf", "∞")


def _is_wide(width: float, others: Sequence[float]) -> bool:
    """Is an interval without an end, or several times wider than the others are?"""
    if width == float("inf"):
        return True
    if not others:
        return False
    middle = sorted(others)[len(others) // 2]
    return 0.0 < _WIDE * middle < width


def _panel(
    rows: pl.DataFrame, metric: str, names: list[str], extra: list[str], versus: str | None, kinds: list[str]
) -> alt.LayerChart:
    axis = metric.replace("_", " ") + ("" if versus is None else ", difference")
    if metric in SMALLER_IS_BETTER:
        axis = f"{axis} (lower is better)"
    elif metric in _HIGHER_IS_BETTER:
        axis = f"{axis} (higher is better)"
    cut = "beyond" in rows.columns
    domain = [rows["from"].item(0), rows["to"].item(0)] if cut else alt.Undefined
    scale = alt.Scale(zero=False, padding=8, domain=domain, nice=not cut)
    y = alt.Y("name:N", title=None, scale=alt.Scale(domain=names), axis=alt.Axis(labelLimit=260))
    # The numbers of a bar that is cut are told by its words, since the data have only what is drawn.
    told = ["words:N"] if cut else []
    base = alt.Chart(rows.drop("from", "to", "beyond", strict=False)).encode(
        y=y,
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[_COLOURS[kind] for kind in kinds]),
            legend=alt.Legend() if len(kinds) > 1 else None,
        ),
        tooltip=[
            alt.Tooltip("name:N", title="model"),
            alt.Tooltip("metric:N"),
            *(
                [alt.Tooltip(words, title="value, 95 % interval") for words in told]
                or [
                    alt.Tooltip("value:Q", format=".4f"),
                    alt.Tooltip("low:Q", title="95 % interval from", format=".4f"),
                    alt.Tooltip("high:Q", title="to", format=".4f"),
                ]
            ),
            *(alt.Tooltip(f"{name}:N", title=name.replace("_", " ")) for name in extra),
        ],
    )
    bars = base.mark_rule(strokeWidth=5, opacity=0.35).encode(x=alt.X("low:Q", title=axis, scale=scale), x2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("value:Q", title=axis, scale=scale))
    none = alt.Chart(pl.DataFrame({"value": [0.0]})).mark_rule(color=GREY, strokeDash=[3, 3])
    zero = [] if versus is None else [none.encode(x=alt.X("value:Q", title=axis, scale=scale))]
    arrows = _arrows(rows, alt.X("value:Q", title=axis, scale=scale), y) if cut else []
    return alt.LayerChart(layer=[*zero, bars, dots, *arrows]).properties(width=230, height=20 * len(names))


def _arrows(rows: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Marks at the ends of the axis for the bars that go on beyond it, and their numbers at the right."""
    layers: list[alt.Chart] = []
    for side, end in (("left", "from"), ("right", "to")):
        here = rows.filter(pl.col("beyond").is_in([side, "both"])).select("name", value=end)
        if here.height:
            mark = alt.Chart(here).mark_point(
                filled=True, size=70, opacity=1, shape=f"triangle-{side}", color="#444444"
            )
            layers.append(mark.encode(x=x, y=y))
    words = alt.Chart(rows.filter(pl.col("beyond").is_not_null()).select("name", "words"))
    layers.append(
        words.mark_text(align="left", fontSize=10, dx=6).encode(y=y, x=alt.value("width"), text=alt.Text("words:N"))
    )
    return layers
