"""How many records a replay is going to read, where that can be told without reading them."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mnemokit.turns.reading import PathLike, find_files

_PARQUET_MAGIC = b"PAR1"


def records_expected(turns: PathLike | list[PathLike] | pl.DataFrame) -> int | None:
    """The height of a frame, or of Parquet files; None for other files, of which only reading tells.

    Raises:
        InvalidInput: If there is no file.

    Example:
        >>> records_expected(pl.DataFrame({"session_id": ["s"], "step": [0], "executor": ["find"]}))
        1
    """
    if isinstance(turns, pl.DataFrame):
        return turns.height
    heights = [_height(path) for path, _ in find_files(turns)]
    known = [height for height in heights if height is not None]
    return sum(known) if len(known) == len(heights) else None


def _height(path: Path) -> int | None:
    try:
        with path.open("rb") as file:
            if file.read(len(_PARQUET_MAGIC)) != _PARQUET_MAGIC:
                return None
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None  # what is wrong with it is said by its reader
