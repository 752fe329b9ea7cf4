"""The built-in change: a write to the ``traces`` table that can be undone.

What a write means to do is worked out by ``trace_operations`` on frames; here it meets the store. Every state of every
trace is kept in ``change_traces``, so that a write can be taken back exactly and any past moment be read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl

from mnemokit.changes import log as change_log
from mnemokit.changes.blanking import erase_traces
from mnemokit.changes.forgetting import forgotten_among
from mnemokit.changes.log import Place, Recorded
from mnemokit.changes.session_change import KIND, UndoReason
from mnemokit.changes.states import ChangeState, Step
from mnemokit.changes.trace_operations import EFFECT, LIVE, STATE, Operation, RollingSummary, settle
from mnemokit.errors import Conflict, NotFound
from mnemokit.store import Connection, Store, fetch, lend, query, take_numbers

WAIT_SECONDS = 5.0
"""How long a write waits for another one on the same trace to get its verdict."""


class Overtaken(Exception):
    """A person in the write was forgotten before its traces were touched."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What a built-in write did: the traces it touched, in order, and a snapshot of each."""

    trace_ids: tuple[str, ...]
    kept: tuple[object, ...]


class TraceChange:
    """A write to traces, in the shape of the ``SessionChange`` protocol.

    ``prepare`` fills in what the protocol names (``before``, ``after``); the session calls it in the transaction that
    records the candidate.
    """

    kind = KIND

    def __init__(
        self,
        store: Store,
        operation: Operation,
        *,
        change_id: str,
        place: Place,
        target_id: str,
        actor: str,
        contributor_ids: tuple[str, ...],
        at: datetime,
        observe: Callable[[Step], None],
    ) -> None:
        """Nothing is read or written yet."""
        self.actor = actor
        self.target_id = target_id
        self.brain_id = place.brain_id
        self.contributor_ids = contributor_ids
        self.before: object = None
        self.after: object = None
        self.operation = operation
        self._store = store
        self._place = place
        self._at = at
        self._observe = observe
        self._recorded = Recorded(change_id, 0)

    def prepare(self, con: Connection, place: Place) -> list[str]:
        """Plan the write: ``before`` and ``after``.

        Returns:
            The people whose words it takes over: those of the traces it replaces or names as parents.

        Raises:
            NotFound: If a trace that it needs is not in this brain.
        """
        self._place = place
        self.brain_id = place.brain_id
        current = self._current(con)
        parents = list(self.operation.parents)
        _need_parents(con, parents)
        planned = self._planned(con, current)
        if planned.height == 1:
            self.target_id = str(planned["trace_id"][0])
        self.before = _before(con, planned, current)
        self.after = [json.loads(text) for text in snapshots(con, planned)]
        return change_log.people_of_traces(con, [*current["trace_id"].to_list(), *parents])

    def recorded_as(self, recorded: Recorded) -> None:
        """Learn which row of the log is this write's."""
        self._recorded = recorded

    def apply(self) -> Applied:
        """Write the traces, in one transaction.

        A write waits for another one that touched the same traces and has no verdict yet.

        Raises:
            NotFound: If a trace was deleted meanwhile.
            Conflict: If the other write got no verdict for ``WAIT_SECONDS``.
        """
        self._observe(Step.APPLY)
        until = time.monotonic() + WAIT_SECONDS
        while True:
            done = self._store.write(self._apply)
            if isinstance(done, Applied):
                return done
            if time.monotonic() > until:
                raise Conflict(
                    f"the memory write {done[0]} touched the same trace and still has no verdict; nothing was written; "
                    "try again when it has one"
                )
            time.sleep(0.005)

    def undo(self, result: object, reason: UndoReason) -> None:  # noqa: ARG002 - the log knows what was done
        """Take the write back; a second time there is nothing left to do.

        ``forgotten`` erases every trace it touched for good; ``unrecorded`` puts them back as they were before.
        """
        if reason == "forgotten":
            self._store.write(lambda con: erase_traces(con, self._recorded.seq))
        else:
            self._store.write(lambda con: undo_unrecorded(con, self._recorded.seq))

    def kept_after(self, result: Applied) -> object:
        """What was really kept: an entry per trace with what happened to it."""
        return list(result.kept)

    def _apply(self, con: Connection) -> Applied | list[str]:
        if change_log.state_of(con, self._recorded) is not ChangeState.CANDIDATE:
            raise Overtaken
        current = self._current(con)
        planned = self._planned(con, current)
        with lend(con, planned=planned):
            twins = fetch(con, query("trace_twins"))
        effects = settle(planned, current, twins, resolves=self.operation.resolves)
        touched = effects["trace_id"].to_list()
        busy = con.execute(query("trace_busy"), {"seq": self._recorded.seq, "trace_ids": touched}).fetchall()
        if busy:
            return [change_id for (change_id,) in busy]
        also = self._note_newcomers(con, current)
        before = _before(con, planned, current)
        write_effects(con, self._recorded.seq, "write", effects)
        change_log.move(
            con,
            self._recorded,
            ChangeState.APPLIED,
            trace_ids=touched,
            before=None if before is None else change_log.as_json(before, "before"),
            **also,
        )
        kept = tuple(json.loads(text) for text in snapshots(con, effects))
        self._observe(Step.COMMIT_APPLY)
        return Applied(tuple(touched), kept)

    def _current(self, con: Connection) -> pl.DataFrame:
        ids = list(self.operation.targets)
        if isinstance(self.operation, RollingSummary):
            found = con.execute(
                query("trace_rolling_summary"),
                {
                    "brain_id": self.brain_id,
                    "type": self.operation.type,
                    "scope": self._stored_scope(con, self.operation.scope),
                    "conversation_id": self._place.conversation_id,
                },
            ).fetchall()
            ids = [trace_id for (trace_id,) in found]
        current = live(con, ids)
        elsewhere = current.filter(pl.col("brain_id") != self.brain_id)
        if elsewhere.height:
            trace_id, brain_id = elsewhere.row(0)[:2]
            raise NotFound(
                f"trace {trace_id} is in brain {brain_id!r}, and this session writes to {self.brain_id!r}; "
                "nothing was written; open a session on that brain"
            )
        return current

    def _planned(self, con: Connection, current: pl.DataFrame) -> pl.DataFrame:
        planned = self.operation.effects(current, self.brain_id, self._at)
        hidden = forgotten_among(con, self._store.keyed_hash, planned["scope"].drop_nulls().unique().to_list())
        return planned.with_columns(pl.col("scope").replace(hidden)) if hidden else planned

    def _stored_scope(self, con: Connection, scope: str | None) -> str | None:
        return None if scope is None else forgotten_among(con, self._store.keyed_hash, [scope]).get(scope, scope)

    def _note_newcomers(self, con: Connection, current: pl.DataFrame) -> dict[str, object]:
        """People whose words came into the traces since the candidate was recorded: noted before a trace is touched."""
        if current.is_empty() and not self.operation.parents:
            return {}
        sources = [*current["trace_id"].to_list(), *self.operation.parents]
        learner, *noted = change_log.noted_people(con, self._recorded)
        now = change_log.stored_people(con, self._store, learner, [], change_log.people_of_traces(con, sources))
        people = list(dict.fromkeys([*noted, *now]))
        change_log.note_rows(con, self._store, self._place, people, self._at)
        return {"contributor_ids": people}


