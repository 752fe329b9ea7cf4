"""A learner's session: the calls in which memory is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType, TracebackType
from typing import Self

from mnemokit.changes.log import Place, as_json, need_text, need_texts
from mnemokit.changes.session_change import SessionChange, UndoReason
from mnemokit.changes.session_writes import Writer
from mnemokit.changes.states import MOVES, OPEN, ChangeState, moves_as_markdown
from mnemokit.changes.trace_operations import Add, Delete, Merge, RollingSummary, Update
from mnemokit.errors import InvalidInput
from mnemokit.instants import Instant, at_or_now
from mnemokit.records import Verdict
from mnemokit.store import new_ids

__all__ = ["MOVES", "OPEN", "ChangeState", "Session", "SessionChange", "UndoReason", "moves_as_markdown"]


class Session:
    """A session of one learner. Get one from ``mem.session``; every call in it is one memory write.

    Each write is recorded with its plan before it is made, is made, and then gets its verdict: see ``Verdict``. An
    error inside the ``with`` block takes nothing back: what has a verdict stays.

    Every write raises ``Forgotten`` if the learner was forgotten meanwhile, ``InvalidInput`` if a value cannot be used
    or the session has ended, ``Conflict`` if another write to the same traces gets no verdict in time, and ``ReadOnly``
    if the memory was opened for reading only.

    Attributes:
        session_id: The session.
        user_id: Its learner.
        brain_id: The memory that it writes.
        conversation_id: The conversation, or None.
    """

    def __init__(
        self, writer: Writer, session_id: str, user_id: str, brain_id: str, conversation_id: str | None = None
    ) -> None:
        """Nothing is written until the first call."""
        self.session_id = need_text(session_id, "session_id")
        self.user_id = need_text(user_id, "user_id")
        self.brain_id = need_text(brain_id, "brain_id")
        self.conversation_id = None if conversation_id is None else need_text(conversation_id, "conversation_id")
        self._writer = writer
        self._closed = False

    def add(
        self,
        content: str | Sequence[str],
        type: str = "semantic",  # noqa: A002 - the column's name
        scope: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
        parents: Sequence[str] = (),
        contributor_ids: Sequence[str] = (),
        actor: str = "tool:memory_add",
        at: Instant | None = None,
    ) -> Verdict:
        """Add a trace.

        Words that are there already, in the same brain, scope and type, resolve to the trace that holds them: the
        verdict names it, and a revert leaves it.

        Args:
            content: The words; or several texts, each of which becomes a trace, all in one write.
            type: For instance semantic, episodic, summary.
            scope: Scope within the brain.
            tags: Labels.
            metadata: What else is to be said of it: anything JSON can carry.
            parents: Traces that it was made from; their contributors are inherited.
            contributor_ids: The people whose words these are, besides the learner.
            actor: What writes.
            at: Aware instant of the write; the present if left out.

        Returns:
            The verdict with the trace.

        Raises:
            Forgotten: If the learner was forgotten meanwhile.
            NotFound: If a parent is not there.
            InvalidInput: If a value cannot be used, or the session has ended.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     first = session.add("likes tea", contributor_ids=["ben"])
            ...     again = session.add("likes tea")
            >>> first.verdict, again.trace_ids == first.trace_ids
            ('kept', True)
        """
        contents = (content,) if isinstance(content, str) else need_texts(content, "content")
        if not contents:
            raise InvalidInput("content holds no text; nothing was written")
        operation = Add(
            trace_ids=tuple(new_ids("tr_", len(contents))),
            contents=tuple(need_text(text, "content") for text in contents),
            type=need_text(type, "type"),
            scope=None if scope is None else need_text(scope, "scope"),
            tags=need_texts(tags, "tags"),
            metadata=_metadata(metadata),
            parents=_ids(parents, "parents"),
        )
        return self._write(operation, contributor_ids, actor, at)

    def update(
        self,
        trace_id: str,
        content: str | EllipsisType = ...,
        type: str | EllipsisType = ...,  # noqa: A002 - the column's name
        scope: str | EllipsisType | None = ...,
        tags: Sequence[str] | EllipsisType = ...,
        metadata: Mapping[str, object] | EllipsisType | None = ...,
        parents: Sequence[str] | EllipsisType = ...,
        contributor_ids: Sequence[str] = (),
        actor: str = "tool:memory_update",
        at: Instant | None = None,
    ) -> Verdict:
        """Change a trace; only the fields given change.

        Args:
            trace_id: The trace, of this session's brain.
            content: New words.
            type: New type.
            scope: New scope; None for none.
            tags: New labels, in place of the old ones.
            metadata: New metadata, in place of the old; None for none.
            parents: New parents, in place of the old ones.
            contributor_ids: People whose words these are; those of the trace as it was are inherited.
            actor: What writes.
            at: Aware instant; the present if left out.

        Returns:
            The verdict with the trace.

        Raises:
            Forgotten: If the learner was forgotten meanwhile.
            NotFound: If there is no such trace in this brain, or a new parent is not there.
            InvalidInput: If nothing is to change, a value cannot be used, or the session has ended.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     trace = session.add("likes tea").trace_ids[0]
            ...     _ = session.update(trace, content="likes coffee", tags=["drinks"])
            ...     mem.frame("traces").select("content", "tags").rows()
            [('likes coffee', ['drinks'])]
        """
        fields: dict[str, object] = {}
        named: tuple[str, ...] = ()
        if not isinstance(content, EllipsisType):
            fields["content"] = need_text(content, "content")
        if not isinstance(type, EllipsisType):
            fields["type"] = need_text(type, "type")
        if not isinstance(scope, EllipsisType):
            fields["scope"] = None if scope is None else need_text(scope, "scope")
        if not isinstance(tags, EllipsisType):
            fields["tags"] = list(need_texts(tags, "tags"))
        if not isinstance(metadata, EllipsisType):
            fields["metadata"] = _metadata(metadata)
        if not isinstance(parents, EllipsisType):
            named = _ids(parents, "parents")
            fields["parents"] = list(named)
        if not fields:
            raise InvalidInput("update was given nothing to change; nothing was written; give content, tags, ...")
        if trace_id in named:
            raise InvalidInput(f"trace {trace_id} cannot be its own parent; nothing was written")
        operation = Update(need_text(trace_id, "trace_id"), fields, parents=named)
        return self._write(operation, contributor_ids, actor, at)

    def delete(
        self,
        trace_ids: str | Sequence[str],
        contributor_ids: Sequence[str] = (),
        actor: str = "tool:memory_delete",
        at: Instant | None = None,
    ) -> Verdict:
        """Delete traces.

        One that is not there is no error: the verdict names those that were really deleted.

        Args:
            trace_ids: The traces, of this session's brain.
            contributor_ids: People who asked for it, besides the learner.
            actor: What writes.
            at: Aware instant; the present if left out.

        Returns:
            The verdict, with the traces that were really deleted.

        Raises:
            Forgotten: If the learner was forgotten meanwhile.
            NotFound: If one of them is in another brain.
            InvalidInput: If no trace is given, a value cannot be used, or the session has ended.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     trace = session.add("likes tea").trace_ids[0]
            ...     gone = session.delete([trace, "tr_unknown"])
            >>> gone.verdict, gone.trace_ids == (trace,)
            ('kept', True)
        """
        ids = (need_text(trace_ids, "trace_ids"),) if isinstance(trace_ids, str) else _ids(trace_ids, "trace_ids")
        if not ids:
            raise InvalidInput("trace_ids is empty; nothing was written")
        return self._write(Delete(ids), contributor_ids, actor, at)

    def merge(
        self,
        trace_ids: Sequence[str],
        content: str | None = None,
        type: str | None = None,  # noqa: A002 - the column's name
        scope: str | EllipsisType | None = ...,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, object] | None = None,
        contributor_ids: Sequence[str] = (),
        actor: str = "tool:memory_merge",
        at: Instant | None = None,
    ) -> Verdict:
        """Merge traces into a new one, which has them as parents; they are deleted.

        Args:
            trace_ids: At least two traces of this session's brain.
            content: The new words; left out, the texts in order, a line break between them.
            type: The new trace's type; the first one's if left out.
            scope: Its scope; the first one's if left out.
            tags: Its labels; those of all if left out.
            metadata: Its metadata.
            contributor_ids: People whose words these are; those of the merged traces are inherited.
            actor: What writes.
            at: Aware instant; the present if left out.

        Returns:
            The verdict; its first trace is the new one, or the one that held those words already; the deleted ones
            follow.

        Raises:
            Forgotten: If the learner was forgotten meanwhile.
            NotFound: If one of them is not in this brain.
            InvalidInput: If there are fewer than two different traces, a value cannot be used, or the session has
                ended.

        Example:
            >>> import mnemokit as mk
            >>> import polars as pl
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     parts = [session.add(text).trace_ids[0] for text in ("likes tea", "no sugar")]
            ...     _ = session.merge(parts, content="likes tea without sugar")
            ...     mem.frame("traces").select("content", pl.col("parents").list.len()).rows()
            [('likes tea without sugar', 2)]
        """
        ids = _ids(trace_ids, "trace_ids")
        if len(ids) < 2:
            raise InvalidInput("merge needs at least two different traces; nothing was written")
        operation = Merge(
            new_id=new_ids("tr_")[0],
            trace_ids=ids,
            content=None if content is None else need_text(content, "content"),
            type=None if type is None else need_text(type, "type"),
            scope=scope if scope is None or isinstance(scope, EllipsisType) else need_text(scope, "scope"),
            tags=None if tags is None else need_texts(tags, "tags"),
            metadata=_metadata(metadata),
        )
        return self._write(operation, contributor_ids, actor, at)

    def rolling_summary(
        self,
        content: str,
        contributor_ids: Sequence[str] = (),
        scope: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, object] | None = None,
        parents: Sequence[str] = (),
        actor: str = "memory:rolling_summary",
        at: Instant | None = None,
    ) -> Verdict:
        """Write the summary so far.

        It is a trace of type ``summary``, and replaces, in place, the previous one of the same brain, scope and
        conversation.

        Args:
            content: The summary.
            contributor_ids: Whose words it sums up; those of the previous summary and of the parents are inherited.
            scope: Scope within the brain.
            tags: Labels.
            metadata: What else is to be said of it.
            parents: Traces that it sums up.
            actor: What writes.
            at: Aware instant; the present if left out.

        Returns:
            The verdict; the trace keeps its id from one summary to the next.

        Raises:
            Forgotten: If the learner was forgotten meanwhile.
            NotFound: If a parent is not there.
            InvalidInput: If a value cannot be used, or the session has ended.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     first = session.rolling_summary("likes tea")
            ...     second = session.rolling_summary("likes tea, no sugar")
            ...     second.trace_ids == first.trace_ids, mem.frame("traces")["content"].to_list()
            (True, ['likes tea, no sugar'])
        """
        operation = RollingSummary(
            new_id=new_ids("tr_")[0],
            content=need_text(content, "content"),
            scope=None if scope is None else need_text(scope, "scope"),
            tags=need_texts(tags, "tags"),
            metadata=_metadata(metadata),
            parents=_ids(parents, "parents"),
        )
        return self._write(operation, contributor_ids, actor, at)

    def apply(self, change: SessionChange, at: Instant | None = None) -> Verdict:
        """Apply a change of the caller's own, through the same steps.

        Args:
            change: Any object of the ``SessionChange`` protocol. It stays in this process's memory while it can be
                reverted.
            at: Aware instant; the present if left out.

        Returns:
            The verdict.

        Raises:
            Forgotten: If the learner was forgotten meanwhile.
            InvalidInput: If the object is no such change, or the session has ended.
            Exception: What ``change.apply()`` raised; the verdict is then ``undone_unrecorded``.

        Example:
            >>> import mnemokit as mk
            >>> from types import SimpleNamespace
            >>> notes = []
            >>> change = SimpleNamespace(
            ...     kind="memory_write", actor="tool:note", target_id=None, brain_id="b", contributor_ids=[],
            ...     before=None, after={"note": "tea"},
            ...     apply=lambda: notes.append("tea"), undo=lambda result, reason: notes.clear(),
            ... )
            >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
            ...     kept = session.apply(change)
            ...     kept.verdict, list(notes), mem.changes.revert(kept.change_id).verdict, notes
            ('kept', ['tea'], 'reverted', [])
        """
        self._refuse_closed()
        return self._writer.write_own(self._place(), change, at=at_or_now(at))

    def close(self) -> None:
        """End the session; later calls are refused. The end of a ``with`` block does the same.

        Example:
            >>> import mnemokit as mk
            >>> with mk.open() as mem:
            ...     session = mem.session("s1", user_id="anna", brain_id="b")
            ...     session.close()
            ...     session.add("likes tea")
            Traceback (most recent call last):
            mnemokit.errors.InvalidInput: session 's1' has ended; nothing was written; open it again
        """
        self._closed = True

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session."""
        self.close()

    def _write(
        self,
        operation: Add | Update | Delete | Merge | RollingSummary,
        contributor_ids: Sequence[str],
        actor: str,
        at: Instant | None,
    ) -> Verdict:
        self._refuse_closed()
        return self._writer.write_traces(
            self._place(),
            operation,
            actor=need_text(actor, "actor"),
            contributor_ids=need_texts(contributor_ids, "contributor_ids"),
            at=at_or_now(at),
        )

    def _place(self) -> Place:
        return Place(self.session_id, self.user_id, self.brain_id, self.conversation_id)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise InvalidInput(f"session {self.session_id!r} has ended; nothing was written; open it again")


def _ids(values: Sequence[str], what: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(need_texts(values, what)))


def _metadata(metadata: Mapping[str, object] | None) -> str | None:
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller may be untyped
        raise InvalidInput(f"metadata must be a mapping, not {type(metadata).__name__}; nothing was written")
    return as_json(dict(metadata), "metadata")
