"""How far a long call has come, for somebody who watches; silence for everybody else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress:
    """Counts rows on a terminal or in a notebook.

    Args:
        wanted: True shows it, False does not; None shows it where standard error is a terminal, or in a notebook.
        what: What is counted.
        total: How many there will be, if that is known.
    """

    def __init__(self, wanted: bool | None = None, *, what: str = "records", total: int | None = None) -> None:
        """Decide whether anybody watches."""
        shown = _attended() if wanted is None else wanted
        self._bar = _bar(what) if shown else None
        self._task = None if self._bar is None else self._bar.add_task("replay", total=total)

    def advance(self, rows: int) -> None:
        """So many more rows are done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, rows)

    def __enter__(self) -> Self:
        """Start to show it."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last figure standing."""
        if self._bar is not None:
            self._bar.stop()


def _bar(what: str) -> RichProgress:
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(what),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _attended() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
