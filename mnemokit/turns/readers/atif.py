"""ATIF, the Agent Trajectory Interchange Format: one JSON document per trajectory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.turns.builder import Builder, OpenSession
from mnemokit.turns.documents import read_json
from mnemokit.turns.fields import (
    BadRecord,
    Obj,
    as_list,
    as_obj,
    dig,
    instant,
    meta_text,
    name,
    name_or_none,
    objects,
    whole,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head

_CONTINUATION_STEPS = 1_000_000
_MAX_CONTINUATIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class AtifReader:
    """Reader of ATIF trajectories (``schema_version`` ``ATIF-v1.x``).

    Session: ``session_id``. Step: ``step_id``, moved on by the extra calls before it; the calls of one step are
    parallel. A continuation (``extra.continuation_index``) goes on a million steps later, and the context that it
    copied counts as ignored. Version: the agent's. The format does not say whether a call went well.
    """

    name: str = "atif"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the document by its schema version."""
        version = head.document.get("schema_version")
        if isinstance(version, str) and version.startswith("ATIF"):
            return f"a JSON document with schema_version {version[:20]}"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch for the whole document."""
        document = as_obj(read_json(path))
        if document is None or not isinstance(document.get("steps"), list):
            raise CorruptLog(f"{path}: not an ATIF trajectory (no list 'steps'); nothing was read")
        builder = Builder(self.name, str(path), options)
        try:
            session, start = _session(builder, document)
        except BadRecord as bad:
            raise CorruptLog(f"{path}: not an ATIF trajectory ({bad}); nothing was read") from None
        extra = 0
        for index, item in enumerate(as_list(document["steps"])):
            step = as_obj(item) or {}
            calls = as_list(step.get("tool_calls"))
            try:
                ts = instant(step.get("timestamp"), "timestamp", options.zone_or_utc())
                number = whole(step.get("step_id", index + 1), "step_id")
            except BadRecord as bad:
                session.reject(f"steps[{index}]", str(bad), item)
                continue
            if not calls or step.get("is_copied_context") is True:
                session.message(ts, max(1, len(calls)))
                continue
            first = start + number + extra
            results = _results(step)
            for position, call in enumerate(calls):
                try:
                    key = dig(call, "tool_call_id")
                    session.call(
                        turn_id=f"{session.session_id}:{start + number}",
                        step=first + position,
                        parallel_group=first,
                        executor=name(dig(call, "function_name"), "function_name"),
                        requestor="agent",
                        ts=ts,
                        arguments=dig(call, "arguments"),
                        result=results.get(key) if isinstance(key, str) else None,
                    )
                except BadRecord as bad:
                    session.reject(f"steps[{index}].tool_calls[{position}]", str(bad), call)
            extra += len(calls) - 1
        session.close()
        yield builder.batch()


def _session(builder: Builder, document: Obj) -> tuple[OpenSession, int]:
    continuation = dig(document, "agent", "extra", "continuation_index")
    session = OpenSession(
        builder,
        session_id=name(document.get("session_id"), "session_id"),
        executor_version=name_or_none(dig(document, "agent", "version"), "agent.version"),
        meta=meta_text(
            (
                ("agent", dig(document, "agent", "name")),
                ("model", dig(document, "agent", "model_name")),
                ("continuation", continuation),
            )
        ),
    )
    index = 0 if continuation is None else whole(continuation, "continuation_index")
    if not 0 <= index < _MAX_CONTINUATIONS:
        raise BadRecord(f"continuation_index is not from 0 to {_MAX_CONTINUATIONS - 1}")
    return session, index * _CONTINUATION_STEPS


def _results(step: Obj) -> dict[str, object]:
    found: dict[str, object] = {}
    for result in objects(dig(step, "observation", "results")):
        key = result.get("source_call_id")
        if isinstance(key, str):
            found[key] = result.get("content")
    return found
