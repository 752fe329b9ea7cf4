"""What the tests of memory writes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mnemokit.changes.namespace import Changes
from mnemokit.changes.states import Step
from mnemokit.store import Store

TABLES = ("traces", "session_changes", "change_traces", "session_rows", "tombstones", "unfinished_forgets")


def words_left(store: Store, *words: str) -> list[tuple[str, str]]:
    """Where in the tables of memory writes one of the words or ids still stands: (table, word)."""
    found = []
    with store.read() as con:
        for table in TABLES:
            columns = [name for (name,) in con.execute(f"SELECT column_name FROM (DESCRIBE {table})").fetchall()]
            for row in con.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall():
                found += [(table, word) for word in words if word in repr(row)]
    return found


def contents(changes: Changes) -> list[str]:
    """The words of the live traces, in order."""
    return changes.traces()["content"].to_list()


def fail_at(step: Step, error: BaseException | None = None) -> Callable[[Step], None]:
    """An observer that breaks one step."""

    def observe(now: Step) -> None:
        if now is step:
            raise RuntimeError(f"broken at {step}") if error is None else error

    return observe


@dataclass
class Once:
    """An observer that does something when a step begins, the first time it does."""

    step: Step
    act: Callable[[], object]
    done: bool = False

    def __call__(self, now: Step) -> None:
        if now is self.step and not self.done:
            self.done = True
            self.act()


@dataclass
class Note:
    """A caller's own change: it notes something outside the store."""

    box: list[str]
    words: str = "a note"
    contributor_ids: tuple[str, ...] = ()
    before: object = None
    after: object = field(default_factory=lambda: ["a note"])
    kind: str = "memory_write"
    actor: str = "tool:note"
    target_id: str = "notes"
    brain_id: str = "brain"
    during: Callable[[], object] = lambda: None
    undone: list[str] = field(default_factory=list)

    def apply(self) -> list[str]:
        """Note it."""
        self.during()
        self.box.append(self.words)
        return [self.words]

    def undo(self, result: list[str], reason: str) -> None:
        """Take it out again."""
        self.undone.append(reason)
        for words in result:
            if words in self.box:
                self.box.remove(words)
