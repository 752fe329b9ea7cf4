"""The records of an exchange, and what each must hold: one set of checks for every format of file.

A record is a reasonlet, a lineage's high-water mark, a run, a verdict, a recall, or a row that a recall showed. One
frame holds them all, with the columns of every kind.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from mnemokit.errors import CorruptLog, InvalidInput
from mnemokit.frames import FLAG, FLOAT, INSTANT, INT, TEXT
from mnemokit.reasonlets import graph
from mnemokit.reasonlets.columns import out_of_years
from mnemokit.records import OUTCOMES

KINDS: dict[str, tuple[str, ...]] = {
    "reasonlet": (
        "reasonlet_id",
        "parent_id",
        "version",
        "scope",
        "question",
        "subject",
        "graph",
        "graph_hash",
        "provenance",
        "ts_captured",
        "untimed",
        "source",
    ),
    "lineage": ("reasonlet_id", "high_water"),
    "recall": ("recall_id", "scope", "question", "subject", "weight", "ts_recalled"),
    "recall_row": ("recall_id", "rank", "reasonlet_id", "similarity", "rate", "score"),
    "run": (
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
    ),
    "feedback": ("feedback_id", "run_id", "outcome", "subject", "note", "ts_given"),
}
"""The columns of each kind of record."""

EXCHANGE_SCHEMA: dict[str, pl.DataType] = {
    "record": TEXT,
    "reasonlet_id": TEXT,
    "parent_id": TEXT,
    "version": TEXT,
    "high_water": INT,
    "scope": TEXT,
    "question": TEXT,
    "subject": TEXT,
    "graph": TEXT,
    "graph_hash": TEXT,
    "provenance": TEXT,
    "ts_captured": INSTANT,
    "untimed": FLAG,
    "source": TEXT,
    "run_id": TEXT,
    "outcome": TEXT,
    "recall_id": TEXT,
    "ts_run": INSTANT,
    "session_id": TEXT,
    "feedback_id": TEXT,
    "note": TEXT,
    "ts_given": INSTANT,
    "weight": FLOAT,
    "ts_recalled": INSTANT,
    "rank": INT,
    "similarity": FLOAT,
    "rate": FLOAT,
    "score": FLOAT,
}

KEYS: dict[str, list[str]] = {
    "reasonlet": ["reasonlet_id"],
    "recall": ["recall_id"],
    "recall_row": ["recall_id", "rank"],
    "run": ["run_id"],
    "feedback": ["feedback_id"],
}
"""What names a record of each kind; a lineage's mark may be said more than once."""

Place = Callable[[int], str]
"""From the number of a record, from 0, to where it stands: the file, and the line or row."""

_MAY_BE_NULL = {
    "reasonlet": {"parent_id", "question", "subject", "provenance", "source"},
    "lineage": set[str](),
    "recall": {"question", "subject"},
    "recall_row": set[str](),
    "run": {"outcome", "subject", "provenance", "recall_id", "source", "session_id"},
    "feedback": {"outcome", "subject", "note"},
}
_MAY_NOT_BE_EMPTY = ("reasonlet_id", "parent_id", "run_id", "recall_id", "feedback_id", "scope")
_LARGEST = 2**31 - 1
_NUMBERS = {"rank": (1, _LARGEST), "high_water": (0, _LARGEST)}


def checked_records(records: pl.DataFrame, place: Place) -> pl.DataFrame:
    """The records, if a memory can keep them; their graphs as canonical text.

    Args:
        records: Columns of ``EXCHANGE_SCHEMA``.
        place: Where a record stands, for the error.

    Raises:
        CorruptLog: If a record is of no kind, lacks a value, is there twice, or has a graph that its hash is not of.
        InvalidInput: If a value cannot be kept.
    """
    numbered = records.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))
    for row, kind in _found(numbered, pl.col("record").is_in(list(KINDS)).fill_null(value=False).not_(), "record"):
        raise no_record(place(row), kind)
    for kind, columns in KINDS.items():
        part = numbered.filter(pl.col("record") == kind)
        _check_nulls(part, kind, place)
        for column in columns:
            _check_values(part, column, place)
        _check_repeats(part, kind, place)
    texts = _canonical_graphs(numbered.filter(pl.col("record") == "reasonlet"), place)
    return numbered.drop("graph").join(texts, on="row", how="left", maintain_order="left").select(list(EXCHANGE_SCHEMA))


