"""Taking procedures from one memory to another: a scope or a lineage, with its runs, verdicts and recalls.

Ids, labels and instants stay what they are, so that an export of the import equals the export. What the other memory
holds already, and equal, is skipped; what it holds differently is a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from mnemokit.errors import Conflict, InvalidInput, NotFound
from mnemokit.frames import INT, TEXT
from mnemokit.reasonlets import run_counts
from mnemokit.reasonlets.exchange_files import of_kind, together
from mnemokit.reasonlets.exchange_records import KEYS, KINDS
from mnemokit.reasonlets.keys import KeyedHash, write_alone
from mnemokit.reasonlets.question_index import add_questions
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
    write_alone(con)
    parts = {kind: of_kind(records, kind) for kind in KINDS}
    allowed = _without_forgotten(con, parts, keyed_hash)
    # A lineage is its reasonlets', and counted with them.
    forgotten = sum(parts[kind].height - allowed[kind].height for kind in KINDS if kind != "lineage")
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


# What is left out ---------------------------------------------------------------------------------------------------

_INSTANTS = {"reasonlet": "ts_captured", "run": "ts_run", "feedback": "ts_given", "recall": "ts_recalled"}
_NAMES = {
    "reasonlet": ("scope", "subject"),
    "run": ("subject",),
    "feedback": ("subject",),
    "recall": ("scope", "subject"),
}
_STORED = {
    "reasonlet": "SELECT stored.* FROM reasonlets AS stored SEMI JOIN given USING (reasonlet_id)",
    "recall": "SELECT stored.* FROM recalls AS stored SEMI JOIN given USING (recall_id)",
    "recall_row": "SELECT stored.* FROM recall_rows AS stored SEMI JOIN given USING (recall_id, rank)",
    "run": "SELECT stored.* FROM runs AS stored SEMI JOIN given USING (run_id)",
    "feedback": "SELECT stored.* FROM feedback AS stored SEMI JOIN given USING (feedback_id)",
}
Parts = dict[str, pl.DataFrame]


def _without_forgotten(con: Connection, parts: Parts, keyed_hash: KeyedHash) -> Parts:
    """The records that no erasure refuses, their links to refused ones cut."""
    stones = fetch(con, "SELECT realm, name_hash, ts_forgotten FROM tombstones WHERE realm IN ('scope', 'subject')")
    if stones.is_empty():
        return parts
    kept = {
        kind: _later_than_erasure(part, _NAMES[kind], _INSTANTS[kind], stones, keyed_hash) if kind in _NAMES else part
        for kind, part in parts.items()
    }
    gone = parts["reasonlet"].join(kept["reasonlet"], on="reasonlet_id", how="anti").select("reasonlet_id")
    for kind in ("lineage", "run", "recall_row"):
        kept[kind] = kept[kind].join(gone, on="reasonlet_id", how="anti", maintain_order="left")
    gone_runs = parts["run"].join(kept["run"], on="run_id", how="anti")
    gone_recalls = parts["recall"].join(kept["recall"], on="recall_id", how="anti")
    kept["feedback"] = kept["feedback"].join(gone_runs, on="run_id", how="anti", maintain_order="left")
    kept["recall_row"] = kept["recall_row"].join(gone_recalls, on="recall_id", how="anti", maintain_order="left")
    kept["reasonlet"] = _unlinked(kept["reasonlet"], "parent_id", gone["reasonlet_id"])
    kept["run"] = _unlinked(kept["run"], "recall_id", gone_recalls["recall_id"])
    return kept


def _later_than_erasure(
    part: pl.DataFrame, names: tuple[str, ...], instant: str, stones: pl.DataFrame, keyed_hash: KeyedHash
) -> pl.DataFrame:
    for realm in names:
        erased = (
            part.select(name=pl.col(realm).unique().drop_nulls())
            .with_columns(name_hash=pl.col("name").map_elements(keyed_hash, return_dtype=TEXT))
            .join(stones.filter(pl.col("realm") == realm), on="name_hash")
            .select(pl.col("name").alias(realm), "ts_forgotten")
        )
        part = (
            part.join(erased, on=realm, how="left", maintain_order="left")
            .filter(pl.col("ts_forgotten").is_null() | (pl.col(instant) > pl.col("ts_forgotten")))
            .drop("ts_forgotten")
        )
    return part


def _unlinked(part: pl.DataFrame, link: str, gone: pl.Series) -> pl.DataFrame:
    return part.with_columns(pl.when(pl.col(link).is_in(gone.to_list())).then(None).otherwise(link).alias(link))


def _without_known(con: Connection, parts: Parts) -> Parts:
    """The records that are not here yet; those that are must be equal."""
    new = dict(parts)
    for kind, keys in KEYS.items():
        part = parts[kind]
        with lend(con, given=part.select(keys)):
            stored = fetch(con, _STORED[kind]).select(pl.col(name).cast(part.schema[name]) for name in KINDS[kind])
        differing = part.join(stored, on=keys, how="semi").join(
            stored, on=list(KINDS[kind]), how="anti", nulls_equal=True
        )
        if differing.height:
            raise Conflict(
                f"the {kind} {differing[keys[0]][0]!r} is here already and differs from the file's; nothing was "
                "written; import into another memory, or erase it here first"
            )
        new[kind] = part.join(stored, on=keys, how="anti", maintain_order="left")
    return new


def _check_links(con: Connection, given: Parts, new: Parts) -> None:
    """Every record names records that are in the file or here."""
    for kind, link, target in (
        ("reasonlet", "parent_id", "reasonlet"),
        ("run", "reasonlet_id", "reasonlet"),
        ("recall_row", "reasonlet_id", "reasonlet"),
        ("recall_row", "recall_id", "recall"),
        ("run", "recall_id", "recall"),
        ("feedback", "run_id", "run"),
    ):
        key = KEYS[target][0]
        named = new[kind].select(pl.col(link).alias(key)).drop_nulls().unique()
        astray = named.join(given[target], on=key, how="anti")
        with lend(con, given=astray):
            astray = astray.join(fetch(con, _STORED[target]).select(key), on=key, how="anti")
        if astray.height:
            raise InvalidInput(
                f"a {kind} names the {target} {astray[key][0]!r}, which is neither in the file nor here; "
                "nothing was written; export it too"
            )


# Writing ------------------------------------------------------------------------------------------------------------


def _write(con: Connection, new: Parts) -> None:
    reasonlets = _placed(con, _numbered(con, new["reasonlet"]))
    with lend(
        con,
        new_reasonlets=reasonlets,
        new_lineages=_high_water(reasonlets, new["lineage"]),
        new_recalls=_numbered(con, new["recall"]),
        new_rows=new["recall_row"],
        new_runs=_numbered(con, new["run"]),
        new_feedback=_numbered(con, new["feedback"]),
    ):
        con.execute("INSERT INTO reasonlets BY NAME SELECT * FROM new_reasonlets")
        con.execute(query("import_lineages"))
        con.execute("INSERT INTO recall_rows BY NAME SELECT * FROM new_rows")
        con.execute(query("import_recalls"))
        touched_recalls = pl.concat([new[kind].select("recall_id") for kind in ("recall", "recall_row")]).unique()
        with lend(con, touched_recalls=touched_recalls):
            con.execute(query("shown_counts_anew"))
        con.execute(query("import_runs"))
        con.execute(query("import_feedback"))
        touched = fetch(con, query("import_touched"))
    add_questions(con, reasonlets)
    run_counts.count_anew(con, touched)


def _numbered(con: Connection, part: pl.DataFrame) -> pl.DataFrame:
    first = take_numbers(con, "seq", part.height) if part.height else 0
    return part.with_columns(seq=pl.int_range(pl.len(), dtype=pl.Int64) + first)


def _placed(con: Connection, reasonlets: pl.DataFrame) -> pl.DataFrame:
    """New reasonlets with their root, depth, parent's number and version number."""
    with lend(con, given=reasonlets.select(reasonlet_id="parent_id").drop_nulls()):
        above = fetch(con, _STORED["reasonlet"]).select("reasonlet_id", "root_id", "depth", "seq", "scope")
    places = {row[0]: row[1:] for row in above.iter_rows()}
    waiting = {row[0]: row[1:] for row in reasonlets.select("reasonlet_id", "parent_id", "seq", "scope").iter_rows()}
    parent_no: dict[str, int | None] = {}
    for start in list(waiting):
        way = [start]
        while (parent := waiting[way[-1]][0]) is not None and parent not in places and len(way) <= len(waiting):
            way.append(parent)
        for name in reversed(way):
            parent, seq, scope = waiting[name]
            if parent is not None and (parent not in places or places[parent][3] != scope):
                raise InvalidInput(
                    f"the reasonlet {name!r} has the parent {parent!r}, which is below it or of another scope; "
                    "nothing was written"
                )
            root, depth = (name, 0) if parent is None else (places[parent][0], places[parent][1] + 1)
            places[name] = (root, depth, seq, scope)
            parent_no[name] = None if parent is None else places[parent][2]
    names = reasonlets["reasonlet_id"].to_list()
    return reasonlets.with_columns(
        root_id=pl.Series([places[name][0] for name in names], dtype=TEXT),
        depth=pl.Series([places[name][1] for name in names], dtype=INT),
        parent_no=pl.Series([parent_no[name] for name in names], dtype=INT),
        version_no=pl.col("version").str.strip_prefix("1.").cast(INT),
    ).pipe(_check_labels, con)


