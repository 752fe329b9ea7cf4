"""Parameters, states and receipts: the small values that calls take and give back.

Every default constant of the rules stands here and nowhere else.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Literal, TypeGuard, TypeVar

from mnemokit.errors import InvalidInput

Outcome = Literal["success", "failure"]
ParentRate = Literal["smoothed", "raw"]
Verdicts = Literal["kept", "undone_forgotten", "undone_unrecorded", "reverted"]

OUTCOMES: tuple[Outcome, ...] = ("success", "failure")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class MnestState(StrEnum):
    """The states of a mnest (an edge from executor to executor)."""

    ACTIVE = "active"
    PROTO = "proto"
    DECAYING = "decaying"
    SUPERSEDED = "superseded"


class CaptureKind(StrEnum):
    """What a capture turned out to be."""

    NEW_REASONLET = "new_reasonlet"
    EXECUTION_ONLY = "execution_only"
    NEW_VERSION = "new_version"


@dataclass(frozen=True, slots=True)
class EdgeParams:
    """The rule by which mnests grow, decay and age.

    Attributes:
        start_weight: Weight of an edge after its first passing.
        reinforcement: Added by every later passing, after decay; the sum is capped at ``max_weight``.
        max_weight: The cap.
        decay_lambda: Default decay rate per day; a passing may bring its own.
        demote_below: An ager demotes an active edge whose weight is below this.
        purge_below: An ager deletes a proto below this; a decaying edge below it may be archived.
        archive_after: How long a decaying edge must have been unused to be counted as archivable.
        recurring_uses: A proto is recurring from this many uses on ...
        recurring_weight: ... if its weight is at least this.
        tolerance: Relative tolerance of every threshold: below ``x`` means ``< x * (1 - tolerance)``,
            so that nightly products and one single exponential agree at exact hits.
        tick_hour: Hour of the day (UTC) of the nightly ager in a replay.

    Raises:
        InvalidInput: If a value is out of its range.

    Example:
        >>> EdgeParams(decay_lambda=0.05).decay_lambda
        0.05
    """

    start_weight: float = 0.30
    reinforcement: float = 0.15
    max_weight: float = 1.0
    decay_lambda: float = 0.018
    demote_below: float = 0.20
    purge_below: float = 0.05
    archive_after: timedelta = timedelta(days=90)
    recurring_uses: int = 3
    recurring_weight: float = 0.30
    tolerance: float = 1e-9
    tick_hour: int = 3

    def __post_init__(self) -> None:
        """Refuse values that no edge can live by."""
        for name in (
            "start_weight",
            "reinforcement",
            "max_weight",
            "demote_below",
            "purge_below",
            "recurring_weight",
        ):
            value = getattr(self, name)
            if not (math.isfinite(value) and 0 <= value <= 1):
                raise InvalidInput(f"EdgeParams.{name} must be a number from 0 to 1, not {value!r}")
        if not (math.isfinite(self.decay_lambda) and self.decay_lambda >= 0):
            raise InvalidInput(f"EdgeParams.decay_lambda must be finite and >= 0 per day, not {self.decay_lambda!r}")
        if not 0 <= self.tolerance < 0.01:
            raise InvalidInput(f"EdgeParams.tolerance must be from 0 to 0.01, not {self.tolerance!r}")
        if not 0 <= self.tick_hour <= 23:
            raise InvalidInput(f"EdgeParams.tick_hour must be an hour from 0 to 23, not {self.tick_hour!r}")


@dataclass(frozen=True, slots=True)
class RankParams:
    """The rule by which reasonlets are ranked and recalled.

    Attributes:
        k: Strength of the prior, in runs.
        parent_rate: What a version inherits: the parent's ``smoothed`` rate or its ``raw`` one.
        interval: Mass of the equal-tailed credible interval.
        weight: How much the rate counts in a recall's score, 0 to 1.
        bm25_k1: BM25 term saturation.
        bm25_b: BM25 length normalisation.

    Raises:
        InvalidInput: If a value is out of its range.

    Example:
        >>> RankParams(k=4.0).k
        4.0
    """

    k: float = 2.0
    parent_rate: ParentRate = "smoothed"
    interval: float = 0.95
    weight: float = 1.0
    bm25_k1: float = 1.2
    bm25_b: float = 0.75

    def __post_init__(self) -> None:
        """Refuse values that no ranking can use."""
        if not (_is_number(self.k) and self.k > 0):
            raise InvalidInput(f"k must be a finite number above 0 (runs), not {self.k!r}")
        if self.parent_rate not in ("smoothed", "raw"):
            raise InvalidInput(f"parent_rate must be 'smoothed' or 'raw', not {self.parent_rate!r}")
        if not 0 < self.interval < 1:
            raise InvalidInput(f"interval must be between 0 and 1, not {self.interval!r}")
        if not 0 <= self.weight <= 1:
            raise InvalidInput(f"weight must be from 0 to 1, not {self.weight!r}")
        if not (_is_number(self.bm25_k1) and self.bm25_k1 >= 0):
            raise InvalidInput(f"bm25_k1 must be a finite number, 0 or more, not {self.bm25_k1!r}")
        if not (_is_number(self.bm25_b) and 0 <= self.bm25_b <= 1):
            raise InvalidInput(f"bm25_b must be from 0 to 1, not {self.bm25_b!r}")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a capture did.

    Attributes:
        kind: A new reasonlet, one more run of the parent (``execution_only``), or a new version of it.
        reasonlet_id: The reasonlet that it is, or is a run of.
        version: Its label.
        run_id: The run.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem:
        ...     receipt = mem.reasonlets.capture("s", "q", {"nodes": [{"id": "a"}]})
        >>> str(receipt.kind), receipt.version
        ('new_reasonlet', '1.0')
    """

    kind: CaptureKind
    reasonlet_id: str
    version: str
    run_id: str


