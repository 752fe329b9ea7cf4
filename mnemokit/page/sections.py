"""The page's sections, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from mnemokit import charts
from mnemokit.charts.grid import not_shown
from mnemokit.charts.parts import short, with_interval
from mnemokit.page.facts import Facts, strongest_edges
from mnemokit.page.figures import Figures
from mnemokit.page.html import EMPTY, Markup, joined, numbers, table, tag
from mnemokit.turns.passings import UNVERSIONED

if TYPE_CHECKING:
    from mnemokit.memory import Memory

TOP = 20
_VALUE_CHARS = 16


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with an anchor."""

    name: str
    title: str
    body: Markup


def all_sections(mem: Memory, facts: Facts, figures: Figures) -> list[Section]:
    """Every section that has something to say; the first and the last always have."""
    sections = [
        Section("store", "What is in it", _store(facts)),
        Section("outcomes", "Did the sessions succeed?", _outcomes(facts, figures)),
        Section("procedures", "Which procedures work?", _procedures(facts, figures)),
        Section("edges", "Who hands work to whom?", _edges(mem, facts, figures)),
        Section("failures", "Which executors fail?", _failures(facts, figures)),
        Section("ager", "What the nights did", _nights(facts, figures)),
        Section("writes", "What sessions wrote to memory", _writes(facts, figures)),
        Section("notes", "What this page does not show", _notes(facts)),
    ]
    return [section for section in sections if section.body.text]


def lead(facts: Facts, path: Path | None) -> str:
    """One sentence: what the page is about."""
    where = f"the memory file {path.name}" if path else "a memory without a file"
    sources = facts.sources
    if sources.is_empty():
        return f"Counted from {where}, as it stands."
    named = ", ".join(sources["source"].to_list()[:3]) + (" and others" if sources.height > 3 else "")
    first, last = (
        f"{moment:%Y-%m-%d}" if moment else "" for moment in (sources["ts_first"].min(), sources["ts_last"].max())
    )
    when = "" if not first else f", of {first}" if first == last else f", from {first} to {last}"
    sessions = int(sources["sessions"].sum())
    return f"{sessions:,} logged sessions of {named}{when}. Counted from {where}, as it stands."


def _store(facts: Facts) -> Markup:
    calls = int(facts.errors["calls"].sum())
    ranked, mnests = facts.ranked, facts.mnests
    roots = ranked.filter(pl.col("parent_id").is_null()).height
    active = mnests.filter(pl.col("state") == "active").height
    passings = int(mnests["uses"].sum())
    by_user = facts.requestors.filter(pl.col("requestor") == "user")["calls"].sum()
    cards = [
        (f"{int(facts.sources['sessions'].sum()):,}", "sessions"),
        (f"{calls:,}", f"tool calls, {by_user:,} by the user side" if by_user else "tool calls"),
        (f"{int(facts.errors['s'].sum()):,}", "calls that failed"),
        (f"{ranked.height:,}", f"procedures (reasonlets), in {roots:,} lineages"),
        (f"{facts.rows['runs']:,}", "runs of procedures"),
        (
            f"{active:,}",
            "active edges (mnests)" + (f", {mnests.height - active:,} others" if mnests.height > active else ""),
        ),
        (f"{passings:,}", "passings behind the edges"),
    ]
    if facts.ager_runs.height:
        nights = facts.ager_runs.height
        cards.append((f"{nights:,}", "run of the ager" if nights == 1 else "runs of the ager"))
    if facts.changes.height:
        cards.append((f"{facts.changes.height:,}", "memory writes"))
    sources = facts.sources.with_columns(
        pl.col("ts_first", "ts_last").dt.strftime("%Y-%m-%d %H:%M"),
    )
    listed = (
        table(
            sources,
            "Where it came from. Times are UTC.",
            {
                "source": "source",
                "sessions": "sessions",
                "calls": "tool calls",
                "errors": "failed",
                "untimed": "without a time",
                "untold": "outcome not told",
                "ts_first": "first",
                "ts_last": "last",
            },
        )
        if sources.height
        else tag("p", "No log was replayed into this memory.", class_="soft")
    )
    return numbers(cards) + listed + _rejects(facts)


def _rejects(facts: Facts) -> Markup:
    if facts.rejects.is_empty():
        return EMPTY
    return table(
        facts.rejects,
        "Records that could not be used, the most frequent reasons.",
        {"source": "source", "reason": "reason", "rejects": "records"},
    )


