"""Procedures in files: the exchange frame as JSON lines or as Parquet.

A record is a reasonlet, a lineage's high-water mark, a run, a verdict, a recall, or a row that a recall showed. One
frame holds them all, with the columns of every kind; in JSON lines a record has the columns of its kind only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import polars as pl

from mnemokit.errors import Conflict, CorruptLog, InvalidInput, NotFound
from mnemokit.frames import FLAG, FLOAT, INSTANT, INT, TEXT
from mnemokit.reasonlets import graph

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


def write_exchange(records: pl.DataFrame, path: Path) -> None:
    """Write records to a new file: ``.jsonl`` or ``.parquet``.

    Raises:
        InvalidInput: If the name ends otherwise.
        Conflict: If there is a file already.
    """
    suffix = _suffix(path)
    if path.exists():
        raise Conflict(f"{path} exists already; nothing was written; remove it or name another file")
    if suffix == ".parquet":
        records.write_parquet(path)
        return
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_lines(records))


def read_exchange(path: Path) -> pl.DataFrame:
    """Read the records of a file: columns of ``EXCHANGE_SCHEMA``, graphs as canonical text.

    Raises:
        NotFound: If there is no such file.
        InvalidInput: If its name ends otherwise, or a graph cannot be kept.
        CorruptLog: If it is not such a file.
    """
    suffix = _suffix(path)
    if not path.exists():
        raise NotFound(f"there is no file {path}; nothing was written")
    records = _read_parquet(path) if suffix == ".parquet" else _read_lines(path)
    unknown = records.filter(~pl.col("record").is_in(list(KINDS)) | pl.col("record").is_null())
    if unknown.height:
        raise CorruptLog(f"{path}: there is no kind of record {unknown['record'][0]!r}; nothing was written")
    return records


def of_kind(records: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The records of one kind, with its columns only."""
    return records.filter(pl.col("record") == kind).select(KINDS[kind])


def together(parts: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Records of several kinds as one frame."""
    frames = [part.select(pl.lit(kind).alias("record"), *KINDS[kind]) for kind, part in parts.items()]
    empty = pl.DataFrame(schema=EXCHANGE_SCHEMA)
    return pl.concat([empty, *frames], how="diagonal_relaxed").select(
        pl.col(name).cast(dtype) for name, dtype in EXCHANGE_SCHEMA.items()
    )


# JSON lines ---------------------------------------------------------------------------------------------------------


def _suffix(path: Path) -> str:
    if path.suffix not in (".jsonl", ".parquet"):
        raise InvalidInput(f"{path} must end in .jsonl or .parquet; nothing was read or written")
    return path.suffix


def _lines(records: pl.DataFrame) -> Iterator[str]:
    for record in records.iter_rows(named=True):
        line = {"record": record["record"], **{name: record[name] for name in KINDS[record["record"]]}}
        if "graph" in line:
            line["graph"] = graph.from_text(line["graph"])
        yield json.dumps(line, ensure_ascii=False, default=_instant_text) + "\n"


def _instant_text(value: object) -> str:
    return cast("datetime", value).isoformat(timespec="microseconds")


def _read_lines(path: Path) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            rows.append(_read_line(path, number, line))
    try:
        return pl.DataFrame(rows, schema=EXCHANGE_SCHEMA)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise CorruptLog(f"{path}: a value is of the wrong type ({error}); nothing was written") from None


def _read_line(path: Path, number: int, line: str) -> dict[str, object]:
    place = f"{path}, line {number}"
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise CorruptLog(f"{place}: this is no JSON ({error}); nothing was written") from None
    found = cast("dict[str, object]", record) if isinstance(record, dict) else dict[str, object]()
    columns = KINDS.get(str(found.get("record")))
    if columns is None:
        raise CorruptLog(f"{place}: this is no record of {', '.join(KINDS)}; nothing was written")
    missing = [name for name in columns if name not in found]
    if missing:
        raise CorruptLog(f"{place}: the {found['record']} has no {', '.join(missing)}; nothing was written")
    values: dict[str, object] = {"record": found["record"], **{name: found[name] for name in columns}}
    for name in columns:
        if name.startswith("ts_"):
            values[name] = _instant(place, name, found[name])
    if "graph" in values:
        values |= _graph(place, found)
    return values


def _instant(place: str, name: str, value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise CorruptLog(f"{place}: {name} is {value!r}, no ISO 8601 instant with an offset; nothing was written")
    return moment.astimezone(UTC)


def _graph(place: str, record: dict[str, object]) -> dict[str, object]:
    try:
        content = graph.canonical(cast("graph.Graph", record["graph"]))
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}") from None
    if content.hash != record["graph_hash"]:
        raise CorruptLog(f"{place}: the graph is not the one its graph_hash was taken of; nothing was written")
    return {"graph": content.text, "graph_hash": content.hash}


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        records = pl.read_parquet(path)
        return records.select(pl.col(name).cast(dtype) for name, dtype in EXCHANGE_SCHEMA.items())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise CorruptLog(
            f"{path}: this is no file of exported procedures ({str(error).splitlines()[0]}); nothing was written"
        ) from None
