"""Memory writes that can be proven and taken back, and people who can be forgotten: ``mem.changes``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import polars as pl

from mnemokit import frames
from mnemokit.changes import questions as change_questions
from mnemokit.changes import recovery as change_recovery
from mnemokit.changes import reverts as change_reverts
from mnemokit.changes.blanking import Purged, blank_person
from mnemokit.changes.forgetting import (
    ForgetReceipt,
    lay_tombstone,
    lift_tombstone,
    refuse_anonymous,
    refuse_forgotten,
)
from mnemokit.changes.log import need_text
from mnemokit.changes.questions import ChangeAudit
from mnemokit.changes.session_change import OwnWrite, SessionChange
from mnemokit.changes.session_writes import Writer
from mnemokit.changes.sessions import Session
from mnemokit.changes.states import Step, no_observer
from mnemokit.changes.write_imports import ImportReport, import_writes
from mnemokit.instants import Instant, as_utc, at_or_now
from mnemokit.reasonlets.keys import checked_id
from mnemokit.records import Verdict
from mnemokit.store import Connection, Store, fetch, query


class Changes:
    """The memory writes of a store.

    Making one settles what a killed process left behind, unless the store is opened for reading only.

    Args:
        store: Where.
        observe: Told of every step of a write as it begins; what it raises happens to the write. For tests.
    """

    def __init__(self, store: Store, observe: Callable[[Step], None] = no_observer) -> None:
        """Settle writes without a verdict, and finish forgetting that was interrupted."""
        self._store = store
        self._observe = observe
        self._own: dict[str, OwnWrite] = {}
        self._writer = Writer(store, self._own, observe)
        if not store.read_only:
            self.recover()

    def recover(self) -> pl.DataFrame:
        """Settle writes that a killed process left without a verdict, and finish forgetting that it left half done.

        Returns:
            Columns change_id, operation, verdict (undone_unrecorded or undone_forgotten); empty if there was nothing to
            do.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     mem.changes.recover().shape
            (0, 3)
        """
        return change_recovery.recover(self._store)

    def session(self, session_id: str, *, user_id: str, brain_id: str, conversation_id: str | None = None) -> Session:
        """A learner's session, in which memory is written.

        Args:
            session_id: The session; it may be opened again later.
            user_id: The learner.
            brain_id: The memory that its writes are about.
            conversation_id: The conversation, where one session has several.

        Returns:
            The session; nothing is written until its first call.

        Raises:
            InvalidInput: If an id is no text or empty.
            Forgotten: If the person was forgotten and not readmitted.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.changes.session("s1", user_id="anna", brain_id="b") as session:
            ...     added = session.add("likes tea", at="2025-08-01T00:00:00Z")
            ...     mem.changes.changes().select("session_id", "user_id", "verdict").rows()
            [('s1', 'anna', 'kept')]
        """
        session = Session(self._writer, session_id, user_id, brain_id, conversation_id)
        if user_id not in self._store.anonymous_ids:
            with self._store.read() as con:
                refuse_forgotten(con, self._store, user_id)
        return session

    def import_writes(self, frame: pl.DataFrame) -> ImportReport:
        """Bring in memory writes of a log, exactly once by key.

        A write about a person who was forgotten is refused, and so is one that builds on such a write: importing an old
        log brings nothing back.

        Args:
            frame: Columns session_id, brain_id, trace_key; and, where known, those of ``write_imports.OPTIONAL``:
                source, content, content_hash, user_id, contributor_ids, conversation_id, type, scope, tags, metadata
                (or meta), parents (trace_keys), actor, ts, untimed.

        Returns:
            The account: writes + duplicates + forgotten is every row.

        Raises:
            InvalidInput: If a column is missing or of another type; nothing was written.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> log = pl.DataFrame({"session_id": ["s"], "brain_id": ["b"], "trace_key": ["k"], "content": ["tea"]})
            >>> with mk.open() as mem:
            ...     mem.changes.import_writes(log).writes, mem.changes.import_writes(log).duplicates
            (1, 1)
        """
        return import_writes(self._store, frame)

    # Taking back ----------------------------------------------------------------------------------------------------

    def revert(self, change_id: str, at: Instant | None = None, change: SessionChange | None = None) -> Verdict:
        """Take a kept write back: every trace it touched is as it was before.

        A second revert does nothing, and neither does one of a write that was undone. Nothing comes back that was
        forgotten.

        Args:
            change_id: The write.
            at: Aware instant of the revert; the present if left out.
            change: The object, for a caller's own change that another process applied: its ``undo`` is called.

        Returns:
            The verdict, with the traces that were put back.

        Raises:
            NotFound: If there is no such write.
            Conflict: If a later write to one of its traces stands (it is named), the write has no verdict yet, or it
                was a caller's own change whose object is not in this process; nothing was reverted.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     with mem.session("s1", user_id="anna", brain_id="b") as session:
            ...         added = session.add("likes tea")
            ...     mem.changes.revert(added.change_id).verdict, mem.frame("traces").height
            ('reverted', 0)
        """
        if change is not None and change_id not in self._own:
            self._own[change_id] = OwnWrite(change, change_reverts.stored_result(self._store, change_id))
        return change_reverts.revert(self._store, self._own, change_id, at_or_now(at), self._observe)

    # People ---------------------------------------------------------------------------------------------------------

    def forget_user(self, user_id: str, at: Instant | None = None) -> ForgetReceipt:
        """Forget a person: the tombstone first, then every memory write about them, in all sessions they were in.

        A write is about a person if they are its session's learner or one of its contributors. Every trace that such a
        write created, changed or deleted is gone for good: safe rather than clever, for a trace that they only changed
        goes as well. Their id becomes its keyed hash wherever it stands. Procedures, runs and turns are not touched
        here: ``mnemokit forget`` and ``forgetting.forget_everywhere`` do both.

        Args:
            user_id: The person.
            at: Aware instant; the present if left out.

        Returns:
            What was taken away.

        Raises:
            InvalidInput: If the id is no text, is empty, or is an anonymous one.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     with mem.session("s1", user_id="anna", brain_id="b") as session:
            ...         added = session.add("ben likes tea", contributor_ids=["ben"])
            ...     mem.changes.forget_user("ben").traces, mem.frame("traces").height
            (1, 0)
        """
        need_text(user_id, "user_id")
        refuse_anonymous(self._store, user_id)
        moment, name_hash = at_or_now(at), self._store.keyed_hash(user_id)
        self._observe(Step.LAY_TOMBSTONE)
        repeated = self._store.write(lambda con: lay_tombstone(con, name_hash, moment))
        purged = self._store.write(lambda con: self._blank(con, user_id, name_hash, moment))
        return replace(purged.receipt, repeated=repeated, not_undone=self._undo_own(purged.own_changes))

    def readmit(self, user_id: str, at: Instant | None = None) -> bool:
        """Let a forgotten person in again; what was forgotten stays forgotten.

        Args:
            user_id: The person.
            at: Aware instant; the present if left out.

        Returns:
            False if they were not forgotten.

        Raises:
            InvalidInput: If the id is no text or empty, or ``at`` has no time zone.
            ReadOnly: If the memory was opened for reading only.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     _ = mem.changes.forget_user("anna", at="2025-08-01T00:00:00Z")
            ...     mem.changes.readmit("anna", at="2025-08-02T00:00:00Z"), mem.changes.readmit("anna")
            (True, False)
        """
        need_text(user_id, "user_id")
        moment, name_hash = at_or_now(at), self._store.keyed_hash(user_id)

        def work(con: Connection) -> bool:
            unfinished = con.execute("SELECT 1 FROM unfinished_forgets WHERE name_hash = ?", [name_hash]).fetchall()
            if unfinished:
                blank_person(con, user_id, name_hash, moment)
            return lift_tombstone(con, name_hash, moment)

        return self._store.write(work)

    # Questions ------------------------------------------------------------------------------------------------------

    def timeline(self, trace_id: str) -> pl.DataFrame:
        """Every write and revert that touched a trace, in order.

        Args:
            trace_id: The trace; it may be deleted by now.

        Returns:
            Columns ts (UTC), change_id, move (write or revert), action (created, changed, deleted, resolved), actor,
            session_id, user_id, contributor_ids, before and after (JSON; null: there was no trace, or it was
            forgotten), verdict, reason, forgotten, seq. Empty for a trace that never was.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     trace = session.add("likes tea", at="2025-08-01T00:00:00Z").trace_ids[0]
            ...     _ = session.update(trace, content="likes coffee", at="2025-08-02T00:00:00Z")
            ...     mem.changes.timeline(trace).select("move", "action", "actor").rows()
            [('write', 'created', 'tool:memory_add'), ('write', 'changed', 'tool:memory_update')]
        """
        with self._store.read() as con:
            return change_questions.timeline(con, checked_id(trace_id, "trace_id"))

    def blame(self, trace_id: str) -> pl.DataFrame:
        """For each field of a live trace, the write that gave it its value.

        Args:
            trace_id: The trace.

        Returns:
            Columns field (content, type, scope, tags, metadata, parents), value (text; JSON for lists), change_id,
            actor, session_id, user_id, contributor_ids, ts (UTC); empty if there is no such trace now.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     trace = session.add("likes tea", at="2025-08-01T00:00:00Z").trace_ids[0]
            ...     _ = session.update(trace, content="likes coffee", at="2025-08-02T00:00:00Z")
            ...     mem.changes.blame(trace).select("field", "value", "actor").head(2).rows()
            [('content', 'likes coffee', 'tool:memory_update'), ('type', 'semantic', 'tool:memory_add')]
        """
        with self._store.read() as con:
            return change_questions.blame(con, checked_id(trace_id, "trace_id"))

    def contributors(self, session_id: str) -> pl.DataFrame:
        """The people noted in a session.

        Args:
            session_id: The session.

        Returns:
            Columns session_id, user_id (a keyed hash once forgotten), role (learner or visitor), brain_id,
            conversation_id, changes (writes they are in), ts_noted (UTC). Empty for a session without writes, or of an
            anonymous person alone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     _ = session.add("ben likes tea", contributor_ids=["ben"], at="2025-08-01T00:00:00Z")
            ...     sorted(mem.changes.contributors("s1").select("user_id", "role", "changes").rows())
            [('anna', 'learner', 1), ('ben', 'visitor', 1)]
        """
        with self._store.read() as con:
            return change_questions.contributors(con, checked_id(session_id, "session_id"))

    def impact(self, change_id: str) -> pl.DataFrame:
        """What a revert of a write would take along.

        Args:
            change_id: The write.

        Returns:
            Columns what, change_id, trace_id, session_id, depth, run_id, recall_id, reasonlet_id, ts. what is
            ``later_write`` (to the same traces: the revert is refused while they stand), ``built_on`` (a trace made
            from them, depth steps away), ``run`` or ``recall`` (of a session on the same brain at that moment or
            later, which could read them).

        Raises:
            NotFound: If there is no such write.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     added = session.add("likes tea", at="2025-08-01T00:00:00Z")
            ...     _ = session.update(added.trace_ids[0], tags=["drinks"], at="2025-08-02T00:00:00Z")
            ...     mem.changes.impact(added.change_id).select("what", "depth").rows()
            [('later_write', 1)]
        """
        with self._store.read() as con:
            return change_questions.impact(con, checked_id(change_id, "change_id"))

    def audit(self) -> ChangeAudit:
        """What is to be looked at: open writes, writes that differ from their plan, anything left of the forgotten.

        Returns:
            Five frames, as attributes and by name: open_candidates, differs_from_plan, left_of_forgotten, conflicts,
            not_undone; see ``ChangeAudit`` for their columns.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     mem.changes.audit().ok
            True
        """
        with self._store.read() as con:
            return change_questions.audit(con, self._store)

    # Frames ---------------------------------------------------------------------------------------------------------

    def traces(self, at: Instant | None = None) -> pl.DataFrame:
        """The traces as they stand, or as of an instant; what was erased is gone at every time.

        Args:
            at: Aware instant; left out: as they stand.

        Returns:
            The columns of ``mem.frame("traces")``.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     _ = session.add("likes tea", at="2025-08-02T00:00:00Z")
            ...     mem.changes.traces()["content"].to_list(), mem.changes.traces(at="2025-08-01T00:00:00Z").height
            (['likes tea'], 0)
        """
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            if moment is None:
                found = fetch(con, query("frame_traces"))
            else:
                found = fetch(con, query("frame_traces_at"), {"at": moment})
        return frames.conform(found, frames.schema_of("traces"))

    def changes(self, at: Instant | None = None) -> pl.DataFrame:
        """The memory writes with their verdicts, as they stand, or as of an instant.

        Args:
            at: Aware instant; left out: as they stand.

        Returns:
            The columns of ``mem.frame("session_changes")``.

        Raises:
            InvalidInput: If ``at`` is no instant, or has no time zone.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     _ = session.add("likes tea", at="2025-08-02T00:00:00Z")
            ...     mem.changes.changes().select("operation", "actor", "verdict").rows()
            [('add', 'tool:memory_add', 'kept')]
        """
        moment = None if at is None else as_utc(at)
        with self._store.read() as con:
            found = fetch(con, query("frame_session_changes"), {"at": moment})
        return frames.conform(found, frames.schema_of("session_changes"))

    def _blank(self, con: Connection, user_id: str, name_hash: str, at: datetime) -> Purged:
        self._observe(Step.BLANK)
        return blank_person(con, user_id, name_hash, at)

    def _undo_own(self, change_ids: tuple[str, ...]) -> tuple[str, ...]:
        """Call ``undo`` of callers' own changes about the person; those that are not in this process are returned."""
        there = [change_id for change_id in change_ids if change_id in self._own]
        for change_id in there:
            write = self._own[change_id]
            write.change.undo(write.result, "forgotten")
            del self._own[change_id]
        if there:
            self._store.write(
                lambda con: con.execute(
                    "UPDATE session_changes SET reason = 'forgotten' WHERE change_id IN (SELECT unnest($ids))",
                    {"ids": there},
                )
            )
        return tuple(change_id for change_id in change_ids if change_id not in there)
