"""One DuckDB file: opening it, its lock, its schema version, and its transactions.

Everything above this room works on frames; everything below it is DuckDB's. A ``Store`` is safe to share between
threads: its one connection is guarded by a lock. A second ``Store`` on the same file in the same process shares the
database, and the writers of both queue.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, TypeVar, cast

import duckdb
import polars as pl

from mnemokit.connecting import SHARED_CONFIG, check_memory_limit, connect_file, lock_down
from mnemokit.errors import ConcurrentWrite, Conflict, InvalidInput, NotFound, ReadOnly
from mnemokit.migrations import Connection, migrate, packaged_migrations, roll_back
from mnemokit.open_files import OpenFile, note_closed, note_open
from mnemokit.records import EdgeParams, RankParams, params_from_json, params_to_json

Params = Sequence[object] | Mapping[str, object]
T = TypeVar("T")
P = TypeVar("P", EdgeParams, RankParams)

WRITE_RETRIES = 50
"""How often a write is tried again when another writer changed the same rows first."""


class Store:
    """An open memory file, or a memory that lives in this process only.

    Args:
        path: The file, created if missing; None for a store in memory.
        read_only: Open an existing file for reading only.
        edge_params: The edge rule, stored in a new file; the file keeps it from then on.
        rank_params: The ranking rule, likewise.
        anonymous_ids: User ids that name no one.
        threads: DuckDB's threads; None leaves DuckDB's own choice.
        memory_limit: DuckDB's memory, such as "2GB"; None leaves DuckDB's own choice.

    Raises:
        StoreLocked: If another process holds the file.
        StoreVersion: If the file is no mnemokit store, or a newer one.
        NotFound: If a file to be read does not exist.
        Conflict: If other parameters are given than those the file was made with.
        InvalidInput: If the memory limit is no amount, or less than DuckDB can work with.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        read_only: bool = False,
        edge_params: EdgeParams | None = None,
        rank_params: RankParams | None = None,
        anonymous_ids: Sequence[str] = ("anonymous", "anonymous_user"),
        threads: int | None = None,
        memory_limit: str | None = None,
    ) -> None:
        """Open the file and bring its schema up to date."""
        self.path = None if path is None or str(path) == ":memory:" else Path(path)
        self.read_only = read_only
        self.anonymous_ids = frozenset(anonymous_ids)
        self.threads = threads
        self.memory_limit = memory_limit
        if memory_limit is not None:
            check_memory_limit(memory_limit)
        self._lock = threading.RLock()
        self._closed = False
        self._doing: Literal["read", "write"] | None = None
        self._con = self._connect()
        try:
            migrate(self._con, packaged_migrations(), read_only=read_only, where=self.name)
            self.edge_params = self._settled("edge_params", edge_params, EdgeParams)
            self.rank_params = self._settled("rank_params", rank_params, RankParams)
            self._hash_key = bytes.fromhex(self._info("hash_key") or "")
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """What to call this store in a message."""
        return "the memory in this process" if self.path is None else str(self.path)

    @contextmanager
    def read(self) -> Generator[Connection, None, None]:
        """The connection, for reading, guarded against other threads: all that is read inside is of one moment.

        Inside a read, or a write, of the same thread it reads what that one sees.
        """
        with self._lock:
            self._refuse_closed()
            if self._doing is not None:
                yield self._con
                return
            self._con.execute("BEGIN TRANSACTION READ ONLY")
            self._doing = "read"
            try:
                yield self._con
            finally:
                self._doing = None
                roll_back(self._con)

    @property
    def is_writing(self) -> bool:
        """Is a write under way? To be asked inside a read: it is then this thread's own."""
        return self._doing == "write"

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work(con)`` in one transaction and commit it; all of it happens or nothing does.

        Writers of one file queue, also those of other stores. ``work`` must be repeatable all the same: when a DuckDB
        connection of the caller's own changed the same rows, it is run again from the start, at most ``WRITE_RETRIES``
        times.

        Raises:
            ReadOnly: If the store was opened for reading only.
            Conflict: If a function that the store calls while it reads or writes wants to write.
            ConcurrentWrite: If the retries are used up.
        """
        if self.read_only:
            raise ReadOnly(f"{self.name} was opened with read_only=True; nothing was written; open it without to write")
        for attempt in range(WRITE_RETRIES + 1):
            try:
                return self._write_once(work)
            except duckdb.TransactionException as error:
                if attempt == WRITE_RETRIES:
                    raise ConcurrentWrite(
                        f"{self.name}: another writer kept changing the same rows through {WRITE_RETRIES} retries; "
                        "nothing was written; try again when it is done"
                    ) from error
            # The waits differ between threads so that two writers do not meet again and again; nothing depends on them.
            time.sleep(min(0.1, 0.001 * 1.3**attempt) * (0.5 + random.random()))  # noqa: S311
        raise AssertionError("unreachable")

    def keyed_hash(self, text: str) -> str:
        """The text's keyed hash (HMAC-SHA256 with this store's own secret), as 64 hex digits."""
        return hmac.new(self._hash_key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def copy_to(self, path: str | os.PathLike[str]) -> None:
        """Copy every row, and nothing that was erased, into a new file.

        The copy is consistent: it is one transaction's view.

        Raises:
            Conflict: If there is a file already.
        """
        target = Path(path)
        if target.exists():
            raise Conflict(f"{target} exists already; nothing was copied; remove it or name another file")
        with self.read() as con:
            _copy_into_new_file(con, target)

    def scrub(self) -> int:
        """Rewrite the file so that no byte of deleted rows is left in it.

        DuckDB keeps the bytes of deleted rows in the file until they are written over, so the live rows are copied into
        a fresh file which then takes the old one's place.

        Returns:
            Bytes that the file became smaller by (negative if it grew); 0 for a store in memory.

        Raises:
            ReadOnly: If the store was opened for reading only.
            Conflict: If the same file is open a second time in this process.
        """
        if self.read_only:
            raise ReadOnly(f"{self.name} was opened with read_only=True; it was not scrubbed")
        if self.path is None:
            return 0
        with self._lock:
            self._refuse_closed()
            if self._file.stores > 1:
                raise Conflict(
                    f"{self.path} is open more than once in this process; it was not scrubbed; close the others"
                )
            fresh = self.path.with_name(self.path.name + ".scrub")
            fresh.unlink(missing_ok=True)
            before = self.path.stat().st_size
            try:
                self.copy_to(fresh)
                self.close()
                _sync(fresh)
                fresh.replace(self.path)
                # A clean close leaves no log; one left by an earlier crash would hold erased rows.
                self.path.with_name(self.path.name + ".wal").unlink(missing_ok=True)
                _sync(self.path.parent)
            finally:
                fresh.unlink(missing_ok=True)
                if self._closed:
                    self._con = self._connect()
                    self._closed = False
            return before - self.path.stat().st_size

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._con.close()
                self._closed = True
                if self.path is not None:
                    note_closed(self.path)

    def _connect(self) -> Connection:
        if self.path is None:
            if self.read_only:
                raise InvalidInput("a store in memory cannot be read_only: there would be nothing in it")
            con = duckdb.connect(":memory:", config=SHARED_CONFIG)
        else:
            if self.read_only and not self.path.exists():
                raise NotFound(f"{self.path} does not exist; open it without read_only=True to create it")
            con = connect_file(self.path, read_only=self.read_only)
        lock_down(con, self.threads, self.memory_limit)
        self._file = OpenFile(stores=1) if self.path is None else note_open(self.path)
        return con

    def _write_once(self, work: Callable[[Connection], T]) -> T:
        with self._lock:
            self._refuse_closed()
            if self._doing is not None:
                raise Conflict(
                    f"{self.name} was to be written by a function that it calls while it {self._doing}s; nothing of "
                    "that was written; write before or after"
                )
            with self._file.writing:
                self._con.execute("BEGIN TRANSACTION")
                self._doing = "write"
                try:
                    result = work(self._con)
                    self._con.execute("COMMIT")
                except BaseException:
                    roll_back(self._con)
                    raise
                finally:
                    self._doing = None
                return result

    def _info(self, name: str) -> str | None:
        rows = self._con.execute("SELECT value FROM store_info WHERE name = ?", [name]).fetchall()
        return rows[0][0] if rows else None

    def _settled(self, name: str, given: P | None, kind: type[P]) -> P:
        stored = self._info(name)
        if stored is not None:
            params = params_from_json(kind, stored)
            if given is not None and given != params:
                raise Conflict(
                    f"{self.name} was made with {params}, not with {given}; nothing was changed; open it without {name}"
                )
            return params
        params = given or kind()
        if not self.read_only:
            self._con.execute("INSERT OR IGNORE INTO store_info VALUES (?, ?)", [name, params_to_json(params)])
        return params

    def _refuse_closed(self) -> None:
        if self._closed:
            raise InvalidInput(f"{self.name} is closed; open it again with mk.open")


def fetch(con: Connection, sql: str, params: Params | None = None) -> pl.DataFrame:
    """Run one query and hold its rows in an eager frame; instants come as ``Datetime("us", "UTC")``."""
    return con.sql(sql, params=params or None).pl()


@contextmanager
def lend(con: Connection, **frames: pl.DataFrame) -> Generator[None, None, None]:
    """Let SQL see frames under the given names, for the length of the block."""
    for name, frame in frames.items():
        # Newer Arrow has texts as Polars has them, so that none is copied. (Of lists of them, if all are empty, Polars
        # makes what PyArrow does not take.)
        nested = any(dtype.is_nested() for dtype in frame.dtypes)
        level = pl.CompatLevel.oldest() if nested else pl.CompatLevel.newest()
        con.register(name, cast("object", frame.to_arrow(compat_level=level)))
    try:
        yield
    finally:
        for name in frames:
            # In a transaction that failed nothing can be unregistered; its rollback takes the names with it.
            with suppress(duckdb.TransactionException):
                con.unregister(name)


@cache
def query(name: str) -> str:
    """The text of ``mnemokit/sql/<name>.sql``."""
    return resources.files("mnemokit").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def take_numbers(con: Connection, counter: str, n: int = 1) -> int:
    """Take a block of ``n`` numbers from a counter and return the first.

    Two writers that take from one counter at once conflict, and one of them is retried: no number is given out twice.
    """
    rows = con.execute(
        "UPDATE counters SET next_free = next_free + $n WHERE name = $name RETURNING next_free",
        {"name": counter, "n": n},
    ).fetchall()
    return int(rows[0][0]) - n


def new_ids(prefix: str, n: int = 1) -> list[str]:
    """Random ids: the prefix and 24 hex digits (96 random bits).

    Example:
        >>> [len(name) for name in new_ids("mn_", 2)]
        [27, 27]
    """
    digits = secrets.token_hex(12 * n)
    return [f"{prefix}{digits[i : i + 24]}" for i in range(0, 24 * n, 24)]


def remember(con: Connection, key_hash: str, call: str, result: str) -> None:
    """Keep the result (JSON) of a call under its idempotency key."""
    con.execute("INSERT INTO idempotency_keys VALUES (?, ?, ?)", [key_hash, call, result])


_COPY_BATCH = 200_000


def _copy_into_new_file(con: Connection, target: Path) -> None:
    tables = con.execute(
        "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND schema_name = 'main' ORDER BY table_oid"
    ).fetchall()
    copy = connect_file(target, read_only=False)
    try:
        migrate(copy, packaged_migrations(), where=str(target))
        copy.execute("BEGIN TRANSACTION")
        for (table,) in tables:
            # Table names come from this schema's own catalogue, quoted as identifiers; they are no user's values.
            name = '"' + table.replace('"', '""') + '"'
            copy.execute(f"DELETE FROM {name}")  # noqa: S608
            reader = con.sql(f"SELECT * FROM {name}").to_arrow_reader(_COPY_BATCH)  # noqa: S608
            copy.register("rows_to_copy", reader)
            copy.execute(f"INSERT INTO {name} SELECT * FROM rows_to_copy")  # noqa: S608
            copy.unregister("rows_to_copy")
        copy.execute("COMMIT")
        copy.execute("CHECKPOINT")
    except BaseException:
        copy.close()
        target.unlink(missing_ok=True)
        raise
    copy.close()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
