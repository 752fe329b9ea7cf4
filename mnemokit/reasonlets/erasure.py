"""Taking procedures away: erasure of a scope or a person, pruning of what nothing uses, withdrawal of a source.

All four end in the same removal: the reasonlets go with every run, verdict, recall row, posting and vector on them. An
erasure can cut a lineage; the kept child of an erased version becomes the root of a lineage of its own. Pruning and
withdrawal never cut one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.frames import TEXT
from mnemokit.reasonlets import run_counts
from mnemokit.reasonlets.keys import KeyedHash, write_alone
from mnemokit.reasonlets.question_index import remove_questions
from mnemokit.store import Connection, fetch, lend, query


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What an erasure took away.

    Attributes:
        reasonlets: Reasonlets deleted.
        runs: Runs deleted: everyone's on those reasonlets, and the person's elsewhere.
        feedback: Verdicts deleted: all on those runs, and the person's elsewhere.
        recalls: Recalls deleted.
        recall_rows: Rows of recalls deleted, of other people's recalls too.
        new_roots: Kept versions that became the root of a lineage of their own.
        turns: Turns whose person and question (for a scope: whose scope too) were blanked.
        rejects: Rejects whose excerpt was blanked.
    """

    reasonlets: int = 0
    runs: int = 0
    feedback: int = 0
    recalls: int = 0
    recall_rows: int = 0
    new_roots: int = 0
    turns: int = 0
    rejects: int = 0

    @property
    def total(self) -> int:
        """Everything that was deleted or blanked; 0 if there was nothing."""
        return self.reasonlets + self.runs + self.feedback + self.recalls + self.recall_rows + self.turns + self.rejects


@dataclass(frozen=True, slots=True)
class PruneReceipt:
    """What a prune took away, or would take away.

    Attributes:
        reasonlets: Reasonlets unused for so long.
        runs: Their runs.
        feedback: The verdicts on those.
        recall_rows: Their rows in recalls.
        dry_run: True if nothing was written.
        reasonlet_ids: Which reasonlets, oldest arrival first.
    """

    reasonlets: int = 0
    runs: int = 0
    feedback: int = 0
    recall_rows: int = 0
    dry_run: bool = False
    reasonlet_ids: tuple[str, ...] = ()


def erase_scope(con: Connection, scope: str, now: datetime, keyed_hash: KeyedHash) -> ErasureReceipt:
    """Erase everything of a scope, inside the caller's transaction.

    Its reasonlets go with everything on them, and its recalls. Its turns keep their structure, on which the edges
    stand, and lose person, question and scope; the rejects whose source is the scope lose person and excerpt. A
    keyed-hash tombstone stays, if there was anything.
    """
    write_alone(con)
    gone = fetch(con, "SELECT reasonlet_id, root_id, seq FROM reasonlets WHERE scope = ? ORDER BY seq", [scope])
    recalls = fetch(con, "SELECT recall_id FROM recalls WHERE scope = ?", [scope])
    doomed = _doomed(con, gone, recalls=recalls)
    new_roots = _delete(con, doomed)
    turns = _count(
        con,
        "UPDATE turns SET user_id = NULL, question = NULL, scope = NULL, meta = NULL, "
        "arg_values = NULL, result_values = NULL WHERE coalesce(scope, source) = ? "
        "AND (coalesce(user_id, question, scope, meta) IS NOT NULL OR coalesce(arg_values, result_values) IS NOT NULL)",
        [scope],
    )
    # A reject has no scope of its own; like a turn without one it belongs to the scope that is named like its source.
    rejects = _count(
        con,
        "UPDATE rejects SET user_id = NULL, excerpt = NULL WHERE source = ? AND coalesce(user_id, excerpt) IS NOT NULL",
        [scope],
    )
    receipt = _receipt(doomed, new_roots, turns, rejects)
    if receipt.total:
        _bury(con, "scope", scope, now, keyed_hash)
    return receipt


