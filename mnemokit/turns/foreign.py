"""Readers of other packages: what they give is held to what our own keep, and what they raise stops no other reader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from mnemokit.errors import CorruptLog, InvalidInput
from mnemokit.turns.frame import REJECTS_SCHEMA, split_turns
from mnemokit.turns.protocol import Reader, ReadOptions, TurnBatch
from mnemokit.turns.readers import told
from mnemokit.turns.sniff import Head

_MISSING = {"place": "unknown", "reason": "the reader does not say why"}


def recognised(reader: Reader, head: Head) -> str | None:
    """What a foreign reader's ``sniff`` says; a reader that fails has not recognised the file.

    Warns:
        UserWarning: If it fails.
    """
    try:
        why: object = reader.sniff(head)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the other readers still read
        warnings.warn(
            f"the reader {reader.name!r} failed to recognise a file ({told(error)}); it was passed over", stacklevel=2
        )
        return None
    return str(why) if why else None


def checked_batches(reader: Reader, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
    """The batches of a foreign reader: rows that no store could keep are rejects, and missing columns are filled in.

    Such a row's place is its number among all rows that the reader gave for the file.

    Raises:
        CorruptLog: If a batch is none, or its turns are no turns.
    """
    rows = 0
    for given in reader.read(path, options):
        try:
            batch = _checked(given, reader.name, path, options, rows)
        except (_NoBatchError, InvalidInput, pl.exceptions.PolarsError) as error:
            why = (str(error).splitlines() or [""])[0]
            raise CorruptLog(
                f"{path}: the reader {reader.name!r} gave a batch that cannot be used: {why}; mend the reader, "
                "or give source= to take another one"
            ) from None
        rows += given.turns.height
        yield batch


class _NoBatchError(Exception):
    """What a reader gave is no batch."""


def _checked(given: object, name: str, path: Path, options: ReadOptions, first_row: int) -> TurnBatch:
    if not isinstance(given, TurnBatch):
        raise _NoBatchError(f"it is no TurnBatch but of type {type(given).__name__}")
    ignored = _count(given.ignored)
    turns, odd = split_turns(_frame(given.turns, "turns"), source=name, first_row=first_row, file=str(path))
    rejects = _rejects(_frame(given.rejects, "rejects"), name, path)
    return TurnBatch(options.shaped(turns), pl.concat([rejects, odd]), ignored, why=str(given.why or ""))


def _count(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise _NoBatchError("ignored is no count")
    return given


def _frame(given: object, what: str) -> pl.DataFrame:
    if not isinstance(given, pl.DataFrame):
        raise _NoBatchError(f"its {what} are no Polars frame")
    return given


def _rejects(given: pl.DataFrame, name: str, path: Path) -> pl.DataFrame:
    if given.height and "reason" not in given.columns:
        raise _NoBatchError("it has rejects without the column 'reason'")
    filled = {"source": name, "file": str(path)} | _MISSING
    columns = given.select(
        pl.col(column).cast(dtype) if column in given.columns else pl.lit(None, dtype=dtype).alias(column)
        for column, dtype in REJECTS_SCHEMA.items()
    )
    return columns.with_columns(pl.col(column).fill_null(value) for column, value in filled.items())
