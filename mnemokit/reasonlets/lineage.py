"""Lineages: a root and every version below it, and the labels that versions get.

Here stands the one rule that decides what a capture is: a new reasonlet, a run of its parent, or a new version of it.
It is a pure function over what the store knows of the parents; the store reads before it and writes after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mnemokit.errors import NotFound
from mnemokit.records import CaptureKind


class Place(NamedTuple):
    """Where a reasonlet stands: what a capture needs to know of its parent."""

    reasonlet_id: str
    seq: int
    version: str
    scope: str
    graph_hash: str
    root_id: str
    depth: int


class Claim(NamedTuple):
    """A capture that is to be settled."""

    scope: str
    question: str | None
    graph_hash: str
    parent_id: str | None
    order: tuple[int, int]
    """Instant in microseconds, then order of arrival (seq)."""


class Settled(NamedTuple):
    """What a capture turned out to be, and the place of the reasonlet that its run belongs to."""

    kind: CaptureKind
    place: Place
    parent: Place | None
    version_no: int

    @property
    def parent_id(self) -> str | None:
        """The id of what it is a version of."""
        return None if self.parent is None else self.parent.reasonlet_id

    @property
    def parent_no(self) -> int | None:
        """The seq of what it is a version of."""
        return None if self.parent is None else self.parent.seq


@dataclass(slots=True)
class Lineages:
    """What is known of the lineages while a batch of captures is settled.

    Attributes:
        places: The reasonlets that can be parents, by id.
        high_water: The highest version number each lineage ever gave out, by root.
    """

    places: dict[str, Place] = field(default_factory=dict[str, Place])
    high_water: dict[str, int] = field(default_factory=dict[str, int])

    def note(self, place: Place, high_water: int) -> None:
        """Note a reasonlet that the store holds, and what its lineage gave out."""
        self.places[place.reasonlet_id] = place
        self.high_water[place.root_id] = high_water

    def settle(self, claim: Claim, new_id: Callable[[], str]) -> Settled:
        """Decide what a capture is, and note it for the captures after it.

        Args:
            claim: The capture.
            new_id: Gives the id of a new reasonlet.

        Raises:
            NotFound: If the parent is unknown or of another scope.

        Example:
            >>> lineages = Lineages()
            >>> first = lineages.settle(Claim("s", "q", "hash 1", None, (0, 0)), lambda: "rl_1")
            >>> again = lineages.settle(Claim("s", "q", "hash 1", "rl_1", (1, 1)), lambda: "rl_2")
            >>> other = lineages.settle(Claim("s", "q", "hash 2", "rl_1", (2, 2)), lambda: "rl_2")
            >>> [(str(each.kind), each.place.version) for each in (first, again, other)]
            [('new_reasonlet', '1.0'), ('execution_only', '1.0'), ('new_version', '1.1')]
        """
        if claim.parent_id is None:
            name = new_id()
            place = Place(name, claim.order[1], label(0), claim.scope, claim.graph_hash, name, 0)
            return self._place(CaptureKind.NEW_REASONLET, place, None, 0)
        parent = self.places.get(claim.parent_id)
        if parent is None or parent.scope != claim.scope:
            raise NotFound(
                f"there is no reasonlet {claim.parent_id!r} in scope {claim.scope!r} to be the parent; "
                "nothing was written; give the id of a reasonlet of this scope, or none"
            )
        if parent.graph_hash == claim.graph_hash:
            return Settled(CaptureKind.EXECUTION_ONLY, parent, None, 0)
        number = self.high_water[parent.root_id] + 1
        place = Place(
            new_id(), claim.order[1], label(number), claim.scope, claim.graph_hash, parent.root_id, parent.depth + 1
        )
        return self._place(CaptureKind.NEW_VERSION, place, parent, number)

    def _place(self, kind: CaptureKind, place: Place, parent: Place | None, number: int) -> Settled:
        self.places[place.reasonlet_id] = place
        self.high_water[place.root_id] = number
        return Settled(kind, place, parent, number)


@dataclass(slots=True)
class NewestOfQuestion:
    """Parents by question: the newest reasonlet of the capture's scope and question that is not later than it."""

    orders: dict[tuple[str, str], list[tuple[int, int]]] = field(
        default_factory=dict[tuple[str, str], list[tuple[int, int]]]
    )
    names: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])

    def parent_of(self, claim: Claim) -> str | None:
        """The parent's id; None for a question that is new, later than the capture only, or unknown (None)."""
        if claim.question is None:
            return None
        group = (claim.scope, claim.question)
        position = bisect_right(self.orders.get(group, ()), claim.order)
        return self.names[group][position - 1] if position else None

    def note(self, scope: str, question: str | None, order: tuple[int, int], reasonlet_id: str) -> None:
        """Note a reasonlet, so that later captures find it."""
        if question is None:
            return
        orders = self.orders.setdefault((scope, question), [])
        position = bisect_right(orders, order)
        orders.insert(position, order)
        self.names.setdefault((scope, question), []).insert(position, reasonlet_id)


def label(number: int) -> str:
    """The label of a lineage's version number.

    Example:
        >>> label(12)
        '1.12'
    """
    return f"1.{number}"


def settle_all(
    claims: Sequence[Claim], lineages: Lineages, new_id: Callable[[], str], newest: NewestOfQuestion | None
) -> list[Settled]:
    """Settle captures in the order of their instants; later ones can be versions of earlier ones of the same batch.

    Args:
        claims: The captures, in any order.
        lineages: What is known of their parents; it grows.
        new_id: Gives ids of new reasonlets.
        newest: Choose parents by question instead of by ``parent_id``; it grows.

    Returns:
        What each became, in the order given.
    """
    settled: dict[int, Settled] = {}
    for position in sorted(range(len(claims)), key=lambda index: claims[index].order):
        claim = claims[position]
        if newest is not None:
            claim = claim._replace(parent_id=newest.parent_of(claim))
        result = lineages.settle(claim, new_id)
        if newest is not None and result.kind is not CaptureKind.EXECUTION_ONLY:
            newest.note(claim.scope, claim.question, claim.order, result.place.reasonlet_id)
        settled[position] = result
    return [settled[position] for position in range(len(claims))]
