"""Instants: aware UTC in, aware UTC out, and whole microseconds in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mnemokit.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY_US = 86_400_000_000

Instant = datetime | str


def as_utc(value: Instant, name: str = "at") -> datetime:
    """Read an instant given by a user.

    Args:
        value: An aware datetime, or an ISO 8601 string with an offset.
        name: The argument's name, for the error.

    Returns:
        The same instant in UTC.

    Raises:
        InvalidInput: If the value is naive, not ISO 8601, or of another type.

    Example:
        >>> as_utc("2025-08-01T12:00:00+02:00").isoformat()
        '2025-08-01T10:00:00+00:00'
    """
    moment = value
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidInput(
                f"{name}={value!r} is not an ISO 8601 instant; write it like 2025-08-01T12:00:00+00:00"
            ) from None
    if not isinstance(moment, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"{name} must be an aware datetime or an ISO 8601 string, not {type(value).__name__}")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(f"{name}={value!s} has no time zone; add an offset, for instance +00:00 for UTC")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{name}={value!s} is outside the years 1 to 9999 in UTC") from None


def present() -> datetime:
    """The present, for writing calls that were given no instant. The library's only clock."""
    return datetime.now(UTC)


def at_or_now(value: Instant | None, name: str = "at") -> datetime:
    """The instant given, else the present."""
    return present() if value is None else as_utc(value, name)


def to_us(moment: datetime) -> int:
    """Whole microseconds since 1970-01-01T00:00:00Z.

    Example:
        >>> to_us(datetime(1970, 1, 2, tzinfo=UTC))
        86400000000
    """
    return (moment - EPOCH) // MICROSECOND


def from_us(us: int) -> datetime:
    """The instant so many microseconds after 1970-01-01T00:00:00Z."""
    return EPOCH + timedelta(microseconds=us)
