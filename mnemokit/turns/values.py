"""Hashes of the values that go into and come out of a step, so that a flow of values can be seen without the values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from mnemokit.turns.fields import as_list, as_obj

MIN_TEXT_CHARS = 2
"""A single character occurs by chance in arguments and results alike; it is no evidence of a flow."""

MIN_NUMBER = 2
"""Nor are 0, 1 and -1."""

MAX_VALUES = 256
"""At most so many distinct values of one step are kept; a listing of thousands proves nothing."""


def hashed_values(value: object, session_id: str) -> list[int]:
    """The telling values inside a JSON value, as 64-bit hashes.

    Every text of 2 characters or more and every number of at least 2 in absolute value counts, at any depth; a text
    that is itself JSON is opened; true, false and null do not count. Hashes are keyed by the session, so that they say
    nothing across sessions.

    Args:
        value: A decoded JSON value: arguments or a result.
        session_id: The key.

    Returns:
        Sorted distinct hashes.

    Example:
        >>> hashed_values({"a": "Rome", "b": 1}, "s") == hashed_values('["Rome"]', "s")
        True
        >>> hashed_values("Rome", "s") == hashed_values("Rome", "t")
        False
    """
    key = hashlib.blake2b(session_id.encode("utf-8", "replace"), digest_size=16).digest()
    found: set[int] = set()
    for text in _atoms(value):
        found.add(int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), key=key, digest_size=8).digest()))
        if len(found) == MAX_VALUES:
            break
    return sorted(found)


def _atoms(value: object) -> Iterator[str]:
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            text = item.strip()
            if text[:1] in ("{", "["):
                try:
                    waiting.append(json.loads(text))
                    continue
                except (ValueError, RecursionError):
                    pass
            if len(text) >= MIN_TEXT_CHARS:
                yield text
        elif isinstance(item, bool) or item is None:
            continue
        elif isinstance(item, (int, float)):
            if abs(item) >= MIN_NUMBER:
                yield repr(item)
        else:
            waiting.extend((as_obj(item) or {}).values())
            waiting.extend(as_list(item))
