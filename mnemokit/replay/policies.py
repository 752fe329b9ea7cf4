"""Which policy derives passings and captures from which source's turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from mnemokit.replay.parents import PARENTS, ParentPolicy
from mnemokit.turns.derive import CapturesPolicy, PassingsPolicy, default_policies, derive_captures, derive_passings


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one replay.

    Attributes:
        passings: For all sources; None takes the one that suits each source's reader.
        captures: Likewise.
        parents: How a capture finds its parent.
        readers: The reader of each source met so far.
    """

    passings: str | PassingsPolicy | None
    captures: str | CapturesPolicy | None
    parents: str | ParentPolicy
    readers: Mapping[str, str] = field(default_factory=dict[str, str])

    def knowing(self, readers: Mapping[str, str]) -> Policies:
        """The same policies, knowing the readers of more sources."""
        return dataclasses.replace(self, readers={**self.readers, **readers})

    def derive_passings(self, turns: pl.DataFrame) -> pl.DataFrame:
        """Passings of turns of several sources."""
        parts = [
            derive_passings(part, self.passings or default_policies(self._reader(source))[0])
            for source, part in _by_source(turns)
        ]
        return pl.concat([derive_passings(turns.head(0), "none"), *parts], how="diagonal")

    def derive_captures(self, turns: pl.DataFrame, passings: pl.DataFrame) -> pl.DataFrame:
        """Captures of turns of several sources; ``once_per_session`` says whether each stands for its session."""
        parts: list[pl.DataFrame] = []
        for source, part in _by_source(turns):
            policy = self.captures or default_policies(self._reader(source))[1]
            between = passings.filter(pl.col("source") == source)
            captures = derive_captures(part, policy, passings=between)
            parts.append(captures.with_columns(once_per_session=pl.lit(policy == "session")))
        empty = derive_captures(turns.head(0), "none", passings=passings.head(0))
        return pl.concat([empty.with_columns(once_per_session=pl.lit(value=False)), *parts])

    @property
    def parent_policy(self) -> ParentPolicy | None:
        """The function that finds the parent of one capture; None where all are settled at once."""
        return PARENTS[self.parents] if isinstance(self.parents, str) else self.parents

    def captures_nothing(self) -> bool:
        """Is there nothing to capture, whatever the turns are?"""
        return self.captures == "none"

    def _reader(self, source: str) -> str:
        return self.readers.get(source, source)


def _by_source(turns: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    if turns.height == 0:
        return []
    sources = turns.get_column("source").unique(maintain_order=True).to_list()
    if len(sources) == 1:
        return [(sources[0], turns)]
    return [(source, turns.filter(pl.col("source") == source)) for source in sources]
