"""Which policy derives passings and captures from which source's turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import polars as pl

from mnemokit.replay.parents import PARENTS, ParentPolicy
from mnemokit.turns.derive import (
    CapturesPolicy,
    PassingsPolicy,
    default_policies,
    derive_captures,
    derive_passings,
    needs_values,
)

Given = TypeVar("Given")

READER = "reader"
"""Column of turns: the format whose policies a row goes by; null, or no such column, where that is its source."""

_PASSINGS, _CAPTURES = 0, 1
_SESSION = ("source", "session_id")


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one replay.

    Attributes:
        passings: For all turns; None takes the one that suits the format of each.
        captures: Likewise.
        parents: How a capture finds its parent.
    """

    passings: str | PassingsPolicy | None
    captures: str | CapturesPolicy | None
    parents: str | ParentPolicy

    def derive_passings(self, turns: pl.DataFrame) -> pl.DataFrame:
        """Passings of turns of several sources and formats."""
        parts = [derive_passings(part, policy) for policy, part in _by_policy(turns, self.passings, _PASSINGS)]
        return pl.concat([derive_passings(turns.head(0), "none"), *parts], how="diagonal")

    def derive_captures(self, turns: pl.DataFrame, passings: pl.DataFrame) -> pl.DataFrame:
        """Captures of turns of several sources; ``once_per_session`` says whether each stands for its session."""
        parts: list[pl.DataFrame] = []
        for policy, part in _by_policy(turns, self.captures, _CAPTURES):
            whole = part.height == turns.height
            between = passings if whole else passings.join(part.select(_SESSION).unique(), on=_SESSION, how="semi")
            captures = derive_captures(part, policy, passings=between)
            parts.append(captures.with_columns(once_per_session=pl.lit(policy == "session")))
        empty = derive_captures(turns.head(0), "none", passings=passings.head(0))
        return pl.concat([empty.with_columns(once_per_session=pl.lit(value=False)), *parts])

    def looking_at_values(self, turns: pl.DataFrame) -> pl.DataFrame:
        """Those of the turns whose passings are told by hashed values."""
        parts = [part for policy, part in _by_policy(turns, self.passings, _PASSINGS) if needs_values(policy)]
        return pl.concat([turns.head(0), *parts])

    @property
    def parent_policy(self) -> ParentPolicy | None:
        """The function that finds the parent of one capture; None where all are settled at once."""
        return PARENTS[self.parents] if isinstance(self.parents, str) else self.parents

    def captures_nothing(self) -> bool:
        """Is there nothing to capture, whatever the turns are?"""
        return self.captures == "none"


def _by_policy(turns: pl.DataFrame, given: Given | None, kind: Literal[0, 1]) -> list[tuple[str | Given, pl.DataFrame]]:
    """The turns of each source, apart by policy where a source has several formats."""
    parts: list[tuple[str | Given, pl.DataFrame]] = []
    for source, part in _by_source(turns):
        if given is not None:
            parts.append((given, part))
            continue
        # A format is seldom another than the source, and hardly ever are there two of one source.
        suits = {name: default_policies(name)[kind] for name in _formats(part, source)}
        for policy in dict.fromkeys(suits.values()):
            alike = [name for name, suiting in suits.items() if suiting == policy]
            alone = len(alike) == len(suits)
            parts.append((policy, part if alone else part.filter(pl.coalesce(READER, "source").is_in(alike))))
    return parts


def _formats(turns: pl.DataFrame, source: str) -> list[str]:
    if READER not in turns.columns or turns.get_column(READER).null_count() == turns.height:
        return [source]
    return turns.select(pl.coalesce(READER, "source").unique(maintain_order=True)).to_series().to_list()


def _by_source(turns: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    if turns.height == 0:
        return []
    sources = turns.get_column("source").unique(maintain_order=True).to_list()
    if len(sources) == 1:
        return [(sources[0], turns)]
    return [(source, turns.filter(pl.col("source") == source)) for source in sources]
