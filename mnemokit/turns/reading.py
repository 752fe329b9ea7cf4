"""From files on disk to canonical turns: which files, which reader, and one account of every record."""

from __future__ import annotations

import csv
import glob
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import polars as pl

from mnemokit.errors import CorruptLog, InvalidInput, UnknownFormat
from mnemokit.given_frames import is_frame
from mnemokit.turns.builder import Builder
from mnemokit.turns.foreign import checked_batches, recognised
from mnemokit.turns.frame import (
    MAX_NAME_CHARS,
    NEEDED,
    canonical_columns,
    split_turns,
    warn_of_near_names,
    zone_of,
)
from mnemokit.turns.protocol import VALUE_POLICIES, Reader, ReadOptions, TurnBatch
from mnemokit.turns.readers import all_readers, is_own, reader_named
from mnemokit.turns.readers.canonical import NAME
from mnemokit.turns.sniff import Head, is_empty, read_head

PathLike = str | Path


class RejectedRecords(UserWarning):
    """Some records could not be used; `read_batches` gives them with reasons."""


class EmptyLog(UserWarning):
    """What was to be read has not a single record."""


def commonest(reasons: Mapping[str, int], most: int = 3) -> str:
    """The commonest reasons for which records could not be used, in words.

    Example:
        >>> commonest({"session_id is null": 2, "the line is no JSON": 40})
        'the line is no JSON: 40; session_id is null: 2'
    """
    ranked = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    others = [f"other reasons: {sum(n for _, n in ranked[most:])}"] if len(ranked) > most else []
    return "; ".join([*(f"{reason}: {n}" for reason, n in ranked[:most]), *others])


EMPTY = "the file is empty, it has no records"

_DOCUMENTS = (".json", ".eval", ".traj", ".parquet")
"""Files so named are documents, and one without a byte is cut off; any other one may be a log without a line yet."""


def read_turns(
    path_or_glob: PathLike | Sequence[PathLike],
    source: str = "auto",
    *,
    tz: str | None = None,
    label: str | None = None,
    strict: bool = False,
    include_text: bool = False,
    include_values: bool | None = False,
) -> pl.DataFrame:
    """Read logs of any supported format as one canonical frame, one row per step.

    Args:
        path_or_glob: A file, a folder (read with everything below it), a glob, or several of them.
        source: Name of the reader, or ``"auto"`` to decide by content.
        tz: Time zone of naive instants, instead of the format's own rule (see docs/formats.md).
        label: What stands in the column ``source`` instead of the reader's name.
        strict: Stop at the first record that cannot be used.
        include_text: Add the columns ``arguments`` and ``result`` as text.
        include_values: Add hashed values of arguments and results, for the policy ``value_flow``.

    Returns:
        The columns of `mnemokit.turns.frame.TURNS_SCHEMA`; instants in UTC. Rows stand in the order of the files.

    Raises:
        CorruptLog: If a document is broken, or with ``strict`` at the first record that cannot be used.
        UnknownFormat: If no reader recognises a file; the message lists what was tried.
        InvalidInput: If there is no such file, reader or time zone.

    Warns:
        RejectedRecords: If records could not be used; use `read_batches` to see them.
        EmptyLog: If there are only empty files.

    Example:
        >>> import tempfile
        >>> import mnemokit as mk
        >>> import polars as pl
        >>> rows = pl.DataFrame({"session_id": ["s"], "step": [0], "executor": ["find"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows.write_ndjson(f"{folder}/a.jsonl")
        ...     mk.read_turns(folder).select("source", "turn_id", "executor").rows()
        [('turns', 's:0', 'find')]
    """
    frames: list[pl.DataFrame] = []
    empty: list[str] = []
    reasons: Counter[str] = Counter()
    for batch in read_batches(
        path_or_glob,
        source,
        tz=tz,
        label=label,
        strict=strict,
        include_text=include_text,
        include_values=include_values,
    ):
        frames.append(batch.turns)
        reasons.update(batch.rejects["reason"])
        empty += [batch.file] if batch.why == EMPTY else []
    if reasons:
        warnings.warn(
            f"{reasons.total()} records could not be used and are left out ({commonest(reasons)}); mk.read_batches() "
            "gives them all",
            RejectedRecords,
            stacklevel=2,
        )
    for file in empty:
        warnings.warn(f"{file}: {EMPTY}", EmptyLog, stacklevel=2)
    columns = ReadOptions(text=include_text, values=bool(include_values)).columns
    return pl.concat([pl.DataFrame(schema=columns), *frames], how="vertical")


