"""tau-bench, first version: one JSON list of trials with chat messages."""

from __future__ import annotations

import hashlib
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
    as_text,
    dig,
    list_or_none,
    meta_text,
    name,
    name_or_none,
    need_obj,
    number_or_none,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.readers.chat import read_chat
from mnemokit.turns.sniff import Head


@dataclass(frozen=True, slots=True)
class TauBenchReader:
    """Reader of tau-bench results, first version (``[{"task_id", "trial", "reward", "traj"}]``).

    Session: task, trial and a hash of the messages, because task and trial recur in every file. The calls of one
    message are one parallel group. A call failed if its answer starts with ``Error``; the session succeeded if the
    reward is 1. No times and no versions are logged.
    """

    name: str = "tau_bench"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the list by the keys of its first item."""
        if any(
            {"task_id", "traj"} <= item.keys() or {"task_id", "reward", "info"} <= item.keys()
            for item in head.items[:1]
        ):
            return "a JSON list of trials with task_id, reward and traj, as tau-bench writes it"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch for the whole document."""
        trials = list_or_none(read_json(path))
        if trials is None:
            raise CorruptLog(f"{path}: not a tau-bench document (no list of trials); nothing was read")
        builder = Builder(self.name, str(path), options)
        for index, item in enumerate(trials):
            try:
                _read_trial(builder, need_obj(item, "the trial"), f"[{index}]")
            except BadRecord as bad:
                builder.reject(f"[{index}]", str(bad), as_text(item) or "null")
        yield builder.batch()


def _read_trial(builder: Builder, trial: Obj, place: str) -> None:
    task = name(trial.get("task_id"), "task_id")
    number = name_or_none(trial.get("trial"), "trial") or "0"
    messages = as_list(trial.get("traj"))
    digest = hashlib.blake2b((as_text(messages) or "").encode(), digest_size=6).hexdigest()
    reward = number_or_none(trial.get("reward"))
    session = OpenSession(
        builder,
        session_id=f"{task}:{number}:{digest}",
        user_id=name_or_none(dig(trial, "info", "task", "user_id"), "info.task.user_id"),
        question=task,
        outcome=None if reward is None else "success" if reward == 1 else "failure",
        meta=meta_text((("trial", trial.get("trial")), ("reward", reward))),
    )
    read_chat(session, messages, f"{place}.traj", failed=_failed)
    session.close()


def _failed(answer: Obj) -> bool | None:
    content = answer.get("content")
    return content.startswith("Error") if isinstance(content, str) else None
