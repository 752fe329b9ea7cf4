"""Inspect evaluation logs: one JSON document, or an ``.eval`` archive with a JSON file per sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.turns.archives import open_zip, unpack
from mnemokit.turns.builder import Builder, OpenSession
from mnemokit.turns.documents import load_json, read_json
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
    need_obj,
    objects,
    text,
)
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.readers.chat import read_chat
from mnemokit.turns.sniff import Head

_FIRST_MEMBERS = (b"_journal/", b"samples/", b"header.json", b"summaries.json", b"reductions.json")
_GOOD = ("C", 1, True)
_BAD = ("I", "N", 0, False)


@dataclass(frozen=True, slots=True)
class InspectReader:
    """Reader of Inspect logs (``.json`` and ``.eval``), by their own structure.

    Session: the sample's ``uuid``, else run, sample id and epoch. A step is an event ``tool``; a log without such
    events is read from its messages. Step: place among the events; calls of one model output are parallel. A call
    failed if it has an ``error``. Outcome: success if every score is C, 1 or true, failure if one is I, N, 0 or
    false. Version: the model, since tools have none. Scope: the task; question: the sample's id.
    """

    name: str = "inspect"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the document by its top keys, the archive by its first member."""
        if head.raw.startswith(b"PK\x03\x04"):
            inside = head.raw[30:60].startswith(_FIRST_MEMBERS)
            return "a zip archive of an Inspect evaluation" if inside or head.path.suffix == ".eval" else None
        document = head.document
        if isinstance(dig(document, "eval", "task"), str) and ("version" in document or "status" in document):
            return "a JSON document with version, status and eval, as Inspect writes it"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch for a document, batches of samples for an archive."""
        builder = Builder(self.name, str(path), options)
        if _is_zip(path):
            yield from _read_archive(builder, path)
        else:
            yield _read_document(builder, path)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
    except OSError as error:
        raise CorruptLog(f"{path}: cannot be read ({error.strerror}); nothing was read") from None


def _read_document(builder: Builder, path: Path) -> TurnBatch:
    log = as_obj(read_json(path))
    if log is None or as_obj(log.get("eval")) is None:
        raise CorruptLog(f"{path}: not an Inspect log (no object 'eval'); nothing was read")
    for index, sample in enumerate(as_list(log.get("samples"))):
        _read_sample(builder, log, sample, f"samples[{index}]")
    return builder.batch()


def _read_archive(builder: Builder, path: Path) -> Iterator[TurnBatch]:
    archive = open_zip(path)
    with archive:
        names = archive.namelist()
        header = next((found for found in ("header.json", "_journal/start.json") if found in names), None)
        if header is None:
            raise CorruptLog(f"{path}: not an Inspect archive (no header.json); nothing was read")
        try:
            log = as_obj(load_json(unpack(archive, header), f"{path}!{header}"))
        except BadRecord as bad:
            raise CorruptLog(f"{path}!{header}: {bad}; nothing was read") from None
        if log is None or as_obj(log.get("eval")) is None:
            raise CorruptLog(f"{path}!{header}: not an Inspect log (no object 'eval'); nothing was read")
        for member in names:
            if not member.startswith("samples/") or not member.endswith(".json"):
                continue
            try:
                sample = load_json(unpack(archive, member), f"{path}!{member}")
            except (BadRecord, CorruptLog) as bad:
                builder.reject(member, str(bad), "")
                continue
            _read_sample(builder, log, sample, member)
            if builder.full:
                yield builder.batch()
    yield builder.batch()


def _read_sample(builder: Builder, log: Obj, item: object, place: str) -> None:
    try:
        sample = need_obj(item, "the sample")
        session = _session(builder, log, sample)
    except BadRecord as bad:
        builder.reject(place, str(bad), as_text(item) or "null")
        return
    events = as_list(sample.get("events"))
    messages = as_list(sample.get("messages"))
    if any(dig(event, "event") == "tool" for event in events):
        _read_events(session, events, messages, place)
    elif any(as_list(dig(message, "tool_calls")) for message in messages):
        read_chat(session, messages, f"{place}.messages", failed=lambda answer: answer.get("error") is not None)
    else:
        _read_answers(session, messages, place)
    session.close()


def _session(builder: Builder, log: Obj, sample: Obj) -> OpenSession:
    sample_id = name(sample.get("id"), "id")
    epoch = sample.get("epoch")
    run = dig(log, "eval", "eval_id") or dig(log, "eval", "run_id")
    return OpenSession(
        builder,
        session_id=name(sample.get("uuid") or f"{run}:{sample_id}:{epoch}", "uuid"),
        executor_version=name_or_none(dig(log, "eval", "model"), "eval.model"),
        scope=name_or_none(dig(log, "eval", "task"), "eval.task"),
        question=text(sample_id, "id"),
        outcome=_outcome(as_obj(sample.get("scores")) or {}),
        meta=meta_text(
            (
                ("epoch", epoch),
                ("status", log.get("status")),
                ("git_commit", dig(log, "eval", "revision", "commit")),
                ("inspect_ai", dig(log, "eval", "packages", "inspect_ai")),
            )
        ),
    )


def _outcome(scores: Obj) -> str | None:
    values = [dig(score, "value") for score in scores.values()]
    plain = [value for value in values if isinstance(value, (str, int, float))]
    if any(value in _BAD for value in plain):
        return "failure"
    return "success" if plain and len(plain) == len(values) and all(value in _GOOD for value in plain) else None


def _read_events(session: OpenSession, events: list[object], messages: list[object], place: str) -> None:
    outputs = _outputs(events, messages)
    groups: dict[int, int] = {}
    for index, item in enumerate(events):
        event = as_obj(item) or {}
        try:
            ts = instant(event.get("timestamp"), "timestamp", session.builder.options.zone_or_utc())
            if event.get("event") != "tool":
                session.message(ts)
                continue
            call_id = event.get("id")
            output = outputs.get(call_id) if isinstance(call_id, str) else None
            session.call(
                turn_id=f"{session.session_id}:{index}",
                step=index,
                parallel_group=index if output is None else groups.setdefault(output, index),
                executor=name(event.get("function"), "function"),
                requestor="assistant",
                ts=ts,
                ok=event.get("error") is None and event.get("failed") is not True,
                arguments=event.get("arguments"),
                result=event.get("result"),
            )
        except BadRecord as bad:
            session.reject(f"{place}.events[{index}]", str(bad), item)


def _outputs(events: list[object], messages: list[object]) -> dict[str, int]:
    """Which output of a model made a call, by the call's id."""
    found: dict[str, int] = {}
    written = [dig(choice, "message") for event in events for choice in objects(dig(event, "output", "choices"))]
    for number, message in enumerate([*written, *messages]):
        for call in objects(dig(message, "tool_calls")):
            call_id = call.get("id")
            if isinstance(call_id, str):
                found.setdefault(call_id, number)
    return found


def _read_answers(session: OpenSession, messages: list[object], place: str) -> None:
    """A log whose calls are known by their answers only."""
    for index, item in enumerate(messages):
        message = as_obj(item) or {}
        if message.get("role") != "tool":
            session.message()
            continue
        try:
            session.call(
                turn_id=f"{session.session_id}:{index}",
                step=index,
                parallel_group=index,
                executor=name(message.get("function"), "function"),
                requestor="assistant",
                ok=message.get("error") is None,
                result=message.get("content"),
            )
        except BadRecord as bad:
            session.reject(f"{place}.messages[{index}]", str(bad), item)
