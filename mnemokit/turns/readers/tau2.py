"""tau2-bench: one JSON document per run, with simulations of an agent, a user and their tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.turns.builder import Builder, OpenSession
from mnemokit.turns.documents import read_json
from mnemokit.turns.fields import (
    BadRecord,
    Obj,
    as_list,
    as_obj,
    as_text,
    dig,
    flag,
    instant,
    meta_text,
    name,
    name_or_none,
    number_or_none,
    objects,
    text,
    whole,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head


@dataclass(frozen=True, slots=True)
class Tau2Reader:
    """Reader of tau2-bench results (``{"info", "tasks", "simulations"}``).

    Session: the simulation. Step: the message's ``turn_idx`` plus the call's place in it; the calls of one message
    are one parallel group. Version: the agent's language model, since the tools have none. Naive times are UTC.
    """

    name: str = "tau2"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the document by its top keys."""
        info = as_obj(head.document.get("info")) or {}
        if "simulations" in head.document or {"agent_info", "environment_info"} & info.keys():
            return "a JSON document with info.agent_info, as tau2-bench writes it"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch for the whole document."""
        document = as_obj(read_json(path))
        if document is None or not isinstance(document.get("simulations"), list):
            raise CorruptLog(f"{path}: not a tau2-bench document (no list 'simulations'); nothing was read")
        builder = Builder(self.name, str(path), options)
        run = _Run.of(document)
        for index, item in enumerate(as_list(document["simulations"])):
            place = f"simulations[{index}]"
            simulation = as_obj(item)
            if simulation is None:
                builder.reject(place, "a simulation that is no object", as_text(item) or "null")
                continue
            try:
                _read_simulation(builder, run, simulation, place)
            except BadRecord as bad:
                builder.reject(place, str(bad), as_text(simulation) or "")
        yield builder.batch()


@dataclass(frozen=True, slots=True)
class _Run:
    """What a whole run has in common."""

    scope: str | None
    version: str | None
    meta: tuple[tuple[str, object], ...]

    @staticmethod
    def of(document: Obj) -> _Run:
        info = document.get("info")
        agent = dig(info, "agent_info", "implementation")
        user = dig(info, "user_info", "implementation")
        mode = "no-user" if user == "dummy_user" or agent == "llm_agent_solo" else "default"
        meta = (
            ("mode", mode),
            ("git_commit", dig(info, "git_commit")),
            ("agent", agent),
            ("user", user),
            ("user_llm", dig(info, "user_info", "llm")),
        )
        try:
            return _Run(
                name_or_none(dig(info, "environment_info", "domain_name"), "info.environment_info.domain_name"),
                name_or_none(dig(info, "agent_info", "llm"), "info.agent_info.llm"),
                meta,
            )
        except BadRecord as bad:
            raise CorruptLog(f"not a tau2-bench document ({bad}); nothing was read") from None


def _read_simulation(builder: Builder, run: _Run, simulation: Obj, place: str) -> None:
    session = _session(builder, run, simulation)
    messages = as_list(simulation.get("messages"))
    answers = _answers(messages)
    zone = builder.options.zone_or_utc()
    for index, item in enumerate(messages):
        message = as_obj(item) or {}
        calls = as_list(message.get("tool_calls"))
        if not calls:
            session.message(_instant_or_none(message, zone))
        for position, call in enumerate(calls):
            try:
                _read_call(session, message, call, position, answers, zone)
            except BadRecord as bad:
                session.reject(f"{place}.messages[{index}].tool_calls[{position}]", str(bad), call)
    session.close()


def _session(builder: Builder, run: _Run, simulation: Obj) -> OpenSession:
    reward = number_or_none(dig(simulation, "reward_info", "reward"))
    own = (
        ("trial", simulation.get("trial")),
        ("reward", reward),
        ("termination_reason", simulation.get("termination_reason")),
    )
    return OpenSession(
        builder,
        session_id=name(simulation.get("id"), "id"),
        executor_version=run.version,
        scope=run.scope,
        question=text(simulation.get("task_id"), "task_id"),
        outcome=None if reward is None else "success" if reward == 1 else "failure",
        meta=meta_text((*run.meta, *own)),
    )


def _answers(messages: list[object]) -> dict[object, Obj]:
    """Tool messages by the id of the call that they answer; one message may carry several."""
    found: dict[object, Obj] = {}
    for message in objects(messages):
        if message.get("role") == "tool":
            for answer in (message, *objects(message.get("tool_messages"))):
                key = answer.get("id")
                if isinstance(key, str):
                    found[key] = answer
    return found


def _read_call(
    session: OpenSession, message: Obj, item: object, position: int, answers: dict[object, Obj], zone: tzinfo
) -> None:
    call = as_obj(item)
    if call is None:
        raise BadRecord("a tool call that is no object")
    turn = whole(message.get("turn_idx"), "turn_idx")
    key = call.get("id")
    answer = answers.get(key, {}) if isinstance(key, str) else {}
    error = flag(answer.get("error"), "error")
    session.call(
        turn_id=f"{session.session_id}:{turn}",
        step=turn + position,
        parallel_group=turn,
        executor=name(call.get("name"), "name"),
        requestor=text(call.get("requestor"), "requestor"),
        ts=instant(message.get("timestamp"), "timestamp", zone),
        ok=None if error is None else not error,
        arguments=call.get("arguments"),
        result=answer.get("content"),
    )


def _instant_or_none(message: Obj, zone: tzinfo) -> datetime | None:
    try:
        return instant(message.get("timestamp"), "timestamp", zone)
    except BadRecord:
        return None
