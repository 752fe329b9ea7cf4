"""What the start of a file shows: enough to tell its format, however large the rest is."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from json import decoder
from pathlib import Path
from typing import cast

from mnemokit.errors import CorruptLog
from mnemokit.turns.fields import Obj, as_obj, objects
from mnemokit.turns.packed import open_log

HEAD_BYTES = 65_536

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SPACE = re.compile(r"[ \t\r\n]*")
_WORDS: tuple[tuple[str, object], ...] = (("true", True), ("false", False), ("null", None))
_MAX_DEPTH = 60


@dataclass(frozen=True)
class Head:
    """The first bytes of a file and what they look like.

    Attributes:
        path: The file.
        raw: Its first 64 KiB.
        whole: Whether that is all of it.
    """

    path: Path
    raw: bytes
    whole: bool

    @cached_property
    def text(self) -> str:
        """The bytes as text, a byte order mark left out."""
        return self.raw.decode("utf-8-sig", "replace")

    @cached_property
    def value(self) -> object:
        """The first JSON value of the file, cut off where the head ends; None if it does not start with one."""
        return partial_json(self.text)

    @cached_property
    def document(self) -> Obj:
        """The first JSON value if it is an object, else an empty one."""
        return as_obj(self.value) or {}

    @cached_property
    def items(self) -> list[Obj]:
        """The objects in the first JSON value if it is an array."""
        return objects(self.value)

    @cached_property
    def lines(self) -> list[Obj]:
        """The JSON objects among the first 50 whole lines; empty unless one of the first lines is one."""
        found: list[Obj] = []
        rows = self.text.split("\n")
        if not self.whole:
            rows = rows[:-1] or rows
        for row in rows[:50]:
            value = as_obj(_loads(row))
            if value is not None:
                found.append(value)
        if not found and rows and rows[0].startswith("{") and not self.whole:
            value = as_obj(partial_json(rows[0]))  # one line longer than the head
            found = [value] if value else []
        return found


def read_head(path: Path) -> Head:
    """The start of a file.

    Raises:
        CorruptLog: If the file is missing, empty or cannot be read.
    """
    try:
        with open_log(path) as file:
            raw = file.read(HEAD_BYTES + 1)
    except OSError as error:
        raise CorruptLog(f"{path}: cannot be read ({error.strerror}); nothing was read") from None
    if not raw.strip():
        raise CorruptLog(f"{path}: the file is empty; nothing was read")
    return Head(path, raw[:HEAD_BYTES], len(raw) <= HEAD_BYTES)


def is_empty(path: Path) -> bool:
    """Whether a file has no byte, or blanks only.

    Raises:
        CorruptLog: If it cannot be read.
    """
    with open_log(path) as file:
        raw = file.read(HEAD_BYTES + 1)
    return len(raw) <= HEAD_BYTES and not raw.strip()


def partial_json(text: str) -> object:
    """Decode JSON that may be cut off anywhere: what is there is returned, an unfinished text or number as None.

    Example:
        >>> partial_json('{"a": [true, {"b": "c"}, {"d": "e')
        {'a': [True, {'b': 'c'}, {'d': None}]}
        >>> partial_json("no json") is None
        True
    """
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return _Partial(text).value(0)


def _loads(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _scan_string(text: str, start: int) -> tuple[str, int]:
    return cast("tuple[str, int]", vars(decoder)["scanstring"](text, start, False))  # it has no stub


class _CutOffError(Exception):
    """The text ends here, or is no JSON from here on."""


class _Partial:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def value(self, depth: int) -> object:
        """The value at the place reached; containers keep what they got before the text ended."""
        char = self._next()
        if depth <= _MAX_DEPTH and char == "{":
            return self._object(depth)
        if depth <= _MAX_DEPTH and char == "[":
            return self._array(depth)
        try:
            return self._scalar(char)
        except _CutOffError:
            self.at = len(self.text)
            return None

    def _next(self) -> str:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def _scalar(self, char: str) -> object:
        if char == '"':
            try:
                found, self.at = _scan_string(self.text, self.at + 1)
            except ValueError:
                raise _CutOffError from None
            return found
        for word, meaning in _WORDS:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return meaning
        match = _NUMBER.match(self.text, self.at)
        if match is None or match.end() == len(self.text):
            raise _CutOffError
        self.at = match.end()
        return float(match.group()) if len(match.group()) < 300 else 0.0

    def _object(self, depth: int) -> Obj:
        found: Obj = {}
        self.at += 1
        while True:
            char = self._next()
            if char == ",":
                self.at += 1
                continue
            if char != '"':
                self.at += char == "}"
                self.at = self.at if char == "}" else len(self.text)
                return found
            try:
                key = str(self._scalar(char))
            except _CutOffError:
                self.at = len(self.text)
                return found
            if self._next() != ":":
                self.at = len(self.text)
                return found
            self.at += 1
            if not self._next():
                return found
            found[key] = self.value(depth + 1)

    def _array(self, depth: int) -> list[object]:
        found: list[object] = []
        self.at += 1
        while True:
            char = self._next()
            if char == ",":
                self.at += 1
                continue
            if char in ("", "]"):
                self.at += char == "]"
                return found
            before = self.at
            value = self.value(depth + 1)
            if self.at >= len(self.text) and value is None:
                return found
            if self.at == before:
                self.at = len(self.text)
                return found
            found.append(value)