def erase_subject(con: Connection, subject: str, now: datetime, keyed_hash: KeyedHash) -> ErasureReceipt:
    """Erase a person from the procedural memory and the log, inside the caller's transaction.

    Their reasonlets go with everyone's runs, verdicts and recall rows on them; their runs elsewhere with all verdicts
    on those; their verdicts elsewhere, so that the verdict before, or the run's own outcome, applies again; their
    recalls. Their turns lose person and question, their rejects the excerpt. A keyed-hash tombstone stays, if there
    was anything.
    """
    write_alone(con)
    gone = fetch(con, "SELECT reasonlet_id, root_id, seq FROM reasonlets WHERE subject = ? ORDER BY seq", [subject])
    runs = fetch(con, "SELECT run_id FROM runs WHERE subject = ?", [subject])
    feedback = fetch(con, "SELECT feedback_id FROM feedback WHERE subject = ?", [subject])
    recalls = fetch(con, "SELECT recall_id FROM recalls WHERE subject = ?", [subject])
    doomed = _doomed(con, gone, runs=runs, feedback=feedback, recalls=recalls)
    new_roots = _delete(con, doomed)
    turns = _count(
        con,
        "UPDATE turns SET user_id = NULL, question = NULL, meta = NULL, arg_values = NULL, result_values = NULL "
        "WHERE user_id = ?",
        [subject],
    )
    rejects = _count(con, "UPDATE rejects SET user_id = NULL, excerpt = NULL WHERE user_id = ?", [subject])
    receipt = _receipt(doomed, new_roots, turns, rejects)
    if receipt.total:
        _bury(con, "subject", subject, now, keyed_hash)
    return receipt


def prune_since(unused_for: object, now: datetime) -> datetime:
    """The instant since which nothing may have been used, for it to be pruned.

    Raises:
        InvalidInput: If the time is no timedelta, is negative, or is longer than there are instants.
    """
    if not isinstance(unused_for, timedelta):
        raise InvalidInput(
            f"unused_for must be a timedelta, not {type(unused_for).__name__}; nothing was pruned; "
            "give for instance timedelta(days=90)"
        )
    if unused_for < timedelta(0):
        raise InvalidInput(f"unused_for must not be negative, not {unused_for!r}; nothing was pruned")
    try:
        return now - unused_for
    except OverflowError:
        raise InvalidInput(
            "unused_for reaches back to before the year 1; nothing was pruned; give a shorter time"
        ) from None


def prune(con: Connection, since: datetime, *, dry_run: bool) -> PruneReceipt:
    """Remove reasonlets that had no run and no showing recall after an instant, inside the caller's transaction.

    One with a used version below it stays, so that no kept version loses its parent.
    """
    if not dry_run:
        write_alone(con)
    gone = fetch(con, query("prune_unused"), {"since": since})
    doomed = _doomed(con, gone)
    if not dry_run:
        _delete(con, doomed)
    return PruneReceipt(
        doomed.reasonlets.height,
        doomed.runs.height,
        doomed.feedback.height,
        doomed.recall_rows.height,
        dry_run,
        tuple(gone["reasonlet_id"].to_list()),
    )


def withdraw(con: Connection, source: str) -> int:
    """Take a replayed source back, inside the caller's transaction; returns how many of its runs went.

    Its runs go. Its reasonlets go too, unless something from elsewhere stands on them: a run, or a version below them;
    those stay with their labels.
    """
    write_alone(con)
    gone = fetch(con, query("withdraw_reasonlets"), {"source": source})
    runs = fetch(con, "SELECT run_id FROM runs WHERE source = ?", [source])
    doomed = _doomed(con, gone, runs=runs)
    _delete(con, doomed)
    return doomed.runs.height


# The removal --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Doomed:
    """Keys of everything that goes."""

    reasonlets: pl.DataFrame
    runs: pl.DataFrame
    feedback: pl.DataFrame
    recalls: pl.DataFrame
    recall_rows: pl.DataFrame
    recounted: pl.DataFrame


