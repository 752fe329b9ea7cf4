"""What every chart shares: its question as a title, what was left out, colours that everybody can tell apart."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import altair as alt
import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.given_frames import Frame, as_polars, is_frame
from mnemokit.instants import Instant
from mnemokit.reasonlets.ranking import beta_interval
from mnemokit.records import RankParams

Drawing = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | alt.HConcatChart | alt.VConcatChart
"""What a chart function returns: shown by a notebook as it is, saved with ``.save("x.html")`` or ``.save("x.png")``."""

# Okabe and Ito's colours: told apart with every common form of colour blindness.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#8C8C8C",
)
CATEGORIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
DATE_TIME = "%Y-%m-%d %H:%M"
LINE_CHARS = 100
LABEL_CHARS = 44
NAMED_LEFT_OUT = 3
_DEFAULT = RankParams()


@runtime_checkable
class HasFrames(Protocol):
    """Whatever gives public tables as frames; a ``Memory`` does."""

    def frame(self, table: str, at: Instant | None = None) -> pl.DataFrame:
        """The table, as it stands or as of an instant."""
        ...


def frame_of(source: Frame | HasFrames, table: str, at: Instant | None = None) -> pl.DataFrame:
    """The frame itself, of Polars, or the memory's table.

    Raises:
        InvalidInput: If it is neither a frame nor a memory.
    """
    if isinstance(source, HasFrames) and not is_frame(source):
        return source.frame(table, at)
    return drawable(source, table)


def drawable(given: object, name: str) -> pl.DataFrame:
    """A frame of Polars, pandas or Arrow, as a frame of Polars.

    Raises:
        InvalidInput: If it is no frame.
    """
    return as_polars(given, name, "nothing was drawn")


def need(frame: pl.DataFrame, columns: Iterable[str], chart: str) -> None:
    """Refuse a frame that lacks a column, and say which ones it has.

    Raises:
        InvalidInput: If a column is missing.
    """
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InvalidInput(
            f"charts.{chart} needs column {missing[0]!r}; this frame has {', '.join(frame.columns) or 'no columns'}; "
            "nothing was drawn"
        )


def need_positive(value: int, name: str, chart: str, most: int) -> None:
    """Refuse a number of things to draw that no chart can hold.

    Raises:
        InvalidInput: If it is not from 1 to ``most``.
    """
    if not 1 <= value <= most:
        raise InvalidInput(f"charts.{chart}: {name} must be from 1 to {most}, not {value!r}; nothing was drawn")


def question(title: str, *lines: str | None) -> alt.TitleParams:
    """A chart's title: the question it answers, and below it how to read it and what was left out."""
    wrapped = [piece for line in lines if line for piece in textwrap.wrap(line, LINE_CHARS)]
    return alt.TitleParams(title, subtitle=wrapped, anchor="start", fontSize=15, subtitlePadding=4, offset=12)


def left_out(kind: str, shown: int, names: Sequence[str], why: str, more: str = "") -> str | None:
    """A sentence that says what is not in the picture; None if all of it is.

    Example:
        >>> left_out("executors", 2, ["c", "d", "e", "f"], "the least used")
        '2 of 6 executors shown; left out, the least used: c, d, e and 1 more.'
    """
    if not names:
        return None
    named = ", ".join(short(name) for name in names[:NAMED_LEFT_OUT])
    rest = len(names) - NAMED_LEFT_OUT
    tail = f" and {rest:,} more" if rest > 0 else ""
    return f"{shown:,} of {shown + len(names):,} {kind} shown; left out, {why}: {named}{tail}{more}."


def short(text: str | None, chars: int = LABEL_CHARS) -> str:
    """The text, cut in the middle to so many characters, since names often differ at their end.

    Example:
        >>> short("mobile_data_issue|airplane_mode_on", 15)
        'mobile_da…de_on'
    """
    words = " ".join((text or "").split())
    if len(words) <= chars:
        return words
    head = (chars - 1) * 2 // 3
    return f"{words[:head]}…{words[len(words) - (chars - 1 - head) :]}"