def read_batches(
    path_or_glob: PathLike | Sequence[PathLike],
    source: str = "auto",
    *,
    tz: str | None = None,
    label: str | None = None,
    strict: bool = False,
    include_text: bool = False,
    include_values: bool | None = False,
    batch_rows: int = 50_000,
) -> Iterator[TurnBatch]:
    """Read logs batch by batch; arguments and errors as `read_turns`, and the files are found before the first batch.

    With ``include_values=None`` a file gets hashed values if its reader's own policy for passings looks at them. Every
    file is recognised before the first one is read, so that an unknown one among many is met early. A file without a
    byte, or with blanks only, has no records: among others it is passed over, and the first batch's ``why`` names it.

    Args:
        path_or_glob: A file, a folder (read with everything below it), a glob, or several of them.
        source: Name of the reader, or ``"auto"`` to decide by content.
        tz: Time zone of naive instants, instead of the format's own rule.
        label: What stands in the column ``source`` instead of the reader's name.
        strict: Stop at the first record that cannot be used.
        include_text: Add the columns ``arguments`` and ``result`` as text.
        include_values: Add hashed values of arguments and results; None: as the reader's policy needs them.
        batch_rows: Rows of a batch, roughly.

    Yields:
        Batches with turns, rejects, ignored, the reader's name, why it was taken and the file.

    Raises:
        CorruptLog: If a document is broken, or with ``strict`` at the first record that cannot be used.
        UnknownFormat: If no reader recognises a file.
        InvalidInput: If there is no such file, reader or time zone, or the label is no name.

    Example:
        >>> import tempfile
        >>> import mnemokit as mk
        >>> import polars as pl
        >>> rows = pl.DataFrame({"session_id": ["s", None], "step": [0, 1], "executor": ["find", "buy"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows.write_ndjson(f"{folder}/a.jsonl")
        ...     [(batch.turns.height, batch.rejects.height) for batch in mk.read_batches(folder)]
        [(1, 1)]
    """
    _check_label(label)
    options = ReadOptions(
        zone=None if tz is None else zone_of(tz), text=include_text, values=bool(include_values), batch_rows=batch_rows
    )
    found = find_files(path_or_glob)
    empty = [path for path, _ in found if is_empty(path)]
    if len(empty) == len(found) and (len(found) > 1 or (source == "auto" and not _is_document(empty[0]))):
        return _without_records(empty, source, replace(options, values=bool(include_values)))
    chosen = [
        (path, reader, why, replace(options, base=base, values=_wanted_values(include_values, reader)))
        for path, base in found
        if len(found) == 1 or path not in empty
        for reader, why in [choose(path, source)]
    ]
    if len(found) > 1 and empty:
        path, reader, why, its_options = chosen[0]
        names = ", ".join(path.name for path in empty)
        chosen[0] = (path, reader, f"{why}; empty and passed over: {names}", its_options)
    return _batches(chosen, label, strict)


def _check_label(label: str | None) -> None:
    # A source stands for the scope where a log names none, and no procedure is of an empty scope.
    if label is not None and not 0 < len(label) <= MAX_NAME_CHARS:
        raise InvalidInput(f"label must be a text of 1 to {MAX_NAME_CHARS} characters; nothing was read")


