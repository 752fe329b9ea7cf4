"""SWE-agent trajectories (``.traj``) and those of mini-swe-agent: one JSON document per attempt."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.turns.builder import Builder, OpenSession
from mnemokit.turns.documents import load_json
from mnemokit.turns.fields import (
    BadRecord,
    Obj,
    as_list,
    as_obj,
    dig,
    list_or_none,
    meta_text,
    name,
    name_or_none,
    need_obj,
    text,
)
from mnemokit.turns.packed import read_document
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.readers.chat import read_chat
from mnemokit.turns.sniff import Head

UNSEEN_COMMAND = "bash"
"""Stands for a command whose block is not in the message, though it was answered (texts may be cut)."""

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command|sh)\s*\n(.*?)(?:\n?```|\Z)", re.DOTALL)
_RETURN_CODE = re.compile(r"<returncode>(-?\d{1,9})</returncode>")


@dataclass(frozen=True, slots=True)
class SweAgentReader:
    """Reader of SWE-agent ``.traj`` files and mini-swe-agent ``.traj.json`` files.

    Session: the file's name and a hash of its content, since the format has no id. Executor: the first word of each
    action; of a message's tool call where there is no action; of the command block in a mini-swe-agent message.
    Step: the place in the list. Only mini-swe-agent tells whether a command failed (its return code). No times and
    no tool versions are logged; mini-swe-agent's own version is taken where it is there. ``info.exit_status`` is no
    outcome and stands in ``meta``.
    """

    name: str = "swe_agent"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the keys of a trajectory, or chat messages with command blocks."""
        document = head.document
        if isinstance(document.get("trajectory"), list) and ("environment" in document or "info" in document):
            return "a JSON document with trajectory, as SWE-agent writes it"
        if str(document.get("trajectory_format", "")).startswith("mini-swe-agent"):
            return "a JSON document with a mini-swe-agent trajectory_format"
        for item in as_list(document.get("history"))[:3]:
            if dig(item, "message_type") is not None or dig(item, "agent") is not None:
                return "a JSON document with a history of agent messages, as SWE-agent writes it"
        messages = head.items or [item for item in map(as_obj, as_list(document.get("messages"))) if item]
        if messages and messages[0].get("role") in ("system", "user"):
            first = next((item for item in messages if item.get("role") == "assistant"), None)
            if first is not None and _command(first) is not None:
                return "chat messages with command blocks, as mini-swe-agent writes them"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch for the whole document."""
        raw = read_document(path)
        value = load_json(raw, str(path))
        document = as_obj(value) or {}
        listed = list_or_none(value)
        messages = list_or_none(document.get("messages")) if listed is None else listed
        builder = Builder(self.name, str(path), options)
        digest = hashlib.blake2b(raw, digest_size=6).hexdigest()
        session = _session(builder, document, path, digest)
        if isinstance(document.get("trajectory"), list):
            _read_actions(session, as_list(document["trajectory"]))
        elif isinstance(document.get("history"), list):
            read_chat(session, as_list(document["history"]), "history", failed=lambda _: None)
        elif messages is not None:
            _read_mini(session, messages)
        else:
            raise CorruptLog(f"{path}: no SWE-agent trajectory (no trajectory, history or messages); nothing was read")
        session.close()
        yield builder.batch()


def _session(builder: Builder, document: Obj, path: Path, digest: str) -> OpenSession:
    stem = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".traj")
    try:
        version = name_or_none(dig(document, "info", "mini_version"), "info.mini_version")
        question = name_or_none(document.get("instance_id"), "instance_id")
        scope = name_or_none(document.get("environment"), "environment")
    except BadRecord as bad:
        raise CorruptLog(f"{path}: no SWE-agent trajectory ({bad}); nothing was read") from None
    return OpenSession(
        builder,
        session_id=f"{stem[:400]}:{digest}",
        executor_version=version,
        scope=scope,
        question=question or stem[:400],
        meta=meta_text((("exit_status", dig(document, "info", "exit_status")),)),
    )


def _read_actions(session: OpenSession, trajectory: list[object]) -> None:
    for index, item in enumerate(trajectory):
        action = dig(item, "action")
        words = action.split(maxsplit=1) if isinstance(action, str) else []
        try:
            need_obj(item, "the step")
            text(action, "action")
            if not words:
                session.message()
                continue
            session.call(
                turn_id=f"{session.session_id}:{index}",
                step=index,
                parallel_group=index,
                executor=name(words[0], "action"),
                requestor="assistant",
                arguments=action,
                result=dig(item, "observation"),
            )
        except BadRecord as bad:
            session.reject(f"trajectory[{index}]", str(bad), item)


def _read_mini(session: OpenSession, messages: list[object]) -> None:
    if any(as_list(dig(message, "tool_calls")) for message in messages):
        read_chat(session, messages, "messages", failed=_failed)
        return
    for index, item in enumerate(messages):
        message = as_obj(item) or {}
        answer = as_obj(messages[index + 1]) if index + 1 < len(messages) else None
        verdict = None if answer is None else _failed(answer)
        command = _command(message)
        if command is None and message.get("role") == "assistant" and verdict is not None:
            command = UNSEEN_COMMAND
        if command is None:
            session.message()
            continue
        try:
            session.call(
                turn_id=f"{session.session_id}:{index}",
                step=index,
                parallel_group=index,
                executor=name(command.split(maxsplit=1)[0], "the command"),
                requestor="assistant",
                ok=None if verdict is None else not verdict,
                arguments=command,
                result=None if answer is None else answer.get("content"),
            )
        except BadRecord as bad:
            session.reject(f"messages[{index}]", str(bad), item)


def _command(message: Obj) -> str | None:
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, str):
        return None
    match = _BLOCK.search(content)
    return match.group(1).strip() or None if match else None


def _failed(answer: Obj) -> bool | None:
    content = answer.get("content")
    match = _RETURN_CODE.search(content) if isinstance(content, str) else None
    return match.group(1) != "0" if match else None
