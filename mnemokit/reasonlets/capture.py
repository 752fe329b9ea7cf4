"""Writing batches of captures, set-based, inside the caller's transaction.

A batch is settled by the same rule as a single call (``lineage.Lineages.settle``); the rows before and after it are
read and written as frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, cast

import polars as pl

from mnemokit.errors import Conflict, InvalidInput, NotFound
from mnemokit.frames import FLAG, INSTANT, INT, TEXT
from mnemokit.given_frames import as_polars
from mnemokit.reasonlets import graph, run_counts
from mnemokit.reasonlets.columns import out_of_years, why_unfit
from mnemokit.reasonlets.keys import KeyedHash, checked_provenance, missing_recall
from mnemokit.reasonlets.lineage import Claim, Lineages, NewestOfQuestion, Place, Settled, settle_all
from mnemokit.reasonlets.question_index import add_questions
from mnemokit.records import OUTCOMES, CaptureKind
from mnemokit.store import Connection, fetch, lend, new_ids, query, take_numbers

Parents = Literal["given", "same_question"]

CAPTURES_SCHEMA: dict[str, pl.DataType] = {
    "scope": TEXT,
    "question": TEXT,
    "graph": TEXT,
    "graph_hash": TEXT,
    "outcome": TEXT,
    "subject": TEXT,
    "provenance": TEXT,
    "parent_id": TEXT,
    "recall_id": TEXT,
    "ts": INSTANT,
    "untimed": FLAG,
    "source": TEXT,
    "session_id": TEXT,
    "key_hash": TEXT,
}
RECEIPTS_SCHEMA: dict[str, pl.DataType] = {
    "kind": TEXT,
    "reasonlet_id": TEXT,
    "version": TEXT,
    "run_id": TEXT,
    "written": FLAG,
}
_GIVEN = (
    "scope",
    "question",
    "graph",
    "outcome",
    "subject",
    "provenance",
    "parent_id",
    "recall_id",
    "ts",
    "key",
)
FORGOTTEN = "forgotten"
"""The kind that a batch's receipts give to a capture which an erasure refuses."""


def ingest(
    con: Connection, captures: pl.DataFrame, keyed_hash: KeyedHash, *, parents: Parents = "given"
) -> pl.DataFrame:
    """Write a batch of captures, inside the caller's transaction.

    Captures are settled in the order of their instants, at equal instants in the order of the rows; a later capture of
    the batch can be a version of an earlier one. What the store holds already is never decided anew.

    Args:
        con: The connection, inside a transaction.
        captures: Columns of ``CAPTURES_SCHEMA``; ``scope``, ``graph`` (canonical JSON text, or any graph's JSON text if
            ``graph_hash`` is missing) and ``ts`` are needed, missing ones are null.
        keyed_hash: The store's keyed hash, by which erased scopes and subjects are known.
        parents: ``"given"``: the parent is ``parent_id``; ``"same_question"``: the newest reasonlet of the same scope
            and question that is not later than the capture.

    Returns:
        One row per capture, in the order given: ``kind, reasonlet_id, version, run_id`` and ``written``. A key that was
        seen before gives its first receipt with ``written`` false; a capture that an erasure refuses gives the kind
        ``forgotten`` and no ids.

    Raises:
        InvalidInput: If a needed value is missing or wrong.
        NotFound: If a given parent or a recall is unknown or of another scope.
    """
    rows = _complete(captures)
    receipts = _settled_before(con, rows, keyed_hash)
    fresh = rows.join(receipts.select("row"), on="row", how="anti", maintain_order="left")
    repeated = fresh.filter(pl.col("key_hash").is_not_null() & ~pl.col("key_hash").is_first_distinct())
    fresh = fresh.join(repeated.select("row"), on="row", how="anti", maintain_order="left")
    _check_recalls(con, fresh)
    written = _write_batch(con, fresh, parents)
    copies = repeated.select("row", "key_hash").join(
        written.join(fresh.select("row", "key_hash"), on="row"), on="key_hash", suffix="_first"
    )
    parts = [receipts, written, copies.with_columns(written=pl.lit(value=False))]
    return (
        pl.concat([part.select("row", *RECEIPTS_SCHEMA) for part in parts])
        .sort("row")
        .select(pl.col(name).cast(dtype) for name, dtype in RECEIPTS_SCHEMA.items())
    )


