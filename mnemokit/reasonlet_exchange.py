"""Taking procedures from one memory to another: a scope or a lineage, with its runs, verdicts and recalls.

Ids, labels and instants stay what they are, so that an export of the import equals the export. What the other memory
holds already, and equal, is skipped; what it holds differently is a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mnemokit import run_counts
from mnemokit.errors import Conflict, InvalidInput, NotFound
from mnemokit.exchange_files import KINDS, of_kind, together
from mnemokit.frames import INT, TEXT
from mnemokit.question_index import add_questions
from mnemokit.reasonlet_keys import KeyedHash
from mnemokit.store import Connection, fetch, lend, query, take_numbers


@dataclass(frozen=True, slots=True)
class ExchangeReceipt:
    """What an export wrote to a file, or an import to the memory.

    Attributes:
        reasonlets: Reasonlets written.
        runs: Runs written.
        feedback: Verdicts written.
        recalls: Recalls written.
        recall_rows: Rows of recalls written.
        known: Records of an import that were here already, and equal.
        forgotten: Records of an import that an erasure refuses.
    """

    reasonlets: int = 0
    runs: int = 0
    feedback: int = 0
    recalls: int = 0
    recall_rows: int = 0
    known: int = 0
    forgotten: int = 0


def export_records(con: Connection, scope: str | None, reasonlet_id: str | None) -> pl.DataFrame:
    """The records of a scope, or of the lineage of a reasonlet.

    Raises:
        NotFound: If the reasonlet is unknown.
    """
    root_id = None
    if reasonlet_id is not None:
        rows = con.execute("SELECT root_id FROM reasonlets WHERE reasonlet_id = ?", [reasonlet_id]).fetchall()
        if not rows:
            raise NotFound(f"there is no reasonlet {reasonlet_id!r}; nothing was exported; check the id")
        root_id = rows[0][0]
    reasonlets = fetch(con, query("export_reasonlets"), {"scope": scope, "root_id": root_id})
    return together({"reasonlet": reasonlets, **_beside(con, reasonlets, scope)})


def import_records(con: Connection, records: pl.DataFrame, keyed_hash: KeyedHash) -> ExchangeReceipt:
    """Write records into the memory, inside the caller's transaction.

    Records of scopes and persons that were erased later than the records' instants are left out; a kept child of a
    reasonlet left out becomes a root, as in an erasure.

    Raises:
        InvalidInput: If a record names another that is neither in the file nor here.
        Conflict: If a record or a label is here already and differs.
    """
    parts = {kind: of_kind(records, kind) for kind in KINDS}
    allowed = _without_forgotten(con, parts, keyed_hash)
    forgotten = sum(parts[kind].height - allowed[kind].height for kind in KINDS)
    new = _without_known(con, allowed)
    _check_links(con, allowed, new)
    _write(con, new)
    return ExchangeReceipt(
        reasonlets=new["reasonlet"].height,
        runs=new["run"].height,
        feedback=new["feedback"].height,
        recalls=new["recall"].height,
        recall_rows=new["recall_row"].height,
        known=sum(allowed[kind].height - new[kind].height for kind in KINDS if kind != "lineage"),
        forgotten=forgotten,
    )


def receipt_of_export(records: pl.DataFrame) -> ExchangeReceipt:
    """The counts of an export's records."""
    counts = {kind: of_kind(records, kind).height for kind in KINDS}
    return ExchangeReceipt(
        counts["reasonlet"], counts["run"], counts["feedback"], counts["recall"], counts["recall_row"]
    )


def _beside(con: Connection, reasonlets: pl.DataFrame, scope: str | None) -> dict[str, pl.DataFrame]:
    """Everything that goes with the given reasonlets."""
    with lend(con, exported=reasonlets.select("reasonlet_id")):
        return {
            "lineage": fetch(con, query("export_lineages")),
            "recall": fetch(con, query("export_recalls"), {"scope": scope}),
            "recall_row": fetch(con, query("export_recall_rows")),
            "run": fetch(con, query("export_runs")),
            "feedback": fetch(con, query("export_feedback")),
        }