def _is_document(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(_DOCUMENTS)


def _without_records(paths: list[Path], source: str, options: ReadOptions) -> Iterator[TurnBatch]:
    name = NAME if source == "auto" else reader_named(source).name
    for path in paths:
        nothing = Builder(name, str(path), options).batch()
        yield replace(nothing, reader=name, why=EMPTY, file=str(path))


def _wanted_values(asked: bool | None, reader: Reader) -> bool:
    return reader.passings in VALUE_POLICIES if asked is None else asked


def _batches(
    chosen: list[tuple[Path, Reader, str, ReadOptions]], label: str | None, strict: bool
) -> Iterator[TurnBatch]:
    for path, reader, why, options in chosen:
        given = reader.read(path, options) if is_own(reader) else checked_batches(reader, path, options)
        for batch in given:
            if strict and batch.rejects.height:
                row = batch.rejects.row(0, named=True)
                raise CorruptLog(f"{row['file']}: {row['place']}: {row['reason']}; strict=True stopped here")
            told = f"{why}; {batch.why}" if batch.why else why
            yield replace(_labelled(batch, label), reader=reader.name, why=told, file=str(path))


def _labelled(batch: TurnBatch, label: str | None) -> TurnBatch:
    """The batch with the label as the source of whatever was read."""
    if label is None:
        return batch
    named = pl.lit(label).alias("source")
    return replace(batch, turns=batch.turns.with_columns(named), rejects=batch.rejects.with_columns(named))


def frame_batches(
    frame: pl.DataFrame, *, label: str | None = None, tz: str | None = None, batch_rows: int = 1_000_000
) -> Iterator[TurnBatch]:
    """A user's frame of turns, batch by batch, as if it had been read from a file.

    Args:
        frame: One row per step; see `check_turns` for what it needs.
        label: What stands in the column ``source`` instead of what the frame has (``"turns"`` where it has none).
        tz: Time zone of naive instants.
        batch_rows: Rows of a batch.

    Raises:
        InvalidInput: If a column is missing or has the wrong type; rows that cannot be used become rejects, placed by
            their number in the whole frame, of the file ``frame``.
    """
    _check_label(label)
    canonical_columns(frame, tz)
    warn_of_near_names(frame.columns, "this frame")
    return _frame_batches(frame, label, tz, batch_rows)


def _frame_batches(frame: pl.DataFrame, label: str | None, tz: str | None, batch_rows: int) -> Iterator[TurnBatch]:
    for start in range(0, max(frame.height, 1), batch_rows):
        turns, rejects = split_turns(frame.slice(start, batch_rows), tz=tz, first_row=start, file="frame")
        yield _labelled(TurnBatch(turns, rejects, 0), label)


def choose(path: Path, source: str = "auto") -> tuple[Reader, str]:
    """The reader of a file, and why.

    Raises:
        CorruptLog: If the file is empty or cannot be read.
        UnknownFormat: If no reader recognises it; the message lists what was tried.
    """
    if source != "auto":
        return reader_named(source), f"source={source!r} was given"
    head = read_head(path)
    for reader in all_readers().values():
        why = reader.sniff(head) if is_own(reader) else recognised(reader, head)
        if why is not None:
            return reader, why
    raise UnknownFormat(
        f"{path}: no reader recognises this file (tried {', '.join(all_readers())}); nothing was read; "
        f"give source= if you know its format{_own_table(head)}"
    )


def _own_table(head: Head) -> str:
    """What to say of a file that looks like somebody's own table: the columns it needs, and those it has."""
    if head.lines:
        columns = list(head.lines[0])
    elif head.path.suffix.lower() in (".csv", ".tsv"):
        columns = [name for row in csv.reader(head.text.splitlines()[:1]) for name in row]
    else:
        return ""
    has = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    return f"; a table of your own needs the columns {', '.join(NEEDED)}, and this has {has} (see docs/formats.md)"


def find_files(path_or_glob: PathLike | Sequence[PathLike]) -> list[tuple[Path, Path]]:
    """The files meant, sorted, each with the folder that was given (the folder of a file given by name).

    Hidden files, and licence and readme files in folders, are left out.

    Raises:
        InvalidInput: If one of them is no file, folder or glob, or there is nothing where it points.
    """
    given = _as_paths(path_or_glob)
    found: dict[Path, Path] = {}
    for item in given:
        path = Path(item).expanduser()
        if path.is_file():
            there = [(path, path.parent)]
        elif path.is_dir():
            files = [file for file in path.rglob("*") if file.is_file() and not _is_aside(file.relative_to(path))]
            there = [(file, path) for file in sorted(files, key=natural_order)]
        else:
            there = _matches(path)
        if not there:
            raise InvalidInput(f"there is no file at {item}; nothing was read; check the path")
        for file, base in there:
            found.setdefault(file, base)
    if not found:
        raise InvalidInput("no file at an empty list of paths; nothing was read; give a file, a folder or a glob")
    return list(found.items())


def _matches(pattern: Path) -> list[tuple[Path, Path]]:
    """The files that a glob means; none if it is a plain path."""
    if not glob.has_magic(str(pattern)):
        return []
    start = _fixed_part(str(pattern))
    files = [file for file in start.glob(str(pattern.relative_to(start))) if file.is_file()]
    return [(file, start) for file in sorted(files, key=natural_order)]


def _as_paths(given: object) -> list[PathLike]:
    items: list[object] = [given]
    if not isinstance(given, (str, bytes, Mapping)) and not is_frame(given) and isinstance(given, Iterable):
        items = list(cast("Iterable[object]", given))
    wrong = [item for item in items if not isinstance(item, (str, Path))]
    if wrong:
        raise InvalidInput(
            f"{type(wrong[0]).__name__} is no path to logs; nothing was read; give a file, a folder, a glob or several "
            "of them, or a frame (Polars, pandas, Arrow) with a row per step"
        )
    return cast("list[PathLike]", items)


def natural_order(path: PathLike) -> list[tuple[int, str]]:
    """Order in which trial_2 comes before trial_10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]{1,18})", str(path))]


def _is_aside(path: Path) -> bool:
    stem = path.name.upper()
    return any(part.startswith(".") for part in path.parts) or stem.startswith(("LICENSE", "LICENCE", "README"))


def _fixed_part(pattern: str) -> Path:
    parts = Path(pattern).parts
    fixed = [part for index, part in enumerate(parts) if not any(glob.has_magic(p) for p in parts[: index + 1])]
    return Path(*fixed) if fixed else Path()
