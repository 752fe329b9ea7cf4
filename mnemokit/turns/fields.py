"""Typed access to decoded JSON, and the one way in which a record says that it cannot be used."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeVar, cast

from mnemokit.instants import EPOCH
from mnemokit.turns.frame import END_OF_INSTANTS, FIRST_INSTANT, MAX_NAME_CHARS, OUTSIDE_YEARS

Obj = dict[str, object]
Value = TypeVar("Value")

_LARGEST = 2**62  # leaves room for what readers add to a step
_MAX_SECONDS = 253_402_300_799  # 9999-12-31T23:59:59Z


class BadRecord(Exception):
    """This record cannot be used; the text is the reason. Readers turn it into a reject."""


def as_obj(value: object) -> Obj | None:
    """The value if it is a JSON object, else None."""
    return cast("Obj", value) if isinstance(value, dict) else None


def need_obj(value: object, what: str) -> Obj:
    """The value, which must be a JSON object.

    Raises:
        BadRecord: If it is none.
    """
    if not isinstance(value, dict):
        raise BadRecord(f"{what} is {kind_of(value)}, not an object")
    return cast("Obj", value)


def list_or_none(value: object) -> list[object] | None:
    """The value if it is a JSON array, else None."""
    return cast("list[object]", value) if isinstance(value, list) else None


def as_list(value: object) -> list[object]:
    """The value if it is a JSON array, else an empty list."""
    return cast("list[object]", value) if isinstance(value, list) else []


def objects(value: object) -> list[Obj]:
    """The objects of a JSON array, other items left out."""
    return [cast("Obj", item) for item in as_list(value) if isinstance(item, dict)]


def dig(value: object, *path: str) -> object:
    """The value at a path of keys, or None where the path ends early.

    Example:
        >>> dig({"info": {"agent": "a"}}, "info", "agent")
        'a'
        >>> dig({"info": 3}, "info", "agent") is None
        True
    """
    for key in path:
        obj = as_obj(value)
        if obj is None:
            return None
        value = obj.get(key)
    return value


def need(value: Value | None, what: str) -> Value:
    """The value, which must be there.

    Raises:
        BadRecord: If it is None.
    """
    if value is None:
        raise BadRecord(f"{what} is missing")
    return value


def text(value: object, name: str, *, longest: int | None = None) -> str | None:
    """A text, or None for null and the empty text.

    Raises:
        BadRecord: If it is no text, too long, or cannot be stored.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadRecord(f"{name} is {kind_of(value)}, not text")
    if longest is not None and len(value) > longest:
        raise BadRecord(f"{name} is longer than {longest} characters")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise BadRecord(f"{name} holds a lone surrogate") from None
    return value


def name(value: object, what: str) -> str:
    """A name or id that must be there: a text of 1 to 512 characters, or a whole number as text.

    Raises:
        BadRecord: If it is missing or no name.
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return str(value)
    found = text(value, what, longest=MAX_NAME_CHARS)
    if found is None:
        raise BadRecord(f"{what} is missing")
    return found


def name_or_none(value: object, what: str) -> str | None:
    """As `name`, but None where it is missing."""
    return None if value is None or value == "" else name(value, what)


def flag(value: object, what: str) -> bool | None:
    """True, False or None.

    Raises:
        BadRecord: If it is anything else.
    """
    if value is None or isinstance(value, bool):
        return value
    raise BadRecord(f"{what} is {kind_of(value)}, not true or false")


def whole(value: object, what: str) -> int:
    """A whole number; a text of digits counts too.

    Raises:
        BadRecord: If it is anything else, or 2^62 or beyond.
    """
    if isinstance(value, str) and len(value) < 20 and value.lstrip("-").isascii() and value.lstrip("-").isdigit():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadRecord(f"{what} is {kind_of(value)}, not a whole number")
    if not -_LARGEST <= value < _LARGEST:
        raise BadRecord(f"{what} is 2^62 or beyond")
    return value


def number_or_none(value: object) -> float | None:
    """The value if it is a finite number, else None.

    Example:
        >>> number_or_none(1), number_or_none(float("nan")), number_or_none(True)
        (1, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def instant(value: object, what: str, zone: tzinfo | None) -> datetime | None:
    """An ISO 8601 text as a UTC instant; naive ones are taken in the zone given.

    An hour that the zone's clocks repeat is the first one, an hour that they skip goes on from the time before.

    Raises:
        BadRecord: If it is no instant, is naive and there is no zone, or is of a year that no log is of.
    """
    found = text(value, what, longest=64)
    if found is None:
        return None
    try:
        moment = datetime.fromisoformat(found.removesuffix(" UTC"))
        if moment.tzinfo is None:
            if zone is None:
                raise BadRecord(f"{what} has no time zone (give tz=)")
            moment = moment.replace(tzinfo=zone)
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadRecord(f"{what} is no ISO 8601 instant") from None
    return within_years(moment, what)


def epoch_seconds(value: object, what: str) -> datetime | None:
    """Seconds since 1970 as a UTC instant, to the microsecond.

    Raises:
        BadRecord: If it is no finite number, or of a year that no log is of.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRecord(f"{what} is {kind_of(value)}, not a number of seconds")
    if not -_MAX_SECONDS <= value <= _MAX_SECONDS:  # also false for NaN
        raise BadRecord(f"{what} is no instant")
    try:
        return within_years(EPOCH + timedelta(seconds=value), what)
    except OverflowError:
        raise BadRecord(f"{what} is no instant") from None


def within_years(moment: datetime, what: str) -> datetime:
    """The instant, which must be of a year that a log can be of; see `mnemokit.turns.frame.YEARS`.

    Raises:
        BadRecord: If it is not.
    """
    if not FIRST_INSTANT <= moment < END_OF_INSTANTS:
        raise BadRecord(f"{what} {OUTSIDE_YEARS}")
    return moment


def kind_of(value: object) -> str:
    """What JSON calls this value.

    Example:
        >>> kind_of([1]), kind_of(None), kind_of(True)
        ('an array', 'null', 'true or false')
    """
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (bool, "true or false"),
        ((int, float), "a number"),
        (str, "text"),
        (list, "an array"),
        (dict, "an object"),
    ]
    return next((word for kind, word in kinds if isinstance(value, kind)), "null")


def meta_text(pairs: Iterable[tuple[str, object]]) -> str | None:
    """The plain attributes as JSON text with sorted keys, or None if there is none.

    Null, arrays, objects, numbers that are not finite and texts of more than 512 characters are left out.

    Example:
        >>> meta_text([("mode", "default"), ("commit", None)])
        '{"mode":"default"}'
    """
    kept = {key: value for key, value in pairs if _is_plain(value)}
    return json.dumps(kept, sort_keys=True, separators=(",", ":")) if kept else None


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return (
        isinstance(value, bool)
        or (isinstance(value, str) and len(value) <= MAX_NAME_CHARS)
        or (isinstance(value, int) and abs(value) < _LARGEST)
    )


def as_text(value: object) -> str | None:
    """Arguments or a result as text: texts as they are, anything else as JSON; lone surrogates replaced."""
    if value is None:
        return None
    try:
        found = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    except RecursionError:
        return "…"
    return found if found.isascii() else found.encode("utf-8", "replace").decode("utf-8")
