"""Langfuse exports: a trace with its observations, or observations one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

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
    need_obj,
    objects,
    text,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.readers.chat import call_names
from mnemokit.turns.sniff import Head
from mnemokit.turns.spans import Span, is_later_event, tool_of, write_spans


@dataclass(frozen=True, slots=True)
class LangfuseReader:
    """Reader of Langfuse exports.

    Session: ``sessionId`` of the trace, else the trace. A step is an observation of type TOOL, or, in older
    exports, a SPAN that is one by its OpenTelemetry attributes, by its output (a tool message), or because a model
    of the trace called a tool of that name. Step: microseconds of ``startTime``, since observations come in no
    order. Tools of one parent that overlap are parallel. Version: the observation's, else the trace's. ``latency``
    is not used.
    """

    name: str = "langfuse"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise a trace with observations, or an observation."""
        first = head.items[0] if head.items else (head.lines[0] if head.lines else head.document)
        for value in (head.document, first):
            observations = objects(value.get("observations")) or [value]
            if any({"traceId", "startTime", "type"} <= item.keys() for item in observations[:1]):
                return "observations with traceId, startTime and type, as Langfuse exports them"
            if "trace" in value and dig(value, "trace", "projectId") is not None:
                return "a JSON document with trace and observations, as Langfuse exports it"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of lines, or one for the document."""
        builder = Builder(self.name, str(path), options)
        census = SessionCensus(builder)
        loose_calls = _called_by_loose_observations(path)
        waiting: list[Span] = []
        for place, line, value in read_values(path):
            traces = [value] if as_obj(value) is not None else as_list(value)
            if line is None and not any(_is_trace(item) for item in traces):
                raise CorruptLog(f"{path}: no Langfuse trace (no observations); nothing was read")
            if isinstance(value, BadRecord) or not traces:
                reason = str(value) if isinstance(value, BadRecord) else "a line that is no object"
                builder.reject(place, reason, line.raw if line else "null")
                continue
            for where, trace, observation, called in _observations(traces, place, loose_calls):
                _add(builder, census, waiting, trace, observation, called, where)
            if len(waiting) + builder.rows >= options.batch_rows or builder.full:
                write_spans(waiting)
                yield builder.batch()
        write_spans(waiting)
        census.close()
        yield builder.batch()


def _is_trace(value: object) -> bool:
    obj = as_obj(value) or {}
    return isinstance(obj.get("observations"), list) or "traceId" in obj


def _called_by_loose_observations(path: Path) -> set[str]:
    """Names of the tools that models call, in a file of observations one by one."""
    found: set[str] = set()
    for _, _, value in read_values(path):
        for item in objects([value] if as_obj(value) is not None else value):
            if "traceId" in item:
                found |= call_names(_opened(item.get("output")))
    return found


def _observations(
    traces: list[object], place: str, loose_calls: set[str]
) -> Iterator[tuple[str, Obj, object, set[str]]]:
    """Place, trace, observation and the tools that models of the trace call, for every observation."""
    for index, item in enumerate(traces):
        where = place if len(traces) == 1 else f"{place}[{index}]"
        value = as_obj(item) or {}
        listed = list_or_none(value.get("observations"))
        if listed is None:
            yield where, {}, item, loose_calls
            continue
        trace = as_obj(value.get("trace")) or value
        called = call_names([_opened(dig(one, "output")) for one in listed])
        if not listed:
            yield f"{where}.trace", trace, {}, called
        for number, one in enumerate(listed):
            yield f"{where}.observations[{number}]", trace, one, called


def _add(
    builder: Builder,
    census: SessionCensus,
    spans: list[Span],
    trace: Obj,
    item: object,
    called: set[str],
    place: str,
) -> None:
    """Sort one observation: a tool call, a message, or a reject."""
    try:
        observation = need_obj(item, "the observation")
        session = _session(builder, trace, observation)
        started = instant(
            observation.get("startTime") or trace.get("timestamp"), "startTime", builder.options.zone_or_utc()
        )
        tool = _tool(observation, called)
        if tool is None:
            census.message(session, started)
            return
        started = need(started, "startTime")
        ended = instant(observation.get("endTime"), "endTime", builder.options.zone_or_utc()) or started
        spans.append(
            Span(
                session,
                span_id=name(observation.get("id"), "id"),
                parent_id=name_or_none(observation.get("parentObservationId"), "parentObservationId"),
                start_us=to_us(started),
                end_us=to_us(ended),
                executor=name(tool, "name"),
                executor_version=name_or_none(
                    observation.get("version") or trace.get("version") or trace.get("release"), "version"
                ),
                ok=observation.get("level") != "ERROR",
                arguments=observation.get("input"),
                result=observation.get("output"),
            )
        )
        census.called(session.session_id)
    except BadRecord as bad:
        builder.reject(place, str(bad), as_text(item) or "null", _user(trace))


def _session(builder: Builder, trace: Obj, observation: Obj) -> OpenSession:
    trace_id = trace.get("id") or observation.get("traceId")
    session_id = trace.get("sessionId") or observation.get("sessionId") or trace_id
    question = (
        text(_opened(trace.get("input")), "input")
        if builder.options.text and isinstance(_opened(trace.get("input")), str)
        else None
    )
    return OpenSession(
        builder,
        session_id=name(session_id, "traceId"),
        user_id=name_or_none(trace.get("userId") or observation.get("userId"), "userId"),
        scope=name_or_none(trace.get("name") or observation.get("traceName"), "name"),
        question=question,
        meta=meta_text(
            (("trace_id", trace_id), ("environment", trace.get("environment") or observation.get("environment")))
        ),
    )


def _tool(observation: Obj, called: set[str]) -> str | None:
    label = observation.get("name")
    label = label if isinstance(label, str) else ""
    attributes = as_obj(dig(_opened(observation.get("metadata")), "attributes")) or {}
    tool = tool_of(label, attributes)
    if tool is not None:
        return tool
    if observation.get("type") == "TOOL":
        return None if is_later_event(label) else label
    if observation.get("type") != "SPAN":
        return None
    output = as_obj(_opened(observation.get("output"))) or {}
    if label and (label in called or (output.get("type") == "tool" and output.get("name") == label)):
        return label
    return None


def _user(trace: Obj) -> str | None:
    user = trace.get("userId")
    return user if isinstance(user, str) and user else None


def _opened(value: object) -> object:
    """A value that may be logged as JSON text."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return cast("object", json.loads(value))
        except (ValueError, RecursionError):
            return value
    return value