def _outcomes(facts: Facts, figures: Figures) -> Markup:
    known = facts.sessions.filter(pl.col("n") > 0)
    if known.is_empty():
        return EMPTY
    versions = known.group_by("executor_version").agg(pl.col("s", "n").sum())
    body = figures.add(charts.outcomes(versions, by="executor_version"), fit=760)
    if known["scope"].n_unique() > 1:
        body += _by_scope(known)
    if facts.configurations.height:
        mixed = _folded(facts.configurations)
        several = mixed["executor_version"].n_unique()
        body += tag(
            "div",
            tag("h3", "A version is not one thing"),
            tag(
                "p",
                f"The sessions of {several:,} {'version' if several == 1 else 'versions'} were not all run in the "
                "same way: a difference between versions may come from what is listed here, not from the version.",
            ),
            class_="caution",
        )
        more = mixed.height - TOP
        body += table(
            mixed.head(TOP),
            "Settings with more than one value within a version, and the sessions that had each."
            + (f" {more:,} more are left out." if more > 0 else ""),
            {"executor_version": "executor version", "setting": "setting", "values": "values"},
        )
    silent, failed = (int(known[name].sum()) for name in ("failed_without_error", "failed_with_calls"))
    if failed:
        body += tag("p", _silent(silent, failed, int((known["n"] - known["s"]).sum())))
    return body


def _silent(silent: int, failed: int, all_failed: int) -> str:
    """How many of the failed sessions that made calls had no failed call, in words.

    Example:
        >>> _silent(0, 40, 40)
        'All 40 failed sessions had at least one failed call.'
        >>> _silent(12, 40, 50)
        '12 of the 40 failed sessions that made calls had no failed call.'
    """
    which = "" if failed == all_failed else " that made calls"
    if failed == 1:
        return f"The one failed session{which} had {'no' if silent else 'at least one'} failed call."
    if silent == 0:
        return f"All {failed:,} failed sessions{which} had at least one failed call."
    if silent == failed:
        return f"None of the {failed:,} failed sessions{which} had a failed call."
    return f"{silent:,} of the {failed:,} failed sessions{which} had no failed call."


def _by_scope(known: pl.DataFrame) -> Markup:
    """The same by scope, since a difference of the whole can come from one part alone."""
    largest = known.sort(["n", "scope", "executor_version"], descending=[True, False, False]).head(TOP)
    parts = with_interval(largest.sort("scope", "executor_version")).with_columns(
        pl.col("executor_version").fill_null("(none)"), record=pl.format("{}/{}", "s", "n")
    )
    more = known.height - parts.height
    return table(
        parts,
        "Sessions that succeeded, by scope and version, with the 95 % interval of the share."
        + (f" The {more:,} smallest groups are left out." if more else ""),
        {"scope": "scope", "executor_version": "executor version", "record": "succeeded", "rate": "share"},
        bar=("rate", "low", "high"),
    )


def _folded(configurations: pl.DataFrame) -> pl.DataFrame:
    """One row per version and setting, its values in words."""
    where = pl.when(pl.col("scopes") != "").then(pl.format(" ({})", "scopes")).otherwise(pl.lit(""))
    value = pl.col("value").map_elements(lambda text: short(text, _VALUE_CHARS), return_dtype=pl.String)
    return (
        configurations.with_columns(
            pl.col("executor_version").fill_null("(none)"), words=pl.format("{}: {}{}", value, "sessions", where)
        )
        .group_by("executor_version", "setting", maintain_order=True)
        .agg(pl.col("words").str.join("; ").alias("values"))
    )


def _procedures(facts: Facts, figures: Figures) -> Markup:
    ranked = facts.ranked
    if ranked.is_empty():
        return EMPTY
    body = tag(
        "p",
        "A procedure is what a session did: which executors it called and how they followed each other. Done again in "
        "another way, it becomes a new version, which starts from its parent's record and then earns its own. With few "
        "runs the interval is wide: believe the interval, not the dot.",
    )
    shown = ranked.head(TOP).with_columns(
        pl.int_range(1, pl.len() + 1).alias("place"),
        pl.format("{}/{}", "s", "n").alias("record"),
        pl.format(
            "{} to {} %", *((pl.col(end) * 100).round().cast(pl.Int64) for end in ("rate_low", "rate_high"))
        ).alias("interval"),
        pl.col("question").map_elements(lambda words: short(words, 72), return_dtype=pl.String),
    )
    body += table(
        shown,
        f"The first {shown.height:,} of {ranked.height:,} procedures. Ties: more runs, then newer.",
        {
            "place": "",
            "question": "question",
            "version": "version",
            "scope": "scope",
            "record": "succeeded",
            "rate": "rate",
            "interval": "95 % interval",
            "prior_source": "prior from",
        },
        bar=("rate", "rate_low", "rate_high"),
    )
    return body + figures.add(charts.lineage(ranked, top=12))