def batch_from_frame(given: object, now: datetime, keyed_hash: KeyedHash) -> pl.DataFrame:
    """The batch that a person's frame stands for: ``ingest`` takes it.

    Args:
        given: The frame, as ``Reasonlets.capture_many`` takes it.
        now: The instant of captures that say none.
        keyed_hash: The store's keyed hash, for the keys.

    Raises:
        InvalidInput: If it is no frame, or has a column or a value that cannot be kept.
    """
    batch = as_polars(given, "captures", "nothing was written")
    unknown = [name for name in batch.columns if name not in _GIVEN]
    if unknown:
        raise InvalidInput(
            f"captures have no column {', '.join(unknown)}; they can have {', '.join(_GIVEN)}; nothing was written"
        )
    _check_types(batch)
    _refuse_empty(batch)
    if "graph" in batch.columns and batch.schema["graph"] != TEXT:
        contents = _contents(batch["graph"])
        batch = batch.with_columns(
            graph=pl.Series([content.text for content in contents], dtype=TEXT),
            graph_hash=pl.Series([content.hash for content in contents], dtype=TEXT),
        )
    if "provenance" in batch.columns and why_unfit(batch.schema["provenance"], TEXT) is not None:
        batch = batch.with_columns(provenance=pl.Series(_provenances(batch["provenance"]), dtype=TEXT))
    stated = pl.col("ts").cast(INSTANT) if "ts" in batch.columns else pl.lit(None, dtype=INSTANT)
    batch = batch.with_columns(ts=stated.fill_null(pl.lit(now, dtype=INSTANT)))
    for row in batch.select(astray=out_of_years("ts"))["astray"].arg_true():
        raise InvalidInput(f"capture {row} has a ts that is not of the years 1 to 9999; nothing was written")
    if "key" in batch.columns:
        hashed = pl.col("key").cast(TEXT).map_elements(keyed_hash, return_dtype=TEXT)
        batch = batch.with_columns(key_hash=hashed).drop("key")
    return batch


def _check_types(batch: pl.DataFrame) -> None:
    """Graphs and provenances may be of any type; what JSON cannot carry in them is refused row by row."""
    for name, dtype in batch.schema.items():
        wanted = INSTANT if name == "ts" else TEXT
        why = None if name in ("graph", "provenance") else why_unfit(dtype, wanted)
        if why is not None:
            raise InvalidInput(f"captures: the column {name} {why}; nothing was written; cast it first")


def _refuse_empty(batch: pl.DataFrame) -> None:
    for name in ("subject", "key"):
        if name not in batch.columns:
            continue
        empty = batch.select(empty=pl.col(name).cast(TEXT) == "")["empty"].arg_true()
        if empty.len():
            raise InvalidInput(
                f"capture {empty[0]} has an empty {name}; nothing was written; give a text, or null for none"
            )


def _provenances(given: pl.Series) -> list[str | None]:
    texts: list[str | None] = []
    for row, value in enumerate(given.to_list()):
        try:
            texts.append(checked_provenance(_without_nulls(value)))
        except InvalidInput as error:
            raise InvalidInput(f"capture {row}: {error}") from None
    return texts


