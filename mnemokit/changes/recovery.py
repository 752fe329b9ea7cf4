"""What opening a store does about memory writes that a killed process left without a verdict."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from mnemokit.changes import log as change_log
from mnemokit.changes.blanking import blank_person
from mnemokit.changes.forgetting import forgotten_among
from mnemokit.changes.log import Recorded
from mnemokit.changes.session_change import OWN
from mnemokit.changes.session_writes import blank_people, settle_unrecorded
from mnemokit.changes.traces import undo_unrecorded
from mnemokit.instants import present
from mnemokit.store import Connection, Store, fetch, query

FOUND_OPEN = "found open when the store was opened"


def recover(store: Store, now: datetime | None = None) -> pl.DataFrame:
    """Finish what was interrupted: people half forgotten, then writes without a verdict, the newest first.

    A write about a person who was forgotten is undone as forgotten, every other one as unrecorded. A caller's own
    change is settled in the log alone, since its ``undo`` is not there to be called; ``audit`` lists those. Writes that
    this process is making at this moment, through another handle on the same file, are left to it.

    Returns:
        Columns change_id, operation, verdict: the writes that were settled.
    """
    at = present() if now is None else now
    with store.read() as con:
        left = con.execute(
            "SELECT change_id, seq, operation FROM session_changes "
            "WHERE state IN ('candidate', 'applied') ORDER BY seq DESC"
        ).fetchall()
    _finish_forgetting(store, at)
    settled: list[tuple[str, str, str]] = []
    for change_id, seq, operation in left:
        if change_log.is_under_way(change_id):
            continue
        recorded = Recorded(change_id, seq)
        own = operation == OWN
        verdict = store.write(lambda con, recorded=recorded, own=own: _settle(con, store, recorded, at, own=own))
        settled.append((change_id, operation, verdict))
    return pl.DataFrame(
        settled, schema={"change_id": pl.String, "operation": pl.String, "verdict": pl.String}, orient="row"
    )


def _settle(con: Connection, store: Store, recorded: Recorded, at: datetime, *, own: bool) -> str:
    forgotten = forgotten_among(con, store.keyed_hash, change_log.noted_people(con, recorded))
    if forgotten:
        blank_people(con, forgotten, at)
    else:
        undo_unrecorded(con, recorded.seq)
        settle_unrecorded(con, recorded, FOUND_OPEN, at)
    if own:
        con.execute("UPDATE session_changes SET reason = ? WHERE seq = ?", [FOUND_OPEN, recorded.seq])
    return change_log.state_of(con, recorded).value


def _finish_forgetting(store: Store, at: datetime) -> None:
    """Blank whoever has a tombstone that was laid by a process killed before it had blanked them."""
    with store.read() as con:
        unfinished = {name_hash for (name_hash,) in con.execute("SELECT name_hash FROM unfinished_forgets").fetchall()}
        if not unfinished:
            return
        # Only the hash of the id is kept, so the id is looked for among those there are.
        names = fetch(con, query("change_names"))["name"].to_list()
    found = {name_hash: name for name in names if (name_hash := store.keyed_hash(name)) in unfinished}
    for name_hash in sorted(unfinished):
        name = found.get(name_hash, name_hash)
        store.write(lambda con, name=name, name_hash=name_hash: blank_person(con, name, name_hash, at))
