"""The memory of agents as one object: ``mk.open`` and what hangs on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import polars as pl

from mnemokit import frames
from mnemokit.changes.namespace import Changes
from mnemokit.changes.sessions import Session
from mnemokit.errors import Conflict, QueryError, ReadOnly
from mnemokit.given_frames import Frame
from mnemokit.instants import Instant, as_utc
from mnemokit.mnests.canonical_queries import Queries
from mnemokit.mnests.namespace import Mnests
from mnemokit.reasonlets.namespace import Reasonlets
from mnemokit.reasonlets.question_index import bring_up_to_date
from mnemokit.records import EdgeParams, RankParams, ReplayReport
from mnemokit.replay.parents import ParentPolicy
from mnemokit.replay.run import ReplayOptions, remove, replay
from mnemokit.store import Store
from mnemokit.turns.derive import CapturesPolicy, PassingsPolicy
from mnemokit.turns.reading import PathLike


class Memory:
    """An open memory. Get one with ``mk.open``; use it as a context manager or close it.

    Every call raises ``InvalidInput`` once the memory is closed; every call that writes raises ``ReadOnly`` if it was
    opened for reading only.

    Attributes:
        reasonlets: Procedures in versions, with their runs.
        mnests: Weighted edges from executor to executor.
        queries: Telemetry of canonical queries.
        changes: Memory writes that can be taken back, and people who can be forgotten.
    """

    def __init__(self, store: Store) -> None:
        """Hang the four kinds of memory on an open store."""
        self._store = store
        bring_up_to_date(store)
        self.reasonlets = Reasonlets(store)
        self.mnests = Mnests(store)
        self.queries = Queries(store)
        self.changes = Changes(store)

    @property
    def path(self) -> Path | None:
        """The file, or None for a memory in this process only."""
        return self._store.path

    @property
    def edge_params(self) -> EdgeParams:
        """The edge rule that this memory was made with."""
        return self._store.edge_params

    @property
    def rank_params(self) -> RankParams:
        """The ranking rule that this memory was made with."""
        return self._store.rank_params

    def frame(self, table: str, at: Instant | None = None) -> pl.DataFrame:
        """A public table as a frame.

        Args:
            table: One of ``mem.tables()["table"]``.
            at: Aware instant; the table as of then. Left out: as it stands.

        Returns:
            An eager frame whose columns and types never depend on its rows.

        Raises:
            NotFound: If there is no such table.
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     mem.frame("mnests").height
            0
        """
        moment = None if at is None else as_utc(at)
        schema = frames.schema_of(table)
        if table == "mnests":
            return frames.conform(self.mnests.frame(moment), schema)
        if table == "traces":
            return frames.conform(self.changes.traces(at), schema)
        if table == "session_changes":
            return frames.conform(self.changes.changes(at), schema)
        with self._store.read() as con:
            return frames.read_table(con, table, moment)

    def tables(self) -> pl.DataFrame:
        """What there is to read: a row per table and column.

        Returns:
            Columns table, rows (of the table, as it stands), column, dtype, unit, meaning.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     mem.tables().filter(table="feedback").select("rows", "column", "unit").rows()[-1]
            (0, 'ts_given', 'UTC')
        """
        with self._store.read() as con:
            return frames.describe_tables(con)

    def sql(self, query: str, params: Sequence[object] | Mapping[str, object] | None = None) -> pl.DataFrame:
        """Run one SELECT over the store's tables.

        Args:
            query: Exactly one SELECT, with ``?`` or ``$name`` where values go.
            params: The values.

        Returns:
            The rows. Integer sums, which DuckDB widens to 128 bits, come as 64-bit integers.

        Raises:
            QueryError: If DuckDB refuses the query, it is more than one statement, or a function that the memory calls
                while it writes asks it.
            ReadOnly: If it is no SELECT.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     mem.sql("SELECT count(*) AS n FROM runs WHERE outcome = ?", ["success"])["n"].item()
            0
        """
        with self._store.read() as con:
            try:
                statements = con.extract_statements(query)
            except duckdb.Error as error:
                raise QueryError(f"{_first_line(error)}; nothing was run") from error
            if len(statements) != 1:
                raise QueryError(
                    f"mem.sql takes exactly one SELECT, and this is {len(statements)} statements; nothing was run"
                )
            if statements[0].type != duckdb.StatementType.SELECT:
                raise ReadOnly(
                    f"mem.sql only reads, and this is {statements[0].type.name}; nothing was run; use mem's own calls"
                )
            if self._store.is_writing:
                raise QueryError(
                    "mem.sql was called while this very memory is being written (by a policy, an embedder or a change's"
                    " own code); nothing was run; look with mem.frame, or before the write"
                )
            try:
                relation = con.sql(query, params=params or None)
                frame = relation.pl()
            except duckdb.Error as error:
                raise QueryError(f"{_first_line(error)}; nothing was changed") from error
        return _plain_integers(frame)

    def session(self, session_id: str, *, user_id: str, brain_id: str, conversation_id: str | None = None) -> Session:
        """A learner's session, in which memory is written.

        Args:
            session_id: The session; it may be opened again later.
            user_id: The learner.
            brain_id: The memory that its writes are about.
            conversation_id: The conversation, where one session has several.

        Returns:
            The session, also a context manager; nothing is written until its first call.

        Raises:
            InvalidInput: If an id is no text or empty.
            Forgotten: If the person was forgotten and not readmitted.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     _ = session.add("likes tea", at="2025-08-01T00:00:00Z")
            ...     mem.frame("traces").select("brain_id", "content").rows()
            [('b', 'likes tea')]
        """
        return self.changes.session(session_id, user_id=user_id, brain_id=brain_id, conversation_id=conversation_id)

    def replay(
        self,
        turns: PathLike | list[PathLike] | Frame,
        source: str = "auto",
        label: str | None = None,
        ager: str | None = "daily",
        strict: bool = False,
        dry_run: bool = False,
        *,
        tz: str | None = None,
        passings: str | PassingsPolicy | None = None,
        captures: str | CapturesPolicy | None = None,
        parents: str | ParentPolicy = "same_question",
        chunk_rows: int = 2_000_000,
        progress: bool | None = None,
    ) -> ReplayReport:
        """Turn logged turns into memory, exactly once.

        Args:
            turns: A path, a glob, several paths, or a frame with a row per step (of Polars, pandas or Arrow; see
                ``mk.check_turns`` for its columns).
            source: The reader's name; "auto" decides by content.
            label: Name of the source in the store; the reader's name if left out.
            ager: "daily" ages the edges every night of the log (03:00 UTC); None does not.
            strict: Stop at the first record that cannot be used, with nothing written.
            dry_run: Report what would be done and write nothing.
            tz: Time zone of naive timestamps, where it is not the format's own.
            passings: Policy, by name or as a function, that derives passings from turns; left out, the one that
                suits the format ("grouped" mostly).
            captures: Policy that derives captures from turns; left out, the one that suits the format.
            parents: How a capture finds its parent: "same_question" (the newest one), "recall" (what a recall of its
                question would have put first at that time, one recall for each capture), "none", or a function
                (``mnemokit.replay.parents.ParentPolicy``).
            chunk_rows: Turns that are committed together.
            progress: Show progress; left out, only where somebody looks at a terminal.

        Returns:
            The account: turns + duplicates + rejects + ignored is every record read.

        Raises:
            CorruptLog: If a document is broken, or unknown to every reader (``UnknownFormat``), or with ``strict`` at
                the first record that cannot be used. Nothing was written, unless the message says how many turns of
                what was read before are in the store.
            InvalidInput: If there is no such file, reader, policy or time zone, a frame lacks a column, or an argument
                is out of range.
            ReadOnly: If the memory was opened for reading only.

        Warns:
            RejectedRecords: If not one record could be used.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["find", "buy"]})
            >>> with mk.open() as mem:
            ...     first, again = mem.replay(turns, label="log"), mem.replay(turns, label="log")
            ...     first.turns, first.passings, first.captures, again.duplicates
            (2, 1, 1, 2)
        """
        options = ReplayOptions(
            source=source,
            label=label,
            ager=ager,
            strict=strict,
            dry_run=dry_run,
            tz=tz,
            passings=passings,
            captures=captures,
            parents=parents,
            chunk_rows=chunk_rows,
            progress=progress,
        )
        return replay(self._store, turns, options)

    def remove_source(self, source: str) -> ReplayReport:
        """Take a mistaken replay back, as if it had never been made.

        Args:
            source: The source's name, as column ``source`` of the turns has it.

        Returns:
            The account of what was taken away: turns, passings, captures, rejects, ticks (nightly agers).

        Raises:
            NotFound: If no such source was replayed.
            ReadOnly: If the memory was opened for reading only.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> turns = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["find", "buy"]})
            >>> with mk.open() as mem:
            ...     _ = mem.replay(turns, label="log")
            ...     mem.remove_source("log").turns, mem.frame("mnests").height
            (2, 0)
        """
        return remove(self._store, source)

    def export(self, folder: PathLike) -> list[Path]:
        """Write every public table as Parquet.

        Args:
            folder: Made if missing; files of the same name are refused, not overwritten.

        Returns:
            The files written, ``<table>.parquet`` each, in the order of ``mem.tables()``.

        Raises:
            Conflict: If one of the files exists.

        Example:
            >>> import tempfile
            >>> import mnemokit as mk
            >>> with tempfile.TemporaryDirectory() as folder, mk.open() as mem:
            ...     files = mem.export(folder)
            >>> files[0].name, len(files)
            ('reasonlets.parquet', 16)
        """
        target = Path(folder)
        files = [target / f"{table}.parquet" for table in frames.TABLES]
        there = [file for file in files if file.exists()]
        if there:
            raise Conflict(f"{there[0]} exists already; nothing was written; name an empty folder")
        target.mkdir(parents=True, exist_ok=True)
        with self._store.read():  # all tables as of one moment
            for table, file in zip(frames.TABLES, files, strict=True):
                self.frame(table).write_parquet(file)
        return files

    def copy_to(self, path: PathLike) -> None:
        """Copy the memory, consistently, into a new file.

        Only rows are copied, so that nothing of what was erased is in the copy.

        Args:
            path: The new file.

        Raises:
            Conflict: If the file exists.
            NotFound: If there is no such folder.

        Example:
            >>> import tempfile
            >>> import mnemokit as mk
            >>> with tempfile.TemporaryDirectory() as folder, mk.open() as mem:
            ...     _ = mem.mnests.record_passing("find", "1.0", "buy", "1.0", at="2025-08-01T00:00:00Z")
            ...     mem.copy_to(f"{folder}/copy.mnemo")
            ...     with mk.open(f"{folder}/copy.mnemo", read_only=True) as copy:
            ...         copy.frame("mnests")["weight"].item()
            0.3
        """
        self._store.copy_to(path)

    def scrub(self) -> int:
        """Rewrite the file so that no byte of erased rows is left in it.

        Returns:
            Bytes that the file became smaller by (negative if it grew); 0 for a memory in this process only.

        Raises:
            ReadOnly: If the memory was opened for reading only.
            Conflict: If the same file is open a second time in this process.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.erase_subject("anna")
            ...     mem.scrub()
            0
        """
        return self._store.scrub()

    def close(self) -> None:
        """Close the file. A second call does nothing; every other call is refused from then on.

        Example:
            >>> import mnemokit as mk
            >>> mem = mk.open()
            >>> mem.close()
            >>> mem.tables()
            Traceback (most recent call last):
            mnemokit.errors.InvalidInput: the memory in this process is closed; open it again with mk.open
        """
        self._store.close()

    def __enter__(self) -> Self:
        """The memory itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def __repr__(self) -> str:
        """Where the memory is and how much is in it."""
        with self._store.read() as con:
            counts = frames.describe_tables(con).unique("table", maintain_order=True).filter(pl.col("rows") > 0)
        rows = ", ".join(f"{n:,} {table}" for table, n in counts.select("table", "rows").iter_rows())
        return f"<mnemokit memory {self.path or 'in memory'}: {rows or 'empty'}>"


