"""The canonical frame itself: Parquet, JSON lines or CSV with the columns of a frame of turns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from mnemokit.errors import CorruptLog, InvalidInput
from mnemokit.records import OUTCOMES
from mnemokit.turns.builder import Builder
from mnemokit.turns.documents import Line, read_lines
from mnemokit.turns.fields import (
    BadRecord,
    Obj,
    as_obj,
    as_text,
    flag,
    instant,
    name,
    name_or_none,
    need_obj,
    text,
    whole,
)
from mnemokit.turns.frame import OUTCOME_REASON, TURNS_SCHEMA, split_turns
from mnemokit.turns.packed import open_log
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head

_NEEDED = frozenset({"session_id", "step", "executor"})
_INSTANT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NUMBERS = ("step", "parallel_group")
_LINE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {**TURNS_SCHEMA, "ts": pl.String}
_PARQUET_MAGIC = b"PAR1"
NAME = "turns"
UNFINISHED = "the last line is not finished, it counts as ignored"

PARQUET_ROWS = 1_000_000
"""Rows of a Parquet file that are read together."""


@dataclass(frozen=True, slots=True)
class CanonicalReader:
    """Reader of frames of turns: Parquet, JSON lines (as `mnemokit.TurnLog` writes them) or CSV.

    Columns have the names of the canonical frame; ``session_id``, ``step`` and ``executor`` must be there. What is
    missing is filled in as `check_turns` says. A row keeps the ``source`` that it brings, unless a label is given.
    Instants are ISO 8601 with an offset; naive ones need ``tz``. A last line of JSON that is cut off, with no end of
    line, is one that a live log is still writing: it counts as ignored, and is read when it is whole.
    """

    name: str = NAME
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the columns of the frame."""
        if head.raw.startswith(_PARQUET_MAGIC):
            try:
                columns = set(pl.read_parquet_schema(head.path))
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
                columns = set[str]()
            return "Parquet with the columns of a frame of turns" if columns >= _NEEDED else None
        if any(line.keys() >= _NEEDED for line in head.lines):
            return "JSON lines with the columns of a frame of turns"
        first = head.text.split("\n", 1)[0]
        if {column.strip().strip('"') for column in first.split(",")} >= _NEEDED:
            return "CSV with the columns of a frame of turns"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """Batches of rows."""
        with open_log(path) as file:
            start = file.read(4096)
            while start and not start.strip():
                start = file.read(4096)
        if not start:
            return iter([Builder(NAME, str(path), options).batch()])
        if start.startswith(_PARQUET_MAGIC):
            return _read_parquet(path, options)
        if start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
            return _read_json_lines(path, options)
        return _read_csv(path, options)


