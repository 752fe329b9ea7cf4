"""Writing one capture, one run or one verdict, inside the caller's transaction."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime

from mnemokit.errors import NotFound
from mnemokit.instants import to_us
from mnemokit.reasonlets import run_counts
from mnemokit.reasonlets.graph import Content
from mnemokit.reasonlets.keys import (
    KeyedHash,
    check_recall,
    known_result,
    receipt_of,
    refuse_forgotten,
    refuse_forgotten_key,
)
from mnemokit.reasonlets.lineage import Claim, Lineages, Place, Settled
from mnemokit.reasonlets.question_index import add_question
from mnemokit.records import CaptureKind, Receipt
from mnemokit.store import Connection, new_ids, query, remember, take_numbers


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture, its values checked and its graph made canonical."""

    scope: str
    question: str | None
    content: Content
    outcome: str | None
    subject: str | None
    provenance: str | None
    parent_id: str | None
    recall_id: str | None
    ts: datetime
    key_hash: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """One more run of a reasonlet that is known."""

    reasonlet_id: str
    outcome: str | None
    subject: str | None
    provenance: str | None
    recall_id: str | None
    ts: datetime
    key_hash: str | None


@dataclass(frozen=True, slots=True)
class Feedback:
    """A verdict on a run."""

    run_id: str
    outcome: str | None
    subject: str | None
    note: str | None
    ts: datetime
    key_hash: str | None


def capture(con: Connection, given: Capture, keyed_hash: KeyedHash) -> Receipt:
    """Write one capture.

    Raises:
        NotFound: If the parent or the recall is not of the scope.
        Forgotten: If the scope or the subject was erased at the capture's instant or later.
        Conflict: If the key belongs to another call.
    """
    known = known_result(con, given.key_hash, "capture")
    if known is not None:
        receipt = receipt_of(known)
        refuse_forgotten_key(con, receipt.run_id, keyed_hash, given.scope, given.subject)
        return receipt
    refuse_forgotten(con, keyed_hash, given.ts, scope=given.scope, subject=given.subject)
    check_recall(con, given.recall_id, given.scope)
    seq = take_numbers(con, "seq")
    lineages = Lineages()
    if given.parent_id is not None:
        for *place, high_water in con.execute(query("capture_parent"), {"parent_id": given.parent_id}).fetchall():
            lineages.note(Place(*place), high_water)
    claim = Claim(given.scope, given.question, given.content.hash, given.parent_id, (to_us(given.ts), seq))
    settled = lineages.settle(claim, lambda: new_ids("rl_")[0])
    receipt = Receipt(settled.kind, settled.place.reasonlet_id, settled.place.version, run_id=new_ids("run_")[0])
    if settled.kind is not CaptureKind.EXECUTION_ONLY:
        _write_reasonlet(con, given, settled, seq)
    run = Run(
        receipt.reasonlet_id,
        given.outcome,
        given.subject,
        given.provenance,
        given.recall_id,
        given.ts,
        given.key_hash,
    )
    _write_run(con, receipt.run_id, run, seq, settled.place.seq)
    if given.key_hash is not None:
        remember(con, given.key_hash, "capture", json.dumps(dataclasses.asdict(receipt)))
    return receipt


def record_run(con: Connection, given: Run, keyed_hash: KeyedHash) -> str:
    """Write one run of a reasonlet; returns its id.

    Raises:
        NotFound: If the reasonlet is unknown, or the recall is not of its scope.
        Forgotten: If the subject was erased at the run's instant or later.
        Conflict: If the key belongs to another call.
    """
    known = known_result(con, given.key_hash, "record_run")
    if known is not None:
        refuse_forgotten_key(con, known["run_id"], keyed_hash, None, given.subject)
        return known["run_id"]
    rows = con.execute("SELECT scope, seq FROM reasonlets WHERE reasonlet_id = ?", [given.reasonlet_id]).fetchall()
    if not rows:
        raise NotFound(f"there is no reasonlet {given.reasonlet_id!r}; nothing was written; check the id")
    scope, reasonlet_no = rows[0]
    refuse_forgotten(con, keyed_hash, given.ts, scope=scope, subject=given.subject)
    check_recall(con, given.recall_id, scope)
    run_id = new_ids("run_")[0]
    _write_run(con, run_id, given, take_numbers(con, "seq"), reasonlet_no)
    if given.key_hash is not None:
        remember(con, given.key_hash, "record_run", json.dumps({"run_id": run_id}))
    return run_id


def give_feedback(con: Connection, given: Feedback, keyed_hash: KeyedHash) -> str:
    """Write one verdict on a run; returns its id.

    Raises:
        NotFound: If the run is unknown.
        Forgotten: If the subject was erased at the verdict's instant or later.
        Conflict: If the key belongs to another call.
    """
    known = known_result(con, given.key_hash, "feedback")
    if known is not None:
        return known["feedback_id"]
    rows = con.execute("SELECT seq, reasonlet_no FROM runs WHERE run_id = ?", [given.run_id]).fetchall()
    if not rows:
        raise NotFound(f"there is no run {given.run_id!r}; nothing was written; check the id")
    refuse_forgotten(con, keyed_hash, given.ts, scope=None, subject=given.subject)
    run_no, reasonlet_no = rows[0]
    feedback_id, before = new_ids("fb_")[0], run_counts.verdict_of(con, run_no)
    con.execute(
        "INSERT INTO feedback (feedback_id, run_id, outcome, subject, note, ts_given, seq, run_no, reasonlet_no) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            feedback_id,
            given.run_id,
            given.outcome,
            given.subject,
            given.note,
            given.ts,
            take_numbers(con, "seq"),
            run_no,
            reasonlet_no,
        ],
    )
    run_counts.add(con, reasonlet_no, run_counts.verdict_of(con, run_no), instead_of=before)
    if given.key_hash is not None:
        remember(con, given.key_hash, "feedback", json.dumps({"feedback_id": feedback_id}))
    return feedback_id


def _write_reasonlet(con: Connection, given: Capture, settled: Settled, seq: int) -> None:
    place = settled.place
    con.execute(
        "INSERT INTO reasonlets (reasonlet_id, parent_id, root_id, version, version_no, depth, scope, question, "
        "subject, graph, graph_hash, provenance, ts_captured, seq, parent_no) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            place.reasonlet_id,
            settled.parent_id,
            place.root_id,
            place.version,
            settled.version_no,
            place.depth,
            given.scope,
            given.question,
            given.subject,
            given.content.text,
            given.content.hash,
            given.provenance,
            given.ts,
            seq,
            settled.parent_no,
        ],
    )
    if settled.parent_id is None:
        con.execute("INSERT INTO lineages VALUES (?, ?)", [place.root_id, settled.version_no])
    else:
        con.execute("UPDATE lineages SET high_water = ? WHERE root_id = ?", [settled.version_no, place.root_id])
    run_counts.start(con, seq)
    if given.question is not None:
        add_question(con, given.scope, seq, given.question, given.ts)


def _write_run(con: Connection, run_id: str, run: Run, seq: int, reasonlet_no: int) -> None:
    con.execute(
        "INSERT INTO runs (run_id, reasonlet_id, outcome, subject, provenance, recall_id, ts_run, seq, reasonlet_no) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            run_id,
            run.reasonlet_id,
            run.outcome,
            run.subject,
            run.provenance,
            run.recall_id,
            run.ts,
            seq,
            reasonlet_no,
        ],
    )
    run_counts.add(con, reasonlet_no, run.outcome)