def live(con: Connection, trace_ids: Sequence[str]) -> pl.DataFrame:
    """Those of the traces that live now (``LIVE``)."""
    if not trace_ids:
        return pl.DataFrame(schema=LIVE)
    found = fetch(con, query("trace_live"), {"trace_ids": list(trace_ids)})
    return found.select(pl.col(name).cast(dtype) for name, dtype in LIVE.items())


def snapshots(con: Connection, states: pl.DataFrame) -> list[str]:
    """Each row's trace as JSON text; with its ``action``, if the rows have one."""
    if states.is_empty():
        return []
    rows = states if "action" in states.columns else states.with_columns(action=pl.lit(None, dtype=pl.String))
    with lend(con, states=rows.with_row_index("place")):
        return fetch(con, query("trace_snapshots"))["snapshot"].to_list()


def write_effects(con: Connection, seq: int, move: Literal["write", "revert"], effects: pl.DataFrame) -> None:
    """Write effects (``EFFECT``) to the history and to the live traces."""
    if effects.is_empty():
        return
    first = take_numbers(con, "seq", effects.height)
    with lend(con, effects=effects.select(list(EFFECT)).with_row_index("place")):
        con.execute(query("trace_write_history"), {"seq": seq, "move": move, "first": first})
        con.execute(
            "DELETE FROM traces WHERE trace_id IN (SELECT trace_id FROM effects WHERE action IN ('changed', 'deleted'))"
        )
        con.execute(query("trace_write_live"), {"first": first})


def before_write(con: Connection, seq: int) -> pl.DataFrame:
    """The traces that a write touched, as they were before it; empty once it was undone or forgotten.

    Returns:
        Columns of ``STATE``, and written_action, present (was there one?), ts_state (its latest state is from then) and
        later_writes (ids of writes that came later and stand).
    """
    return fetch(con, query("trace_before"), {"seq": seq})


def undo_unrecorded(con: Connection, seq: int) -> None:
    """Put the traces that a write touched back as they were, and let the write count no more.

    A later write stands where it is: what it wrote is not overwritten.
    """
    was = before_write(con, seq)
    latest = was.filter(pl.col("later_writes").list.len() == 0)
    with lend(con, effects=latest.filter("present").select(list(STATE)).with_row_index("place"), touched=latest):
        con.execute("DELETE FROM traces WHERE trace_id IN (SELECT trace_id FROM touched)")
        con.execute(query("trace_write_live"), {"first": 0})
    con.execute("UPDATE change_traces SET counts = FALSE WHERE change_seq = ?", [seq])


def _before(con: Connection, planned: pl.DataFrame, current: pl.DataFrame) -> object:
    """Snapshots of the traces that a write changes or deletes; None if it only adds."""
    replaced = planned.filter(pl.col("action").is_in(["changed", "deleted"]))
    if replaced.is_empty():
        return None
    return [json.loads(text) for text in snapshots(con, current.join(replaced, on="trace_id", how="semi"))]


def _need_parents(con: Connection, parents: list[str]) -> None:
    if not parents:
        return
    found = con.execute(
        "SELECT DISTINCT trace_id FROM change_traces WHERE counts AND trace_id IN (SELECT unnest($parents))",
        {"parents": parents},
    ).fetchall()
    missing = set(parents) - {trace_id for (trace_id,) in found}
    if missing:
        raise NotFound(f"there is no trace {min(missing)!r} to be a parent; nothing was written")
