"""Tool calls told by spans: which span is one, and which of them ran side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mnemokit.instants import from_us
from mnemokit.turns.builder import OpenSession

_BEEAI_EVENT = re.compile(r"tool\.(.+)\.(start|success|finish|error|retry)-\d+")


@dataclass(frozen=True, slots=True)
class Span:
    """One tool call.

    Attributes:
        session: Its session.
        span_id: Its id, unique in the source.
        parent_id: The span around it, or None.
        start_us: Start in microseconds since 1970.
        end_us: End, or the start where it is not known.
        executor: The tool.
        executor_version: Its version, or None.
        requestor: The agent that called it, or None.
        ok: Whether it went well, or None.
        meta: JSON text of attributes.
        arguments: What went in.
        result: What came out.
    """

    session: OpenSession
    span_id: str
    parent_id: str | None
    start_us: int
    end_us: int
    executor: str
    executor_version: str | None = None
    requestor: str | None = None
    ok: bool | None = None
    meta: str | None = None
    arguments: object = None
    result: object = None


def side_by_side(spans: Iterable[Span]) -> list[tuple[Span, int]]:
    """Each span with its parallel group: spans of one parent that overlap in time, or start at once.

    A group is numbered by the start of its first span, so that it stays the same when more spans become known.

    Returns:
        Pairs of span and group, ordered by session, start and id.
    """
    ordered = sorted(spans, key=lambda span: (span.session.session_id, span.start_us, span.span_id))
    open_groups: dict[tuple[str, str | None], tuple[int, int]] = {}
    found: list[tuple[Span, int]] = []
    for span in ordered:
        key = (span.session.session_id, span.parent_id)
        start, end = open_groups.get(key, (span.start_us, -1))
        if span.start_us >= end and span.start_us != start:
            start, end = span.start_us, -1
        open_groups[key] = (start, max(end, span.end_us))
        found.append((span, start))
    return found


def tool_of(name: str, attributes: Mapping[str, object]) -> str | None:
    """The tool that a span runs by its OpenTelemetry attributes, or None if it runs none.

    Known are the GenAI conventions (``gen_ai.operation.name`` = ``execute_tool``), OpenInference
    (``openinference.span.kind`` = ``TOOL``) and the Vercel AI SDK (``ai.toolCall``). BeeAI writes several spans per
    call, one per event; only the ``start`` event counts.
    """
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    operation = attributes.get("gen_ai.operation.name", attributes.get("operation.name"))
    if kind != "TOOL" and operation not in ("execute_tool", "ai.toolCall"):
        return None
    event = _BEEAI_EVENT.fullmatch(name)
    if event is not None and event.group(2) == "start":
        return event.group(1)
    if is_later_event(name):
        return None
    for key in ("gen_ai.tool.name", "tool.name", "ai.toolCall.name"):
        found = attributes.get(key)
        if isinstance(found, str) and found:
            return found
    return name.removeprefix("execute_tool ")


def is_later_event(name: str) -> bool:
    """Whether a span only tells how a call went on that another span began (BeeAI).

    Example:
        >>> is_later_event("tool.search.wikipedia.finish-12"), is_later_event("tool.search.wikipedia.start-12")
        (True, False)
    """
    event = _BEEAI_EVENT.fullmatch(name)
    return event is not None and event.group(2) != "start"


def write_spans(spans: list[Span]) -> None:
    """Write collected spans as steps, with what ran side by side among them, and empty the list.

    Step: microseconds of the start, so that the order holds across files and batches.
    """
    for span, group in side_by_side(spans):
        span.session.call(
            turn_id=span.span_id,
            step=span.start_us,
            parallel_group=group,
            executor=span.executor,
            executor_version=span.executor_version,
            requestor=span.requestor,
            ts=from_us(span.start_us),
            ok=span.ok,
            meta=span.meta,
            arguments=span.arguments,
            result=span.result,
        )
    spans.clear()
