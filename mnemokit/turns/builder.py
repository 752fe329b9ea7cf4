"""How a reader writes rows down and keeps its account."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from mnemokit.turns.fields import as_text
from mnemokit.turns.frame import REJECTS_SCHEMA
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.redaction import redact
from mnemokit.turns.values import hashed_values

MAX_PLACE_CHARS = 300
"""A place is cut here; it may hold keys of the document, and those may be of any length."""


@dataclass(slots=True)
class Builder:
    """Collects the records of one file and hands them out as a batch, keeping the account.

    Args:
        source: What stands in the column ``source``.
        file: The file, for rejects.
        options: What was asked for.
    """

    source: str
    file: str
    options: ReadOptions
    ignored: int = 0
    _turns: dict[str, list[object]] = field(default_factory=dict[str, list[object]])
    _rejects: list[tuple[str, str, str, str, str, str | None]] = field(
        default_factory=list[tuple[str, str, str, str, str, str | None]]
    )

    def __post_init__(self) -> None:
        """Start the columns."""
        self.file = as_text(self.file) or ""
        self._turns = {name: [] for name in self.schema}

    @property
    def schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """The columns of this builder's turns."""
        return self.options.columns

    @property
    def rows(self) -> int:
        """Records collected and not yet handed out, ignored ones aside."""
        return len(self._turns["source"]) + len(self._rejects)

    @property
    def full(self) -> bool:
        """Whether it is time to hand out a batch of a line format."""
        return self.rows >= self.options.batch_rows or self.ignored >= 4 * self.options.batch_rows

    def turn(
        self,
        *,
        session_id: str,
        turn_id: str,
        step: int,
        parallel_group: int,
        executor: str | None,
        source: str | None = None,
        executor_version: str | None = None,
        requestor: str | None = None,
        ts: datetime | None = None,
        ok: bool | None = None,
        user_id: str | None = None,
        scope: str | None = None,
        question: str | None = None,
        session_outcome: str | None = None,
        meta: str | None = None,
        arguments: object = None,
        result: object = None,
    ) -> None:
        """Add one step. Arguments and result are hashed, kept as text, or dropped, as the options say.

        An empty requestor, person, scope, question or meta is none: a capture could not be of an empty scope.
        """
        columns = self._turns
        for name, value in (
            ("source", source or self.source),
            ("session_id", session_id),
            ("turn_id", turn_id),
            ("step", step),
            ("parallel_group", parallel_group),
            ("executor", executor),
            ("executor_version", executor_version),
            ("requestor", requestor or None),
            ("ts", ts),
            ("ok", ok),
            ("user_id", user_id or None),
            ("scope", scope or None),
            ("question", question or None),
            ("session_outcome", session_outcome),
            ("meta", meta or None),
        ):
            columns[name].append(value)
        if self.options.values:
            columns["arg_values"].append(hashed_values(arguments, session_id))
            columns["result_values"].append(hashed_values(result, session_id))
        if self.options.text:
            columns["arguments"].append(as_text(arguments))
            columns["result"].append(as_text(result))

    def reject(
        self, place: str, reason: str, raw: str | bytes, user_id: str | None = None, source: str | None = None
    ) -> None:
        """Add a record that cannot be used; ``raw`` is redacted here, ``source`` is the record's own if it has one."""
        where = as_text(place[:MAX_PLACE_CHARS]) or ""
        self._rejects.append((source or self.source, self.file, where, reason, redact(raw), as_text(user_id)))

    def batch(self) -> TurnBatch:
        """What was collected, and start anew."""
        turns = pl.DataFrame(self._turns, schema=self.schema)
        rejects = pl.DataFrame(self._rejects, schema=REJECTS_SCHEMA, orient="row")
        done = TurnBatch(turns, rejects, self.ignored)
        self.ignored = 0
        self._rejects = []
        self._turns = {name: [] for name in self.schema}
        return done


@dataclass(slots=True)
class OpenSession:
    """A session of which every record is at hand: keeps one row for it when it has no call.

    Attributes:
        builder: Where the rows go.
        session_id: The session.
        executor_version: Version of executors that bring none of their own.
        user_id: Who was served.
        scope: The log's domain.
        question: What was asked.
        outcome: ``success``, ``failure`` or None.
        meta: JSON text of attributes.
    """

    builder: Builder
    session_id: str
    executor_version: str | None = None
    user_id: str | None = None
    scope: str | None = None
    question: str | None = None
    outcome: str | None = None
    meta: str | None = None
    _calls: int = 0
    _messages: int = 0
    _rejects: int = 0
    _ts: datetime | None = None

    def call(
        self,
        *,
        turn_id: str,
        step: int,
        parallel_group: int,
        executor: str,
        executor_version: str | None = None,
        requestor: str | None = None,
        ts: datetime | None = None,
        ok: bool | None = None,
        meta: str | None = None,
        arguments: object = None,
        result: object = None,
    ) -> None:
        """One tool call: a row."""
        self._calls += 1
        self.builder.turn(
            session_id=self.session_id,
            turn_id=turn_id,
            step=step,
            parallel_group=parallel_group,
            executor=executor,
            executor_version=executor_version or self.executor_version,
            requestor=requestor,
            ts=ts,
            ok=ok,
            user_id=self.user_id,
            scope=self.scope,
            question=self.question,
            session_outcome=self.outcome,
            meta=meta or self.meta,
            arguments=arguments,
            result=result,
        )

    def message(self, ts: datetime | None = None, count: int = 1) -> None:
        """Records without a call: counted, and the earliest instant kept for the session's row."""
        self._messages += count
        if ts is not None and (self._ts is None or ts < self._ts):
            self._ts = ts

    def reject(self, place: str, reason: str, raw: object) -> None:
        """A record of this session that cannot be used."""
        self._rejects += 1
        self.builder.reject(place, reason, as_text(raw) or "null", self.user_id)

    def close(self) -> None:
        """Count the messages; without any call, one of them becomes the session's row.

        A session without a single record counts as one itself; one whose records were all rejected gets no row.
        """
        if self._calls == 0 and (self._messages > 0 or self._rejects == 0):
            self._messages = max(0, self._messages - 1)
            self.builder.turn(
                session_id=self.session_id,
                turn_id=f"{self.session_id}:0",
                step=0,
                parallel_group=0,
                executor=None,
                executor_version=self.executor_version,
                ts=self._ts,
                user_id=self.user_id,
                scope=self.scope,
                question=self.question,
                session_outcome=self.outcome,
                meta=self.meta,
            )
        self.builder.ignored += self._messages


@dataclass(slots=True)
class SessionCensus:
    """Which sessions of a file have calls, for formats whose sessions are spread over lines.

    The first message of a session without calls is held back: it becomes the session's row at the end, or counts as
    ignored as soon as a call comes.
    """

    builder: Builder
    _called: set[str] = field(default_factory=set[str])
    _waiting: dict[str, OpenSession] = field(default_factory=dict[str, OpenSession])

    def message(self, session: OpenSession, ts: datetime | None = None) -> None:
        """A record without a call."""
        waiting = self._waiting.get(session.session_id)
        if waiting is not None:
            waiting.message(ts, count=0)
        if waiting is not None or session.session_id in self._called:
            self.builder.ignored += 1
        else:
            session.message(ts)
            self._waiting[session.session_id] = session

    def called(self, session_id: str) -> None:
        """A record with a call."""
        if self._waiting.pop(session_id, None) is not None:
            self.builder.ignored += 1
        self._called.add(session_id)

    def close(self) -> None:
        """Write the rows of the sessions without calls."""
        for session in self._waiting.values():
            session.close()
        self._waiting.clear()
