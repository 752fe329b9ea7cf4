"""How far a long call has come, for somebody who watches; silence for everybody else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Progress:
    """Counts on a terminal or in a notebook, with the rate, and the time left where the end is known.

    Args:
        wanted: True shows it, False does not; None shows it where standard error is a terminal, or in a notebook.
    """

    def __init__(self, wanted: bool | None = None) -> None:
        """Decide whether anybody watches."""
        self.shown = _attended() if wanted is None else wanted
        self._bar = _bar() if self.shown else None
        self._phase: TaskID | None = None

    def begin(self, what: str, total: int | None = None) -> None:
        """Begin to count something, on a line of its own; ``total`` says how many there will be, if that is known."""
        if self._bar is not None:
            if self._phase is not None:
                self._bar.stop_task(self._phase)
            self._phase = self._bar.add_task(what, total=total)

    def advance(self, done: int) -> None:
        """So many more are done."""
        if self._bar is not None and self._phase is not None:
            self._bar.advance(self._phase, done)

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


def _bar() -> RichProgress:
    # Loaded only for somebody who watches: it would double the time that importing mnemokit takes.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Count(ProgressColumn):
        """So many, of how many, and how many a second."""

        def render(self, task: Task) -> Text:
            total = "" if task.total is None else f" of {task.total:,.0f}"
            rate = "" if not task.speed else f", {task.speed:,.0f}/s"
            return Text(f"{task.completed:,.0f}{total} {task.description}{rate}")

    return Progress(
        TextColumn("replay"),
        BarColumn(),
        Count(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _attended() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
