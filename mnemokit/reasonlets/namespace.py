"""The procedural memory: procedures that were captured, their versions, and how their runs went.

reasonlet_writes  capture, record_run, feedback        reasonlet_reads  rank, recall, get, lineage, explain
here              erasure, pruning, export and import
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from mnemokit.errors import InvalidInput
from mnemokit.instants import Instant, at_or_now
from mnemokit.reasonlets import erasure, exchange
from mnemokit.reasonlets.erasure import ErasureReceipt, PruneReceipt
from mnemokit.reasonlets.exchange import ExchangeReceipt
from mnemokit.reasonlets.exchange_files import read_exchange, write_exchange
from mnemokit.reasonlets.keys import checked_text, checked_words
from mnemokit.reasonlets.reads import ReasonletReads
from mnemokit.reasonlets.writes import ReasonletWrites


class Reasonlets(ReasonletWrites, ReasonletReads):
    """Procedures in versions, with their runs; hangs on a memory as ``mem.reasonlets``."""

    def erase_scope(self, scope: str, at: Instant | None = None) -> ErasureReceipt:
        """Erase everything of a scope: reasonlets, runs, feedback, recalls, and what the log says of it.

        A keyed hash of the scope's name stays, so that replaying an old log recreates nothing. The bytes leave the file
        with ``mem.scrub()``.

        Args:
            scope: The scope.
            at: When it is erased; left out: now. What happens later can be recorded again.

        Returns:
            Counts of what went; all 0, and nothing written, if there was nothing.

        Raises:
            InvalidInput: If scope is no text or empty, or ``at`` has no time zone.
            ReadOnly: If the memory was opened for reading only.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     receipt = mem.reasonlets.erase_scope("s")
            >>> receipt.reasonlets, receipt.runs
            (1, 1)
        """
        name, moment = checked_text(scope, "scope"), at_or_now(at)
        return self._store.write(lambda con: erasure.erase_scope(con, name, moment, self._store.keyed_hash))

    def erase_subject(self, subject: str, at: Instant | None = None) -> ErasureReceipt:
        """Erase a person: what belongs to them, what they did elsewhere, and their words in the log.

        Everyone else's reasonlets stay; a kept child of an erased one becomes the root of its own lineage, keeps its
        label, and ranks with the neutral prior. A keyed hash of the id stays, so that replaying an old log recreates
        nothing. The bytes leave the file with ``mem.scrub()``.

        Args:
            subject: The person's id.
            at: When they are erased; left out: now. What happens later can be recorded again.

        Returns:
            Counts of what went; all 0, and nothing written, if there was nothing.

        Raises:
            InvalidInput: If subject is no text or empty, or ``at`` has no time zone.
            ReadOnly: If the memory was opened for reading only.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     made = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, subject="anna")
            ...     _ = mem.reasonlets.record_run(made.reasonlet_id, "success", subject="ben")
            ...     receipt = mem.reasonlets.erase_subject("anna")
            >>> receipt.reasonlets, receipt.runs
            (1, 2)
        """
        name, moment = checked_text(subject, "subject"), at_or_now(at)
        return self._store.write(lambda con: erasure.erase_subject(con, name, moment, self._store.keyed_hash))

    def prune(self, unused_for: timedelta, now: Instant | None = None, dry_run: bool = False) -> PruneReceipt:
        """Remove reasonlets that had no run, and no recall that showed them, for a time.

        One with a version below it that was used stays: no kept version ever loses its parent. What came from a log
        without times stays too, since nobody can tell when it was used. A lineage's labels are not given out again.

        Args:
            unused_for: For how long; use exactly so long ago is no use any more.
            now: The instant to count back from; left out: now.
            dry_run: Only tell what would go.

        Returns:
            Counts, and the ids of the reasonlets.

        Raises:
            InvalidInput: If the time is no timedelta, is negative, or reaches back to before the year 1.

        Example:
            >>> from datetime import timedelta
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {}, at="2025-01-01T00:00:00Z")
            ...     mem.reasonlets.prune(timedelta(days=30), now="2025-03-01T00:00:00Z", dry_run=True).reasonlets
            1
        """
        since = erasure.prune_since(unused_for, at_or_now(now, "now"))
        if dry_run:
            with self._store.read() as con:
                return erasure.prune(con, since, dry_run=True)
        return self._store.write(lambda con: erasure.prune(con, since, dry_run=False))

    def export_to(
        self, path: str | os.PathLike[str], scope: str | None = None, reasonlet_id: str | None = None
    ) -> ExchangeReceipt:
        """Write a scope, or the lineage of a reasonlet, to a file, with its runs, verdicts and recalls.

        Args:
            path: A new file; ``.jsonl`` (a record per line) or ``.parquet``.
            scope: The scope; or
            reasonlet_id: any version of the lineage.

        Returns:
            Counts of what was written.

        Raises:
            InvalidInput: If not exactly one of scope and reasonlet_id is given, the name ends otherwise, or the file
                cannot be written.
            NotFound: If the reasonlet is unknown, or there is no such folder.
            Conflict: If there is a file already.

        Example:
            >>> import tempfile
            >>> import mnemokit as mk
            >>> with tempfile.TemporaryDirectory() as folder, mk.open() as mem:
            ...     _ = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     receipt = mem.reasonlets.export_to(f"{folder}/s.jsonl", scope="s")
            >>> receipt.reasonlets, receipt.runs
            (1, 1)
        """
        if (scope is None) == (reasonlet_id is None):
            raise InvalidInput("give either scope= or reasonlet_id= to export; nothing was written")
        name, lineage = checked_words(scope, "scope"), checked_words(reasonlet_id, "reasonlet_id")
        with self._store.read() as con:
            records = exchange.export_records(con, name, lineage)
        write_exchange(records, Path(path))
        return exchange.receipt_of_export(records)

    def import_from(self, path: str | os.PathLike[str]) -> ExchangeReceipt:
        """Read a file that ``export_to`` wrote, in one transaction.

        Ids, labels and instants stay what they are. What is here already, and equal, is skipped, so that an import can
        be repeated; what an erasure refuses is left out.

        Args:
            path: The file.

        Returns:
            Counts of what was written, was known, and was refused.

        Raises:
            NotFound: If there is no such file.
            CorruptLog: If it is not such a file, or a record lacks a value, is there twice, or has a graph that is not
                the one its hash was taken of; the line (of Parquet: the row) and the column are named.
            InvalidInput: If a value cannot be kept, or a record names another that is neither in the file nor here.
            Conflict: If a record or a label is here already and differs.

        Example:
            >>> import tempfile
            >>> import mnemokit as mk
            >>> with tempfile.TemporaryDirectory() as folder, mk.open() as here, mk.open() as there:
            ...     _ = here.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     _ = here.reasonlets.export_to(f"{folder}/s.jsonl", scope="s")
            ...     there.reasonlets.import_from(f"{folder}/s.jsonl").reasonlets, there.frame("runs").height
            (1, 1)
        """
        records = read_exchange(Path(path))
        keyed_hash = self._store.keyed_hash
        return self._store.write(lambda con: exchange.import_records(con, records, keyed_hash))
