"""Frames on their way through Spark: which column type is which in Polars, in Arrow and in Spark.

pyarrow has no types; what is used of it is used here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, cast

import polars as pl

if TYPE_CHECKING:

    class Batch(Protocol):
        """A ``pyarrow.RecordBatch``."""

        num_rows: int

else:
    from pyarrow import RecordBatch as Batch  # Spark asks what the annotations below stand for

DataType = pl.DataType | type[pl.DataType]
Schema = Mapping[str, DataType]
OverFrames = Callable[[Iterator[pl.DataFrame]], Iterable[pl.DataFrame]]
OverBatches = Callable[[Iterator[Batch]], Iterator[Batch]]

ROWS_HELD = 1_000_000
"""Rows that a Python worker takes together: it bounds its memory, whatever the size of a bucket or an edge."""

ROWS_SENT = 50_000
"""Rows of a batch that goes back to Spark: few enough for its texts to stay far below 2 GiB."""

UNSIGNED = pl.Decimal(20, 0)
"""Spark has no unsigned integers; Parquet's arrive, and leave, as decimals without a fraction."""


class _Table(Protocol):
    def cast(self, target_schema: object) -> _Table: ...

    def to_batches(self) -> list[Batch]: ...


class _Tables(Protocol):
    def from_batches(self, batches: list[Batch]) -> _Table: ...


class _Arrow(Protocol):
    """The part of pyarrow that is used here."""

    Table: _Tables

    def schema(self, fields: list[tuple[str, object]]) -> object: ...

    def struct(self, fields: list[tuple[str, object]]) -> object: ...

    def list_(self, value_type: object) -> object: ...

    def timestamp(self, unit: str, tz: str) -> object: ...

    def decimal128(self, precision: int, scale: int) -> object: ...

    def type_for_alias(self, name: str) -> object: ...


_arrow = cast("_Arrow", importlib.import_module("pyarrow"))

_PLAIN: dict[DataType, tuple[str, object]] = {
    pl.String: ("STRING", _arrow.type_for_alias("string")),
    pl.Int64: ("BIGINT", _arrow.type_for_alias("int64")),
    pl.Float64: ("DOUBLE", _arrow.type_for_alias("double")),
    pl.Boolean: ("BOOLEAN", _arrow.type_for_alias("bool")),
    pl.UInt64: ("DECIMAL(20, 0)", _arrow.decimal128(20, 0)),
    pl.Datetime("us", "UTC"): ("TIMESTAMP", _arrow.timestamp("us", "UTC")),
}


def over_batches(work: OverFrames, schema: Schema, *, rows: int = ROWS_HELD) -> OverBatches:
    """Make a function on frames into one on Arrow batches, as ``mapInArrow`` and ``applyInArrow`` take it.

    Args:
        work: Gets the rows of a partition or group as they come, in frames; gives frames of the columns of ``schema``.
        schema: The columns that go back to Spark.
        rows: The small batches that Spark sends are put together to frames of so many rows or a batch more.
    """

    def work_on_batches(batches: Iterator[Batch]) -> Iterator[Batch]:
        for frame in work(_frames(batches, rows)):
            yield from _batches(frame, schema)

    return work_on_batches


def spark_schema(schema: Schema) -> str:
    """The columns as Spark writes them.

    Example:
        >>> spark_schema({"executor": pl.String, "tags": pl.List(pl.String)})
        '`executor` STRING, `tags` ARRAY<STRING>'
    """
    return ", ".join(f"`{name}` {_spark_type(dtype)}" for name, dtype in schema.items())


def frame_of(table: object) -> pl.DataFrame:
    """An Arrow table from Spark as a frame: instants in UTC, unsigned integers as such."""
    frame = cast("pl.DataFrame", pl.from_arrow(cast("pl.DataFrame", table)))
    return frame.with_columns(pl.col(name).cast(_received_type(dtype)) for name, dtype in frame.schema.items())


def _frames(batches: Iterable[Batch], rows: int) -> Iterator[pl.DataFrame]:
    held: list[Batch] = []
    height = 0
    for batch in batches:
        held.append(batch)
        height += batch.num_rows
        if height >= rows:
            yield frame_of(_arrow.Table.from_batches(held))
            held, height = [], 0
    if height:
        yield frame_of(_arrow.Table.from_batches(held))


def _batches(frame: pl.DataFrame, schema: Schema) -> Iterator[Batch]:
    """A frame as Arrow batches of exactly these columns."""
    target = _arrow.schema([(name, _arrow_type(dtype)) for name, dtype in schema.items()])
    sent = frame.select(pl.col(name).cast(_sent_type(dtype)) for name, dtype in schema.items())
    for piece in sent.iter_slices(ROWS_SENT):
        yield from cast("_Table", piece.to_arrow()).cast(target).to_batches()


def _received_type(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        return pl.Datetime("us", "UTC")
    if isinstance(dtype, pl.Decimal) and dtype.scale == 0:
        return pl.UInt64()
    if isinstance(dtype, pl.List):
        return pl.List(_received_type(cast("pl.DataType", dtype.inner)))
    return dtype


def _sent_type(dtype: DataType) -> DataType:
    if dtype == pl.UInt64:
        return UNSIGNED
    if isinstance(dtype, pl.List):
        return pl.List(_sent_type(_inner(dtype)))
    return dtype


def _spark_type(dtype: DataType) -> str:
    if isinstance(dtype, pl.List):
        return f"ARRAY<{_spark_type(_inner(dtype))}>"
    if isinstance(dtype, pl.Struct):
        return f"STRUCT<{', '.join(f'`{name}`: {_spark_type(of)}' for name, of in _fields(dtype))}>"
    return _plain(dtype)[0]


def _arrow_type(dtype: DataType) -> object:
    if isinstance(dtype, pl.List):
        return _arrow.list_(_arrow_type(_inner(dtype)))
    if isinstance(dtype, pl.Struct):
        return _arrow.struct([(name, _arrow_type(of)) for name, of in _fields(dtype)])
    return _plain(dtype)[1]


def _inner(dtype: pl.List) -> DataType:
    return cast("DataType", dtype.inner)


def _fields(dtype: pl.Struct) -> list[tuple[str, DataType]]:
    return [(field.name, cast("DataType", field.dtype)) for field in dtype.fields]


def _plain(dtype: DataType) -> tuple[str, object]:
    return next(names for known, names in _PLAIN.items() if known == dtype)
