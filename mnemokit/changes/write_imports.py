"""Memory writes of real logs, brought in exactly once, all of a frame in one transaction."""

from __future__ import annotations

import time
from dataclasses import dataclass

import polars as pl

from mnemokit.changes.forgetting import REALM, forgotten_among
from mnemokit.changes.log import as_json
from mnemokit.changes.trace_operations import INSTANT
from mnemokit.errors import InvalidInput
from mnemokit.instants import EPOCH
from mnemokit.store import Connection, Store, fetch, lend, new_ids, query, take_numbers

CALL = "import_writes"

_TEXT, _TEXTS = pl.String(), pl.List(pl.String())

REQUIRED: dict[str, pl.DataType] = {
    "session_id": _TEXT,
    "brain_id": _TEXT,
    "trace_key": _TEXT,
}
"""The columns that a frame of writes must have: the session, the memory, and the log's own name for the trace."""

OPTIONAL: dict[str, tuple[pl.DataType, object]] = {
    "source": (_TEXT, ""),
    "content": (_TEXT, None),
    "content_hash": (_TEXT, None),
    "user_id": (_TEXT, None),
    "contributor_ids": (_TEXTS, []),
    "conversation_id": (_TEXT, None),
    "type": (_TEXT, "semantic"),
    "scope": (_TEXT, None),
    "tags": (_TEXTS, []),
    "metadata": (_TEXT, None),
    "parents": (_TEXTS, []),
    "actor": (_TEXT, None),
    "ts": (INSTANT, None),
    "untimed": (pl.Boolean(), False),
}
"""The columns that it may have, each with its type and what stands for a missing column or a null.

``source`` and ``brain_id`` are the space in which a ``trace_key`` is unique; ``parents`` are trace_keys of that space.
``content`` may be null: the log is then imported without its words, with ``content_hash`` (SHA-256, hex) if given.
``metadata`` is JSON text (a column ``meta`` is taken for it). ``actor`` is ``log:<source>`` if null. A write whose
``ts`` is null or that says ``untimed`` has an order but no time.
"""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The account of an import: ``writes + duplicates + forgotten`` is every row of the frame.

    Attributes:
        writes: Writes made, each with one new trace.
        duplicates: Rows whose key was imported before, or stands twice in the frame.
        forgotten: Rows refused because a person in them was forgotten, or because they build on such a row.
        missing_parents: Parents that are neither in the frame nor imported before; those links were left out.
        seconds: How long it took.
    """

    writes: int = 0
    duplicates: int = 0
    forgotten: int = 0
    missing_parents: int = 0
    seconds: float = 0.0


def import_writes(store: Store, frame: pl.DataFrame) -> ImportReport:
    """Bring in memory writes of a log.

    Every row becomes one write that was kept, with one new trace: a log's equal texts stay the separate traces that
    they were. People are noted and contributors inherited from parents as in a live session.

    Args:
        store: Where.
        frame: Columns of ``REQUIRED`` and ``OPTIONAL``, in the order of the log.

    Returns:
        The account.

    Raises:
        InvalidInput: If a column is missing or of another type, or a key is null; nothing was written.
    """
    started = time.perf_counter()
    writes = _normal(frame)
    keyed = writes.with_columns(key_hash=_key_hashes(store, writes, "trace_key"))
    fresh = keyed.unique("key_hash", keep="first", maintain_order=True)
    report = store.write(lambda con: _import(con, store, fresh))
    return ImportReport(
        writes=report.writes,
        duplicates=report.duplicates + keyed.height - fresh.height,
        forgotten=report.forgotten,
        missing_parents=report.missing_parents,
        seconds=time.perf_counter() - started,
    )


def _import(con: Connection, store: Store, rows: pl.DataFrame) -> ImportReport:
    links = _links(con, store, rows)
    with lend(con, keys=rows.select("key_hash")):
        known = fetch(con, "SELECT key_hash FROM idempotency_keys SEMI JOIN keys USING (key_hash)")
    new = rows.join(known, on="key_hash", how="anti", maintain_order="left").with_row_index("place")
    links = _placed(links, new)
    missing = links.filter(pl.col("parent_place").is_null() & pl.col("parent_id").is_null())
    links = links.join(missing, on=["place", "parent_key"], how="anti")
    people = _people(store, new)
    refused = _refused(con, new, people, links)
    accepted = new.join(refused, on="place", how="anti", maintain_order="left")
    report = ImportReport(
        writes=accepted.height,
        duplicates=rows.height - new.height,
        forgotten=refused.height,
        missing_parents=missing.join(accepted, on="place", how="semi").height,
    )
    if accepted.height:
        links = links.join(accepted, on="place", how="semi")
        _write(con, store, accepted, people.join(accepted, on="place", how="semi"), links)
    return report


def _normal(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with every column, in its type, nulls replaced by what stands for them."""
    if "metadata" not in frame.columns and "meta" in frame.columns:
        frame = frame.rename({"meta": "metadata"})
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise InvalidInput(
            f"the frame of memory writes has no column {missing[0]!r}; nothing was written; "
            f"it needs {', '.join(REQUIRED)} and may have {', '.join(OPTIONAL)}"
        )
    types = {**REQUIRED, **{name: dtype for name, (dtype, _) in OPTIONAL.items()}}
    given = {name: dtype for name, dtype in frame.schema.items() if name in types}
    for name, dtype in given.items():
        if dtype != types[name] and dtype != pl.Null() and not _same_kind(dtype, types[name]):
            raise InvalidInput(
                f"column {name!r} of the memory writes is {dtype}, not {types[name]}; nothing was written"
            )
    columns = [
        pl.col(name).cast(dtype) if name in given else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in types.items()
    ]
    normal = frame.select(columns) if frame.width else pl.DataFrame(schema=types)
    for name in REQUIRED:
        gaps = normal[name].is_null().arg_true()
        if len(gaps):
            raise InvalidInput(f"row {gaps[0]} of the memory writes has no {name}; nothing was written")
    defaults = [
        pl.col(name).fill_null(pl.lit(pl.Series([value], dtype=dtype)).first())
        for name, (dtype, value) in OPTIONAL.items()
        if value is not None
    ]
    return normal.with_columns(defaults).with_columns(
        actor=pl.coalesce("actor", pl.format("log:{}", "source")),
        untimed=pl.col("untimed") | pl.col("ts").is_null(),
        ts=pl.when(~pl.col("untimed")).then("ts"),
    )


