"""Reading files: whole JSON documents, which are sound or refused, and lines, each for itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mnemokit.errors import CorruptLog
from mnemokit.turns.fields import BadRecord
from mnemokit.turns.packed import open_log, read_document

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is no record; it is skipped in pieces and rejected, so that memory stays bounded."""


def load_json(raw: bytes, where: str) -> object:
    """Decode a whole JSON document.

    Args:
        raw: Its bytes.
        where: File (and member of an archive) for the error.

    Raises:
        CorruptLog: In one line with place and reason, if it is empty, cut off, not UTF-8 or no JSON.

    Example:
        >>> load_json(b'{"a": 1}', "log.json")
        {'a': 1}
    """
    if not raw.strip():
        raise CorruptLog(f"{where}: the file is empty; nothing was read")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorruptLog(f"{where}: not UTF-8 at byte {error.start}; nothing was read") from None
    try:
        return cast("object", json.loads(text))
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        what = "the JSON is cut off" if cut else f"not JSON ({error.msg})"
        raise CorruptLog(f"{where}: {what} at line {error.lineno} column {error.colno}; nothing was read") from None
    except RecursionError:
        raise CorruptLog(f"{where}: the JSON is nested too deeply; nothing was read") from None
    except ValueError:
        raise CorruptLog(f"{where}: the JSON holds a number with too many digits; nothing was read") from None


def read_json(path: Path) -> object:
    """Decode a file that is one JSON document; see `load_json`."""
    return load_json(read_document(path), str(path))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file that is not blank.

    Attributes:
        number: From 1.
        raw: Its bytes; only the first 1,000 if the line is longer than `MAX_LINE_BYTES`.
        too_long: Whether it is.
        ended: Whether it has its end; the last line of a file may have none.
    """

    number: int
    raw: bytes
    too_long: bool = False
    ended: bool = True

    def value(self) -> object:
        """Decode the line.

        Raises:
            BadRecord: With the reason in plain words.
        """
        if self.too_long:
            raise BadRecord(f"a line longer than {MAX_LINE_BYTES} bytes")
        try:
            return cast("object", json.loads(self.raw.decode("utf-8")))
        except UnicodeDecodeError as error:
            raise BadRecord(f"not UTF-8 at byte {error.start} of the line") from None
        except json.JSONDecodeError as error:
            raise BadRecord(f"not JSON ({error.msg}) at character {error.pos + 1} of the line") from None
        except RecursionError:
            raise BadRecord("nested too deeply") from None
        except ValueError:
            raise BadRecord("a number with too many digits") from None


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file that are not blank, one at a time.

    Raises:
        CorruptLog: If the file cannot be read.
    """
    with open_log(path) as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                start = line[:1000]
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                yield Line(number, start, too_long=True)
                continue
            text = line.strip()
            if text:
                yield Line(number, text, ended=line.endswith(b"\n"))


def has_lines(path: Path) -> bool:
    """Whether a file of JSON holds one value per line rather than one document.

    It does if most of its first 20 lines are values by themselves and there is more than one.
    """
    sound = seen = 0
    for line in itertools.islice(read_lines(path), 20):
        seen += 1
        try:
            sound += isinstance(line.value(), (dict, list))
        except BadRecord:
            continue
    return seen > 1 and sound * 2 > seen


def read_values(path: Path) -> Iterator[tuple[str, Line | None, object]]:
    """The JSON values of a file that may be one document or one value per line.

    Yields:
        Place, the line or None for a document, and the value; a line that cannot be decoded gives its `BadRecord`.

    Raises:
        CorruptLog: If it is one document, and broken.
    """
    if not has_lines(path):
        yield "document", None, read_json(path)
        return
    for line in read_lines(path):
        try:
            value = line.value()
        except BadRecord as bad:
            value = bad
        yield f"line {line.number}", line, value