def no_record(place: str, kind: object) -> CorruptLog:
    """The error of a record that is of no kind."""
    return CorruptLog(f"{place}: this is no record of {', '.join(KINDS)} (but {kind!r}); nothing was written")


def _found(part: pl.DataFrame, wrong: pl.Expr, column: str) -> list[tuple[int, object]]:
    """Number and value of the first record that is wrong; an empty list if none is."""
    return part.filter(wrong).head(1).select("row", column).rows()


def _check_nulls(part: pl.DataFrame, kind: str, place: Place) -> None:
    for column in KINDS[kind]:
        if column in _MAY_BE_NULL[kind]:
            continue
        for row, _ in _found(part, pl.col(column).is_null(), column):
            raise CorruptLog(f"{place(row)}: the {kind} has no {column}; nothing was written; export it again")


def _check_values(part: pl.DataFrame, column: str, place: Place) -> None:
    value = pl.col(column)
    if column in _MAY_NOT_BE_EMPTY:
        for row, _ in _found(part, value == "", column):
            raise InvalidInput(f"{place(row)}: {column} is empty; nothing was written; give a text")
    if column == "outcome":
        for row, given in _found(part, ~value.is_in(OUTCOMES), column):
            raise InvalidInput(
                f"{place(row)}: outcome is {given!r}; an outcome is 'success', 'failure' or null; nothing was written"
            )
    if column == "version":
        for row, given in _found(part, ~value.str.contains(r"^1\.(0|[1-9][0-9]{0,8})$"), column):
            raise InvalidInput(f"{place(row)}: version is {given!r}; a version is 1.<k>; nothing was written")
    if EXCHANGE_SCHEMA[column] == INSTANT:
        for row in part.filter(out_of_years(column)).head(1)["row"]:
            raise InvalidInput(f"{place(row)}: {column} is not of the years 1 to 9999; nothing was written")
    if column in _NUMBERS:
        least, most = _NUMBERS[column]
        for row, given in _found(part, ~value.is_between(least, most), column):
            raise InvalidInput(f"{place(row)}: {column} is {given}, not from {least} to {most}; nothing was written")
    if EXCHANGE_SCHEMA[column] == FLOAT:
        for row, given in _found(part, ~value.is_finite(), column):
            raise InvalidInput(f"{place(row)}: {column} is {given}, no finite number; nothing was written")


def _check_repeats(part: pl.DataFrame, kind: str, place: Place) -> None:
    if kind not in KEYS:
        return
    for row, name in _found(part, ~pl.struct(KEYS[kind]).is_first_distinct(), KEYS[kind][0]):
        raise CorruptLog(f"{place(row)}: the {kind} {name!r} is in the file twice; nothing was written; leave one out")


def _canonical_graphs(reasonlets: pl.DataFrame, place: Place) -> pl.DataFrame:
    """The canonical text of each reasonlet's graph (``row, graph``), which its hash must be of."""
    texts: list[tuple[int, str]] = []
    for row, text, graph_hash in reasonlets.select("row", "graph", "graph_hash").iter_rows():
        try:
            content = graph.canonical(text)
        except InvalidInput as error:
            raise InvalidInput(f"{place(row)}: {error}") from None
        if content.hash != graph_hash:
            raise CorruptLog(f"{place(row)}: the graph is not the one its graph_hash was taken of; nothing was written")
        texts.append((row, content.text))
    return pl.DataFrame(texts, schema={"row": INT, "graph": TEXT}, orient="row")
