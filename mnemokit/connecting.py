"""Opening DuckDB: errors that say who holds a file, and settings that nobody can change afterwards."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

from mnemokit.errors import InvalidInput, NotFound, StoreLocked, StoreVersion
from mnemokit.migrations import Connection

SHARED_CONFIG: dict[str, str | bool | int | float | list[str]] = {"python_enable_replacements": False}

_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?) ?([KMGT])(I?)B", re.IGNORECASE)

LEAST_MEMORY = 64
"""Megabytes: with less, DuckDB may fail before its first query."""
_MOST_MEMORY = 2**63


def connect_file(path: Path, *, read_only: bool) -> Connection:
    """Connect to a file.

    Raises:
        StoreLocked: If another process holds it, or this one in another mode.
        StoreVersion: If it is no DuckDB file.
        NotFound: If there is no such folder.
    """
    # DuckDB opens a file of data (CSV, JSON, Parquet) as an empty database in memory, whose rows would be lost.
    if path.is_file() and path.stat().st_size and not _is_database(path):
        raise StoreVersion(
            f"{path} is not a DuckDB file; it was left as it is; name another file "
            "(the memory's comes first, the logs' after it)"
        )
    try:
        return duckdb.connect(str(path), read_only=read_only, config=SHARED_CONFIG)
    except duckdb.Error as error:
        text = str(error)
        holder = re.search(r"held in (?P<program>.*?) \(PID (?P<pid>\d+)\)", text)
        if holder:
            raise StoreLocked(
                f"{path} is held by process {holder['pid']} ({Path(holder['program']).name}); nothing was touched; "
                "close it there, or read a copy made with mem.copy_to (many writers: see mk.TurnLog)"
            ) from None
        if "could not set lock" in text.lower():
            raise StoreLocked(
                f"{path} is held by another process; nothing was read or written; close it there"
            ) from None
        if "different configuration" in text.lower():
            raise StoreLocked(
                f"{path} is already open in this process in another mode; nothing was read or written; close it first"
            ) from None
        if not path.parent.exists():
            raise NotFound(f"the folder {path.parent} does not exist; nothing was created; make it first") from None
        raise StoreVersion(f"{path} cannot be opened: {text.splitlines()[0]}; it was left as it is") from error


def _is_database(path: Path) -> bool:
    """Does the file begin as a DuckDB database does: a checksum of eight bytes, then its name?"""
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return True  # why it cannot be read is DuckDB's to say


def check_memory_limit(memory_limit: object) -> None:
    """Refuse what is no amount of memory, or too little.

    Raises:
        InvalidInput: If it is one of these.
    """
    amount = _AMOUNT.fullmatch(memory_limit) if isinstance(memory_limit, str) else None
    size = 0.0
    if amount is not None:
        number, unit, binary = amount.groups()
        size = float(number) * (1024 if binary else 1000) ** ("KMGT".index(unit.upper()) + 1)
    if amount is None or size >= _MOST_MEMORY:
        raise InvalidInput(
            f"memory_limit={memory_limit!r} is no amount of memory; nothing was opened; give one such as '2GB'"
        )
    if size < LEAST_MEMORY * 1000**2:
        raise InvalidInput(
            f"memory_limit={memory_limit!r} is less than {LEAST_MEMORY}MB, with which DuckDB cannot work; "
            "nothing was opened; give more, such as '2GB'"
        )


def lock_down(con: Connection, threads: int | None, memory_limit: str | None) -> None:
    """Set what a store needs, and let no query change it: UTC, no look at other files."""
    # A second connection of this process shares the instance, whose settings are locked already.
    locked = con.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]
    if locked:
        return
    # Globally, or a second connection would have the machine's own time zone and could not change it any more.
    con.execute("SET GLOBAL TimeZone = 'UTC'")
    if threads is not None:
        con.execute("SET threads = ?", [threads])
    if memory_limit is not None:
        con.execute("SET memory_limit = ?", [memory_limit])
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
