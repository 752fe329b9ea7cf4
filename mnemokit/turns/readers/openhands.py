"""OpenHands evaluation outputs: JSON lines, one per instance, with its whole history of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemokit.turns.builder import Builder, OpenSession
from mnemokit.turns.documents import read_lines
from mnemokit.turns.fields import (
    BadRecord,
    Obj,
    as_list,
    dig,
    flag,
    instant,
    meta_text,
    name,
    name_or_none,
    need_obj,
    objects,
    whole,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head

_NO_STEPS = frozenset({"message", "system", "recall", "null", "change_agent_state", "condensation", "pause", "resume"})


@dataclass(frozen=True, slots=True)
class OpenHandsReader:
    """Reader of OpenHands ``output.jsonl``.

    Session: ``instance_id`` and the time of its first event, because an instance recurs in every run. A step is an
    action with ``tool_call_metadata`` (else an action of the agent, by its own name); calls of one model response
    are parallel. Step: the event's ``id``. A command failed if its ``exit_code`` is not 0, another call if its
    observation is an error. Version: the language model, since neither tools nor agent have one. Naive times are
    UTC. Outcome: ``report.resolved`` where an evaluation added it.
    """

    name: str = "openhands"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise a line by its keys."""
        for line in head.lines or [head.document]:
            if "instance_id" in line and ({"history", "test_result", "instruction"} & line.keys()):
                return "JSON lines with instance_id and history, as OpenHands writes them"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of whole instances."""
        builder = Builder(self.name, str(path), options)
        for line in read_lines(path):
            try:
                instance = need_obj(line.value(), "the line")
                _read_instance(builder, instance, f"line {line.number}")
            except BadRecord as bad:
                builder.reject(f"line {line.number}", str(bad), line.raw)
            if builder.full:
                yield builder.batch()
        yield builder.batch()


def _read_instance(builder: Builder, instance: Obj, place: str) -> None:
    history = as_list(instance.get("history"))
    session = _session(builder, instance, history)
    observations = {
        observation["cause"]: observation
        for observation in objects(history)
        if observation.get("observation") is not None and isinstance(observation.get("cause"), int)
    }
    groups: dict[str, int] = {}
    for index, item in enumerate(history):
        try:
            event = need_obj(item, "the event")
            executor = _executor(event)
            if executor is None:
                session.message(instant(event.get("timestamp"), "timestamp", builder.options.zone_or_utc()))
                continue
            number = whole(event.get("id"), "id")
            observation = observations.get(number)
            response = dig(event, "tool_call_metadata", "model_response", "id")
            group = groups.setdefault(response, number) if isinstance(response, str) else number
            session.call(
                turn_id=f"{session.session_id}:{number}",
                step=number,
                parallel_group=group,
                executor=executor,
                requestor=name_or_none(event.get("source"), "source"),
                ts=instant(event.get("timestamp"), "timestamp", builder.options.zone_or_utc()),
                ok=_ok(observation),
                arguments=event.get("args"),
                result=None if observation is None else observation.get("content"),
            )
        except BadRecord as bad:
            session.reject(f"{place}, history[{index}]", str(bad), item)
    session.close()


def _session(builder: Builder, instance: Obj, history: list[object]) -> OpenSession:
    key = name(instance.get("instance_id"), "instance_id")
    began = dig(history[0], "timestamp") if history else None
    resolved = flag(dig(instance, "report", "resolved"), "report.resolved")
    error = instance.get("error")
    return OpenSession(
        builder,
        session_id=name(f"{key}@{began}" if isinstance(began, str) else key, "instance_id"),
        executor_version=name_or_none(dig(instance, "metadata", "llm_config", "model"), "metadata.llm_config.model"),
        scope=name_or_none(dig(instance, "metadata", "dataset"), "metadata.dataset"),
        question=key,
        outcome=None if resolved is None else "success" if resolved else "failure",
        meta=meta_text(
            (
                ("agent", dig(instance, "metadata", "agent_class")),
                ("git_commit", dig(instance, "metadata", "git_commit")),
                ("error", error.split(":")[0] if isinstance(error, str) and error else None),
            )
        ),
    )


def _executor(event: Obj) -> str | None:
    action = event.get("action")
    if not isinstance(action, str) or event.get("observation") is not None:
        return None
    called = dig(event, "tool_call_metadata", "function_name")
    if called is not None:
        return name(called, "tool_call_metadata.function_name")
    if event.get("source") == "agent" and action not in _NO_STEPS:
        return name(action, "action")
    return None


def _ok(observation: Obj | None) -> bool | None:
    if observation is None:
        return None
    code = dig(observation, "extras", "metadata", "exit_code")
    if isinstance(code, int) and not isinstance(code, bool):
        return code == 0
    return observation.get("observation") != "error"