def _edges(mem: Memory, facts: Facts, figures: Figures) -> Markup:
    active = facts.mnests.filter(pl.col("state") == "active")
    faded = _faded(facts.mnests)
    if active.is_empty():
        return tag("p", faded) if faded else EMPTY
    body = tag(
        "p",
        "An edge grows with every passing (the output of one executor, then a call of the next) and fades with time. "
        "It is telemetry: it proves nothing by itself, and a session that is stuck strengthens an edge as well as one "
        "that works. Compare passings with sessions.",
    )
    body += figures.add(charts.edge_weights(facts.mnests))
    src, dst = (
        pl.col(end).map_elements(_short_version, return_dtype=pl.String) for end in ("src_version", "dst_version")
    )
    heaviest = strongest_edges(mem, facts.mnests, TOP).with_columns(
        # The instant of a passing without a time tells the order only.
        pl.when(~pl.col("untimed").fill_null(value=False))
        .then(pl.col("ts_used").dt.strftime("%Y-%m-%d %H:%M"))
        .alias("last_used"),
        pl.when(pl.col("src_version") == pl.col("dst_version"))
        .then(src)
        .otherwise(pl.format("{} → {}", src, dst))
        .alias("version"),
    )
    if faded:
        body += tag("p", faded)
    body += table(
        heaviest,
        f"The {min(TOP, active.height):,} heaviest of {active.height:,} active edges; at the same weight (to three "
        "decimals), those with more passings. Times are UTC.",
        {
            "src_executor": "from",
            "dst_executor": "to",
            "version": "version",
            "weight_at": "weight",
            "uses": "passings",
            "sessions": "sessions",
            "last_used": "last passing",
        },
    )
    versions = _two_versions(active, facts.version_sources)
    if versions:
        first, second = versions
        body += figures.add(
            charts.edge_diff(
                facts.mnests.filter(pl.col("src_version") == first),
                facts.mnests.filter(pl.col("src_version") == second),
                names=(_short_version(first), _short_version(second)),
                min_uses=5,
            )
        )
    return body


def _short_version(version: str) -> str:
    return short(version, 24)


def _faded(mnests: pl.DataFrame) -> str:
    """Which edges are not active, and how to see them; empty, if all are."""
    others = not_shown(mnests, ["active"])
    return f"{others.removesuffix(' too.')} in charts.edge_weights." if others else ""


def _two_versions(active: pl.DataFrame, version_sources: pl.DataFrame) -> Sequence[str]:
    """The two busiest versions of the busiest source, the earlier one first; none, if they carry less than half of it.

    Only versions that one source alone has: a difference between sources would else look like one of versions. Edges
    that no log tells of count as one source. What has no version is no version to compare.
    """
    alone = version_sources.group_by("version").agg(pl.col("source").first(), pl.len().alias("sources"))
    used = (
        active.filter(pl.col("src_version") != UNVERSIONED)
        .group_by("src_version")
        .agg(pl.col("uses").sum(), pl.col("ts_first").min())
        .join(alone, left_on="src_version", right_on="version", how="left")
        .filter(pl.col("sources").fill_null(1) == 1)
        .sort(["uses", "src_version"], descending=[True, False])
        .with_columns(pl.col("uses").sum().over("source").alias("of_source"))
    )
    busiest = used.group_by("source", maintain_order=True).head(2)
    pairs = busiest.filter(pl.len().over("source") == 2).with_columns(pair=pl.col("uses").sum().over("source"))
    best = pairs.filter(pl.col("pair") >= 0.5 * pl.col("of_source")).sort(
        ["pair", "source", "ts_first", "src_version"], descending=[True, False, False, False]
    )
    return best.head(2)["src_version"].to_list()


def _failures(facts: Facts, figures: Figures) -> Markup:
    if facts.errors.filter(pl.col("s") > 0).is_empty():
        return EMPTY
    return figures.add(charts.tool_errors(facts.errors), fit=760)


def _nights(facts: Facts, figures: Figures) -> Markup:
    if facts.ager_runs.is_empty():
        return EMPTY
    return figures.add(charts.ager_nights(facts.ager_runs))


def _writes(facts: Facts, figures: Figures) -> Markup:
    if facts.changes.is_empty():
        return EMPTY
    return figures.add(charts.change_timeline(facts.changes), fit=720)


def _notes(facts: Facts) -> Markup:
    notes = [
        "Telemetry proves nothing by itself: an edge says that one call came after another, not that it helped.",
        "A rate is a belief: few runs, a wide interval. Versions whose intervals overlap widely are not told apart.",
        "Weights are as of each edge's last update; charts and tables say what they leave out.",
        "Runs with an unknown outcome count neither way.",
    ]
    untimed = int(facts.sources["untimed"].sum())
    untold = int(facts.sources["untold"].sum())
    unknown = int(facts.sessions["unknown"].sum())
    if untimed:
        notes.append(
            f"{untimed:,} calls have no time in the log: they have an order only, and nothing faded between them."
        )
    if untold:
        notes.append(
            f"{untold:,} calls do not say whether they succeeded, and are left out of the shares of failed calls."
        )
    if unknown:
        notes.append(f"{unknown:,} sessions do not say how they ended, and are left out of the shares of successes.")
    return tag("ul", joined(tag("li", note) for note in notes), class_="notes")
