"""The end of a replay: what its sessions did is captured as procedures, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from mnemokit.reasonlets import capture as reasonlet_capture
from mnemokit.replay.chunk import untimed_instants
from mnemokit.replay.outcomes import make_known
from mnemokit.replay.parents import capture_one_by_one
from mnemokit.replay.policies import Policies
from mnemokit.store import Connection, Store, fetch, lend, query, take_numbers

SLICE_SESSIONS = 100_000
"""Sessions that are captured together, in one transaction."""

SLICE_ONE_BY_ONE = 1_000
"""The same where parents are looked for capture by capture, which takes long."""


def sessions_to_capture(con: Connection, first_turn_no: int, sources: list[str]) -> pl.DataFrame:
    """Sessions of these sources that got turns since a turn number, in the order of their last step.

    Returns:
        Columns source, session_id.
    """
    return fetch(con, query("replay_sessions_to_capture"), {"first_turn_no": first_turn_no, "sources": sources}).select(
        "source", "session_id"
    )


def in_slices(sessions: pl.DataFrame, policies: Policies) -> Iterator[pl.DataFrame]:
    """These sessions, as many at a time as are captured together."""
    return sessions.iter_slices(SLICE_SESSIONS if policies.parent_policy is None else SLICE_ONE_BY_ONE)


def sessions_since(con: Connection, first_turn_no: int, sources: list[str]) -> int:
    """How many sessions of these sources got turns since a turn number."""
    return con.execute(
        query("replay_sessions_to_count"), {"first_turn_no": first_turn_no, "sources": sources}
    ).fetchall()[0][0]


def capture(con: Connection, store: Store, sessions: pl.DataFrame, policies: Policies) -> dict[str, int]:
    """Capture what these sessions did, once; of those that were captured before, note an outcome told since.

    Args:
        con: In a transaction.
        store: Whose keyed hash is used.
        sessions: Columns source, session_id.
        policies: How captures are derived and find their parents.

    Returns:
        How many captures were written, by kind.
    """
    with lend(con, slice=sessions):
        turns = fetch(con, query("replay_session_turns"))
        passings = fetch(con, query("replay_session_passings"))
    captures = policies.derive_captures(turns, passings)
    if captures.height == 0:
        return {}
    captures = captures.with_columns(key_hash=_keys(store, captures), seq=pl.int_range(pl.len(), dtype=pl.Int64))
    captures = captures.with_columns(pl.col("seq") + take_numbers(con, "seq", captures.height)).with_columns(
        ts=pl.coalesce("ts", untimed_instants(pl.col("seq"))), provenance=_provenance()
    )
    if policies.parent_policy is not None:
        captures = captures.sort("ts", maintain_order=True)
        receipts = capture_one_by_one(con, store, captures, policies.parent_policy)
    else:
        how = "same_question" if policies.parents == "same_question" else "given"
        receipts = reasonlet_capture.ingest(con, captures, store.keyed_hash, parents=how)
    make_known(con, captures, receipts)
    kinds = receipts.filter("written").group_by("kind").len()
    return dict(kinds.iter_rows())


def capture_key(source: str, session_id: str, turn_id: str | None = None, step: int | None = None) -> str:
    """The idempotency key of a replayed capture: of its session, or of its step where a session has several."""
    return "\x1f".join(("replay", source, session_id, *([] if turn_id is None else [turn_id, str(step)])))


def _keys(store: Store, captures: pl.DataFrame) -> pl.Series:
    rows = captures.select("source", "session_id", "turn_id", "step", "once_per_session").iter_rows()
    return pl.Series(
        [
            store.keyed_hash(
                capture_key(source, session_id) if once else capture_key(source, session_id, turn_id, step)
            )
            for source, session_id, turn_id, step, once in rows
        ],
        dtype=pl.String,
    )


def _provenance() -> pl.Expr:
    return pl.struct("source", "session_id", "executor_version").struct.json_encode()
