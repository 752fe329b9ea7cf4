"""Forgetting people: tombstones, and the blanking of every memory write that is about a person.

The tombstone is laid first and committed; from then on no write about the person can be kept. Then their writes lose
words and ids, and every trace that such a write created, changed or deleted is gone for good: safe rather than clever.
Tombstones hold a keyed hash of the id, never the id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mnemokit.errors import Forgotten, InvalidInput
from mnemokit.instants import Instant
from mnemokit.store import Connection, Store

REALM = "user"

KeyedHash = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class ForgetReceipt:
    """What forgetting a person took away.

    Attributes:
        sessions: Sessions in which they were the learner or a visitor.
        changes: Memory writes about them that were blanked.
        traces: Traces that are gone for good.
        copies: Writes of other people that held a copy of one of those traces, now blanked.
        session_rows: Session rows whose id became its keyed hash.
        repeated: They had been forgotten before.
        not_undone: Writes of a caller's own whose ``undo`` could not be called, because the object that made them is
            not in this process: what they did outside the store must be removed by hand.
    """

    sessions: int = 0
    changes: int = 0
    traces: int = 0
    copies: int = 0
    session_rows: int = 0
    repeated: bool = False
    not_undone: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line for a person to read."""
        line = (
            f"sessions: {self.sessions:,}; memory writes blanked: {self.changes:,}; traces gone for good: "
            f"{self.traces:,}; other people's writes with a copy blanked: {self.copies:,}"
        )
        if self.not_undone:
            line += f"; writes that reached outside the store and were not undone there: {len(self.not_undone):,}"
        return line


@dataclass(frozen=True, slots=True)
class ForgottenEverywhere:
    """The receipts of forgetting a person in all kinds of memory."""

    writes: ForgetReceipt
    procedures: object

    def __str__(self) -> str:
        """Two lines for a person to read."""
        return f"{self.writes}\n{self.procedures}"


class _Forgets(Protocol):
    def forget_user(self, user_id: str, at: Instant | None = None) -> ForgetReceipt: ...


class _Erases(Protocol):
    def erase_subject(self, subject: str) -> object: ...


class RemembersPeople(Protocol):
    """A memory in which people can be forgotten: ``mk.open`` gives one."""

    @property
    def changes(self) -> _Forgets:
        """Memory writes."""
        ...

    @property
    def reasonlets(self) -> _Erases:
        """Procedures."""
        ...


def forget_everywhere(mem: RemembersPeople, user_id: str) -> ForgottenEverywhere:
    """Forget a person in every kind of memory: their memory writes, then their procedures, runs, feedback and turns.

    Args:
        mem: The memory.
        user_id: The person.

    Returns:
        Both receipts.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     forget_everywhere(mem, "anna").writes.changes
        0
    """
    writes = mem.changes.forget_user(user_id)
    return ForgottenEverywhere(writes, mem.reasonlets.erase_subject(user_id))


# Tombstones ---------------------------------------------------------------------------------------------------------


def lay_tombstone(con: Connection, name_hash: str, at: datetime) -> bool:
    """Lay a person's tombstone and note that the blanking is still to come.

    Returns:
        True if they were forgotten already.
    """
    there = con.execute(
        "UPDATE tombstones SET ts_forgotten = CASE WHEN ts_readmitted IS NULL THEN ts_forgotten ELSE $at END, "
        "ts_readmitted = NULL WHERE name_hash = $name_hash AND realm = $realm RETURNING name_hash",
        {"name_hash": name_hash, "realm": REALM, "at": at},
    ).fetchall()
    if not there:
        con.execute(
            "INSERT INTO tombstones (name_hash, realm, ts_forgotten, ts_readmitted) VALUES (?, ?, ?, NULL)",
            [name_hash, REALM, at],
        )
    con.execute("INSERT OR IGNORE INTO unfinished_forgets VALUES (?)", [name_hash])
    return bool(there)


def lift_tombstone(con: Connection, name_hash: str, at: datetime) -> bool:
    """Readmit a person; the tombstone stays, with the instant of their return.

    Returns:
        False if they were not forgotten.
    """
    lifted = con.execute(
        "UPDATE tombstones SET ts_readmitted = $at "
        "WHERE name_hash = $name_hash AND realm = $realm AND ts_readmitted IS NULL RETURNING name_hash",
        {"name_hash": name_hash, "realm": REALM, "at": at},
    ).fetchall()
    return bool(lifted)


def forgotten_among(con: Connection, keyed_hash: KeyedHash, names: Iterable[str]) -> dict[str, str]:
    """Those of the names that belong to a forgotten person now, each with its keyed hash."""
    hashes = {keyed_hash(name): name for name in names}
    if not hashes:
        return {}
    found = con.execute(
        "SELECT name_hash FROM tombstones WHERE realm = $realm AND ts_readmitted IS NULL "
        "AND name_hash IN (SELECT unnest($hashes))",
        {"realm": REALM, "hashes": list(hashes)},
    ).fetchall()
    return {hashes[name_hash]: name_hash for (name_hash,) in found}


def tombstone_hashes(con: Connection, names: Sequence[str]) -> set[str]:
    """Those of the names that are keyed hashes of persons who were forgotten once."""
    if not names:
        return set()
    found = con.execute(
        "SELECT name_hash FROM tombstones WHERE realm = $realm AND name_hash IN (SELECT unnest($names))",
        {"realm": REALM, "names": list(names)},
    ).fetchall()
    return {name_hash for (name_hash,) in found}


def refuse_forgotten(con: Connection, store: Store, user_id: str) -> None:
    """Raise ``Forgotten`` if this person was forgotten and not readmitted."""
    if forgotten_among(con, store.keyed_hash, [user_id]):
        raise Forgotten(
            "this session's learner was forgotten; nothing was written; mem.changes.readmit(user_id) lets them in again"
        )


def refuse_anonymous(store: Store, user_id: str) -> None:
    """Raise ``InvalidInput`` for an id that names no one."""
    if user_id in store.anonymous_ids:
        raise InvalidInput(f"user_id={user_id!r} names no one, so nobody can be forgotten by it; nothing was changed")