def _doomed(
    con: Connection,
    reasonlets: pl.DataFrame,
    *,
    runs: pl.DataFrame | None = None,
    feedback: pl.DataFrame | None = None,
    recalls: pl.DataFrame | None = None,
) -> _Doomed:
    """Everything on the given reasonlets (``reasonlet_id, root_id, seq``), and what else is given by its key."""
    more_runs = pl.DataFrame(schema={"run_id": TEXT}) if runs is None else runs
    more_feedback = pl.DataFrame(schema={"feedback_id": TEXT}) if feedback is None else feedback
    gone_recalls = pl.DataFrame(schema={"recall_id": TEXT}) if recalls is None else recalls
    with lend(con, gone=reasonlets, more_runs=more_runs, more_feedback=more_feedback, gone_recalls=gone_recalls):
        gone_runs = fetch(
            con,
            "SELECT run_id FROM runs SEMI JOIN gone USING (reasonlet_id) UNION SELECT run_id FROM more_runs",
        )
        with lend(con, gone_runs=gone_runs):
            gone_feedback = fetch(
                con,
                "SELECT feedback_id FROM feedback SEMI JOIN gone_runs USING (run_id) "
                "UNION SELECT feedback_id FROM more_feedback",
            )
        gone_rows = fetch(
            con,
            "SELECT recall_id, rank FROM recall_rows SEMI JOIN gone USING (reasonlet_id) "
            "UNION SELECT recall_id, rank FROM recall_rows SEMI JOIN gone_recalls USING (recall_id)",
        )
        with lend(con, gone_runs=gone_runs, gone_feedback=gone_feedback):
            recounted = fetch(con, query("erasure_recounted"))
    return _Doomed(reasonlets, gone_runs, gone_feedback, gone_recalls, gone_rows, recounted)


def _delete(con: Connection, doomed: _Doomed) -> int:
    """Delete it; returns how many kept versions became roots."""
    with lend(
        con,
        gone=doomed.reasonlets,
        gone_runs=doomed.runs,
        gone_feedback=doomed.feedback,
        gone_recalls=doomed.recalls,
        gone_rows=doomed.recall_rows,
    ):
        con.execute("DELETE FROM feedback WHERE feedback_id IN (SELECT feedback_id FROM gone_feedback)")
        con.execute("DELETE FROM runs WHERE run_id IN (SELECT run_id FROM gone_runs)")
        con.execute("UPDATE runs SET recall_id = NULL WHERE recall_id IN (SELECT recall_id FROM gone_recalls)")
        con.execute("DELETE FROM recalls WHERE recall_id IN (SELECT recall_id FROM gone_recalls)")
        con.execute("DELETE FROM recall_rows WHERE (recall_id, rank) IN (SELECT recall_id, rank FROM gone_rows)")
        with lend(con, touched_recalls=doomed.recall_rows.select("recall_id").unique()):
            con.execute(query("shown_counts_anew"))
        new_roots = _delete_reasonlets(con) if doomed.reasonlets.height else 0
    run_counts.count_anew(con, doomed.recounted)
    return new_roots


def _delete_reasonlets(con: Connection) -> int:
    """Delete the reasonlets in ``gone``, and let their kept children be roots; returns how many."""
    moved = fetch(con, query("erasure_cut_lineages"))
    remove_questions(con)
    con.execute("DELETE FROM vectors WHERE seq IN (SELECT seq FROM gone)")
    con.execute("DELETE FROM reasonlets WHERE reasonlet_id IN (SELECT reasonlet_id FROM gone)")
    con.execute("DELETE FROM lineages WHERE root_id IN (SELECT reasonlet_id FROM gone)")
    with lend(con, moved=moved):
        con.execute(query("erasure_move"))
        con.execute("INSERT INTO lineages SELECT root_id, max(version_no) FROM moved GROUP BY root_id")
    return moved.filter(pl.col("depth") == 0).height


def _receipt(doomed: _Doomed, new_roots: int, turns: int, rejects: int) -> ErasureReceipt:
    return ErasureReceipt(
        reasonlets=doomed.reasonlets.height,
        runs=doomed.runs.height,
        feedback=doomed.feedback.height,
        recalls=doomed.recalls.height,
        recall_rows=doomed.recall_rows.height,
        new_roots=new_roots,
        turns=turns,
        rejects=rejects,
    )


def _count(con: Connection, statement: str, values: list[str]) -> int:
    return int(con.execute(statement, values).fetchall()[0][0])


def _bury(con: Connection, realm: str, name: str, now: datetime, keyed_hash: KeyedHash) -> None:
    con.execute(
        "INSERT INTO tombstones (name_hash, realm, ts_forgotten) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET ts_forgotten = greatest(tombstones.ts_forgotten, excluded.ts_forgotten)",
        [keyed_hash(name), realm, now],
    )
