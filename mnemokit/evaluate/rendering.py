"""Results for papers and pages: a table to read, as Markdown or LaTeX."""

from __future__ import annotations

import math

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.table import SMALLER_IS_BETTER

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def overview(table: pl.DataFrame, *, sort_by: str | None = None, digits: int = 4) -> pl.DataFrame:
    """One row per model, one column per metric, each ``value [low, high]``: the table that a paper shows.

    Args:
        table: What `mnemokit.evaluate.score` gave.
        sort_by: Metric to order the models by, best first; None takes the first.
        digits: Decimals.

    Returns:
        Columns ``model``, ``kind`` (baseline or model), one text column per metric, ``n_sessions``, ``n``, ``note``.

    Raises:
        InvalidInput: If the metric is not there.

    Example:
        >>> from mnemokit.evaluate.table import RESULT_SCHEMA
        >>> overview(pl.DataFrame(schema=RESULT_SCHEMA)).columns
        ['model', 'kind', 'n_sessions', 'n', 'note']
    """
    values = table.filter(pl.col("versus").is_null(), pl.col("by") == "all")
    metrics = values["metric"].unique(maintain_order=True).to_list()
    if sort_by is not None and sort_by not in metrics:
        raise InvalidInput(f"there is no metric {sort_by!r}; there are {', '.join(metrics)}")
    models = (
        values.group_by("model", maintain_order=True)
        .agg(pl.col("baseline", "n_sessions", "note").first(), pl.col("n").max())
        .with_columns(kind=pl.when("baseline").then(pl.lit("baseline")).otherwise(pl.lit("model")))
    )
    for metric in metrics:
        mine = values.filter(metric=metric).select("model", _cell(digits).alias(metric))
        models = models.join(mine, on="model", how="left", maintain_order="left")
    if metrics:
        key = sort_by or metrics[0]
        order = values.filter(metric=key).select("model", key="value")
        models = models.join(order, on="model", how="left", maintain_order="left").sort(
            "key", descending=key not in SMALLER_IS_BETTER, nulls_last=True, maintain_order=True
        )
    return models.select("model", "kind", *metrics, "n_sessions", "n", "note")


def against(table: pl.DataFrame, model: str, metric: str, *, digits: int = 4) -> pl.DataFrame:
    """One model's paired differences from every baseline, with a word on each.

    Args:
        table: What `mnemokit.evaluate.score` gave.
        model: The model.
        metric: The metric.
        digits: Decimals.

    Returns:
        Columns ``versus, difference, verdict``: better, worse, or not told apart (the interval holds 0), or the note.

    Raises:
        InvalidInput: If there is no such row.
    """
    rows = table.filter(
        pl.col("model") == model, pl.col("metric") == metric, pl.col("versus").is_not_null(), pl.col("by") == "all"
    )
    if rows.is_empty():
        raise InvalidInput(f"there is no difference of {model!r} in {metric!r} in this table")
    sign = -1 if metric in SMALLER_IS_BETTER else 1
    verdict = (
        pl.when(pl.col("low") * sign > 0, pl.col("high") * sign > 0)
        .then(pl.lit("better"))
        .when(pl.col("low") * sign < 0, pl.col("high") * sign < 0)
        .then(pl.lit("worse"))
        .otherwise(pl.lit("not told apart"))
    )
    return rows.select("versus", _cell(digits, signed=True).alias("difference"), verdict=verdict)


def to_markdown(frame: pl.DataFrame, *, digits: int = 4) -> str:
    r"""A frame as a Markdown table.

    Example:
        >>> print(to_markdown(pl.DataFrame({"model": ["a|b"], "brier": [0.25]})))
        | model | brier |
        |:---|---:|
        | a\|b | 0.2500 |
    """
    head = "| " + " | ".join(frame.columns) + " |"
    rule = "|" + "|".join("---:" if dtype.is_numeric() else ":---" for dtype in frame.dtypes) + "|"
    rows = ["| " + " | ".join(_text(cell, digits).replace("|", "\\|") for cell in row) + " |" for row in frame.rows()]
    return "\n".join([head, rule, *rows])


def to_latex(frame: pl.DataFrame, *, caption: str | None = None, label: str | None = None, digits: int = 4) -> str:
    r"""A frame as a LaTeX table with booktabs rules.

    Example:
        >>> print(to_latex(pl.DataFrame({"model": ["rank_rule"], "brier": [0.25]})))
        \begin{table}
        \centering
        \begin{tabular}{lr}
        \toprule
        model & brier \\
        \midrule
        rank\_rule & 0.2500 \\
        \bottomrule
        \end{tabular}
        \end{table}
    """
    columns = "".join("r" if dtype.is_numeric() else "l" for dtype in frame.dtypes)
    body = [" & ".join(_text(cell, digits).translate(_LATEX) for cell in row) + r" \\" for row in frame.rows()]
    lines = [
        r"\begin{table}",
        r"\centering",
        *([rf"\caption{{{caption.translate(_LATEX)}}}"] if caption else []),
        *([rf"\label{{{label}}}"] if label else []),
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(name.translate(_LATEX) for name in frame.columns) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _cell(digits: int, *, signed: bool = False) -> pl.Expr:
    def one(row: dict[str, float | None]) -> str:
        value, low, high = row["value"], row["low"], row["high"]
        if value is None:
            return "–"
        shape = f"+.{digits}f" if signed else f".{digits}f"
        if low is None or high is None:
            return f"{value:{shape}}"
        return f"{value:{shape}} [{low:{shape}}, {high:{shape}}]"

    return pl.struct("value", "low", "high").map_elements(one, return_dtype=pl.String)


def _text(cell: object, digits: int) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return "∞" if math.isinf(cell) else f"{cell:.{digits}f}"
    return str(cell)