def _read_parquet(path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
    rows = max(options.batch_rows, PARQUET_ROWS)
    start = 0
    try:
        height = pl.scan_parquet(path).select(pl.len()).collect().item()
        while start < height or start == 0:
            frame = pl.scan_parquet(path).slice(start, rows).collect()
            turns, rejects = split_turns(frame, source=NAME, tz=_tz(options), first_row=start, file=str(path))
            yield TurnBatch(options.shaped(turns), rejects, 0)
            start += rows
    except InvalidInput as error:
        raise CorruptLog(f"{path}: {error}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        first = str(error).splitlines()[0]
        raise CorruptLog(f"{path}: the Parquet file is broken ({first}); nothing was read") from None


def _read_json_lines(path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
    held: list[Line] = []
    for line in read_lines(path):
        held.append(line)
        if len(held) >= options.batch_rows:
            yield _lines_batch(path, held, options)
            held = []
    yield _lines_batch(path, held, options)


def _lines_batch(path: Path, lines: list[Line], options: ReadOptions) -> TurnBatch:
    fast = None if options.text or options.values else _all_at_once(lines, options)
    if fast is not None:
        return fast
    builder = Builder(NAME, str(path), options)
    for line in lines:
        try:
            _add_row(builder, need_obj(line.value(), "the line"), options)
        except BadRecord as bad:
            if _is_unfinished(line):
                builder.ignored += 1
                return replace(builder.batch(), why=UNFINISHED)
            user_id, source = _named_by(_row_of(line))
            builder.reject(f"line {line.number}", str(bad), line.raw, user_id, source)
    return builder.batch()


def _is_unfinished(line: Line) -> bool:
    """Whether a writer has not come to the end of this line yet; only a file's last line has no end."""
    return not line.ended and not line.too_long and line.raw.startswith(b"{") and _row_of(line) is None


def _row_of(line: Line) -> Obj | None:
    try:
        return as_obj(line.value())
    except BadRecord:
        return None


def _all_at_once(lines: list[Line], options: ReadOptions) -> TurnBatch | None:
    """The lines decoded together, or None where one of them needs a closer look."""
    raw = b"\n".join(line.raw for line in lines)
    if not lines or any(line.too_long for line in lines) or _SURROGATE.search(raw):
        return None
    try:
        frame = pl.read_ndjson(io.BytesIO(raw), schema=_LINE_SCHEMA)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    names = [name for name, dtype in TURNS_SCHEMA.items() if dtype == pl.String and name not in ("question", "meta")]
    odd = pl.any_horizontal(pl.col(name).str.contains(r"^[\[{]") for name in names)
    ts = pl.col("ts").str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    lost = (ts.is_null() | pl.col("ts").str.contains(_INSTANT).not_()) & pl.col("ts").is_not_null()
    if frame.height != len(lines) or bool(frame.select((odd | lost).any()).item()):
        return None
    turns, rejects = split_turns(frame.with_columns(ts=ts), source=NAME, tz=_tz(options))
    if rejects.height:
        return None
    return TurnBatch(turns, rejects, 0)


def _read_csv(path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
    builder = Builder(NAME, str(path), options)
    with open_log(path) as file:
        rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline=""))
        header = next(_csv_rows(rows), (1, None))[1]
        if not isinstance(header, list) or not set(header) >= _NEEDED:
            raise CorruptLog(
                f"{path}: not a CSV of turns (its first line must name {', '.join(sorted(_NEEDED))}); nothing was read"
            )
        for number, cells in _csv_rows(rows):
            try:
                _add_row(builder, _cells(header, cells), options)
            except BadRecord as bad:
                raw = ",".join(cells) if isinstance(cells, list) else ""
                # In a row of another length a cell may stand in the wrong column, and be no one's name.
                sound = isinstance(cells, list) and len(cells) == len(header)
                user_id, source = _named_by(_cells(header, cells) if sound else None)
                builder.reject(f"line {number}", str(bad), raw, user_id, source)
            if builder.full:
                yield builder.batch()
    yield builder.batch()


def _csv_rows(rows: Iterable[list[str]]) -> Iterator[tuple[int, list[str] | BadRecord]]:
    iterator = iter(rows)
    while True:
        try:
            cells = next(iterator)
        except StopIteration:
            return
        except csv.Error as error:
            yield _line_number(rows), BadRecord(f"not CSV ({error})")
            continue
        if cells:
            yield _line_number(rows), cells


def _line_number(rows: object) -> int:
    number = getattr(rows, "line_num", 0)
    return number if isinstance(number, int) else 0


def _cells(header: list[str], cells: list[str] | BadRecord) -> Obj:
    """A row by the names of its columns. CSV has texts only: empty is null, and true and false are themselves."""
    if isinstance(cells, BadRecord):
        raise cells
    if len(cells) != len(header):
        raise BadRecord(f"{len(cells)} cells, but the header has {len(header)}")
    words = {"true": True, "false": False, "1": True, "0": False}
    row: Obj = {key: value or None for key, value in zip(header, cells, strict=True)}
    ok = str(row.get("ok") or "").lower()
    row["ok"] = words.get(ok, ok or None)
    return row


def _add_row(builder: Builder, row: Obj, options: ReadOptions) -> None:
    session_id = name(row.get("session_id"), "session_id")
    step = whole(row.get("step"), "step")
    group = row.get("parallel_group")
    outcome = text(row.get("session_outcome"), "session_outcome")
    meta = row.get("meta")
    if outcome not in (None, *OUTCOMES):
        raise BadRecord(OUTCOME_REASON)
    builder.turn(
        source=name_or_none(row.get("source"), "source"),
        session_id=session_id,
        turn_id=name_or_none(row.get("turn_id"), "turn_id") or f"{session_id}:{step}",
        step=step,
        parallel_group=step if group is None else whole(group, "parallel_group"),
        executor=name_or_none(row.get("executor"), "executor"),
        executor_version=name_or_none(row.get("executor_version"), "executor_version"),
        requestor=text(row.get("requestor"), "requestor"),
        ts=instant(row.get("ts"), "ts", options.zone),
        ok=flag(row.get("ok"), "ok"),
        user_id=name_or_none(row.get("user_id"), "user_id"),
        scope=text(row.get("scope"), "scope"),
        question=text(_as_label(row.get("question")), "question"),
        session_outcome=outcome,
        meta=as_text(meta) if as_obj(meta) is not None else text(meta, "meta"),
        arguments=row.get("arguments"),
        result=row.get("result"),
    )


def _as_label(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _named_by(row: Mapping[str, object] | None) -> tuple[str | None, str | None]:
    """The person and the source that a row names, as far as they can be read: its reject is found by them."""

    def read(column: str) -> str | None:
        try:
            return name_or_none((row or {}).get(column), column)
        except BadRecord:
            return None

    return read("user_id"), read("source")


def _tz(options: ReadOptions) -> str | None:
    return None if options.zone is None else str(options.zone)
