"""A log that many live agents write at once, and that replays.

A DuckDB file has one writer; a turn log has as many as you like. Each turn is one line of JSON, appended under a file
lock in one piece, so lines of different processes never mix. ``mem.replay("turns/*.jsonl")`` reads it, exactly once.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from json.encoder import encode_basestring
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from mnemokit.errors import InvalidInput
from mnemokit.instants import Instant, as_utc, present
from mnemokit.records import OUTCOMES, Outcome
from mnemokit.turns.documents import MAX_LINE_BYTES
from mnemokit.turns.frame import END_OF_INSTANTS, FIRST_INSTANT, MAX_NAME_CHARS, OUTSIDE_YEARS, TURNS_SCHEMA

Fsync = Literal["never", "rotate", "always"]

_KEYS = frozenset({*TURNS_SCHEMA, "arguments", "result"})
_NAMES = ("executor", "executor_version", "user_id", "source")
_TEXTS = ("requestor", "scope", "question", "meta")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class TurnLog:
    """An append-only JSONL file of canonical turns, safe from many threads and processes at once.

    Args:
        path: The file, created if missing, with its folder.
        fsync: "never": a turn survives a killed process, not a power cut; "always": it is on the disk when ``append``
            returns, and so is the file's name in its folder; "rotate": only a finished file is synced, with its name.
        rotate_bytes: A file that has grown to this is set aside as ``<name>.<number><suffix>`` and a new one begun;
            None never rotates. Replay a rotated log with a glob.

    Example:
        >>> import tempfile, mnemokit as mk
        >>> folder = tempfile.TemporaryDirectory()
        >>> with TurnLog(f"{folder.name}/turns.jsonl") as log:
        ...     log.append(session_id="s1", step=0, executor="find_files", ok=True)
        ...     log.append(session_id="s1", step=1, executor="read_file", ok=True)
        >>> with mk.open() as mem:
        ...     mem.replay(f"{folder.name}/turns.jsonl", label="live").turns
        2
        >>> folder.cleanup()
    """

    def __init__(
        self, path: str | os.PathLike[str], *, fsync: Fsync = "never", rotate_bytes: int | None = None
    ) -> None:
        """Open the file for appending."""
        if fsync not in ("never", "rotate", "always"):
            raise InvalidInput(f"fsync={fsync!r} is unknown; use 'never', 'rotate' or 'always'; nothing was opened")
        if rotate_bytes is not None and rotate_bytes < 1:
            raise InvalidInput(f"rotate_bytes must be at least 1, not {rotate_bytes}; nothing was opened")
        self.path = Path(path)
        self.fsync = fsync
        self.rotate_bytes = rotate_bytes
        self._name = str(self.path)
        self._lock = threading.Lock()
        new = [folder for folder in (self.path.parent, *self.path.parent.parents) if not folder.exists()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if fsync == "always":
            for folder in reversed(new):
                _sync_folder(folder.parent)
        self._file: int | None = self._open()

    def append(
        self,
        *,
        session_id: str,
        step: int,
        executor: str | None,
        executor_version: str | None = None,
        turn_id: str | None = None,
        parallel_group: int | None = None,
        requestor: str | None = None,
        ts: Instant | None = None,
        ok: bool | None = None,
        user_id: str | None = None,
        scope: str | None = None,
        question: str | None = None,
        session_outcome: Outcome | None = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        """Write one turn. When this returns, the line is in the file.

        Args:
            session_id: The session.
            step: Order within the session.
            executor: The tool that was called; None for a session's row without a call.
            executor_version: Its version.
            turn_id: The message it belongs to; ``session_id:step`` if left out.
            parallel_group: Steps called together share it; the step itself if left out.
            requestor: Who called.
            ts: Aware instant, of the years 1970 to 2199; the present if left out.
            ok: Did it succeed.
            user_id: The person it was for.
            scope: The domain; like every text it is not empty, None stands for none.
            question: The task.
            session_outcome: "success" or "failure", once it is known.
            meta: What else to keep, as JSON.

        Raises:
            InvalidInput: If a value cannot be a turn's: if a replay would reject it, or a step is negative; nothing
                was written.

        Example:
            >>> import tempfile
            >>> import mnemokit as mk
            >>> with tempfile.TemporaryDirectory() as folder, mk.TurnLog(f"{folder}/turns.jsonl") as log:
            ...     log.append(session_id="s1", step=0, executor="find", ok=True, ts="2025-08-01T00:00:00Z")
            ...     mk.read_turns(f"{folder}/turns.jsonl").select("turn_id", "executor", "ok").rows()
            [('s1:0', 'find', True)]
        """
        row: dict[str, object] = {"session_id": session_id, "step": step, "executor": executor}
        row["turn_id"] = turn_id if turn_id is not None else f"{session_id}:{step}"
        row["parallel_group"] = step if parallel_group is None else parallel_group
        row["ts"] = _stamp(ts)
        rest = (
            ("executor_version", executor_version),
            ("requestor", requestor),
            ("ok", ok),
            ("user_id", user_id),
            ("scope", scope),
            ("question", question),
            ("session_outcome", session_outcome),
        )
        row |= {name: value for name, value in rest if value is not None}
        if meta is not None:
            row["meta"] = _json(meta)
        _check(row)
        self._write(_line(row))

    def append_many(self, turns: Iterable[Mapping[str, object]]) -> int:
        """Write several turns in one piece: all of them or none.

        Args:
            turns: Mappings with the arguments of ``append`` as keys; ``meta`` may be JSON text. They may also have
                ``source`` (instead of "turns" or the replay's label) and, as JSON, ``arguments`` and ``result``.

        Returns:
            How many were written.

        Raises:
            InvalidInput: As ``append``, also if a key is none of these; nothing was written.

        Example:
            >>> import tempfile
            >>> import mnemokit as mk
            >>> with tempfile.TemporaryDirectory() as folder, mk.TurnLog(f"{folder}/turns.jsonl") as log:
            ...     n = log.append_many({"session_id": "s1", "step": i, "executor": "find"} for i in range(3))
            ...     n, mk.read_turns(f"{folder}/turns.jsonl").height
            (3, 3)
        """
        lines: list[bytes] = []
        for turn in turns:
            row = {name: value for name, value in turn.items() if value is not None}
            if not row.keys() <= _KEYS:
                odd = min(map(str, row.keys() - _KEYS))
                raise InvalidInput(
                    f"a turn has no {_shown(odd)}; it can have {', '.join(sorted(_KEYS))}; nothing was written"
                )
            row.setdefault("executor", None)
            ts = row.get("ts")
            row["ts"] = _stamp(ts if isinstance(ts, (datetime, str)) or ts is None else str(ts))
            row.setdefault("turn_id", f"{row.get('session_id')}:{row.get('step')}")
            row.setdefault("parallel_group", row.get("step"))
            if "meta" in row and not isinstance(row["meta"], str):
                row["meta"] = _json(row["meta"])
            _check(row)
            lines.append(_line(row))
        self._write(b"".join(lines))
        return len(lines)

    def close(self) -> None:
        """Close the file. A second call does nothing; later appends are refused.

        Example:
            >>> import tempfile
            >>> import mnemokit as mk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     log = mk.TurnLog(f"{folder}/turns.jsonl")
            ...     log.close()
            ...     log.close()
        """
        with self._lock:
            if self._file is not None:
                if self.fsync != "never":
                    os.fsync(self._file)
                os.close(self._file)
                self._file = None

    def __enter__(self) -> Self:
        """The log itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def _open(self) -> int:
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if self.fsync == "always":
            _sync_folder(self.path.parent)
        there = os.fstat(file)
        self._identity = (there.st_ino, there.st_dev)
        self._end = -1
        return file

    def _write(self, data: bytes) -> None:
        with self._lock:
            if self._file is None:
                raise InvalidInput(f"{self.path} is closed; nothing was written; open a new TurnLog")
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                size = self._catch_up()
                # A process that died in the middle of a line left it without an end; ours begins on a line of its own.
                if size not in (0, self._end) and os.pread(self._file, 1, size - 1) != b"\n":
                    data = b"\n" + data
                written = os.write(self._file, data)
                if written < len(data):
                    os.ftruncate(self._file, size)
                    raise OSError(f"{self.path}: only {written} of {len(data)} bytes fitted; nothing was written")
                self._end = size + written
                if self.fsync == "always":
                    os.fsync(self._file)
                if self.rotate_bytes is not None and self._end >= self.rotate_bytes:
                    self._rotate(self._file)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _catch_up(self) -> int:
        """The size of the file that stands under the path, which is then ours and locked: it may have been rotated."""
        while True:
            try:
                there = os.stat(self._name)  # noqa: PTH116 - a Path would double the cost of a line
            except FileNotFoundError:
                there = None
            if there is not None and (there.st_ino, there.st_dev) == self._identity:
                return there.st_size
            if self._file is not None:
                os.close(self._file)  # closing gives its lock back
            self._file = self._open()
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def _rotate(self, file: int) -> None:
        if self.fsync != "never":
            os.fsync(file)
        number = 1
        while (aside := self.path.with_name(f"{self.path.stem}.{number:06d}{self.path.suffix}")).exists():
            number += 1
        self.path.rename(aside)
        if self.fsync != "never":
            _sync_folder(self.path.parent)


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk: syncing a file does not do that."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _stamp(ts: Instant | None) -> str:
    if ts is None:
        return present().isoformat()
    try:
        moment = as_utc(ts, "ts")
    except OverflowError:
        moment = END_OF_INSTANTS
    if not FIRST_INSTANT <= moment < END_OF_INSTANTS:
        raise InvalidInput(f"ts={_shown(str(ts))} {OUTSIDE_YEARS}; nothing was written; give the turn's own instant")
    return moment.isoformat()


def _line(row: Mapping[str, object]) -> bytes:
    try:
        line = ("{" + ",".join([_member(name, value) for name, value in row.items()]) + "}\n").encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"this turn cannot be written as JSON ({_told(error)}); nothing was written") from None
    if len(line) > MAX_LINE_BYTES:
        raise InvalidInput(f"this turn is longer than {MAX_LINE_BYTES} bytes; nothing was written; shorten it")
    return line


