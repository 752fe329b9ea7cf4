"""Tables and sentences on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mnemokit.records import ReplayReport
from mnemokit.turns.reading import commonest


def say(text: str) -> None:
    """One line on standard output."""
    sys.stdout.write(text + "\n")


def show(frame: pl.DataFrame, *, title: str, top: int, json: bool) -> None:
    """A frame as a table, or as JSON lines.

    Args:
        frame: What to show.
        title: The question that the table answers.
        top: Rows shown at most; the title says if there are more.
        json: Print JSON lines instead.
    """
    head = frame.head(top)
    if json:
        sys.stdout.write(head.write_ndjson())
        return
    if frame.height > top:
        title += f" ({top} of {frame.height:,})"
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for name, dtype in head.schema.items():
        numeric = dtype.is_numeric()
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in head.iter_rows():
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    console.print()


def account(report: ReplayReport) -> str:
    """A replay's account in two sentences."""
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in report.capture_kinds.items()) or "none"
    return (
        f"{report.records:,} records read from {report.source or 'nothing'} ({report.why or 'a frame'}): "
        f"{report.turns:,} turns, {report.duplicates:,} duplicates, {report.rejects:,} rejects, "
        f"{report.ignored:,} ignored.\n"
        f"{_why_rejected(report)}"
        f"{'Would give' if report.dry_run else 'Gave'} {report.passings:,} passings with "
        f"{_several(report.ticks, 'ager night')} and {report.captures:,} captures ({kinds}) "
        f"from {report.sessions:,} sessions in {report.seconds:.1f} s."
    )


def _why_rejected(report: ReplayReport) -> str:
    return f"Rejected: {commonest(report.reject_reasons)} (table rejects).\n" if report.rejects else ""


def ranking(ranked: pl.DataFrame) -> pl.DataFrame:
    """The columns of a ranking that fit a terminal."""
    return ranked.select(
        "scope",
        question=_short("question", 26),
        version="version",
        runs="n",
        ok="s",
        rate="rate",
        low="rate_low",
        high="rate_high",
        prior="prior",
        prior_from="prior_source",
        reasonlet_id="reasonlet_id",
    )


def recalled(found: pl.DataFrame) -> pl.DataFrame:
    """The columns of a recall that fit a terminal."""
    return found.select("rank", "version", "similarity", "rate", "score", runs="n", ok="s", reasonlet_id="reasonlet_id")


def edges(mnests: pl.DataFrame) -> pl.DataFrame:
    """The columns of edges that fit a terminal."""
    versions = (
        pl.when(pl.col("src_version") == pl.col("dst_version"))
        .then(_short("src_version", 24))
        .otherwise(pl.format("{} -> {}", _short("src_version", 11), _short("dst_version", 11).fill_null("(wanted)")))
    )
    return mnests.select(
        source=_short("src_executor", 32),
        destination=_short("dst_executor", 32),
        versions=versions,
        weight="weight",
        uses="uses",
        state="state",
        last_used=pl.when(~pl.col("untimed").fill_null(value=False)).then(
            pl.col("ts_used").dt.strftime("%Y-%m-%d %H:%M")
        ),
    )


def paths(walks: pl.DataFrame) -> pl.DataFrame:
    """The columns of walks that fit a terminal, with versions as `edges` has them: one, if all steps have it."""
    rows = [
        (" -> ".join(names), _path_versions(versions))
        for names, versions in walks.select("executors", "versions").iter_rows()
    ]
    named = pl.DataFrame(rows, schema={"path": pl.String, "versions": pl.String}, orient="row")
    return pl.concat([named, walks.select("mean_weight", "depth", "truncated")], how="horizontal")


def _path_versions(versions: Sequence[str | None]) -> str:
    told = [version or "(wanted)" for version in versions]
    if len(set(told)) == 1:
        return _cut(told[0], 24)
    return " -> ".join(_cut(version, 11) for version in told)


def _cut(text: str, characters: int) -> str:
    """The text, cut in the middle as `_short` cuts a column's."""
    if len(text) <= characters:
        return text
    return f"{text[: (characters - 1) // 2]}…{text[len(text) - characters // 2 :]}"


def _short(name: str, characters: int) -> pl.Expr:
    """A column's text, cut in the middle where it is too long for a terminal."""
    text = pl.col(name)
    head, tail = (characters - 1) // 2, characters // 2
    cut = pl.concat_str(text.str.head(head), pl.lit("…"), text.str.tail(tail))
    return pl.when(text.str.len_chars() > characters).then(cut).otherwise(text).alias(name)


def _several(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value)
