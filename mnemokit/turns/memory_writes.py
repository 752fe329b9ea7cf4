"""Memory writes found in logs: what an agent noted down, from which notes, and when."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.turns.frame import UTC_INSTANT, zone_of
from mnemokit.turns.protocol import MemoryReader, MemoryWrite, ReadOptions
from mnemokit.turns.reading import choose, find_files
from mnemokit.turns.sniff import is_empty

#: The columns of a frame of memory writes. ``content`` is null unless asked for; ``ts`` is null if untimed.
MEMORY_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source": pl.String,
    "session_id": pl.String,
    "user_id": pl.String,
    "brain_id": pl.String,
    "trace_key": pl.String,
    "type": pl.String,
    "content": pl.String,
    "content_hash": pl.String,
    "chars": pl.Int64,
    "parents": pl.List(pl.String),
    "ts": UTC_INSTANT,
    "untimed": pl.Boolean,
    "meta": pl.String,
}


def read_memory_writes(
    path_or_glob: str | Path | Sequence[str | Path],
    source: str = "auto",
    *,
    tz: str | None = None,
    label: str | None = None,
    include_text: bool = False,
) -> pl.DataFrame:
    """Read what agents wrote to their memories.

    Args:
        path_or_glob: A file, a folder, a glob, or several of them.
        source: Name of the reader, or ``"auto"``.
        tz: Time zone of naive instants, instead of the format's own rule.
        label: What stands in the column ``source`` instead of the reader's name.
        include_text: Fill the column ``content``; without it only its length and SHA-256 are given.

    Returns:
        One row per write with the columns of `MEMORY_SCHEMA`, in the order of the files; empty ones among them have
        none.

    Raises:
        InvalidInput: If a file's format holds no memory writes, or there is no such file, reader or time zone.
        CorruptLog: If a document is broken or not recognised.

    Example:
        >>> import json, tempfile
        >>> from pathlib import Path
        >>> import mnemokit as mk
        >>> trial = [{"name": "kitchen", "memory": ["look first"], "is_success": False}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "env_results_trial_0.json").write_text(json.dumps(trial))
        ...     mk.read_memory_writes(folder, include_text=True).select("source", "type", "content").rows()
        [('reflexion', 'reflection', 'look first')]
    """
    zone = None if tz is None else zone_of(tz)
    frames = [pl.DataFrame(schema=MEMORY_SCHEMA)]
    found = find_files(path_or_glob)
    for path, base in found:
        if len(found) > 1 and is_empty(path):
            continue
        reader, _ = choose(path, source)
        if not isinstance(reader, MemoryReader):
            raise InvalidInput(f"{path}: the format {reader.name} holds no memory writes; nothing was read")
        writes = reader.memory(path, ReadOptions(zone=zone, base=base))
        frames.append(_frame(writes, label or reader.name, include_text))
    return pl.concat(frames)


def _frame(writes: Iterable[MemoryWrite], source: str, include_text: bool) -> pl.DataFrame:
    return pl.DataFrame(list(_rows(writes, source, include_text)), schema=MEMORY_SCHEMA, orient="row")


def _rows(writes: Iterable[MemoryWrite], source: str, include_text: bool) -> Iterator[tuple[object, ...]]:
    for write in writes:
        yield (
            source,
            write.session_id,
            write.user_id,
            write.brain_id,
            write.trace_key,
            write.type,
            write.content if include_text else None,
            hashlib.sha256(write.content.encode("utf-8")).hexdigest(),
            len(write.content),
            list(write.parents),
            write.ts,
            write.ts is None,
            write.meta,
        )
