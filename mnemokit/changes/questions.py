"""What one asks of memory writes: whose they are, what became of them, what hangs on them, and whether all is well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import polars as pl

from mnemokit import frames
from mnemokit.changes.forgetting import REALM
from mnemokit.changes.recovery import FOUND_OPEN
from mnemokit.changes.trace_operations import INSTANT
from mnemokit.changes.traces import snapshots
from mnemokit.errors import NotFound
from mnemokit.store import Connection, Store, fetch, query

_TEXT, _INT, _TEXTS = pl.String(), pl.Int64(), pl.List(pl.String())

TIMELINE: dict[str, pl.DataType] = {
    "ts": INSTANT,
    "change_id": _TEXT,
    "move": _TEXT,
    "action": _TEXT,
    "actor": _TEXT,
    "session_id": _TEXT,
    "user_id": _TEXT,
    "contributor_ids": _TEXTS,
    "before": _TEXT,
    "after": _TEXT,
    "verdict": _TEXT,
    "reason": _TEXT,
    "forgotten": pl.Boolean(),
    "seq": _INT,
}

BLAME: dict[str, pl.DataType] = {
    "field": _TEXT,
    "value": _TEXT,
    "change_id": _TEXT,
    "actor": _TEXT,
    "session_id": _TEXT,
    "user_id": _TEXT,
    "contributor_ids": _TEXTS,
    "ts": INSTANT,
}

CONTRIBUTORS: dict[str, pl.DataType] = {
    "session_id": _TEXT,
    "user_id": _TEXT,
    "role": _TEXT,
    "brain_id": _TEXT,
    "conversation_id": _TEXT,
    "changes": _INT,
    "ts_noted": INSTANT,
}

IMPACT: dict[str, pl.DataType] = {
    "what": _TEXT,
    "change_id": _TEXT,
    "trace_id": _TEXT,
    "session_id": _TEXT,
    "depth": _INT,
    "run_id": _TEXT,
    "recall_id": _TEXT,
    "reasonlet_id": _TEXT,
    "ts": INSTANT,
}

_FIELDS = ("content", "type", "scope", "tags", "metadata", "parents")


@dataclass(frozen=True, slots=True, eq=False)
class ChangeAudit(Mapping[str, pl.DataFrame]):
    """What is to be looked at; also a mapping from each name to its frame.

    Attributes:
        open_candidates: Writes without a verdict: change_id, actor, session_id, state, ts_candidate.
        differs_from_plan: Kept writes that did something else than planned: change_id, actor, after, kept.
        left_of_forgotten: Where an id of a forgotten person still stands: name_hash, place, n. Must be empty.
        conflicts: Reverts that met later writes: change_id, conflicts, ts_conflict.
        not_undone: Callers' own changes that were settled without their ``undo``: change_id, actor, verdict.
    """

    open_candidates: pl.DataFrame
    differs_from_plan: pl.DataFrame
    left_of_forgotten: pl.DataFrame
    conflicts: pl.DataFrame
    not_undone: pl.DataFrame

    @property
    def ok(self) -> bool:
        """Nothing is half done: every write has a verdict, and nothing is left of whoever was forgotten."""
        return self.open_candidates.is_empty() and self.left_of_forgotten.is_empty()

    def __getitem__(self, key: str) -> pl.DataFrame:
        """The frame of that name."""
        if key not in set(self):
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        """The names of the frames."""
        return iter(field.name for field in fields(self))

    def __len__(self) -> int:
        """How many frames there are."""
        return len(fields(self))


def timeline(con: Connection, trace_id: str) -> pl.DataFrame:
    """Every write and revert that touched a trace (``TIMELINE``), in order; ``before`` and ``after`` are JSON."""
    rows = fetch(con, query("change_timeline"), {"trace_id": trace_id})
    present = rows.filter("present", ~pl.col("forgotten"))
    told = present.select("seq", after=pl.Series(snapshots(con, present.drop("action")), dtype=pl.String))
    state = pl.when("counts", ~pl.col("action").is_in(["resolved", "own"])).then(pl.col("after").fill_null(""))
    rows = rows.join(told, on="seq", how="left", maintain_order="left").with_columns(
        before=state.forward_fill().shift(1).replace("", None)
    )
    own = pl.col("action") == "own"
    rows = rows.with_columns(
        before=pl.when(own).then("own_before").when(~pl.col("forgotten")).then("before"),
        after=pl.when(own).then("own_after").otherwise("after"),
    )
    return frames.conform(rows, TIMELINE)


def blame(con: Connection, trace_id: str) -> pl.DataFrame:
    """For each field of a live trace, the standing write that gave it its value (``BLAME``)."""
    states = fetch(con, query("change_blame"), {"trace_id": trace_id}).with_row_index("place")
    if states.is_empty():
        return pl.DataFrame(schema=BLAME)
    last = {
        name: states.filter(~pl.col(name).eq_missing(pl.col(name).shift(1)) | (pl.col("place") == 0)).tail(1)
        for name in _FIELDS
    }
    return frames.conform(
        pl.concat(row.with_columns(field=pl.lit(name), value=pl.col(name)) for name, row in last.items()), BLAME
    )


def contributors(con: Connection, session_id: str) -> pl.DataFrame:
    """The people of a session (``CONTRIBUTORS``)."""
    return frames.conform(fetch(con, query("change_contributors"), {"session_id": session_id}), CONTRIBUTORS)


def impact(con: Connection, change_id: str) -> pl.DataFrame:
    """What a revert of a write would take along (``IMPACT``).

    Raises:
        NotFound: If there is no such write.
    """
    if not con.execute("SELECT 1 FROM session_changes WHERE change_id = ?", [change_id]).fetchall():
        raise NotFound(f"there is no memory write {change_id!r}; mem.frame('session_changes') lists those there are")
    return frames.conform(fetch(con, query("change_impact"), {"change_id": change_id}), IMPACT)


def audit(con: Connection, store: Store) -> ChangeAudit:
    """What is to be looked at."""
    return ChangeAudit(
        open_candidates=fetch(
            con,
            "SELECT change_id, actor, session_id, state, ts_candidate FROM session_changes "
            "WHERE state IN ('candidate', 'applied') ORDER BY seq",
        ),
        differs_from_plan=fetch(
            con,
            "SELECT change_id, actor, after, kept FROM session_changes WHERE kept IS NOT NULL "
            "AND state IN ('kept', 'reverted') AND ts_forgotten IS NULL ORDER BY seq",
        ),
        left_of_forgotten=_left_of_forgotten(con, store),
        conflicts=fetch(
            con,
            "SELECT change_id, conflicts, ts_conflict FROM session_changes WHERE conflicts IS NOT NULL ORDER BY seq",
        ),
        not_undone=fetch(
            con,
            "SELECT change_id, actor, state AS verdict FROM session_changes WHERE operation = 'own' "
            "AND (reason = $found_open OR (state = 'kept' AND ts_forgotten IS NOT NULL "
            "AND reason IS DISTINCT FROM 'forgotten')) ORDER BY seq",
            {"found_open": FOUND_OPEN},
        ),
    )


def _left_of_forgotten(con: Connection, store: Store) -> pl.DataFrame:
    """Ids that hash to a tombstone, words of learners whose writes should be blank, and blanking that is not done."""
    schema: dict[str, pl.DataType] = {"name_hash": _TEXT, "place": _TEXT, "n": _INT}
    laid = con.execute("SELECT name_hash FROM tombstones WHERE realm = ? AND ts_readmitted IS NULL", [REALM]).fetchall()
    tombstones = {name_hash for (name_hash,) in laid}
    if not tombstones:
        return pl.DataFrame(schema=schema)
    names = fetch(con, query("change_names"))["name"].to_list()
    ids = [(name_hash, "ids", 1) for name in names if (name_hash := store.keyed_hash(name)) in tombstones]
    words = con.execute(query("change_unblanked"), {"realm": REALM}).fetchall()
    return pl.DataFrame([*ids, *words], schema=schema, orient="row")
