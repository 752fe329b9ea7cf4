"""Reflexion run logs: one JSON list per trial, with what each environment's agent remembers."""

from __future__ import annotations

import re
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
    as_text,
    flag,
    list_or_none,
    meta_text,
    name,
    need_obj,
    text,
)
from mnemokit.turns.protocol import MemoryWrite, ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head

_TRIAL = re.compile(r"env_results_trial_(\d+)")


@dataclass(frozen=True, slots=True)
class ReflexionReader:
    """Reader of Reflexion run logs (``env_results_trial_<n>.json``).

    Session: run folder, environment and trial; one row without an executor, since no calls are logged. A task that
    was solved in the trial before is carried forward, not run again, and counts as ignored; the trial before is
    read from the file beside (without it, every entry counts as an attempt). Scope: the run folder. No times are
    logged: order only.
    """

    name: str = "reflexion"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the list by the keys of its first item."""
        if any({"name", "memory", "is_success"} <= item.keys() for item in head.items[:1]):
            return "a JSON list of environments with name, memory and is_success, as Reflexion writes it"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch for the trial."""
        trial = _Trial.of(path)
        builder = Builder(self.name, str(path), options)
        for index, item in enumerate(trial.entries):
            try:
                _read_entry(builder, trial, item)
            except BadRecord as bad:
                builder.reject(f"[{index}]", str(bad), as_text(item) or "null")
        yield builder.batch()

    def memory(self, path: Path, options: ReadOptions) -> Iterator[MemoryWrite]:  # noqa: ARG002 - no times to read
        """What was added to each environment's list since the trial before; the parent is the note before."""
        trial = _Trial.of(path)
        for item in trial.entries:
            entry = as_obj(item) or {}
            key = entry.get("name")
            notes = _notes(entry)
            if not isinstance(key, str) or not key:
                continue
            brain = f"{trial.run}/{key}"
            known = len(_notes(trial.before.get(key, {})))
            for number in range(known, len(notes)):
                yield MemoryWrite(
                    session_id=f"{brain}/trial_{trial.number}",
                    brain_id=brain,
                    trace_key=f"{brain}/note_{number}",
                    type="reflection",
                    content=notes[number],
                    parents=(f"{brain}/note_{number - 1}",) if number else (),
                    meta=meta_text((("trial", trial.number),)),
                )


@dataclass(frozen=True, slots=True)
class _Trial:
    """A trial's file, and what the trial before it left."""

    run: str
    number: int
    entries: list[object]
    before: dict[str, Obj]

    @staticmethod
    def of(path: Path) -> _Trial:
        match = _TRIAL.fullmatch(path.stem)
        number = int(match.group(1)) if match else 0
        folder = path.absolute().parent
        earlier = path.with_name(f"env_results_trial_{number - 1}.json")
        before: dict[str, Obj] = {}
        if match and number > 0 and earlier.is_file():
            for item in _entries(earlier):
                entry = as_obj(item) or {}
                key = entry.get("name")
                if isinstance(key, str):
                    before[key] = entry
        return _Trial(f"{folder.parent.name}/{folder.name}", number, _entries(path), before)


def _entries(path: Path) -> list[object]:
    entries = list_or_none(read_json(path))
    if entries is None:
        raise CorruptLog(f"{path}: not a Reflexion trial (no list of environments); nothing was read")
    return entries


def _read_entry(builder: Builder, trial: _Trial, item: object) -> None:
    entry = need_obj(item, "the environment")
    key = name(entry.get("name"), "name")
    ok = flag(entry.get("is_success"), "is_success")
    if trial.before.get(key, {}).get("is_success") is True:
        builder.ignored += 1
        return
    session = OpenSession(
        builder,
        session_id=f"{trial.run}/{key}/trial_{trial.number}",
        scope=trial.run,
        question=key,
        outcome=None if ok is None else "success" if ok else "failure",
        meta=meta_text((("trial", trial.number), ("notes", len(_notes(trial.before.get(key, {})))))),
    )
    session.message()
    session.close()


def _notes(entry: Obj) -> list[str]:
    found: list[str] = []
    for note in as_list(entry.get("memory")):
        try:
            found.append(text(note, "memory") or "")
        except BadRecord:
            found.append(as_text(note) or "")
    return found