def _member(name: str, value: object) -> str:
    # The encoder is made anew for whatever it is given; texts and numbers, which most values are, need none.
    if type(value) is str:
        return f'"{name}":{encode_basestring(value)}'
    if type(value) is int:
        return f'"{name}":{value}'
    if type(value) is bool:
        return f'"{name}":{"true" if value else "false"}'
    return f'"{name}":{_encode(value)}'


def _json(meta: object) -> str:
    try:
        return _encode(meta)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"meta cannot be written as JSON ({_told(error)}); nothing was written") from None


def _told(error: Exception) -> str:
    """The encoder's reason; it quotes the whole text that cannot be encoded as UTF-8."""
    if isinstance(error, UnicodeEncodeError):
        return f"a lone surrogate at character {error.start + 1} of the line"
    return str(error)[:200]


def _check(row: Mapping[str, object]) -> None:
    """Refuse what the reader of these lines rejects."""
    get = row.get
    if not (_is_name(get("session_id")) and _is_name(get("turn_id"))):
        _refuse(row, ("session_id", "turn_id"), f"text of 1 to {MAX_NAME_CHARS} characters")
    for name in _NAMES:
        value = get(name)
        if value is not None and not _is_name(value):
            _refuse(row, (name,), f"text of 1 to {MAX_NAME_CHARS} characters, or None")
    for name in _TEXTS:
        value = get(name)
        if value is not None and not (isinstance(value, str) and value):
            _refuse(row, (name,), "text that is not empty, or None")
    if not (_is_number(get("step")) and _is_number(get("parallel_group"))):
        _refuse(row, ("step", "parallel_group"), "a whole number from 0, below 2^62")
    ok = get("ok")
    if not (ok is None or ok is True or ok is False):
        _refuse(row, ("ok",), "True, False or None")
    if get("session_outcome") not in (None, *OUTCOMES):
        _refuse(row, ("session_outcome",), "'success', 'failure' or None")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _refuse(row: Mapping[str, object], names: tuple[str, ...], what: str) -> None:
    given = ", ".join(f"{name}={_shown(row.get(name))}" for name in names)
    raise InvalidInput(f"{given} must be {what}; nothing was written")


def _shown(value: object) -> str:
    """A value in a message: its beginning is enough to find it by."""
    if value is None or isinstance(value, (str, int, float)):
        shown = repr(value[:80] if isinstance(value, str) else value)
        return shown if len(shown) <= 100 else shown[:99] + "…"
    return f"a {type(value).__name__}"
