"""OpenTelemetry spans: OTLP JSON, or the JSON of the Python SDK; GenAI conventions and OpenInference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.instants import from_us, to_us
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
    meta_text,
    name,
    name_or_none,
    objects,
    whole,
    within_years,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head
from mnemokit.turns.spans import Span, tool_of, write_spans

_SESSION_KEYS = (
    "gen_ai.conversation.id",
    "session.id",
    "langsmith.trace.session_id",
    "traceloop.association.properties.session_id",
)
_USER_KEYS = ("user.id", "enduser.id")
_ARGUMENT_KEYS = ("gen_ai.tool.call.arguments", "tool_arguments", "tool.parameters", "input.value")
_RESULT_KEYS = ("gen_ai.tool.call.result", "tool_response", "output.value")


@dataclass(frozen=True, slots=True)
class OtlpReader:
    """Reader of OpenTelemetry spans (OTLP JSON as document or lines, or lines of the Python SDK's ``to_json``).

    A step is a span that runs a tool: ``gen_ai.operation.name`` = ``execute_tool`` or ``openinference.span.kind`` =
    ``TOOL``. Session: ``gen_ai.conversation.id`` or ``session.id``, of the span or of another one of its trace in
    the file, else the trace. Step: microseconds of the start; spans of one parent that overlap are parallel. A call
    failed if the status is an error or ``error.type`` is set. Version: the agent's, else the service's. Scope:
    ``service.name``. The file is read twice, once for what other spans of a trace say.
    """

    name: str = "otlp"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise resourceSpans, or a span of the Python SDK."""
        for value in [head.document, *head.lines[:1], *head.items[:1]]:
            if "resourceSpans" in value or "resource_spans" in value:
                return "JSON with resourceSpans, as OTLP writes it"
            if dig(value, "context", "trace_id") is not None and "attributes" in value:
                return "JSON spans with context.trace_id, as the OpenTelemetry SDK for Python writes them"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of lines, or one for the document."""
        builder = Builder(self.name, str(path), options)
        traces = _survey(path)
        census = SessionCensus(builder)
        waiting: list[Span] = []
        for place, line, value in read_values(path):
            if isinstance(value, BadRecord):
                builder.reject(place, str(value), line.raw if line else "")
                continue
            found = list(_spans(value))
            if line is None and not found and not _is_export(value):
                raise CorruptLog(f"{path}: no OpenTelemetry spans (no resourceSpans); nothing was read")
            if not found and line is not None:
                if _is_export(value) or {"resourceMetrics", "resourceLogs"} & (as_obj(value) or {}).keys():
                    builder.ignored += 1
                else:
                    builder.reject(place, "a line without resourceSpans", line.raw)
            for where, raw, resource in found:
                _add(builder, census, waiting, traces, raw, resource, f"{place}.{where}")
            if len(waiting) + builder.rows >= options.batch_rows or builder.full:
                write_spans(waiting)
                yield builder.batch()
        write_spans(waiting)
        census.close()
        yield builder.batch()


@dataclass(slots=True)
class _Trace:
    """What the spans of a trace say together; a set with several members says nothing."""

    sessions: set[str] = field(default_factory=set[str])
    users: set[str] = field(default_factory=set[str])
    agents: set[str] = field(default_factory=set[str])
    versions: set[str] = field(default_factory=set[str])


def _survey(path: Path) -> dict[str, _Trace]:
    traces: dict[str, _Trace] = {}
    for _, _, value in read_values(path):
        for _, raw, _ in _spans(value):
            try:
                trace_id = _id(raw, "traceId", "trace_id")
            except BadRecord:
                continue
            attributes = _attributes(raw.get("attributes"))
            trace = traces.setdefault(trace_id, _Trace())
            for names, into in (
                (_SESSION_KEYS, trace.sessions),
                (_USER_KEYS, trace.users),
                (("gen_ai.agent.name",), trace.agents),
                (("gen_ai.agent.version",), trace.versions),
            ):
                said = _first(attributes, names)
                if isinstance(said, str) and said:
                    into.add(said)
    return traces


def _is_export(value: object) -> bool:
    return bool({"resourceSpans", "resource_spans"} & (as_obj(value) or {}).keys())


def _spans(value: object) -> Iterator[tuple[str, Obj, Obj]]:
    """Place, span and attributes of its resource, for every span in a value."""
    for number, item in enumerate(as_list(value) or [value]):
        obj = as_obj(item) or {}
        if "context" in obj:
            yield f"[{number}]", obj, _attributes(dig(obj, "resource", "attributes"))
        for i, group in enumerate(objects(obj.get("resourceSpans") or obj.get("resource_spans"))):
            resource = _attributes(dig(group, "resource", "attributes"))
            scopes = group.get("scopeSpans") or group.get("scope_spans") or group.get("instrumentationLibrarySpans")
            for j, scope in enumerate(objects(scopes)):
                for k, span in enumerate(as_list(scope.get("spans"))):
                    yield f"resourceSpans[{i}].scopeSpans[{j}].spans[{k}]", as_obj(span) or {}, resource


def _add(
    builder: Builder,
    census: SessionCensus,
    waiting: list[Span],
    traces: dict[str, _Trace],
    raw: Obj,
    resource: Obj,
    place: str,
) -> None:
    """Sort one span: a tool call, a message, or a reject."""
    attributes = _attributes(raw.get("attributes"))
    try:
        trace_id = _id(raw, "traceId", "trace_id")
        trace = traces.get(trace_id, _Trace())
        session = _session(builder, trace_id, trace, attributes, resource)
        start = _time(raw, "startTimeUnixNano", "start_time")
        label = raw.get("name")
        label = label if isinstance(label, str) else ""
        tool = tool_of(label, attributes)
        if tool is None:
            census.message(session, from_us(start))
            return
        end = _time(raw, "endTimeUnixNano", "end_time") if _has_end(raw) else start
        agent = attributes.get("gen_ai.agent.name") or _only(trace.agents)
        waiting.append(
            Span(
                session,
                span_id=_id(raw, "spanId", "span_id"),
                parent_id=name_or_none(raw.get("parentSpanId") or raw.get("parent_id"), "parentSpanId"),
                start_us=start,
                end_us=end,
                executor=name(tool, "the tool's name"),
                executor_version=name_or_none(
                    attributes.get("gen_ai.agent.version") or _only(trace.versions) or resource.get("service.version"),
                    "gen_ai.agent.version",
                ),
                requestor=name_or_none(agent, "gen_ai.agent.name"),
                ok=not _failed(raw, attributes),
                meta=meta_text(
                    (
                        ("trace_id", trace_id),
                        ("call_id", attributes.get("gen_ai.tool.call.id")),
                        ("error_type", attributes.get("error.type")),
                    )
                ),
                arguments=_first(attributes, _ARGUMENT_KEYS),
                result=_first(attributes, _RESULT_KEYS),
            )
        )
        census.called(session.session_id)
    except BadRecord as bad:
        user = _first(attributes, _USER_KEYS)
        builder.reject(place, str(bad), as_text(raw) or "", user if isinstance(user, str) else None)


def _session(builder: Builder, trace_id: str, trace: _Trace, attributes: Obj, resource: Obj) -> OpenSession:
    service = resource.get("service.name")
    known = isinstance(service, str) and not service.startswith("unknown_service")
    return OpenSession(
        builder,
        session_id=name(_first(attributes, _SESSION_KEYS) or _only(trace.sessions) or trace_id, "the session"),
        user_id=name_or_none(_first(attributes, _USER_KEYS) or _only(trace.users), "user.id"),
        scope=name_or_none(service if known else None, "service.name"),
        meta=meta_text((("trace_id", trace_id),)),
    )


def _attributes(value: object) -> Obj:
    """Attributes as a plain object, from OTLP's list of keys and typed values or from an object."""
    plain = as_obj(value)
    if plain is not None:
        return plain
    found: Obj = {}
    for item in objects(value):
        key = item.get("key")
        if isinstance(key, str):
            found[key] = _value(item.get("value"), 0)
    return found


def _value(value: object, depth: int) -> object:
    for kind, inner in (as_obj(value) or {}).items():
        if kind == "intValue":
            try:
                return whole(inner, kind)
            except BadRecord:
                return None
        if kind == "arrayValue" and depth < 20:
            return [_value(item, depth + 1) for item in as_list(dig(inner, "values"))]
        if kind == "kvlistValue" and depth < 20:
            return {
                str(item.get("key")): _value(item.get("value"), depth + 1) for item in objects(dig(inner, "values"))
            }
        return inner
    return None


def _first(attributes: Obj, names: tuple[str, ...]) -> object:
    return next((attributes[key] for key in names if attributes.get(key) not in (None, "")), None)


def _only(values: set[str]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def _id(raw: Obj, key: str, sdk_key: str) -> str:
    found = name(raw.get(key) or raw.get(sdk_key) or dig(raw, "context", sdk_key), key)
    return found.removeprefix("0x")  # the Python SDK writes the ids of OTLP with a prefix


def _has_end(raw: Obj) -> bool:
    return raw.get("endTimeUnixNano") not in (None, "", 0, "0") or raw.get("end_time") is not None


def _time(raw: Obj, key: str, sdk_key: str) -> int:
    """Microseconds since 1970, from nanoseconds or an ISO 8601 text."""
    nanos = raw.get(key)
    if nanos is not None:
        return to_us(within_years(from_us(whole(nanos, key) // 1000), key))
    moment = instant(raw.get(sdk_key), sdk_key, None)
    if moment is None:
        raise BadRecord(f"{key} is missing")
    return to_us(moment)


def _failed(raw: Obj, attributes: Obj) -> bool:
    code = dig(raw, "status", "code")
    words = (code, dig(raw, "status", "status_code"))
    return (
        bool(attributes.get("error.type")) or code == 2 or any(word in ("STATUS_CODE_ERROR", "ERROR") for word in words)
    )