def _check_labels(reasonlets: pl.DataFrame, con: Connection) -> pl.DataFrame:
    """A label names one procedure of its lineage."""
    with lend(con, given=reasonlets.select("root_id").unique()):
        taken = fetch(
            con,
            "SELECT root_id, version_no, reasonlet_id AS other FROM reasonlets SEMI JOIN given USING (root_id)",
        ).with_columns(pl.col("version_no").cast(INT))
    twice = reasonlets.filter(reasonlets.select("root_id", "version_no").is_duplicated())
    clash = reasonlets.join(taken, on=["root_id", "version_no"])
    if twice.height or clash.height:
        row = (twice if twice.height else clash).row(0, named=True)
        raise Conflict(
            f"version {row['version']} of lineage {row['root_id']!r} would name {row['reasonlet_id']!r} and "
            f"{row.get('other', 'another')!r}; nothing was written; the two memories went apart"
        )
    return reasonlets


def _high_water(reasonlets: pl.DataFrame, lineages: pl.DataFrame) -> pl.DataFrame:
    said = lineages.select(root_id="reasonlet_id", high_water=pl.col("high_water"))
    given_out = reasonlets.select("root_id", high_water=pl.col("version_no"))
    return pl.concat([said, given_out]).group_by("root_id").agg(pl.col("high_water").max())
