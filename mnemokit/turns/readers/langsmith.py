"""LangSmith run exports: JSON lines, a list, or the bodies that its client sends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.instants import to_us
from mnemokit.turns.builder import Builder, OpenSession, SessionCensus
from mnemokit.turns.documents import read_values
from mnemokit.turns.fields import BadRecord, as_list, as_obj, as_text, dig, instant, meta_text, name, name_or_none, need
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head
from mnemokit.turns.spans import Span, write_spans

_DOTTED = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})(\d{6})Z")
_THREAD_KEYS = ("session_id", "thread_id", "conversation_id")


@dataclass(frozen=True, slots=True)
class LangSmithReader:
    """Reader of LangSmith runs.

    A step is a run with ``run_type`` ``tool``. Session: the thread in ``extra.metadata`` (``session_id``,
    ``thread_id`` or ``conversation_id``), else the trace; the run's own ``session_id`` is the project's. Step:
    microseconds of ``start_time`` (naive ones are UTC), else of the run's own part of ``dotted_order``; runs of one
    parent that overlap are parallel. A call failed if it has an ``error``. Version: ``extra.metadata.revision_id``.
    Scope: the project's name. Nested ``child_runs`` are runs of their own.
    """

    name: str = "langsmith"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise a run by its keys."""
        listed = [as_obj(item) or {} for key in ("runs", "post") for item in as_list(head.document.get(key))[:1]]
        for value in [head.document, *head.lines[:1], *head.items[:1], *listed]:
            if "run_type" in value and ({"dotted_order", "trace_id", "parent_run_id", "start_time"} & value.keys()):
                return "runs with run_type and dotted_order, as LangSmith exports them"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of lines, or one for the document."""
        builder = Builder(self.name, str(path), options)
        census = SessionCensus(builder)
        waiting: list[Span] = []
        for place, line, value in read_values(path):
            if isinstance(value, BadRecord):
                builder.reject(place, str(value), line.raw if line else "")
                continue
            runs = list(_runs(value))
            if line is None and not any("run_type" in (as_obj(run) or {}) for _, run in runs):
                raise CorruptLog(f"{path}: no LangSmith runs (no run_type); nothing was read")
            for where, run in runs:
                try:
                    _add(builder, census, waiting, run)
                except BadRecord as bad:
                    builder.reject(f"{place}{where}", str(bad), as_text(run) or "null")
            if len(waiting) + builder.rows >= options.batch_rows or builder.full:
                write_spans(waiting)
                yield builder.batch()
        write_spans(waiting)
        census.close()
        yield builder.batch()


def _runs(value: object) -> Iterator[tuple[str, object]]:
    """Place and run, for every run in a value, parents before children."""
    obj = as_obj(value) or {}
    posted = as_list(obj.get("runs")) or as_list(obj.get("post"))
    waiting = [(f"[{number}]", item) for number, item in enumerate(posted or as_list(value) or [value])]
    waiting.reverse()
    while waiting:
        place, item = waiting.pop()
        yield place, item
        children = as_list((as_obj(item) or {}).get("child_runs"))
        waiting += [(f"{place}.child_runs[{number}]", child) for number, child in enumerate(children)][::-1]


def _add(builder: Builder, census: SessionCensus, waiting: list[Span], item: object) -> None:
    """Sort one run: a tool call, or a message."""
    run = as_obj(item)
    if run is None or not isinstance(run.get("run_type"), str):
        raise BadRecord("a run without run_type")
    run_id = name(run.get("id"), "id")
    dotted = run.get("dotted_order")
    dotted = dotted if isinstance(dotted, str) else ""
    metadata = as_obj(dig(run, "extra", "metadata")) or {}
    trace_id = name(run.get("trace_id") or _uuid(dotted.split(".")[0]) or run_id, "trace_id")
    thread = next((metadata[key] for key in _THREAD_KEYS if metadata.get(key)), None)
    session = OpenSession(
        builder,
        session_id=name(thread or trace_id, "extra.metadata.session_id"),
        executor_version=name_or_none(metadata.get("revision_id"), "extra.metadata.revision_id"),
        user_id=name_or_none(metadata.get("user_id"), "extra.metadata.user_id"),
        scope=name_or_none(run.get("session_name"), "session_name"),
        meta=meta_text((("trace_id", trace_id), ("status", run.get("status")))),
    )
    zone = builder.options.zone_or_utc()
    started = instant(run.get("start_time") or _dotted_time(dotted), "start_time", zone)
    if run["run_type"] != "tool":
        census.message(session, started)
        return
    started = need(started, "start_time")
    ended = instant(run.get("end_time"), "end_time", zone)
    error = run.get("error")
    waiting.append(
        Span(
            session,
            span_id=run_id,
            parent_id=name_or_none(run.get("parent_run_id"), "parent_run_id"),
            start_us=to_us(started),
            end_us=to_us(ended or started),
            executor=name(run.get("name"), "name"),
            ok=False if error or run.get("status") == "error" else True if ended else None,
            arguments=run.get("inputs"),
            result=run.get("outputs"),
        )
    )
    census.called(session.session_id)


def _dotted_time(dotted: str) -> str | None:
    """The start that the last part of a dotted order tells.

    Example:
        >>> _dotted_time("20240919T171648037363Z3b1c.20240919T171649000001Zfe00")
        '2024-09-19T17:16:49.000001+00:00'
    """
    match = _DOTTED.match(dotted.rsplit(".", maxsplit=1)[-1])
    if match is None:
        return None
    year, month, day, hour, minute, second, micros = match.groups()
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{micros}+00:00"


def _uuid(part: str) -> str | None:
    match = _DOTTED.match(part)
    return part[match.end() :] or None if match else None
