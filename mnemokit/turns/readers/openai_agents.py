"""Trace exports of the OpenAI Agents SDK: traces and spans, as its exporter sends them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.instants import to_us
from mnemokit.turns.builder import Builder, OpenSession, SessionCensus
from mnemokit.turns.documents import read_values
from mnemokit.turns.fields import (
    BadRecord,
    Obj,
    as_list,
    as_obj,
    as_text,
    dig,
    instant,
    list_or_none,
    meta_text,
    name,
    name_or_none,
    need,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head
from mnemokit.turns.spans import Span, write_spans


@dataclass(frozen=True, slots=True)
class OpenAIAgentsReader:
    """Reader of trace exports of the OpenAI Agents SDK (``{"data": [...]}``, a list, or lines).

    Session: the trace's ``group_id``, else the trace. Steps are spans of type ``function`` (executor: the tool) and
    ``handoff`` (executor: the agent that takes over; ``meta.handoff_from`` names the other one, for the policy
    ``handoffs``). Step: microseconds of ``started_at``; spans of one parent that overlap are parallel. A call
    failed if the span has an ``error``. Scope: the workflow's name. No versions are logged. The file is read twice,
    once for traces and agents.
    """

    name: str = "openai_agents"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise an item by its ``object``."""
        listed = [as_obj(item) or {} for item in as_list(head.document.get("data"))[:1]]
        for value in [head.document, *head.lines[:1], *head.items[:1], *listed]:
            if value.get("object") in ("trace", "trace.span") and isinstance(value.get("id"), str):
                return "traces and spans with object trace or trace.span, as the OpenAI Agents SDK exports them"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of lines, or one for the document."""
        builder = Builder(self.name, str(path), options)
        known = _survey(path)
        census = SessionCensus(builder)
        waiting: list[Span] = []
        for place, line, value in read_values(path):
            if isinstance(value, BadRecord):
                builder.reject(place, str(value), line.raw if line else "")
                continue
            items = list(_items(value))
            if line is None and not any(dig(item, "object") in ("trace", "trace.span") for item in items):
                raise CorruptLog(f"{path}: no traces or spans of the OpenAI Agents SDK; nothing was read")
            for number, item in enumerate(items):
                try:
                    _add(builder, census, waiting, known, item)
                except BadRecord as bad:
                    builder.reject(f"{place}[{number}]", str(bad), as_text(item) or "null")
            if len(waiting) + builder.rows >= options.batch_rows or builder.full:
                write_spans(waiting)
                yield builder.batch()
        write_spans(waiting)
        census.close()
        yield builder.batch()


@dataclass(slots=True)
class _Known:
    """Traces by id, and the agent of the spans that tell one (agents and their turns)."""

    traces: dict[str, Obj]
    agents: dict[str, str]


def _survey(path: Path) -> _Known:
    known = _Known({}, {})
    for _, _, value in read_values(path):
        for item in _items(value):
            obj = as_obj(item) or {}
            key = obj.get("id")
            if not isinstance(key, str):
                continue
            if obj.get("object") == "trace":
                known.traces[key] = {field: obj.get(field) for field in ("group_id", "workflow_name", "metadata")}
            is_agent = dig(obj, "span_data", "type") == "agent"
            agent = dig(obj, "span_data", "name") if is_agent else dig(obj, "span_data", "data", "agent_name")
            if isinstance(agent, str):
                known.agents[key] = agent
    return known


def _items(value: object) -> Iterator[object]:
    for item in as_list(value) or [value]:
        inner = list_or_none(dig(item, "data"))
        yield from [item] if inner is None else inner


def _add(builder: Builder, census: SessionCensus, waiting: list[Span], known: _Known, item: object) -> None:
    """Sort one item: a tool call or hand-off, or a message."""
    obj = as_obj(item)
    if obj is None or obj.get("object") not in ("trace", "trace.span"):
        raise BadRecord("an item that is neither trace nor span")
    own_id = name(obj.get("id"), "id")
    trace_id = own_id if obj.get("object") == "trace" else name(obj.get("trace_id"), "trace_id")
    trace = known.traces.get(trace_id, {})
    session = OpenSession(
        builder,
        session_id=name(trace.get("group_id") or trace_id, "group_id"),
        user_id=name_or_none(dig(trace, "metadata", "user_id"), "metadata.user_id"),
        scope=name_or_none(trace.get("workflow_name"), "workflow_name"),
        meta=meta_text((("trace_id", trace_id),)),
    )
    kind = dig(obj, "span_data", "type")
    started = instant(obj.get("started_at"), "started_at", builder.options.zone_or_utc())
    if kind not in ("function", "handoff"):
        census.message(session, started)
        return
    started = need(started, "started_at")
    ended = instant(obj.get("ended_at"), "ended_at", builder.options.zone_or_utc()) or started
    parent = name_or_none(obj.get("parent_id"), "parent_id")
    giver = name_or_none(dig(obj, "span_data", "from_agent"), "from_agent")
    handoff = kind == "handoff"
    executor = dig(obj, "span_data", "to_agent" if handoff else "name")
    waiting.append(
        Span(
            session,
            span_id=own_id,
            parent_id=parent,
            start_us=to_us(started),
            end_us=to_us(ended),
            executor=name(executor, "to_agent" if handoff else "name"),
            requestor=giver if handoff else known.agents.get(parent or ""),
            ok=obj.get("error") is None,
            meta=meta_text((("trace_id", trace_id), ("handoff_from", giver if handoff else None))),
            arguments=dig(obj, "span_data", "input"),
            result=dig(obj, "span_data", "output"),
        )
    )
    census.called(session.session_id)