@dataclass(frozen=True, slots=True)
class AgerStats:
    """What one ager run did to the edges.

    Attributes:
        decayed: Active and proto edges brought up to date.
        decayed_protos: The protos among them.
        demoted_to_decaying: Active edges that fell below the threshold.
        merged: Those of them that joined a decaying record already there.
        purged_protos: Protos deleted.
        recurring_protos: Protos wanted again and again, after this run.
        proposed_archive: Decaying edges so weak and so long unused that they could be archived.
    """

    decayed: int = 0
    decayed_protos: int = 0
    demoted_to_decaying: int = 0
    merged: int = 0
    purged_protos: int = 0
    recurring_protos: int = 0
    proposed_archive: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a session change.

    Attributes:
        change_id: The memory write.
        verdict: ``kept``, ``undone_forgotten`` (a person in it was forgotten), ``undone_unrecorded`` (the verdict could
            not be written), or ``reverted``.
        trace_ids: The traces that it touched; of a revert those that were put back.

    Example:
        >>> import mnemokit as mk
        >>> with mk.open() as mem, mem.session("s1", user_id="anna", brain_id="b") as session:
        ...     added = session.add("likes tea")
        ...     added.verdict, added.trace_ids == tuple(mem.frame("traces")["trace_id"])
        ('kept', True)
    """

    change_id: str
    verdict: Verdicts
    trace_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The account of one replay: ``turns + duplicates + rejects + ignored`` is every record read.

    Attributes:
        turns: Turns written (of ``remove_source``: taken away).
        passings: Passings derived from them.
        captures: Captures made of their sessions.
        duplicates: Records that were in the store already.
        rejects: Records that could not be used; ``mem.frame("rejects")`` has them.
        ignored: Records that the format says are no turns.
        seconds: How long it took.
        sessions: Sessions that had new turns.
        ticks: Nightly agers that ran.
        source: The sources, as column ``source`` of the turns has them.
        why: Why the reader was taken, and what else is to be said.
        dry_run: True if nothing was written.
        capture_kinds: How many captures were of each ``CaptureKind``.

    Example:
        >>> ReplayReport(turns=2, duplicates=1).records
        3
    """

    turns: int = 0
    passings: int = 0
    captures: int = 0
    duplicates: int = 0
    rejects: int = 0
    ignored: int = 0
    seconds: float = 0.0
    sessions: int = 0
    ticks: int = 0
    source: str = ""
    why: str = ""
    dry_run: bool = False
    capture_kinds: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    reject_reasons: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    """Why records could not be used, and how many for each reason; ``mem.frame("rejects")`` has them one by one."""

    @property
    def records(self) -> int:
        """Every record that was read."""
        return self.turns + self.duplicates + self.rejects + self.ignored


P = TypeVar("P", EdgeParams, RankParams)


def params_to_json(params: EdgeParams | RankParams) -> str:
    """The parameters as JSON, durations in days.

    Example:
        >>> params_from_json(EdgeParams, params_to_json(EdgeParams(tick_hour=4))).tick_hour
        4
    """
    values = dataclasses.asdict(params)
    return json.dumps(
        {name: value / timedelta(days=1) if isinstance(value, timedelta) else value for name, value in values.items()}
    )


def params_from_json(kind: type[P], text: str) -> P:
    """The parameters that ``params_to_json`` wrote."""
    values = json.loads(text)
    if "archive_after" in values:
        values["archive_after"] = timedelta(days=values["archive_after"])
    return kind(**values)
