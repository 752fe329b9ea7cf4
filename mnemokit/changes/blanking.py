"""Taking a person's words and ids out of the tables of memory writes, in every copy."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import polars as pl

from mnemokit.changes.forgetting import ForgetReceipt
from mnemokit.changes.states import ChangeState, sources_of
from mnemokit.store import Connection, fetch, lend, query, take_numbers

BLANK = '{"forgotten":true}'


class Purged(NamedTuple):
    """What one pass of blanking did, and the callers' own writes it met."""

    receipt: ForgetReceipt
    own_changes: tuple[str, ...]


def blank_person(con: Connection, name: str, name_hash: str, at: datetime) -> Purged:
    """Take a person out of the tables of memory writes, inside the caller's transaction.

    A second time it finds only what was written since.
    """
    # A number taken here makes this transaction conflict with a write that is beginning: neither overlooks the other.
    take_numbers(con, "seq")
    who: dict[str, object] = {"name": name, "name_hash": name_hash}
    about = fetch(con, query("change_about"), who)
    rows = fetch(con, "SELECT DISTINCT session_id FROM session_rows WHERE user_id IN ($name, $name_hash)", who)
    with lend(con, about=about):
        doomed = fetch(con, query("trace_doomed"))
        copies = _blank_copies(con, doomed)
        con.execute(
            query("change_blank"),
            {**who, "blank": BLANK, "open": sources_of(ChangeState.UNDONE_FORGOTTEN), "at": at},
        )
    session_rows = _hash_session_rows(con, who)
    _hash_other_ids(con, who)
    con.execute("DELETE FROM unfinished_forgets WHERE name_hash = ?", [name_hash])
    receipt = ForgetReceipt(
        sessions=pl.concat([about["session_id"], rows["session_id"]]).n_unique(),
        changes=about.filter("fresh").height,
        traces=doomed.height,
        copies=copies,
        session_rows=session_rows,
    )
    own = about.filter((pl.col("operation") == "own") & (pl.col("state") == ChangeState.KEPT) & ~pl.col("blanked"))
    return Purged(receipt, tuple(own["change_id"].to_list()))


def erase_traces(con: Connection, seq: int) -> int:
    """Erase for good every trace that one write created, changed or deleted, with all copies of them."""
    about = fetch(
        con,
        "SELECT seq, operation, trace_ids FROM session_changes WHERE seq = ?",
        [seq],
    )
    with lend(con, about=about):
        doomed = fetch(con, query("trace_doomed"))
        _blank_copies(con, doomed)
    return doomed.height


def _blank_copies(con: Connection, doomed: pl.DataFrame) -> int:
    """Remove the doomed traces, and blank every copy of them; ``about`` must be lent."""
    with lend(con, doomed=doomed):
        copies = fetch(con, query("change_copies"))
        if copies.height:
            with lend(con, copies=copies):
                con.execute(
                    "UPDATE session_changes SET before = copies.before, after = copies.after, kept = copies.kept "
                    "FROM copies WHERE copies.seq = session_changes.seq"
                )
        blanked = fetch(con, query("trace_to_blank"))
        with lend(con, blanked=blanked):
            # What stays of a row is written anew: cheaper than an update, which would carry the old words along.
            con.execute("DELETE FROM change_traces WHERE seq IN (SELECT seq FROM blanked)")
            con.execute(
                "INSERT INTO change_traces (change_seq, trace_id, move, action, counts, forgotten, present, ts, seq) "
                "SELECT change_seq, trace_id, move, action, FALSE, TRUE, FALSE, ts, seq FROM blanked ORDER BY seq"
            )
        con.execute("DELETE FROM traces WHERE trace_id IN (SELECT trace_id FROM doomed)")
    return copies.height


def _hash_session_rows(con: Connection, who: dict[str, object]) -> int:
    """The person's rows keep session, role and time; a row that would then be there twice goes."""
    con.execute(
        "DELETE FROM session_rows WHERE user_id = $name AND EXISTS ("
        "SELECT 1 FROM session_rows AS earlier WHERE earlier.user_id = $name_hash "
        "AND earlier.session_id = session_rows.session_id AND earlier.brain_id = session_rows.brain_id "
        "AND earlier.conversation_id IS NOT DISTINCT FROM session_rows.conversation_id)",
        who,
    )
    hashed = con.execute("UPDATE session_rows SET user_id = $name_hash WHERE user_id = $name", who).fetchall()
    return int(hashed[0][0])


# Where else an id may stand: a brain or a scope per person, a session or a set named after them.
_PLACES = {
    "session_rows": ("session_id", "brain_id", "conversation_id"),
    "session_changes": ("session_id", "brain_id", "conversation_id", "target_id", "actor"),
    "traces": ("brain_id", "scope"),
    "change_traces": ("brain_id", "scope"),
}


def _hash_other_ids(con: Connection, who: dict[str, object]) -> None:
    in_snapshots = 0
    for table, columns in _PLACES.items():
        # Table and column names are the ones above; the values are bound.
        new = ", ".join(f"{name} = CASE WHEN {name} = $name THEN $name_hash ELSE {name} END" for name in columns)
        found = " OR ".join(f"{name} = $name" for name in columns)
        changed = con.execute(f"UPDATE {table} SET {new} WHERE {found}", who).fetchall()  # noqa: S608
        in_snapshots += int(changed[0][0]) if table == "change_traces" else 0
    if in_snapshots:
        con.execute(query("change_rename_in_snapshots"), who)
