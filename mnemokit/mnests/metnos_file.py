"""Reading the edge store of a Metnos system: a SQLite file, row by row checked, never written to."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from mnemokit.errors import CorruptLog, InvalidInput, NotFound
from mnemokit.instants import as_utc
from mnemokit.mnests.names import LONGEST_NAME, checked_name, checked_rate
from mnemokit.records import MnestState

Row = dict[str, object]
T = TypeVar("T")

COLUMNS = {
    "mnests": (
        "id", "src_executor", "src_version", "dst_executor", "dst_version", "weight", "uses", "ts_first", "ts_last",
        "decay_lambda", "state", "tags", "desired_sig",
    ),
    "events": ("id", "mnest_id", "ts", "kind", "delta", "new_state", "reason", "turn_id"),
    "canonical_query_log": (
        "id", "canonical_query", "tool_name", "args_shape", "uses", "ok_count", "fail_count", "ts_first", "ts_last",
    ),
}  # fmt: skip
KINDS = ("reinforce", "decay", "state_change")


@dataclass(frozen=True, slots=True)
class Unusable:
    """A row that could not be used, or only in part, and why."""

    table: str
    row: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoredMnest:
    """A record as the file has it."""

    mnest_id: str
    src_executor: str
    src_version: str
    dst_executor: str
    dst_version: str | None
    weight: float
    uses: int
    ts_first: datetime
    ts_last: datetime
    decay_lambda: float
    state: str
    tags: tuple[str, ...]
    desired_sig: str | None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as the file has it: kind is reinforce, decay or state_change."""

    ts: datetime
    kind: str
    delta: float | None
    new_state: str | None
    reason: str | None
    turn_id: str | None

    @property
    def nightly(self) -> bool:
        """Is it the nightly ager's doing?"""
        return self.kind == "decay" or (self.kind == "state_change" and self.reason == "ager nightly")


@dataclass(slots=True)
class MetnosFile:
    """Everything in a file that can be used, and what cannot."""

    mnests: list[StoredMnest] = field(default_factory=list[StoredMnest])
    events: dict[str, list[StoredEvent]] = field(default_factory=dict[str, list[StoredEvent]])
    queries: list[Row] = field(default_factory=list[Row])
    unusable: list[Unusable] = field(default_factory=list[Unusable])


def read_metnos(path: Path) -> MetnosFile:
    """Read a file.

    Raises:
        NotFound: If there is no such file.
        CorruptLog: If it is no SQLite file, or lacks a table or column.
    """
    if not path.is_file():
        raise NotFound(f"there is no file {path}; nothing was read")
    file = MetnosFile()
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as con:
            con.row_factory = sqlite3.Row
            con.text_factory = _forgiving_text
            _read_mnests(con, file)
            _read_events(con, file)
            _read_queries(con, file)
    except sqlite3.Error as error:
        raise CorruptLog(
            f"{path} is no mnest.sqlite: {error}; nothing was written; it needs the tables {', '.join(COLUMNS)}"
        ) from error
    return file


def _forgiving_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _rows(con: sqlite3.Connection, table: str) -> Iterator[Row]:
    # Names of tables and columns are this module's own constants.
    cursor = con.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY rowid")  # noqa: S608
    for row in cursor:
        yield dict(zip(COLUMNS[table], row, strict=True))


def _read_mnests(con: sqlite3.Connection, file: MetnosFile) -> None:
    keys: set[tuple[object, ...]] = set()
    ids: set[str] = set()
    for row in _rows(con, "mnests"):
        mnest = _used(file, "mnests", row, lambda row: _mnest(row, file))
        if mnest is None:
            continue
        key = (mnest.src_executor, mnest.src_version, mnest.dst_executor, mnest.dst_version, mnest.state)
        if mnest.mnest_id in ids or key in keys:
            what = "id" if mnest.mnest_id in ids else "edge and state"
            file.unusable.append(Unusable("mnests", mnest.mnest_id, f"an earlier row has the same {what}"))
            continue
        ids.add(mnest.mnest_id)
        keys.add(key)
        file.mnests.append(mnest)


