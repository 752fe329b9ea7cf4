"""Sessions in two groups: what a log's sessions are, and which group each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from mnemokit.errors import InvalidInput, NotEnoughData
from mnemokit.turns.frame import check_turns

OUTCOME_KEYS = ("reward", "termination_reason")
"""Keys of a session's meta that say how it went, not what it was."""


@dataclass(frozen=True)
class Groups:
    """A log whose sessions are in two groups.

    Attributes:
        turns: Canonical turns of the sessions in either group, with columns ``session`` (number) and ``group``.
        sessions: One row per session: ``session, source, session_id, group, scope, question, outcome, ts, all_ok,
            steps`` and the keys of meta as ``meta.<key>``.
        by: What the groups are by.
        a: The first group ...
        b: ... and the second: differences are b less a.
    """

    turns: pl.DataFrame
    sessions: pl.DataFrame
    by: str
    a: str
    b: str


@dataclass(frozen=True)
class OneGroup:
    """A log whose sessions are all alike in what they were to be told apart by.

    Attributes:
        turns: Canonical turns of its sessions: of those with the one value, or of all where none has a value.
        why: Why there are not two groups, in one line.
    """

    turns: pl.DataFrame
    why: str


def two_groups(turns: pl.DataFrame, by: str, groups: Sequence[str] | None = None) -> Groups:
    """Put the sessions of a log in two groups; arguments as `split_sessions`.

    Raises:
        InvalidInput: If there is no such column, or not exactly two groups are named.
        NotEnoughData: If there are not two groups, or one of them has no session.
    """
    split = split_sessions(turns, by, groups)
    if isinstance(split, OneGroup):
        raise NotEnoughData(split.why)
    return split


def split_sessions(turns: pl.DataFrame, by: str, groups: Sequence[str] | None = None) -> Groups | OneGroup:
    """Put the sessions of a log in two groups, or in one where there are not two.

    Args:
        turns: A frame of turns.
        by: A column of turns (``executor_version``, ``scope``, ``source``, ``user_id``, ``session_outcome``) or a key
            of their meta, ``meta.<key>``. A session belongs where its first row with a value says.
        groups: The two values; None takes the two with the most sessions, in order of time.

    Raises:
        InvalidInput: If there is no such column, or not exactly two groups are named.
        NotEnoughData: If a group that was named has no session, or the log has none at all.
    """
    sessions = sessions_of(turns)
    if by not in sessions.columns:
        raise InvalidInput(f"sessions cannot be grouped by {by!r}; there are {', '.join(_grouping(sessions))}")
    labelled = sessions.with_columns(group=pl.col(by).cast(pl.String))
    found = _largest(labelled) if groups is None else _named(groups)
    if len(found) < 2:
        why = (
            f"{by} has {len(found)} value{'' if len(found) == 1 else 's'} among {sessions.height} sessions; "
            "two are needed to compare"
        )
        if sessions.is_empty():
            raise NotEnoughData(why)
        alone = labelled.filter(pl.col("group").is_in(found)) if found else labelled
        rows = numbered_turns(turns).join(alone.select("session"), on="session", how="semi", maintain_order="left")
        return OneGroup(rows.drop("session"), why)
    a, b = found
    kept = labelled.filter(pl.col("group").is_in([a, b]))
    for name in (a, b):
        if kept.filter(group=name).is_empty():
            raise NotEnoughData(f"no session has {by} = {name!r}; there is nothing to compare")
    rows = numbered_turns(turns).join(kept.select("session", "group"), on="session", maintain_order="left")
    return Groups(rows, kept, by, a, b)


def numbered_turns(turns: pl.DataFrame) -> pl.DataFrame:
    """Canonical turns with a session number, in the order of their sessions' first rows."""
    rows = check_turns(turns)
    return rows.with_columns(session=pl.struct("source", "session_id").rank("dense").cast(pl.Int64) - 1)


def sessions_of(turns: pl.DataFrame) -> pl.DataFrame:
    """One row per session, as in `Groups.sessions` without the group."""
    rows = numbered_turns(turns)
    keys = meta_keys(rows)
    step = pl.col("executor").is_not_null()
    return (
        rows.group_by("session", maintain_order=True)
        .agg(
            pl.col("source", "session_id", "user_id").first(),
            pl.col("executor_version", "scope", "question", "requestor").drop_nulls().first(),
            outcome=pl.col("session_outcome").drop_nulls().last(),
            ts=pl.col("ts").min(),
            all_ok=pl.col("ok").filter(step).fill_null(value=True).all(),
            steps=step.sum().cast(pl.Int64),
            meta=pl.col("meta").drop_nulls().first(),
        )
        .with_columns(
            session_outcome="outcome",
            **{f"meta.{key}": pl.col("meta").str.json_path_match(f"$.{key}") for key in keys},
        )
        .drop("meta")
        .sort("session")
    )


def meta_keys(turns: pl.DataFrame) -> list[str]:
    """Keys that the meta of a log has, plain names only."""
    found = (
        turns.select(pl.col("meta").drop_nulls().unique(maintain_order=True).head(1000))
        .to_series()
        .str.extract_all(r'"[A-Za-z_][A-Za-z0-9_]*"\s*:')
        .explode()
        .drop_nulls()
        .str.extract(r'"(.*)"')
        .unique()
        .sort()
    )
    return found.to_list()


def _named(groups: Sequence[str]) -> list[str]:
    if len(groups) != 2 or groups[0] == groups[1]:
        raise InvalidInput(f"name two different groups, not {list(groups)}; nothing was compared")
    return [str(name) for name in groups]


def _largest(sessions: pl.DataFrame) -> list[str]:
    """The two groups with most sessions, in order of time; fewer if there are not two."""
    return (
        sessions.drop_nulls("group")
        .group_by("group")
        .agg(n=pl.len(), ts=pl.col("ts").min())
        .sort("n", "group", descending=[True, False])
        .head(2)
        .sort("ts", "group", nulls_last=True)["group"]
        .to_list()
    )


def _grouping(sessions: pl.DataFrame) -> list[str]:
    fixed = ["executor_version", "scope", "source", "user_id", "requestor", "session_outcome"]
    return fixed + [name for name in sessions.columns if name.startswith("meta.")]
