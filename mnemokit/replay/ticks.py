"""Which nightly ager instants a replay adds to a store.

Ticks fall at a fixed hour of the day (UTC), after the store's first timed passing and up to its last, never up to the
present. A later replay goes on after the last tick there was, and adds the earlier ticks that a log reaching further
back needs; between ticks that are there already it adds none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from mnemokit.store import Connection
from mnemokit.turns.frame import END_OF_INSTANTS


@dataclass(frozen=True, slots=True)
class Bounds:
    """First and last instant of something; both None if there is nothing."""

    first: datetime | None
    last: datetime | None

    def including(self, other: Bounds) -> Bounds:
        """The bounds of both together."""
        firsts = [moment for moment in (self.first, other.first) if moment is not None]
        lasts = [moment for moment in (self.last, other.last) if moment is not None]
        return Bounds(min(firsts, default=None), max(lasts, default=None))


def stored_bounds(con: Connection) -> Bounds:
    """First and last ager instant in the store, of whatever kind."""
    first, last = con.execute("SELECT min(ts_ager), max(ts_ager) FROM ager_runs").fetchall()[0]
    return Bounds(first, last)


def passing_bounds(con: Connection) -> Bounds:
    """First and last timed passing in the store."""
    first, last = con.execute(
        "SELECT min(ts), max(ts) FROM edge_events WHERE kind = 'passing' AND NOT untimed"
    ).fetchall()[0]
    return Bounds(first, last)


def daily_ticks(passings: Bounds, hour: int) -> list[datetime]:
    """Every instant at the hour (UTC) after the first passing, up to and including the last.

    They end where the instants of logs do: a passing that a caller recorded may be of any year, and one slip of a
    century would bring 36,525 nights.

    Example:
        >>> from datetime import UTC
        >>> spring = Bounds(datetime(2025, 3, 1, 12, tzinfo=UTC), datetime(2025, 3, 3, 3, tzinfo=UTC))
        >>> [tick.isoformat() for tick in daily_ticks(spring, 3)]
        ['2025-03-02T03:00:00+00:00', '2025-03-03T03:00:00+00:00']
    """
    if passings.first is None or passings.last is None or passings.first >= END_OF_INSTANTS:
        return []
    last = min(passings.last, END_OF_INSTANTS)
    tick = passings.first.replace(hour=hour, minute=0, second=0, microsecond=0)
    if tick <= passings.first:
        tick += timedelta(days=1)
    ticks: list[datetime] = []
    while tick <= last:
        ticks.append(tick)
        tick += timedelta(days=1)
    return ticks


def ticks_to_add(passings: Bounds, *, when_begun: Bounds, stored: frozenset[datetime], hour: int) -> list[datetime]:
    """The ticks that a chunk adds.

    Args:
        passings: First and last timed passing of the store, the chunk's included.
        when_begun: First and last tick there was when this replay began: nothing is added between them.
        stored: Every tick there is now.
        hour: Hour of the day (UTC).
    """
    return [
        tick
        for tick in daily_ticks(passings, hour)
        if tick not in stored
        and (when_begun.first is None or when_begun.last is None or tick < when_begun.first or tick > when_begun.last)
    ]