def open_memory(
    path: PathLike | None = None,
    *,
    read_only: bool = False,
    edge_params: EdgeParams | None = None,
    rank_params: RankParams | None = None,
    anonymous_ids: Sequence[str] = ("anonymous", "anonymous_user"),
    threads: int | None = None,
    memory_limit: str | None = None,
) -> Memory:
    """Open a memory file, or a memory that lives in this process only.

    Args:
        path: The DuckDB file, created if missing; None keeps everything in memory.
        read_only: Open an existing file for reading only.
        edge_params: The edge rule of a new file.
        rank_params: The ranking rule of a new file.
        anonymous_ids: User ids that name no one: they get no session rows.
        threads: How many threads DuckDB may use.
        memory_limit: How much memory DuckDB may use, such as ``"2GB"``; None leaves its own choice, most of the
            machine's. What a replay prepares beside it comes on top (about 1 GB at the usual ``chunk_rows``).

    Returns:
        The memory, also a context manager.

    Raises:
        StoreLocked: If another process holds the file; the message names it.
        StoreVersion: If the file is no mnemokit file, or a newer one.
        NotFound: If a file to be read does not exist, or the folder of a new one does not.
        Conflict: If other rules are given than those that the file was made with.
        InvalidInput: If the memory limit is no amount, or a memory without a file is to be read only.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     mem
        <mnemokit memory in memory: empty>
    """
    store = Store(
        path,
        read_only=read_only,
        edge_params=edge_params,
        rank_params=rank_params,
        anonymous_ids=anonymous_ids,
        threads=threads,
        memory_limit=memory_limit,
    )
    try:
        return Memory(store)
    except BaseException:
        store.close()
        raise


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _plain_integers(frame: pl.DataFrame) -> pl.DataFrame:
    wide = [
        name
        for name, dtype in frame.schema.items()
        if dtype == pl.Int128 or (isinstance(dtype, pl.Decimal) and dtype.scale == 0 and dtype.precision == 38)
    ]
    try:
        return frame.with_columns(pl.col(wide).cast(pl.Int64)) if wide else frame
    except pl.exceptions.InvalidOperationError as error:
        raise QueryError(f"column {wide[0]!r} does not fit 64 bits; cast it to DOUBLE in the query") from error
