"""Metnos turn files: JSON lines, one per request, with the steps taken for it."""

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
    as_obj,
    dig,
    epoch_seconds,
    flag,
    meta_text,
    name,
    name_or_none,
    need_obj,
    text,
    whole,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head

NOT_EXECUTORS = frozenset(
    {
        "final_answer",
        "undo_last_turn",
        "request_new_executor",
        "scratchpad_read",
        "get_inputs",
        "get_approval",
        "@uploaded",
    }
)
"""Tools of the system itself: their steps are messages, and what goes before passes to what comes after."""


@dataclass(frozen=True, slots=True)
class MetnosReader:
    """Reader of Metnos turn files.

    Session: the turn, which is one request with its own question, steps and outcome; the conversation stands in
    ``meta``. Lines with a ``mode`` (``tutor``, ``pending``) and no steps are no requests to the agent and count as
    ignored, and so do steps of the system's own tools (`NOT_EXECUTORS`). Step: ``step_num``. References between steps
    are logged as values, so a passing is a later argument that equals an earlier result, else succession. Instants are
    seconds since 1970, one per turn. Outcome: failure if ``final_kind`` is ``error`` or a false success was detected,
    success if it is ``answer``. No version is logged.
    """

    name: str = "metnos"
    passings: str = "value_flow_or_successive"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise a line by its keys."""
        for line in head.lines:
            if {"turn_id", "mode", "steps"} <= line.keys() and "ts_start" in line:
                return "JSON lines with turn_id, mode, ts_start and steps, as Metnos writes them"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of whole turns."""
        builder = Builder(self.name, str(path), options)
        for line in read_lines(path):
            try:
                turn = need_obj(line.value(), "the line")
                _read_turn(builder, turn, f"line {line.number}")
            except BadRecord as bad:
                builder.reject(f"line {line.number}", str(bad), line.raw)
            if builder.full:
                yield builder.batch()
        yield builder.batch()


def _read_turn(builder: Builder, turn: Obj, place: str) -> None:
    steps = as_list(turn.get("steps"))
    if turn.get("mode") and not steps:
        builder.ignored += 1
        return
    turn_id = name(turn.get("turn_id"), "turn_id")
    started = epoch_seconds(turn.get("ts_start"), "ts_start")
    session = OpenSession(
        builder,
        session_id=turn_id,
        user_id=name_or_none(turn.get("owner_user_id"), "owner_user_id"),
        question=text(turn.get("user_query"), "user_query"),
        outcome=_outcome(turn),
        meta=meta_text((key, turn.get(key) or None) for key in ("conversation_id", "channel", "actor", "final_kind")),
    )
    if not steps:
        session.message(started)
    for index, item in enumerate(steps):
        step = as_obj(item) or {}
        tool = step.get("chosen_tool")
        if isinstance(tool, str) and tool in NOT_EXECUTORS:
            session.message(started)
            continue
        try:
            ok = flag(dig(step, "result", "ok"), "result.ok")
            number = whole(step.get("step_num"), "step_num")
            session.call(
                turn_id=turn_id,
                step=number,
                parallel_group=number,
                executor=name(step.get("chosen_tool"), "chosen_tool"),
                ts=started,
                ok=False if step.get("error") else ok,
                arguments=step.get("resolved_args") or step.get("raw_args"),
                result=step.get("result"),
            )
        except BadRecord as bad:
            session.reject(f"{place}, steps[{index}]", str(bad), item)
    session.close()


def _outcome(turn: Obj) -> str | None:
    if turn.get("final_kind") == "error" or turn.get("false_success_detected") is True:
        return "failure"
    return "success" if turn.get("final_kind") == "answer" else None