def _complete(captures: pl.DataFrame) -> pl.DataFrame:
    """The batch with every column, checked, and numbered in the order given."""
    missing = [name for name in ("scope", "graph", "ts") if name not in captures.columns]
    if missing:
        raise InvalidInput(
            f"the captures have no column {', '.join(missing)}; they have {', '.join(captures.columns)}; "
            "nothing was written"
        )
    rows = captures.select(
        (pl.col(name) if name in captures.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in CAPTURES_SCHEMA.items()
    ).with_columns(pl.col("untimed").fill_null(value=False), row=pl.int_range(pl.len(), dtype=pl.Int64))
    for name in ("scope", "graph", "ts"):
        bad = rows.filter(pl.col(name).is_null() | ((pl.col(name) == "") if name == "scope" else False))
        if bad.height:
            raise InvalidInput(f"capture {bad['row'][0]} has no {name}; nothing was written")
    wrong = rows.filter(pl.col("outcome").is_not_null() & ~pl.col("outcome").is_in(OUTCOMES))
    if wrong.height:
        raise InvalidInput(
            f"capture {wrong['row'][0]} has the outcome {wrong['outcome'][0]!r}; an outcome is 'success', 'failure' or "
            "null; nothing was written"
        )
    if "graph_hash" in captures.columns:
        return rows
    contents = _contents(rows["graph"])
    return rows.with_columns(
        graph=pl.Series([content.text for content in contents], dtype=TEXT),
        graph_hash=pl.Series([content.hash for content in contents], dtype=TEXT),
    )


def _contents(graphs: pl.Series) -> list[graph.Content]:
    contents: list[graph.Content] = []
    for row, given in enumerate(graphs.to_list()):
        try:
            contents.append(graph.canonical(given if isinstance(given, str) else _from_struct(given)))
        except InvalidInput as error:
            raise InvalidInput(f"capture {row}: {error}") from None
    return contents


def _from_struct(value: object) -> graph.Graph:
    return cast("graph.Graph", _without_nulls(value))


def _without_nulls(value: object) -> object:
    """A value of a struct column without null fields: a struct cannot tell null from absent."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {name: _without_nulls(field) for name, field in fields.items() if field is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in cast("list[object]", value)]
    return value


def _check_recalls(con: Connection, rows: pl.DataFrame) -> None:
    followed = rows.select("row", "scope", "recall_id").drop_nulls("recall_id")
    if followed.is_empty():
        return
    with lend(con, followed=followed):
        for row, scope, recall_id in con.execute(query("capture_astray_recalls")).fetchall():
            raise NotFound(f"capture {row}: {missing_recall(recall_id, scope)}")


def _settled_before(con: Connection, rows: pl.DataFrame, keyed_hash: KeyedHash) -> pl.DataFrame:
    """Receipts of captures that are not written: their key is known, or an erasure refuses them."""
    names = pl.concat(
        [
            rows.select(name=pl.col(realm).unique().drop_nulls()).with_columns(realm=pl.lit(realm))
            for realm in ("scope", "subject")
        ]
    ).with_columns(name_hash=pl.col("name").map_elements(keyed_hash, return_dtype=TEXT))
    with lend(con, batch=rows.select("row", "scope", "subject", "ts", "key_hash"), named=names):
        before = fetch(con, query("capture_settled_before"))
    other = before.filter(pl.col("call").is_not_null() & (pl.col("call") != "capture"))
    if other.height:
        raise Conflict(
            f"the key of capture {other['row'][0]} was used for {other['call'][0]} before; nothing was written; "
            "use another key"
        )
    decoded = before["result"].str.json_decode(
        pl.Struct({"kind": TEXT, "reasonlet_id": TEXT, "version": TEXT, "run_id": TEXT})
    )
    return (
        before.with_columns(receipt=decoded)
        .select("row", "forgotten", "receipt")
        .unnest("receipt")
        .with_columns(
            kind=pl.when("forgotten").then(pl.lit(FORGOTTEN)).otherwise("kind"),
            written=pl.lit(value=False),
            **{name: pl.when("forgotten").then(None).otherwise(name) for name in ("reasonlet_id", "version", "run_id")},
        )
    )


def _write_batch(con: Connection, rows: pl.DataFrame, parents: Parents) -> pl.DataFrame:
    """Settle and write captures that are new; their receipts with ``row``."""
    if rows.is_empty():
        return pl.DataFrame(schema={"row": INT, **RECEIPTS_SCHEMA})
    first_seq = take_numbers(con, "seq", rows.height)
    rows = rows.with_columns(seq=pl.int_range(pl.len(), dtype=pl.Int64) + first_seq)
    settled = _settle_batch(con, rows, parents)
    placed = rows.with_columns(
        kind=pl.Series([str(each.kind) for each in settled], dtype=TEXT),
        reasonlet_id=pl.Series([each.place.reasonlet_id for each in settled], dtype=TEXT),
        parent_id=pl.Series([each.parent_id for each in settled], dtype=TEXT),
        parent_no=pl.Series([each.parent_no for each in settled], dtype=INT),
        reasonlet_no=pl.Series([each.place.seq for each in settled], dtype=INT),
        root_id=pl.Series([each.place.root_id for each in settled], dtype=TEXT),
        version=pl.Series([each.place.version for each in settled], dtype=TEXT),
        version_no=pl.Series([each.version_no for each in settled], dtype=INT),
        depth=pl.Series([each.place.depth for each in settled], dtype=INT),
        run_id=pl.Series(new_ids("run_", rows.height), dtype=TEXT),
        written=pl.lit(value=True),
    )
    new = placed.filter(pl.col("kind") != CaptureKind.EXECUTION_ONLY.value).rename({"ts": "ts_captured"})
    high_water = new.group_by("root_id").agg(high_water=pl.col("version_no").max())
    keys = placed.filter(pl.col("key_hash").is_not_null()).select(
        "key_hash",
        call=pl.lit("capture"),
        result=pl.struct("kind", "reasonlet_id", "version", "run_id").struct.json_encode(),
    )
    with lend(
        con,
        new_reasonlets=new.select(_REASONLET_COLUMNS),
        new_runs=placed.rename({"ts": "ts_run"}).select(_RUN_COLUMNS),
        new_high_water=high_water,
        new_keys=keys,
    ):
        con.execute("INSERT INTO reasonlets BY NAME SELECT * FROM new_reasonlets")
        con.execute("INSERT INTO runs BY NAME SELECT * FROM new_runs")
        con.execute(
            "INSERT INTO lineages SELECT root_id, high_water FROM new_high_water "
            "ON CONFLICT DO UPDATE SET high_water = excluded.high_water"
        )
        con.execute("INSERT INTO idempotency_keys BY NAME SELECT * FROM new_keys")
    run_counts.add_batch(con, placed, new)
    add_questions(con, new)
    return placed.select("row", *RECEIPTS_SCHEMA)


def _settle_batch(con: Connection, rows: pl.DataFrame, parents: Parents) -> list[Settled]:
    lineages, newest = Lineages(), NewestOfQuestion()
    with lend(con, claims=rows.select("scope", "question", "parent_id", "ts")):
        if parents == "same_question":
            for *place, high_water, question, us in con.execute(query("capture_same_question")).fetchall():
                lineages.note(Place(*place), high_water)
                newest.note(place[3], question, (us, place[1]), place[0])
        else:
            for *place, high_water in con.execute(query("capture_known_places")).fetchall():
                lineages.note(Place(*place), high_water)
            _check_parents(rows, lineages)
    claims = [
        Claim(scope, question, graph_hash, parent_id, (us, seq))
        for scope, question, graph_hash, parent_id, us, seq in rows.select(
            "scope", "question", "graph_hash", "parent_id", pl.col("ts").dt.epoch("us"), "seq"
        ).iter_rows()
    ]
    ids: Iterator[str] = iter(new_ids("rl_", len(claims)))
    return settle_all(claims, lineages, ids.__next__, newest if parents == "same_question" else None)


def _check_parents(rows: pl.DataFrame, lineages: Lineages) -> None:
    """Every parent that a capture names is a reasonlet of its scope; the rule asks this too, but knows of no rows."""
    named = rows.select("row", "scope", "parent_id").drop_nulls("parent_id")
    known = pl.DataFrame(
        [(place.scope, name) for name, place in lineages.places.items()],
        schema={"scope": TEXT, "parent_id": TEXT},
        orient="row",
    )
    astray = named.join(known, on=["scope", "parent_id"], how="anti", maintain_order="left")
    for row, scope, parent_id in astray.head(1).iter_rows():
        raise NotFound(
            f"capture {row}: there is no reasonlet {parent_id!r} in scope {scope!r} to be the parent; "
            "nothing was written; give the id of a reasonlet of this scope, or none"
        )


_REASONLET_COLUMNS = (
    "reasonlet_id",
    "parent_id",
    "root_id",
    "version",
    "version_no",
    "depth",
    "scope",
    "question",
    "subject",
    "graph",
    "graph_hash",
    "provenance",
    "ts_captured",
    "untimed",
    "source",
    "seq",
    "parent_no",
)
_RUN_COLUMNS = (
    "run_id",
    "reasonlet_id",
    "outcome",
    "subject",
    "provenance",
    "recall_id",
    "ts_run",
    "untimed",
    "source",
    "session_id",
    "seq",
    "reasonlet_no",
)
