"""The five ways to write traces, as pure functions: the traces as they are in, what the write does to them out.

A frame of states (``STATE``) has a row per trace; a frame of effects (``EFFECT``) has a row per trace that a write
creates, changes, deletes or finds there already (``resolved``), in order, with the trace as it is afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Protocol

import polars as pl

from mnemokit.errors import NotFound

INSTANT = pl.Datetime("us", "UTC")

STATE: dict[str, pl.DataType] = {
    "trace_id": pl.String(),
    "brain_id": pl.String(),
    "type": pl.String(),
    "scope": pl.String(),
    "content": pl.String(),
    "content_hash": pl.String(),
    "tags": pl.List(pl.String()),
    "metadata": pl.String(),
    "parents": pl.List(pl.String()),
    "ts_created": INSTANT,
    "ts_updated": INSTANT,
    "untimed": pl.Boolean(),
    "seq": pl.Int64(),
}
"""A trace. ``metadata`` is JSON text; ``seq`` orders traces by arrival and is null until a new one is stored."""

LIVE: dict[str, pl.DataType] = {**STATE, "ts_state": INSTANT}
"""A live trace, with the instant from which it is as it is."""

EFFECT: dict[str, pl.DataType] = {"action": pl.String(), **STATE, "ts": INSTANT}

_GONE = [name for name in STATE if name != "trace_id"]


class Operation(Protocol):
    """A way to write traces."""

    @property
    def name(self) -> str:
        """What the log calls it."""
        ...

    @property
    def targets(self) -> tuple[str, ...]:
        """Traces that it replaces: they are given to ``effects`` as they are."""
        ...

    @property
    def parents(self) -> tuple[str, ...]:
        """Traces that its new words are said to be made from."""
        ...

    @property
    def resolves(self) -> bool:
        """Does a new trace whose words are there already resolve to the one there?"""
        ...

    def effects(self, current: pl.DataFrame, brain_id: str, at: datetime) -> pl.DataFrame:
        """What the write means to do, given its targets as they are (``LIVE``)."""
        ...


@dataclass(frozen=True, slots=True)
class Add:
    """New traces, one per content."""

    trace_ids: tuple[str, ...]
    contents: tuple[str, ...]
    type: str
    scope: str | None
    tags: tuple[str, ...]
    metadata: str | None
    parents: tuple[str, ...]
    name: str = "add"
    targets: tuple[str, ...] = ()
    resolves: bool = True

    def effects(self, current: pl.DataFrame, brain_id: str, at: datetime) -> pl.DataFrame:  # noqa: ARG002 - no targets
        """Every content becomes a trace."""
        rows = [
            _new(trace_id, brain_id, self.type, self.scope, content, self.tags, self.metadata, self.parents, at)
            for trace_id, content in zip(self.trace_ids, self.contents, strict=True)
        ]
        return pl.DataFrame(rows, schema=EFFECT)


@dataclass(frozen=True, slots=True)
class Update:
    """Some fields of one trace are replaced; those not given stay."""

    trace_id: str
    fields: Mapping[str, object]
    parents: tuple[str, ...] = ()
    name: str = "update"
    resolves: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """The trace."""
        return (self.trace_id,)

    def effects(self, current: pl.DataFrame, brain_id: str, at: datetime) -> pl.DataFrame:  # noqa: ARG002 - it stays
        """The trace with its new fields."""
        _need_all(self.targets, current)
        return _with_fields(_touched(current, at, "changed"), self.fields)


@dataclass(frozen=True, slots=True)
class Delete:
    """Traces are deleted; one that is not there is planned, but nothing happens to it."""

    trace_ids: tuple[str, ...]
    name: str = "delete"
    parents: tuple[str, ...] = ()
    resolves: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """The traces."""
        return self.trace_ids

    def effects(self, current: pl.DataFrame, brain_id: str, at: datetime) -> pl.DataFrame:  # noqa: ARG002 - none is made
        """All of them go."""
        wanted = pl.DataFrame({"trace_id": self.trace_ids}, schema={"trace_id": pl.String})
        return _deleted(wanted.join(current, on="trace_id", how="left", maintain_order="left"), at)


@dataclass(frozen=True, slots=True)
class Merge:
    """Traces become one new trace that names them as its parents, and are deleted."""

    new_id: str
    trace_ids: tuple[str, ...]
    content: str | None = None
    type: str | None = None
    scope: str | EllipsisType | None = ...
    tags: tuple[str, ...] | None = None
    metadata: str | None = None
    name: str = "merge"
    parents: tuple[str, ...] = ()
    resolves: bool = True

    @property
    def targets(self) -> tuple[str, ...]:
        """The traces that are merged."""
        return self.trace_ids

    def effects(self, current: pl.DataFrame, brain_id: str, at: datetime) -> pl.DataFrame:
        """One new trace; without content of its own it joins the texts in order, a line break between them."""
        _need_all(self.trace_ids, current)
        wanted = pl.DataFrame({"trace_id": self.trace_ids}, schema={"trace_id": pl.String})
        merged = wanted.join(current, on="trace_id", how="left", maintain_order="left")
        first = merged.row(0, named=True)
        united = merged["tags"].explode(empty_as_null=False, keep_nulls=False).unique(maintain_order=True).to_list()
        new = _new(
            self.new_id,
            brain_id,
            first["type"] if self.type is None else self.type,
            first["scope"] if isinstance(self.scope, EllipsisType) else self.scope,
            "\n".join(merged["content"].drop_nulls().to_list()) if self.content is None else self.content,
            tuple(united) if self.tags is None else self.tags,
            self.metadata,
            self.trace_ids,
            at,
        )
        return pl.concat([pl.DataFrame([new], schema=EFFECT), _deleted(merged, at)])


@dataclass(frozen=True, slots=True)
class RollingSummary:
    """The summary so far is replaced by a newer one; the first one is a new trace."""

    new_id: str
    content: str
    scope: str | None
    tags: tuple[str, ...]
    metadata: str | None
    parents: tuple[str, ...]
    name: str = "rolling_summary"
    targets: tuple[str, ...] = ()
    resolves: bool = False
    type: str = "summary"

    def effects(self, current: pl.DataFrame, brain_id: str, at: datetime) -> pl.DataFrame:
        """``current`` holds the summary so far, or nothing."""
        if current.is_empty():
            new = _new(
                self.new_id, brain_id, self.type, self.scope, self.content, self.tags, self.metadata, self.parents, at
            )
            return pl.DataFrame([new], schema=EFFECT)
        fields = {
            "content": self.content,
            "metadata": self.metadata,
            "tags": list(self.tags),
            "parents": list(self.parents),
        }
        return _with_fields(_touched(current.head(1), at, "changed"), fields)


def settle(planned: pl.DataFrame, current: pl.DataFrame, twins: pl.DataFrame, *, resolves: bool) -> pl.DataFrame:
    """What really happens of a plan.

    Args:
        planned: The effects that a write means to have.
        current: Its targets as they are.
        twins: Columns trace_id, twin_id: planned new traces whose words are there already, and where.
        resolves: Does this kind of write resolve new traces to those that are there?

    Returns:
        The effects: a new trace whose words are there already, or twice in the plan, becomes ``resolved`` and has the
        id of the trace that holds them; what is not there is not deleted.
    """
    happens = planned.join(current.select("trace_id", there=True), on="trace_id", how="left", maintain_order="left")
    happens = happens.filter((pl.col("action") == "created") | pl.col("there")).drop("there")
    if not resolves:
        return happens
    created = pl.col("action") == "created"
    first = pl.when(created).then(pl.col("trace_id").first().over("action", "content"))
    happens = happens.join(twins, on="trace_id", how="left", maintain_order="left").with_columns(
        twin_id=pl.coalesce(pl.when(created).then(pl.col("twin_id")), pl.when(first != pl.col("trace_id")).then(first))
    )
    found = pl.col("twin_id").is_not_null()
    return happens.with_columns(
        action=pl.when(found).then(pl.lit("resolved")).otherwise("action"),
        trace_id=pl.coalesce("twin_id", "trace_id"),
        **{name: pl.when(~found).then(pl.col(name)) for name in _GONE},
    ).drop("twin_id")


def content_hash(content: str) -> str:
    """SHA-256 of the words in UTF-8: equal exactly for texts that are equal code point by code point.

    Example:
        >>> content_hash("")[:8]
        'e3b0c442'
    """
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def _new(
    trace_id: str,
    brain_id: str,
    kind: str,
    scope: str | None,
    content: str,
    tags: tuple[str, ...],
    metadata: str | None,
    parents: tuple[str, ...],
    at: datetime,
) -> dict[str, object]:
    return {
        "action": "created",
        "trace_id": trace_id,
        "brain_id": brain_id,
        "type": kind,
        "scope": scope,
        "content": content,
        "content_hash": content_hash(content),
        "tags": list(tags),
        "metadata": metadata,
        "parents": list(parents),
        "ts_created": at,
        "ts_updated": at,
        "untimed": False,
        "seq": None,
        "ts": at,
    }


def _touched(current: pl.DataFrame, at: datetime, action: str) -> pl.DataFrame:
    """The traces, written now: a write dated before a trace's latest one counts from that one on."""
    ts = pl.max_horizontal(pl.lit(at, dtype=INSTANT), pl.col("ts_state"))
    return current.with_columns(action=pl.lit(action), ts_updated=ts, ts=ts).select(list(EFFECT))


def _with_fields(traces: pl.DataFrame, fields: Mapping[str, object]) -> pl.DataFrame:
    new = dict(fields)
    if isinstance(new.get("content"), str):
        new["content_hash"] = content_hash(str(new["content"]))
    return traces.with_columns(
        **{name: pl.lit(pl.Series([value], dtype=STATE[name])).first() for name, value in new.items()}
    )


def _deleted(current: pl.DataFrame, at: datetime) -> pl.DataFrame:
    gone = {name: pl.lit(None, dtype=STATE[name]) for name in _GONE}
    return _touched(current, at, "deleted").with_columns(**gone)


def _need_all(wanted: tuple[str, ...], current: pl.DataFrame) -> None:
    missing = set(wanted) - set(current["trace_id"].to_list())
    if missing:
        raise NotFound(f"there is no trace {min(missing)!r}; nothing was written; mem.frame('traces') has those there")
