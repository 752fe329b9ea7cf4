"""Telemetry of canonical queries: which tool answered what kind of question, how often and how well. No mnests."""

from __future__ import annotations

from mnemokit.instants import Instant, as_utc, at_or_now
from mnemokit.mnests.names import checked_name
from mnemokit.store import Connection, Store
from mnemokit.store import query as sql


class Queries:
    """Counts per query, tool and shape of arguments; read them with ``mem.frame("canonical_queries")``."""

    def __init__(self, store: Store) -> None:
        """Hang the telemetry on a store."""
        self._store = store

    def record(self, query: str, tool: str, args_shape: str, ok: bool = True, at: Instant | None = None) -> None:
        """Count one use.

        Args:
            query: The query in its canonical words.
            tool: The tool that answered it.
            args_shape: Shape of the arguments, for instance ``{"to": "<str>"}``.
            ok: Did it succeed?
            at: When; the present if left out. Order of arrival does not matter.

        Raises:
            InvalidInput: If a text is empty or too long.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     mem.queries.record("weather tomorrow", "get_weather", "{}", ok=False)
            ...     mem.frame("canonical_queries").select("uses", "ok", "fail").row(0)
            (1, 0, 1)
        """
        words = checked_name(query, "query")
        by, shape = checked_name(tool, "tool"), checked_name(args_shape, "args_shape")
        moment = None if at is None else as_utc(at)

        def work(con: Connection) -> None:
            values = {"query": words, "tool": by, "args_shape": shape, "ok": int(ok), "at": at_or_now(moment)}
            con.execute(sql("query_use"), values)

        self._store.write(work)
