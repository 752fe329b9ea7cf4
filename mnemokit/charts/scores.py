"""How good predictions were: calibration curves and score tables, with intervals."""

from __future__ import annotations

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    BLUE,
    GREY,
    Drawing,
    count_size,
    from_categories,
    left_out,
    need,
    need_positive,
    nothing,
    question,
)
from mnemokit.errors import InvalidInput

MOST_MODELS = 40
_CURVES = 6
_LOWER_IS_BETTER = frozenset({"log_loss", "brier", "rmse_bins"})
_HIGHER_IS_BETTER = frozenset(
    {"auc", "hit@1", "hit@3", "hit@5", "mrr", "coverage", "success", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10"}
)


def calibration(curve: pl.DataFrame) -> Drawing:
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
            "On the dashed line it did; above it the memory was too timid, below it too sure."
            + (" Bars: 95 % intervals." if intervals else ""),
            left_out("models", min(len(models), _CURVES), models[_CURVES:], "the later ones"),
        ),
        width=360,
        height=360,
    )


def scores(table: pl.DataFrame, *, metric: str | None = None, versus: str | None = None, top: int = 20) -> Drawing:
    """Which model predicts best, and can the baselines be told apart from it?

    Args:
        table: Tidy scores, as ``mk.evaluate.score`` gives them: ``model``, ``metric``, ``value``, ``low``, ``high``;
            ``n_sessions`` and ``n`` for the tooltip, and ``baseline`` (true, false), which greys the baselines out,
            where there are any. Of scores by group the whole (``group`` all) is drawn, if it is there.
        metric: Only this metric; left out, a panel for each.
        versus: Show the paired difference from this baseline instead; at the line of 0 there is none.
        top: How many models to show, 1 to 40: the first of the table.

    Returns:
        An Altair chart, one panel a metric, with its own axis.

    Raises:
        InvalidInput: If a column is missing, or nothing was compared with that baseline.
    """
    need_positive(top, "top", "scores", MOST_MODELS)
    title = (
        "Which model predicts best, and is the difference more than chance?"
        if versus is None
        else f"Which model predicts better than {versus.replace('_', ' ')}?"
    )
    need(table, ("model", "metric", "value", "low", "high", *(["versus"] if versus else [])), "scores")
    rows = _chosen(table, metric, versus)
    if rows.is_empty():
        return nothing(title, "There is no score to show.")
    models = rows["model"].unique(maintain_order=True).to_list()
    extra = [name for name in ("n_sessions", "n") if name in rows.columns]
    rows = rows.filter(pl.col("model").is_in(models[:top])).select(
        "model", "metric", "value", "low", "high", "kind", *extra
    )
    metrics = rows["metric"].unique(maintain_order=True).to_list()
    panels = [
        _panel(
            rows.filter(pl.col("metric") == name), name, models[:top], extra, versus, greyed="baseline" in table.columns
        )
        for name in metrics
    ]
    heading = question(
        title,
        "Dot: score; bar: 95 % interval over sessions. Where bars overlap widely, the models are not told apart."
        if versus is None
        else "Dot: difference, session by session; bar: 95 % interval. A bar that meets 0 tells no difference.",
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
    baseline = pl.col("baseline") if "baseline" in rows.columns else pl.lit(None, dtype=pl.Boolean)
    return rows.with_columns(kind=pl.when(baseline).then(pl.lit("baseline")).otherwise(pl.lit("model")))


def _panel(
    rows: pl.DataFrame, metric: str, models: list[str], extra: list[str], versus: str | None, *, greyed: bool
) -> alt.LayerChart:
    axis = metric.replace("_", " ") + ("" if versus is None else ", difference")
    if metric in _LOWER_IS_BETTER:
        axis = f"{axis} (lower is better)"
    elif metric in _HIGHER_IS_BETTER:
        axis = f"{axis} (higher is better)"
    scale = alt.Scale(zero=False, padding=8)
    base = alt.Chart(rows).encode(
        y=alt.Y("model:N", title=None, scale=alt.Scale(domain=models), axis=alt.Axis(labelLimit=260)),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=["model", "baseline"], range=[BLUE, GREY]),
            legend=alt.Legend() if greyed else None,
        ),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("metric:N"),
            alt.Tooltip("value:Q", format=".4f"),
            alt.Tooltip("low:Q", title="95 % interval from", format=".4f"),
            alt.Tooltip("high:Q", title="to", format=".4f"),
            *(alt.Tooltip(f"{name}:N", title=name.replace("_", " ")) for name in extra),
        ],
    )
    bars = base.mark_rule(strokeWidth=5, opacity=0.35).encode(x=alt.X("low:Q", title=axis, scale=scale), x2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("value:Q", title=axis, scale=scale))
    none = alt.Chart(pl.DataFrame({"value": [0.0]})).mark_rule(color=GREY, strokeDash=[3, 3])
    zero = [] if versus is None else [none.encode(x=alt.X("value:Q", title=axis, scale=scale))]
    return alt.LayerChart(layer=[*zero, bars, dots]).properties(width=230, height=20 * len(models))
