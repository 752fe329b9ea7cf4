"""Lineages as trees: which versions there are, which came from which, and how good each is believed to be."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import altair as alt
import polars as pl

from mnemokit.charts.parts import (
    GREY,
    Drawing,
    count_size,
    drawable,
    left_out,
    need,
    need_positive,
    nothing,
    question,
    rate_colour,
    short,
)
from mnemokit.charts.tree_layout import lay_out, with_roots
from mnemokit.given_frames import Frame

MOST_LINEAGES = 60
MOST_VERSIONS = 400
_ROW = 34
_DEPTH = 64
_NARROWEST_STEP = 12
_WIDEST = 720
MOST_STEPS = _WIDEST // _NARROWEST_STEP
_LABEL_ROOM = 36
_LEGENDS_ASIDE = 360
_NEEDED = ("reasonlet_id", "parent_id", "version", "n", "s", "rate", "rate_low", "rate_high")


def lineage(ranked: Frame, *, root: str | None = None, top: int = 15) -> Drawing:
    """Which versions grew from which, and which of them succeed?

    Each row starts with a lineage's first version; versions grow to the right, and a branch opens a row of its own.
    Colour is the rate, size the counted runs. A long lineage is drawn with shorter steps; of one with more than 60
    versions in a line the middle is left out, and the title says so.

    Args:
        ranked: Versions with their rates, as ``mem.reasonlets.rank()`` gives them.
        root: Only the lineage that this reasonlet is in.
        top: How many lineages to show, 1 to 60: those with most versions, then most runs. The title says how many were
            left out; no more than 400 versions are drawn.

    Returns:
        An Altair chart.

    Raises:
        InvalidInput: If a column is missing.

    Example:
        >>> ranked = pl.DataFrame({"reasonlet_id": ["a", "b"], "parent_id": [None, "a"], "version": ["1.0", "1.1"],
        ...     "n": [2, 1], "s": [1, 1], "rate": [0.5, 0.67], "rate_low": [0.1, 0.2], "rate_high": [0.9, 0.97]})
        >>> lineage(ranked).to_dict()["title"]["text"]
        'Which versions grew from which, and which of them succeed?'
    """
    need_positive(top, "top", "lineage", MOST_LINEAGES)
    title = "Which versions grew from which, and which of them succeed?"
    ranked = drawable(ranked, "ranked")
    need(ranked, _NEEDED, "lineage")
    nodes = with_roots(ranked)
    if root is not None:
        nodes = nodes.filter(pl.col("root_id").is_in(nodes.filter(pl.col("reasonlet_id") == root)["root_id"].implode()))
    if nodes.is_empty():
        return nothing(title, "There are no reasonlets to draw.")
    nodes = nodes.with_columns(
        label=pl.col("question") if "question" in nodes.columns else pl.col("reasonlet_id"),
        number=pl.col("version").str.split(".").list.last().cast(pl.Int64, strict=False),
    )
    shown, missing, unseen = _busiest(nodes, top)
    placed, gap = _without_middle(lay_out(shown))
    heading = question(
        title,
        "To the right: a version and the one made from it. Colour: believed rate of success; size: counted runs.",
        left_out("lineages", shown["root_id"].n_unique(), missing, "those with fewer versions"),
        f"{unseen:,} later versions of these lineages are left out." if unseen else None,
        f"In the middle {gap.versions:,} versions are left out, {gap.first} to {gap.last} versions from the root: "
        "at the dashed line."
        if gap
        else None,
    )
    return _tree(_with_axis_label(placed), gap).properties(title=heading)


@dataclass(frozen=True, slots=True)
class _Gap:
    """Depths that are not drawn, both ends included, and how many versions have them."""

    first: int
    last: int
    versions: int

    @property
    def steps(self) -> int:
        return self.last - self.first + 1


def _without_middle(placed: pl.DataFrame) -> tuple[pl.DataFrame, _Gap | None]:
    """The versions with ``x``, their place on the axis; those in the middle of a line too long to draw are left out."""
    deepest = max(placed["depth"].to_list())
    if deepest < MOST_STEPS:
        return placed.with_columns(x="depth"), None
    first = MOST_STEPS // 2
    last = first + deepest - MOST_STEPS + 1
    inside = placed["depth"].is_between(first, last)
    drawn = placed.filter(~inside).with_columns(
        x=pl.when(pl.col("depth") < first).then("depth").otherwise(pl.col("depth") - (last - first)),
        # What comes right after the gap has no line to its parent, which is not drawn.
        parent_row=pl.when(pl.col("depth") != last + 1).then("parent_row"),
    )
    return drawn, _Gap(first, last, int(inside.sum()))


def _busiest(nodes: pl.DataFrame, top: int) -> tuple[pl.DataFrame, list[str], int]:
    """Versions to draw, labels of lineages left out, and how many versions of the drawn ones are left out."""
    lineages = (
        nodes.group_by("root_id", maintain_order=True)
        .agg(
            pl.len().alias("versions"),
            pl.col("n").sum().alias("runs"),
            pl.col("label").filter(pl.col("depth") == 0).first(),
        )
        .sort(["versions", "runs", "label", "root_id"], descending=[True, True, False, False], nulls_last=True)
        .with_row_index("place")
    )
    mine = nodes.join(lineages.head(top).select("root_id", "place"), on="root_id").sort(
        ["place", "number", "reasonlet_id"]
    )
    # A version never stands without its parent: the cut is by depth first, and a parent is less deep than its child.
    kept = mine.sort("depth", maintain_order=True).head(MOST_VERSIONS).sort(["place", "number", "reasonlet_id"])
    left = lineages.slice(top)
    return kept, [text or root for text, root in left.select("label", "root_id").iter_rows()], mine.height - kept.height


def _with_axis_label(placed: pl.DataFrame) -> pl.DataFrame:
    """Rows get sortable names; only a lineage's first row shows words, namely its question."""
    named = placed.with_columns(
        words=pl.when(pl.col("depth") == 0)
        .then(pl.col("label").map_elements(short, return_dtype=pl.String, skip_nulls=False))
        .otherwise(pl.lit(""))
    )
    first = named.filter(pl.col("depth") == 0).select("row", "words")
    axis = (named.select("row").unique().sort("row").join(first, on="row", how="left", maintain_order="left")).select(
        "row", line=pl.col("row").cast(pl.String).str.zfill(4) + pl.col("words").fill_null("")
    )
    up = axis.select(parent_row="row", parent_line="line")
    return named.join(axis, on="row", how="left", maintain_order="left").join(
        up, on="parent_row", how="left", maintain_order="left"
    )