def _same_kind(dtype: pl.DataType, wanted: pl.DataType) -> bool:
    lists = isinstance(wanted, pl.List) and dtype in (pl.List(pl.String), pl.List(pl.Null))
    instants = isinstance(dtype, pl.Datetime) and isinstance(wanted, pl.Datetime) and dtype.time_zone is not None
    return lists or instants


def _key_hashes(store: Store, rows: pl.DataFrame, key: str) -> pl.Series:
    """Each row's idempotency key as its keyed hash, which Python must compute, one by one."""
    return pl.Series(
        [
            store.keyed_hash(as_json([CALL, *names], "trace_key"))
            for names in rows.select("source", "brain_id", key).iter_rows()
        ],
        dtype=pl.String,
    )


def _links(con: Connection, store: Store, rows: pl.DataFrame) -> pl.DataFrame:
    """A row per write and parent: child_key, parent_key (hashes), and parent_id if that was imported before."""
    links = (
        rows.select("source", "brain_id", "key_hash", "parents")
        .explode("parents", empty_as_null=False, keep_nulls=False)
        .drop_nulls("parents")
        .unique(maintain_order=True)
    )
    links = links.select(child_key="key_hash", parent_key=_key_hashes(store, links, "parents"))
    with lend(con, links=links.with_row_index("link_no")):
        return fetch(
            con,
            "SELECT link.child_key, link.parent_key, earlier.result AS parent_id FROM links AS link "
            "LEFT JOIN idempotency_keys AS earlier ON earlier.key_hash = link.parent_key ORDER BY link.link_no",
        )