def _mnest(row: Row, file: MetnosFile) -> StoredMnest:
    name = _text(row["id"], "id")
    state = _text(row["state"], "state")
    if state not in set(MnestState):
        raise InvalidInput(f"state {state!r} is none of {', '.join(MnestState)}")
    version = row["dst_version"]
    version = None if version is None else checked_name(version, "dst_version")
    if (state == "proto" and version is not None) or (state in ("active", "decaying") and version is None):
        raise InvalidInput(f"a record in state {state} with dst_version {version!r} cannot be")
    weight, uses = _number(row["weight"], "weight"), row["uses"]
    if not 0 <= weight <= 1:
        raise InvalidInput(f"weight {weight!r} is not from 0 to 1")
    if not isinstance(uses, int) or uses < 1:
        raise InvalidInput(f"uses {uses!r} is not a whole number of at least 1")
    return StoredMnest(
        name,
        checked_name(row["src_executor"], "src_executor"),
        checked_name(row["src_version"], "src_version"),
        checked_name(row["dst_executor"], "dst_executor"),
        version,
        weight,
        uses,
        _instant(row["ts_first"], "ts_first"),
        _instant(row["ts_last"], "ts_last"),
        checked_rate(_number(row["decay_lambda"], "decay_lambda")),
        state,
        _tags(row["tags"], name, file),
        _signature(row["desired_sig"], name, file),
    )


def _tags(value: object, name: str, file: MetnosFile) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    tags: object = None
    try:
        tags = json.loads(str(value))
    except ValueError:
        file.unusable.append(Unusable("mnests", name, f"tags are not JSON ({value!r}); taken over without tags"))
        return ()
    texts = [tag for tag in cast("list[object]", tags) if isinstance(tag, str)] if isinstance(tags, list) else None
    if texts is None or len(texts) < len(cast("list[object]", tags)) or not all(text.strip() for text in texts):
        file.unusable.append(
            Unusable("mnests", name, f"tags are no list of texts ({value!r}); taken over without tags")
        )
        return ()
    if max(map(len, texts), default=0) > LONGEST_NAME:
        file.unusable.append(
            Unusable("mnests", name, f"a tag has more than {LONGEST_NAME} characters; taken over without tags")
        )
        return ()
    return tuple(dict.fromkeys(texts))


def _signature(value: object, name: str, file: MetnosFile) -> str | None:
    if value is None:
        return None
    try:
        json.loads(str(value))
    except ValueError:
        file.unusable.append(Unusable("mnests", name, "desired_sig is not JSON; taken over without it"))
        return None
    return str(value)


def _read_events(con: sqlite3.Connection, file: MetnosFile) -> None:
    known = {mnest.mnest_id for mnest in file.mnests}
    for row in _rows(con, "events"):
        mnest_id = str(row["mnest_id"])
        if mnest_id not in known:
            file.unusable.append(Unusable("events", str(row["id"]), f"no usable mnest has the id {mnest_id!r}"))
            continue
        event = _used(file, "events", row, _event)
        if event is not None:
            file.events.setdefault(mnest_id, []).append(event)
    for events in file.events.values():
        events.sort(key=lambda event: event.ts)


def _event(row: Row) -> StoredEvent:
    kind = _text(row["kind"], "kind")
    if kind not in KINDS:
        raise InvalidInput(f"kind {kind!r} is none of {', '.join(KINDS)}")
    new_state = row["new_state"]
    if kind == "state_change" and new_state not in set(MnestState):
        raise InvalidInput(f"new_state {new_state!r} is none of {', '.join(MnestState)}")
    return StoredEvent(
        _instant(row["ts"], "ts"),
        kind,
        None if row["delta"] is None else _number(row["delta"], "delta"),
        None if new_state is None else str(new_state),
        None if row["reason"] is None else str(row["reason"]),
        None if row["turn_id"] is None else str(row["turn_id"]),
    )


def _read_queries(con: sqlite3.Connection, file: MetnosFile) -> None:
    for row in _rows(con, "canonical_query_log"):
        used = _used(file, "canonical_query_log", row, _query)
        if used is not None:
            file.queries.append(used)


def _query(row: Row) -> Row:
    counts = {"uses": row["uses"], "ok": row["ok_count"], "fail": row["fail_count"]}
    for name, n in counts.items():
        if not isinstance(n, int) or n < 0:
            raise InvalidInput(f"{name} {n!r} is not a whole number of at least 0")
    return {
        "query": checked_name(row["canonical_query"], "canonical_query"),
        "tool": checked_name(row["tool_name"], "tool_name"),
        "args_shape": checked_name(row["args_shape"], "args_shape"),
        **counts,
        "ts_first": _instant(row["ts_first"], "ts_first"),
        "ts_last": _instant(row["ts_last"], "ts_last"),
    }


def _used(file: MetnosFile, table: str, row: Row, read: Callable[[Row], T]) -> T | None:
    """What a row says; None, and a note why, if it cannot be used."""
    try:
        return read(row)
    except InvalidInput as error:
        reason = str(error).split("; nothing was written", 1)[0]
        file.unusable.append(Unusable(table, str(row["id"]), reason))
        return None


def _text(value: object, name: str) -> str:
    return checked_name(value, name)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{name} {value!r} is no finite number")
    return float(value)


def _instant(value: object, name: str) -> datetime:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} {value!r} is no instant")
    return as_utc(value, name)
