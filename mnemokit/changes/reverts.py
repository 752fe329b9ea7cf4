"""Taking back a memory write that was kept.

Reverts are a stack in time: a write under a later one that still stands cannot be taken back, a second revert does
nothing, and nothing comes back once a person in it was forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from mnemokit.changes import log as change_log
from mnemokit.changes.log import Recorded
from mnemokit.changes.session_change import OWN, OwnWrite
from mnemokit.changes.states import OPEN, ChangeState, Step
from mnemokit.changes.trace_operations import EFFECT, INSTANT
from mnemokit.changes.traces import before_write, write_effects
from mnemokit.errors import Conflict, NotFound
from mnemokit.records import Verdict
from mnemokit.store import Connection, Store

INVERSE = {"created": "deleted", "changed": "changed", "deleted": "created"}


@dataclass(frozen=True, slots=True)
class _Row:
    recorded: Recorded
    state: ChangeState
    operation: str
    forgotten: bool
    result: str | None
    trace_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reverted:
    verdict: Verdict | None
    later_writes: tuple[str, ...] = field(default_factory=tuple[str, ...])


def revert(
    store: Store, own: dict[str, OwnWrite], change_id: str, at: datetime, observe: Callable[[Step], None]
) -> Verdict:
    """Take a kept write back.

    Args:
        store: Where.
        own: Callers' own changes that this process made, by change id.
        change_id: The write.
        at: When it is reverted.
        observe: Told of the step as it begins.

    Returns:
        The verdict ``reverted`` with the traces that were put back. A write that has another verdict than ``kept``
        keeps it, and nothing happens.

    Raises:
        NotFound: If there is no such write.
        Conflict: If a later write to one of its traces stands, or it has no verdict yet, or it is a caller's own change
            whose object is not in this process.
    """
    with store.read() as con:
        row = _row(con, change_id)
    if row.state is ChangeState.KEPT and row.operation == OWN and not row.forgotten:
        return _revert_own(store, own, row, at)
    done = store.write(lambda con: _revert(con, change_id, at, observe))
    if done.verdict is None:
        raise Conflict(
            f"{change_id} cannot be reverted: {', '.join(done.later_writes)} wrote to the same trace later; "
            "nothing was reverted; revert the later one first"
        )
    return done.verdict


def _revert(con: Connection, change_id: str, at: datetime, observe: Callable[[Step], None]) -> _Reverted:
    row = _row(con, change_id)
    if row.state in OPEN:
        raise Conflict(f"{change_id} has no verdict yet; nothing was reverted; try again when it has one")
    if row.state is not ChangeState.KEPT:
        return _Reverted(Verdict(change_id, row.state.value, row.trace_ids))
    was = before_write(con, row.recorded.seq)
    later = was["later_writes"].explode(empty_as_null=False, keep_nulls=False).unique().sort().to_list()
    if later:
        # The conflict itself is a fact that audit lists: it is committed, and raised afterwards.
        con.execute(
            "UPDATE session_changes SET conflicts = ?, ts_conflict = ? WHERE seq = ?", [later, at, row.recorded.seq]
        )
        return _Reverted(None, tuple(later))
    ts = pl.max_horizontal(pl.lit(at, dtype=INSTANT), pl.col("ts_state"))
    effects = was.with_columns(action=pl.col("written_action").replace_strict(INVERSE, return_dtype=pl.String), ts=ts)
    write_effects(con, row.recorded.seq, "revert", effects.select(list(EFFECT)))
    observe(Step.REVERT)
    restored = effects["trace_id"].to_list()
    change_log.move(con, row.recorded, ChangeState.REVERTED, ts_reverted=at, reason="reverted", trace_ids=restored)
    return _Reverted(Verdict(change_id, "reverted", tuple(restored)))


def _revert_own(store: Store, own: dict[str, OwnWrite], row: _Row, at: datetime) -> Verdict:
    change_id = row.recorded.change_id
    write = own.get(change_id)
    if write is None:
        raise Conflict(
            f"{change_id} was made by a caller's own change, whose object is not in this process; "
            "nothing was reverted; give it: mem.changes.revert(change_id, change=...)"
        )
    write.change.undo(write.result, "unrecorded")

    def settle(con: Connection) -> None:
        if _row(con, change_id).state is ChangeState.KEPT:
            change_log.move(con, row.recorded, ChangeState.REVERTED, ts_reverted=at, reason="reverted")

    store.write(settle)
    own.pop(change_id, None)
    return Verdict(change_id, "reverted", row.trace_ids)


def stored_result(store: Store, change_id: str) -> object:
    """What ``apply`` of a caller's own change had returned, as far as JSON can carry it.

    Raises:
        NotFound: If there is no such write.
    """
    with store.read() as con:
        row = _row(con, change_id)
    return None if row.result is None else json.loads(row.result)


def _row(con: Connection, change_id: str) -> _Row:
    rows = con.execute(
        "SELECT seq, state, operation, ts_forgotten IS NOT NULL, result, trace_ids "
        "FROM session_changes WHERE change_id = ?",
        [change_id],
    ).fetchall()
    if not rows:
        raise NotFound(f"there is no memory write {change_id!r}; nothing was changed")
    seq, state, operation, forgotten, result, trace_ids = rows[0]
    return _Row(Recorded(change_id, seq), ChangeState(state), operation, forgotten, result, tuple(trace_ids))
