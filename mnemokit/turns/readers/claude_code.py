"""Claude Code sessions: JSON lines, one per message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from mnemokit.instants import to_us
from mnemokit.turns.builder import Builder, OpenSession, SessionCensus
from mnemokit.turns.documents import read_lines
from mnemokit.turns.fields import BadRecord, Obj, dig, flag, instant, meta_text, name, name_or_none, need_obj, objects
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head


@dataclass(frozen=True, slots=True)
class ClaudeCodeReader:
    """Reader of Claude Code session files (``*.jsonl``).

    Session: ``sessionId``; the side chains of its subagents belong to it, also from their own files. A step is a
    ``tool_use`` block; those of one message id are parallel. Step: microseconds of the timestamp, moved on by one
    where the file's order asks for it, so that the files of a session interleave by time. A call failed if its
    ``tool_result`` says ``is_error``; without a result that is not known. Version: the client's. Headers and texts
    count as ignored. The file is read twice, once for the results.
    """

    name: str = "claude_code"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise a line by its keys."""
        for line in head.lines:
            if {"sessionId", "uuid", "parentUuid"} <= line.keys():
                return "JSON lines with sessionId, uuid and parentUuid, as Claude Code writes them"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of lines."""
        file = _File(Builder(self.name, str(path), options), _answers(path, options))
        for line in read_lines(path):
            try:
                value = need_obj(line.value(), "the line")
                file.add(value, f"line {line.number}")
            except BadRecord as bad:
                file.builder.reject(f"line {line.number}", str(bad), line.raw)
            if file.builder.full:
                yield file.builder.batch()
        file.census.close()
        yield file.builder.batch()


@dataclass(frozen=True, slots=True)
class _Answer:
    failed: bool
    content: object


@dataclass(slots=True)
class _File:
    """What was seen of a file so far."""

    builder: Builder
    answers: dict[str, _Answer]
    census: SessionCensus = field(init=False)
    _last_step: dict[str, int] = field(default_factory=dict[str, int])
    _groups: dict[str, int] = field(default_factory=dict[str, int])
    _session_id: str | None = None

    def __post_init__(self) -> None:
        self.census = SessionCensus(self.builder)

    def add(self, line: Obj, place: str) -> None:
        """One line: its tool calls, or a message."""
        session_id = name_or_none(line.get("sessionId"), "sessionId") or self._session_id
        if session_id is None:  # a summary or a snapshot before the first message
            self.builder.ignored += 1
            return
        self._session_id = session_id
        ts = instant(line.get("timestamp"), "timestamp", self.builder.options.zone_or_utc())
        session = OpenSession(
            self.builder,
            session_id=session_id,
            executor_version=name_or_none(line.get("version"), "version"),
            meta=meta_text(
                (
                    ("model", dig(line, "message", "model")),
                    ("git_branch", line.get("gitBranch")),
                    ("side_chain", line.get("isSidechain") or None),
                    ("slug", line.get("slug")),
                )
            ),
        )
        calls = [block for block in objects(dig(line, "message", "content")) if block.get("type") == "tool_use"]
        if not calls:
            self.census.message(session, ts)
            return
        self._add_calls(session, line, calls, ts, place)

    def _add_calls(self, session: OpenSession, line: Obj, calls: list[Obj], ts: datetime | None, place: str) -> None:
        turn_id = name_or_none(line.get("uuid"), "uuid") or name(dig(line, "message", "id"), "uuid")
        message_id = dig(line, "message", "id")
        for number, call in enumerate(calls):
            step = max(self._last_step.get(session.session_id, -1) + 1, to_us(ts) if ts else 0)
            try:
                executor = name(call.get("name"), "name")
            except BadRecord as bad:
                session.reject(f"{place}, tool_use {number}", str(bad), call)
                continue
            key = f"{session.session_id}\n{message_id if isinstance(message_id, str) else turn_id}"
            call_id = call.get("id")
            answer = self.answers.get(call_id) if isinstance(call_id, str) else None
            session.call(
                turn_id=turn_id,
                step=step,
                parallel_group=self._groups.setdefault(key, step),
                executor=executor,
                requestor="subagent" if line.get("isSidechain") is True else "assistant",
                ts=ts,
                ok=None if answer is None else not answer.failed,
                arguments=call.get("input"),
                result=None if answer is None else answer.content,
            )
            self.census.called(session.session_id)
            self._last_step[session.session_id] = step


def _answers(path: Path, options: ReadOptions) -> dict[str, _Answer]:
    """Every tool result of the file by the id of its call; contents only if they are asked for."""
    found: dict[str, _Answer] = {}
    for line in read_lines(path):
        if b"tool_result" not in line.raw:
            continue
        try:
            value = line.value()
        except BadRecord:
            continue
        for block in objects(dig(value, "message", "content")):
            call_id = block.get("tool_use_id")
            if block.get("type") == "tool_result" and isinstance(call_id, str):
                try:
                    failed = flag(block.get("is_error"), "is_error") is True
                except BadRecord:
                    failed = False
                wanted = options.text or options.values
                found[call_id] = _Answer(failed, block.get("content") if wanted else None)
    return found