def nothing(title: str, why: str, *lines: str | None) -> alt.Chart:
    """A picture that says that there is nothing to see, and why; lines of the title as in `question`."""
    return (
        alt.Chart(pl.DataFrame({"why": [why]}))
        .mark_text(fontSize=13, color=GREY)
        .encode(text=alt.Text("why:N"))
        .properties(title=question(title, *lines), width=420, height=60)
    )


def rate_colour(field: str, title: str, *, above: bool = False) -> alt.Color:
    """Colour of a success rate: orange below one half, blue above it; the legend beside the picture, or above it."""
    return alt.Color(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1], domainMid=0.5, range="diverging", interpolate="rgb"),
        legend=alt.Legend(type="gradient", format=".0%", gradientLength=120, orient="top" if above else alt.Undefined),
    )


def weight_colour(field: str, title: str) -> alt.Color:
    """Colour of a weight from 0 to 1: one hue, darker is heavier."""
    return alt.Color(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1], range="heatmap", interpolate="rgb"),
        legend=alt.Legend(type="gradient", gradientLength=120),
    )


def count_colour(field: str, title: str, most: int) -> alt.Color:
    """Colour of a count: one hue, darker is more; by the square root, since counts have long tails."""
    return alt.Color(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="sqrt", domain=[0, max(most, 2)], range="heatmap", interpolate="rgb"),
        legend=alt.Legend(type="gradient", gradientLength=120, format=",d"),
    )


def count_size(field: str, title: str, most: int, largest: float, *, above: bool = False) -> alt.Size:
    """Size of a mark by a count: its area grows with the count, and the legend shows whole numbers only."""
    values = sorted({1, max(1, round(most / 4)), max(1, most)})
    # A domain from 0 to 1 would make Vega-Lite fold this legend into that of a colour from 0 to 1.
    return alt.Size(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="linear", domain=[0, max(most, 2)], range=[min(30.0, largest / 8), largest]),
        legend=alt.Legend(
            values=values,
            format=",d",
            symbolFillColor=GREY,
            symbolStrokeColor=GREY,
            orient="top" if above else alt.Undefined,
        )
        if most > 1
        else None,
    )


def from_categories(domain: Sequence[str]) -> alt.Scale:
    """A scale that gives each name its own colour, in order; more names than colours share the last one."""
    colours = [CATEGORIES[min(place, len(CATEGORIES) - 1)] for place in range(len(domain))]
    return alt.Scale(domain=list(domain), range=colours)


def utc_text(column: str) -> pl.Expr:
    """An instant as text in UTC, since a browser would show it in its own time zone."""
    return pl.col(column).dt.strftime(f"{DATE_TIME} UTC")


def utc_axis(field: str, title: str = "time, UTC") -> alt.X:
    """A time axis in UTC, wherever the reader is."""
    return alt.X(f"{field}:T", title=title, scale=alt.Scale(type="utc"), axis=alt.Axis(labelOverlap=True))


def with_interval(groups: pl.DataFrame, k: float = _DEFAULT.k, mass: float = _DEFAULT.interval) -> pl.DataFrame:
    """Rates of groups with ``s`` successes in ``n``, read as own records are: drawn towards one half by k runs.

    Returns:
        The groups with ``rate`` (the plain s / n, null if n is 0), ``low`` and ``high`` (equal-tailed, of
        Beta(s + k/2, n - s + k/2)).
    """
    s, n = groups["s"].to_numpy(), groups["n"].to_numpy()
    low, high = beta_interval(s + k / 2, n - s + k / 2, mass)
    return groups.with_columns(
        rate=pl.when(pl.col("n") > 0).then(pl.col("s") / pl.col("n")),
        low=pl.Series(low, dtype=pl.Float64),
        high=pl.Series(high, dtype=pl.Float64),
    )