def _depth_words(gap: _Gap | None) -> str:
    """What a label of the axis says: the depth, which beyond the gap is not the place on the axis."""
    return f"datum.value < {gap.first} ? datum.value : datum.value + {gap.steps - 1}" if gap else "datum.value"


def _tree(placed: pl.DataFrame, gap: _Gap | None) -> alt.LayerChart:
    columns = ["line", "parent_line", "x", "depth", "version", "label", "n", "s", "rate", "rate_low", "rate_high"]
    extra = [name for name in ("scope", "prior", "prior_source") if name in placed.columns]
    drawn = placed.select(*columns, *extra).with_columns(
        parent_x=pl.col("x") - 1,
        record=pl.format("{} of {}", "s", "n"),
        interval=pl.format("{} to {}", pl.col("rate_low").round(3), pl.col("rate_high").round(3)),
    )
    last = max(drawn["x"].to_list())
    step = min(_DEPTH, _WIDEST / (last + 1))
    width = max(220.0, step * (last + 1))
    # Beside a wide tree a legend would be out of sight, above it it is not.
    above = width > _LEGENDS_ASIDE
    every = max(1, ceil(_LABEL_ROOM / step))
    axis = alt.Axis(
        labelExpr="slice(datum.label, 4)", labelLimit=330, ticks=False, domain=False, title=None, grid=False
    )
    rows = alt.Scale(domain=sorted(drawn["line"].unique().to_list()))
    y = alt.Y("line:N", scale=rows, axis=axis)
    x = alt.X(
        "x:Q",
        title="versions from the root",
        scale=alt.Scale(domain=[-max(0.3, 10 / step), last + 0.7], nice=False),
        axis=alt.Axis(
            values=[place for place in range(0, last + 1, every) if not gap or place != gap.first],
            format="d",
            grid=False,
            labelExpr=_depth_words(gap),
        ),
    )
    base = alt.Chart(drawn)
    links = (
        base.transform_filter("isValid(datum.parent_line)")
        .mark_rule(color=GREY, strokeWidth=1.5)
        .encode(
            x=alt.X("parent_x:Q", title="versions from the root"),
            x2="x:Q",
            y=alt.Y("parent_line:N", scale=rows, axis=axis),
            y2="line:N",
        )
    )
    dots = base.mark_circle(opacity=1, stroke="#555555", strokeWidth=0.8).encode(
        x=x,
        y=y,
        size=count_size("n", "counted runs", max(drawn["n"].to_list()), min(260.0, step * step), above=above),
        color=rate_colour("rate", "rate of success", above=above),
        tooltip=[
            alt.Tooltip("label:N", title="question"),
            *(alt.Tooltip(f"{name}:N", title=name.replace("_", " ")) for name in extra if name != "prior"),
            alt.Tooltip("version:N", title="version"),
            alt.Tooltip("record:N", title="succeeded"),
            alt.Tooltip("rate:Q", title="rate", format=".3f"),
            alt.Tooltip("interval:N", title="95 % interval"),
            *([alt.Tooltip("prior:Q", title="prior", format=".3f")] if "prior" in extra else []),
        ],
    )
    named = alt.Chart(drawn.filter(pl.col("x") % every == 0)) if every > 1 else base
    labels = named.mark_text(dx=0, dy=-15, fontSize=10).encode(x=x, y=y, text="version:N")
    middle = alt.Chart(pl.DataFrame({"x": [gap.first] if gap else [0]}))
    cut = [middle.mark_rule(color=GREY, strokeDash=[3, 3]).encode(x=x)] if gap else []
    return alt.LayerChart(layer=[links, *cut, dots, labels]).properties(width=width, height=alt.Step(_ROW))
