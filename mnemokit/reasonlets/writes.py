"""The calls that write procedures: captures, runs, verdicts.

Here is only the thin shell: a call checks what a person gives, opens one transaction, and lets the rooms below work.
"""

from __future__ import annotations

import polars as pl

from mnemokit.instants import Instant, at_or_now
from mnemokit.reasonlets import calls
from mnemokit.reasonlets import graph as graphs
from mnemokit.reasonlets.capture import RECEIPTS_SCHEMA, batch_from_frame, ingest
from mnemokit.reasonlets.keys import checked_id, checked_outcome, checked_provenance, checked_text, checked_words
from mnemokit.records import Outcome, Receipt
from mnemokit.store import Store


class ReasonletWrites:
    """The writing half of ``mem.reasonlets``."""

    def __init__(self, store: Store) -> None:
        """Work on an open store."""
        self._store = store

    def capture(
        self,
        scope: str,
        question: str | None,
        graph: graphs.Graph | str,
        outcome: Outcome | None = None,
        subject: str | None = None,
        provenance: object = None,
        parent_id: str | None = None,
        recall_id: str | None = None,
        at: Instant | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Capture a procedure that was carried out, and the run that it was.

        Without a parent it is a new reasonlet; with a parent of equal graph it is one more run of that parent; with a
        parent of another graph it is a new version of it. All of it happens, or nothing.

        Args:
            scope: Where the procedure belongs; a parent must be of the same scope.
            question: What was asked. None is kept but never recalled.
            graph: ``{"nodes": [{"id", ...}], "edges": [{"src", "dst", ...}], "properties": {...}}``, or its JSON text.
            outcome: ``"success"``, ``"failure"``, or None if unknown (counts neither way).
            subject: The person it was done for.
            provenance: Where it came from: a text, or anything that JSON can carry.
            parent_id: The reasonlet that this is a version or a run of.
            recall_id: The recall that it followed; it must have searched the same scope.
            at: When; an aware instant. Left out: now.
            key: Idempotency key: the same key again returns the first receipt and writes nothing.

        Returns:
            The receipt: kind, reasonlet_id, version, run_id.

        Raises:
            InvalidInput: If a value cannot be kept; see ``graph.canonical``.
            NotFound: If the parent or the recall is not of this scope.
            Forgotten: If scope or subject were erased at ``at`` or later.
            Conflict: If the key was used for another call.

        Example:
            >>> import mnemokit as mk
            >>> plan = {"nodes": [{"id": "look"}, {"id": "book"}], "edges": [{"src": "look", "dst": "book"}]}
            >>> with mk.open() as mem:
            ...     first = mem.reasonlets.capture("travel", "book a flight", plan, outcome="success")
            ...     plan["nodes"].append({"id": "pay"})
            ...     second = mem.reasonlets.capture("travel", "book a flight", plan, parent_id=first.reasonlet_id)
            >>> str(second.kind), second.version
            ('new_version', '1.1')
        """
        given = calls.Capture(
            scope=checked_text(scope, "scope"),
            question=checked_words(question, "question"),
            content=graphs.canonical(graph),
            outcome=checked_outcome(outcome),
            subject=None if subject is None else checked_text(subject, "subject"),
            provenance=checked_provenance(provenance),
            parent_id=checked_words(parent_id, "parent_id"),
            recall_id=checked_words(recall_id, "recall_id"),
            ts=at_or_now(at),
            key_hash=self._key(key),
        )
        return self._store.write(lambda con: calls.capture(con, given, self._store.keyed_hash))

    def capture_many(self, captures: pl.DataFrame) -> pl.DataFrame:
        """Capture a batch, set-based, in one transaction.

        Args:
            captures: ``scope`` and ``graph`` (JSON text; or structs of nodes, edges and properties, whose null fields
                are left out, since a struct cannot tell null from absent), and where there are any ``question,
                outcome, subject, provenance`` (a text, or structs or lists, kept as their JSON without null fields),
                ``parent_id, recall_id, ts`` (Datetime with a time zone; null or left out: now), ``key``. Captures are
                settled in the order of their instants, then of their rows.

        Returns:
            A row per capture, in the order given: ``kind, reasonlet_id, version, run_id, written``. ``written`` is
            false for a key that was seen before; kind ``forgotten``, without ids, tells of a capture that an erasure
            refuses.

        Raises:
            InvalidInput: If a value cannot be kept (the row is named), or a column is of another type.
            NotFound: If a parent or a recall is not of the scope of its capture; the row is named.
            Conflict: If a key was used for another call.

        Example:
            >>> import mnemokit as mk
            >>> captures = pl.DataFrame({"scope": ["s", "s"], "graph": ['{"nodes":[{"id":"a"}]}', "{}"]})
            >>> with mk.open() as mem:
            ...     mem.reasonlets.capture_many(captures)["kind"].to_list()
            ['new_reasonlet', 'new_reasonlet']
        """
        keyed_hash = self._store.keyed_hash
        batch = batch_from_frame(captures, at_or_now(None), keyed_hash)
        if batch.is_empty():
            return pl.DataFrame(schema=RECEIPTS_SCHEMA)
        return self._store.write(lambda con: ingest(con, batch, keyed_hash))

    def record_run(
        self,
        reasonlet_id: str,
        outcome: Outcome | None,
        subject: str | None = None,
        provenance: object = None,
        at: Instant | None = None,
        key: str | None = None,
        recall_id: str | None = None,
    ) -> str:
        """Record one more run of a reasonlet.

        Args:
            reasonlet_id: What was run.
            outcome: ``"success"``, ``"failure"``, or None if unknown.
            subject: The person it was run for.
            provenance: Where this is known from: a text, or anything that JSON can carry.
            at: When; left out: now.
            key: Idempotency key: the same key again returns the first run's id and writes nothing.
            recall_id: The recall that it followed; it must have searched the reasonlet's scope.

        Returns:
            The run's id.

        Raises:
            InvalidInput: If a value cannot be kept: no such outcome, an empty text, what JSON cannot carry.
            NotFound: If the reasonlet is unknown, or the recall is not of its scope.
            Forgotten: If scope or subject were erased at ``at`` or later.
            Conflict: If the key was used for another call.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     made = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     _ = mem.reasonlets.record_run(made.reasonlet_id, "failure", at="2025-08-01T00:00:00Z")
            ...     mem.reasonlets.rank().select("n", "s", "rate").row(0)
            (2, 1, 0.5)
        """
        given = calls.Run(
            reasonlet_id=checked_id(reasonlet_id, "reasonlet_id"),
            outcome=checked_outcome(outcome),
            subject=None if subject is None else checked_text(subject, "subject"),
            provenance=checked_provenance(provenance),
            recall_id=checked_words(recall_id, "recall_id"),
            ts=at_or_now(at),
            key_hash=self._key(key),
        )
        return self._store.write(lambda con: calls.record_run(con, given, self._store.keyed_hash))

    def feedback(
        self,
        run_id: str,
        outcome: Outcome | None,
        subject: str | None = None,
        note: str | None = None,
        at: Instant | None = None,
        key: str | None = None,
    ) -> str:
        """Give a verdict on a run. The latest verdict replaces the run's own outcome; the run still counts once.

        Args:
            run_id: The run that is judged.
            outcome: ``"success"``, ``"failure"``, or None: unknown after all.
            subject: The person who judges.
            note: Their words.
            at: When; left out: now.
            key: Idempotency key: the same key again returns the first id and writes nothing.

        Returns:
            The feedback's id.

        Raises:
            InvalidInput: If a value cannot be kept: no such outcome, an empty subject, an instant without a time zone.
            NotFound: If the run is unknown.
            Forgotten: If the subject was erased at ``at`` or later.
            Conflict: If the key was used for another call.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     made = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]}, outcome="success")
            ...     _ = mem.reasonlets.feedback(made.run_id, "failure", note="the wrong order")
            ...     mem.frame("runs").select("outcome", "verdict").rows()
            [('success', 'failure')]
        """
        given = calls.Feedback(
            run_id=checked_id(run_id, "run_id"),
            outcome=checked_outcome(outcome),
            subject=None if subject is None else checked_text(subject, "subject"),
            note=checked_words(note, "note"),
            ts=at_or_now(at),
            key_hash=self._key(key),
        )
        return self._store.write(lambda con: calls.give_feedback(con, given, self._store.keyed_hash))

    def _key(self, key: str | None) -> str | None:
        return None if key is None else self._store.keyed_hash(checked_text(key, "key"))
