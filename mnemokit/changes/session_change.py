"""What a session can apply: the protocol of a memory write, and the checks that it keeps to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast, runtime_checkable

from mnemokit.changes import log as change_log
from mnemokit.errors import InvalidInput

UndoReason = Literal["forgotten", "unrecorded"]

KIND = "memory_write"

OWN = "own"
"""What the log calls the operation of a caller's own change."""


@runtime_checkable
class SessionChange(Protocol):
    """A memory write of any kind, as a session applies it.

    A change may also have ``kept_after(result)``, which says what was really kept; without it the verdict holds the
    plan, ``after``. ``before``, ``after`` and what ``kept_after`` returns must be values that JSON can carry; an entry
    of theirs with a ``trace_id`` is taken as that trace's. An ``apply`` that raises must have left nothing behind.

    Attributes:
        kind: Always ``memory_write``.
        actor: What writes, for instance ``tool:memory_add``.
        target_id: A trace's id, or a set's, or None.
        brain_id: The memory that is written.
        contributor_ids: The people whose words are in it.
        before: Snapshots of the traces it changes or deletes; None if it only adds.
        after: The plan.
    """

    @property
    def kind(self) -> str: ...  # noqa: D102 - named above, like the rest
    @property
    def actor(self) -> str: ...  # noqa: D102
    @property
    def target_id(self) -> str | None: ...  # noqa: D102
    @property
    def brain_id(self) -> str: ...  # noqa: D102
    @property
    def contributor_ids(self) -> Iterable[str]: ...  # noqa: D102
    @property
    def before(self) -> object: ...  # noqa: D102
    @property
    def after(self) -> object: ...  # noqa: D102

    def apply(self) -> object:
        """Do it, and commit it; what is returned is given to ``undo`` and ``kept_after``."""
        ...

    def undo(self, result: object, reason: UndoReason) -> None:
        """Take it back, also a second time: for good (``forgotten``), or to ``before`` (``unrecorded``, reverts)."""
        ...


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A caller's own change that was kept, with what its ``apply`` returned: what undoing it needs."""

    change: SessionChange
    result: object


def trace_ids_in(entries: object) -> tuple[str, ...]:
    """The trace ids that a change's ``before``, ``after`` or ``kept`` names, however deep: values of ``trace_id``.

    Example:
        >>> trace_ids_in([{"trace_id": "tr_1"}, {"note": "no trace"}])
        ('tr_1',)
    """
    return tuple(dict.fromkeys(_named(entries)))


def _named(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[object, object]", value).items():
            if key == "trace_id" and isinstance(inner, str):
                yield inner
            yield from _named(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("list[object]", value):
            yield from _named(inner)


def check_change(change: object) -> None:
    """Refuse an object that is no ``SessionChange``.

    Raises:
        InvalidInput: The message names what is missing or wrong.
    """
    names = ("actor", "target_id", "brain_id", "contributor_ids", "before", "after", "apply", "undo")
    missing = [name for name in names if not hasattr(change, name)]
    if missing:
        raise InvalidInput(
            f"{type(change).__name__} is no SessionChange: it has no {', '.join(missing)}; nothing was written"
        )
    given = cast("SessionChange", change)
    kind = getattr(change, "kind", KIND)
    if kind != KIND:
        raise InvalidInput(f"kind={kind!r} is not known; it must be {KIND!r}; nothing was written")
    change_log.need_text(given.actor, "actor")
    change_log.need_text(given.brain_id, "brain_id")
    if given.target_id is not None:
        change_log.need_text(given.target_id, "target_id")
    change_log.need_texts(given.contributor_ids, "contributor_ids")
    change_log.as_json(given.before, "before")
    change_log.as_json(given.after, "after")
