"""Procedures in files: the exchange frame as JSON lines or as Parquet.

In JSON lines a record has the columns of its kind only; in Parquet one frame has the columns of every kind. Both are
read into the same frame, and held to the same checks.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl

from mnemokit.errors import Conflict, CorruptLog, InvalidInput, NotFound
from mnemokit.frames import FLAG, INT, TEXT
from mnemokit.reasonlets import graph
from mnemokit.reasonlets.columns import why_unfit
from mnemokit.reasonlets.exchange_records import EXCHANGE_SCHEMA, KINDS, checked_records, no_record


def write_exchange(records: pl.DataFrame, path: Path) -> None:
    """Write records to a new file: ``.jsonl`` or ``.parquet``.

    Raises:
        InvalidInput: If the name ends otherwise, or the file cannot be written.
        NotFound: If there is no such folder.
        Conflict: If there is a file already.
    """
    _suffix(path)
    if not path.parent.is_dir():
        raise NotFound(f"the folder {path.parent} does not exist; nothing was written; make it first")
    try:
        with path.open("xb") as file:
            _write_whole(records, file, path)
    except FileExistsError:
        raise Conflict(f"{path} exists already; nothing was written; remove it or name another file") from None
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written ({error.strerror or error}); nothing was written; name another file"
        ) from None


def read_exchange(path: Path) -> pl.DataFrame:
    """Read the records of a file: columns of ``EXCHANGE_SCHEMA``, graphs as canonical text.

    Raises:
        NotFound: If there is no such file.
        InvalidInput: If its name ends otherwise, it cannot be read, or a value cannot be kept.
        CorruptLog: If it is not such a file; the line or row, and the column, are named.
    """
    suffix = _suffix(path)
    try:
        if not path.is_file():
            raise NotFound(f"there is no file {path}; nothing was written; check the name")
        if suffix == ".parquet":
            return checked_records(_read_parquet(path), lambda row: f"{path}, row {row + 1}")
        return checked_records(_read_lines(path), lambda row: f"{path}, line {row + 1}")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror or error}); nothing was written") from None


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


def _write_whole(records: pl.DataFrame, file: BinaryIO, path: Path) -> None:
    """Write the records, or leave no file: half a file would be taken for a whole one."""
    try:
        if path.suffix == ".parquet":
            records.write_parquet(file)
        else:
            file.writelines(line.encode() for line in _lines(records))
        file.flush()
    except BaseException:
        path.unlink(missing_ok=True)
        raise


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
    with path.open("rb") as file:
        rows = [_read_line(f"{path}, line {number}", line) for number, line in enumerate(file, start=1)]
    return pl.DataFrame(rows, schema=EXCHANGE_SCHEMA)


def _read_line(place: str, line: bytes) -> dict[str, object]:
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise CorruptLog(f"{place}: this is no UTF-8 text ({error}); nothing was written") from None
    except (ValueError, RecursionError) as error:
        raise CorruptLog(f"{place}: this is no JSON that can be read ({error}); nothing was written") from None
    found = cast("dict[str, object]", record) if isinstance(record, dict) else dict[str, object]()
    columns = KINDS.get(str(found.get("record")))
    if columns is None:
        raise no_record(place, found.get("record"))
    missing = [name for name in columns if name not in found]
    if missing:
        raise CorruptLog(f"{place}: the {found['record']} has no {', '.join(missing)}; nothing was written")
    return {"record": found["record"], **{name: _value(place, name, found[name]) for name in columns}}


def _value(place: str, name: str, value: object) -> object:
    """A value as the frame has it: an instant from its text, a graph as JSON text."""
    if name.startswith("ts_"):
        return _instant(place, name, value)
    if name == "graph":
        return None if value is None else _graph_text(place, value)
    why = None if value is None else _why_foreign(value, EXCHANGE_SCHEMA[name])
    if why is not None:
        raise CorruptLog(f"{place}: {name} {why}; nothing was written")
    return value


def _why_foreign(value: object, dtype: pl.DataType) -> str | None:
    """Why a JSON value is not of a column's type; None if it is."""
    shown = reprlib.repr(value)
    if dtype == TEXT:
        if not isinstance(value, str):
            return f"is {shown}, no text"
        return None if _is_unicode(value) else "holds a lone surrogate and is no Unicode text"
    if dtype == FLAG:
        return None if isinstance(value, bool) else f"is {shown}, neither true nor false"
    if dtype == INT:
        return None if _is_whole(value) else f"is {shown}, no whole number of 64 bits"
    return None if isinstance(value, float) or _is_whole(value) else f"is {shown}, no number"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _instant(place: str, name: str, value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(value))
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise CorruptLog(
        f"{place}: {name} is {reprlib.repr(value)}, no ISO 8601 instant with an offset; nothing was written"
    )


def _graph_text(place: str, value: object) -> str:
    try:
        # Escaped, so that a lone surrogate reaches the check of graphs, which names its node.
        return json.dumps(value)
    except RecursionError:
        raise CorruptLog(f"{place}: the graph is nested too deep to be read; nothing was written") from None


# Parquet ------------------------------------------------------------------------------------------------------------


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        # As named: [ and * in a name are no pattern here.
        records = pl.read_parquet(path, glob=False)
        _check_columns(records, path)
        return records.select(pl.col(name).cast(dtype) for name, dtype in EXCHANGE_SCHEMA.items())
    except pl.exceptions.PolarsError as error:
        raise CorruptLog(
            f"{path}: this is no file of exported procedures ({str(error).splitlines()[0]}); nothing was written"
        ) from None


def _check_columns(records: pl.DataFrame, path: Path) -> None:
    for name, dtype in EXCHANGE_SCHEMA.items():
        if name not in records.columns:
            raise CorruptLog(f"{path}: there is no column {name}; nothing was written; export it again")
        why = why_unfit(records.schema[name], dtype)
        if why is not None:
            raise CorruptLog(f"{path}: the column {name} {why}; nothing was written; export it again")
