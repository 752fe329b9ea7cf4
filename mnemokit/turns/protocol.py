"""What a reader is: it recognises a file, and turns it into batches of turns, rejects and a count of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Protocol, runtime_checkable

import polars as pl

from mnemokit.turns.frame import TEXT_COLUMNS, TURNS_SCHEMA, VALUE_COLUMNS
from mnemokit.turns.sniff import Head

VALUE_POLICIES = ("value_flow", "value_flow_or_successive")
"""Names of the policies for passings that look at hashed values."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a caller may ask of a reader.

    Attributes:
        zone: Time zone of naive instants, instead of the format's own rule.
        text: Add the columns ``arguments`` and ``result``.
        values: Add the columns ``arg_values`` and ``result_values``: hashes, never the text.
        base: The folder that was given, so that formats whose folders mean something can tell where they start.
        batch_rows: About how many records a batch of a line format holds.
    """

    zone: tzinfo | None = None
    text: bool = False
    values: bool = False
    base: Path | None = None
    batch_rows: int = 50_000

    def zone_or_utc(self) -> tzinfo:
        """The zone asked for, else UTC: the rule of formats that log naive UTC times."""
        return self.zone or UTC

    @property
    def columns(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """The columns of the turns that were asked for."""
        extra = (VALUE_COLUMNS if self.values else {}) | (TEXT_COLUMNS if self.text else {})
        return TURNS_SCHEMA | extra

    def shaped(self, turns: pl.DataFrame) -> pl.DataFrame:
        """Turns with just those columns: hashed values and texts that they lack are empty."""
        return turns.select(
            pl.col(name) if name in turns.columns else pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in self.columns.items()
        )


@dataclass(frozen=True, slots=True)
class TurnBatch:
    """A part of a log: ``turns.height + rejects.height + ignored`` records were read for it.

    Attributes:
        turns: Columns of `TURNS_SCHEMA`; hashed values and texts when asked for.
        rejects: Columns of `REJECTS_SCHEMA`: records that cannot be used, and why. Their source is that of the row
            where it brings one of its own, else the reader's name, or the label.
        ignored: Records that are no steps: messages, headers, results that belong to a call.
        reader: Name of the reader; empty for a frame.
        why: Why this reader was taken, and what else is to be told of the file.
        file: The file as it was given.
    """

    turns: pl.DataFrame
    rejects: pl.DataFrame
    ignored: int
    reader: str = ""
    why: str = ""
    file: str = ""

    @property
    def records(self) -> int:
        """Every record that was read for this batch."""
        return self.turns.height + self.rejects.height + self.ignored


class Reader(Protocol):
    """A format of logs.

    A third party registers an object of this kind under the entry point group ``mnemokit.readers``.

    Attributes:
        name: What ``source=`` calls it; the ``source`` column unless a label is given.
        passings: Policy for passings that suits the format, normally ``"grouped"``.
        captures: Policy for captures that suits the format, normally ``"session"``.
    """

    @property
    def name(self) -> str:
        """The format's name."""
        ...

    @property
    def passings(self) -> str:
        """Name of a policy."""
        ...

    @property
    def captures(self) -> str:
        """Name of a policy."""
        ...

    def sniff(self, head: Head) -> str | None:
        """Why this file is of this format, in a few words; None if it is not."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """The file in batches, in bounded memory where the format has lines.

        A whole document that is broken raises CorruptLog before the first batch. The steps of a session may be
        spread over batches.
        """
        ...


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """One note.

    Attributes:
        session_id: The session that wrote it.
        brain_id: The memory that it was written to.
        trace_key: The note's own key, unique in its source.
        type: The kind of note, as the log calls it.
        content: What it says.
        parents: Keys of the notes that it was made from.
        ts: When, or None.
        user_id: Who was served, or None.
        meta: JSON text of attributes.
    """

    session_id: str
    brain_id: str
    trace_key: str
    type: str
    content: str
    parents: tuple[str, ...] = ()
    ts: datetime | None = None
    user_id: str | None = None
    meta: str | None = None


@runtime_checkable
class MemoryReader(Protocol):
    """A reader whose format also holds memory writes."""

    @property
    def name(self) -> str:
        """The format's name."""
        ...

    def memory(self, path: Path, options: ReadOptions) -> Iterable[MemoryWrite]:
        """The memory writes of one file, in order."""
        ...