def _placed(links: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """The links of new writes, with the places of both ends; parent_place is null for a parent imported before."""
    places = new.select("place", "key_hash")
    return links.join(
        places.rename({"key_hash": "child_key"}), on="child_key", how="inner", maintain_order="left"
    ).join(
        places.select(parent_place="place", parent_key="key_hash"), on="parent_key", how="left", maintain_order="left"
    )


def _people(store: Store, new: pl.DataFrame) -> pl.DataFrame:
    """A row per write and person in it, the learner included: place, name, name_hash."""
    people = pl.concat(
        [
            new.select("place", name="user_id"),
            new.select("place", name="contributor_ids").explode("name", empty_as_null=False, keep_nulls=False),
        ]
    )
    people = people.filter(pl.col("name").is_not_null() & ~pl.col("name").is_in(list(store.anonymous_ids))).unique()
    names = people["name"].unique().to_list()
    hashes = pl.DataFrame(
        {"name": names, "name_hash": [store.keyed_hash(name) for name in names]},
        schema_overrides={"name": pl.String, "name_hash": pl.String},
    )
    return people.join(hashes, on="name", how="left")


def _refused(con: Connection, new: pl.DataFrame, people: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    with lend(con, people=people.unique("name")):
        tombs = fetch(con, query("import_tombstones"), {"realm": REALM})
    with lend(con, people=people, tombs=tombs, links=links, writes=new.select("place", "ts")):
        return fetch(con, query("import_refused")).cast({"place": new.schema["place"]})


def _write(con: Connection, store: Store, rows: pl.DataFrame, people: pl.DataFrame, links: pl.DataFrame) -> None:
    n = rows.height
    first = take_numbers(con, "seq", 2 * n)
    anonymous = list(store.anonymous_ids)
    with lend(con, people=people.select("place", "name"), links=links):
        inherited = fetch(con, query("import_inherited"), {"anonymous": anonymous})
    order = pl.int_range(n, dtype=pl.Int64)
    writes = rows.with_columns(
        change_id=pl.Series(new_ids("ch_", n)),
        trace_id=pl.Series(new_ids("tr_", n)),
        change_seq=first + order,
        seq=first + n + order,
        ts=pl.coalesce("ts", pl.lit(EPOCH, dtype=INSTANT) + pl.duration(microseconds=first + order)),
    )
    writes = (
        _with_contributors(writes, inherited)
        .drop("parents")
        .join(_parent_ids(writes, links), on="place", how="left", maintain_order="left")
    )
    writes = _hidden(
        con, store, writes.with_columns(pl.col("parents").fill_null(pl.lit(pl.Series([[]], dtype=_TEXTS)).first()))
    )
    with lend(con, writes=writes):
        states = fetch(con, query("import_states"))
        con.execute(query("import_rows"), {"anonymous": anonymous, "realm": REALM})
    with lend(con, states=states):
        told = fetch(con, query("trace_snapshots"))
        con.execute(query("import_history"))
        con.execute(query("import_traces"))
    with lend(con, writes=writes.with_columns(told["snapshot"])):
        con.execute(query("import_changes"))
        con.execute("INSERT INTO idempotency_keys SELECT key_hash, ?, trace_id FROM writes ORDER BY place", [CALL])


def _with_contributors(writes: pl.DataFrame, inherited: pl.DataFrame) -> pl.DataFrame:
    """Those named, in order, then those inherited; the learner only if named."""
    named = writes.select("place", name="contributor_ids").explode("name", empty_as_null=False, keep_nulls=False)
    named = named.drop_nulls("name")
    also = (
        inherited.cast({"place": writes.schema["place"]})
        .join(writes.select("place", "user_id"), on="place")
        .filter(pl.col("name").ne_missing(pl.col("user_id")))
        .select("place", "name")
        .sort("place", "name")
    )
    people = (
        pl.concat([named, also])
        .unique(maintain_order=True)
        .group_by("place", maintain_order=True)
        .agg(contributor_ids="name")
    )
    none = pl.lit(pl.Series([[]], dtype=_TEXTS)).first()
    return (
        writes.drop("contributor_ids")
        .join(people, on="place", how="left", maintain_order="left")
        .with_columns(pl.col("contributor_ids").fill_null(none))
    )


def _parent_ids(writes: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    made = writes.select(parent_place="place", made_id="trace_id")
    return (
        links.join(made, on="parent_place", how="left", maintain_order="left")
        .with_columns(parent_id=pl.coalesce("made_id", "parent_id"))
        .group_by("place", maintain_order=True)
        .agg(parents="parent_id")
    )


def _hidden(con: Connection, store: Store, writes: pl.DataFrame) -> pl.DataFrame:
    """Ids that are a forgotten person's stand as keyed hashes, wherever else they name a brain or a session."""
    columns = ("session_id", "brain_id", "conversation_id", "scope", "actor")
    names = pl.concat([writes[name].drop_nulls().unique().rename("name") for name in columns]).unique().to_list()
    hidden = forgotten_among(con, store.keyed_hash, names)
    return writes.with_columns(pl.col(columns).replace(hidden)) if hidden else writes
