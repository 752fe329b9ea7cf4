"""Models of whether a run will succeed: the memory's own rule, the baselines, and rivals behind the same protocol.

A model is given the log and says a probability for every run, from what was learnt strictly before it: everything it
needs comes from ``log.past(...)``, which knows nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from mnemokit.errors import InvalidInput
from mnemokit.evaluate.metrics import Floats
from mnemokit.evaluate.past import Past
from mnemokit.evaluate.run_log import RunLog
from mnemokit.records import RankParams

HALF_LIFE_DAYS = 7.0
"""Half-life of the baseline of that name; a round number, not tuned on anything."""


@runtime_checkable
class RunModel(Protocol):
    """Anything with a name that can say how likely each run was to succeed, before it ran."""

    @property
    def name(self) -> str:
        """What the model is called in a result."""
        ...

    def predict(self, log: RunLog) -> Floats:
        """A probability for every run of the log, in its order."""
        ...


@dataclass(frozen=True)
class RankRule:
    """The memory's own ranking rule, as ``mk.rank`` applies it, as of just before each run.

    Attributes:
        params: Prior strength and what a version inherits.
        inherit: A version starts from its parent's rate; False leaves everyone the neutral prior.
        half_life_days: Runs count half after so many days; None (the rule itself) never forgets.
        name: What it is called.
    """

    params: RankParams = field(default_factory=RankParams)
    inherit: bool = True
    half_life_days: float | None = None
    name: str = "rank_rule"

    def predict(self, log: RunLog) -> Floats:
        """``(s + k*prior) / (n + k)``."""
        k = self.params.k
        s, n = counted(log.past("reasonlet_id"), log, self.half_life_days)
        prior = np.full(n.size, 0.5)
        if self.inherit:
            parent_s, parent_n = counted(log.past_of_parent, log, self.half_life_days)
            if self.params.parent_rate == "smoothed":
                inherited = (parent_s + k / 2) / (parent_n + k)
            else:
                inherited = np.divide(parent_s, parent_n, out=np.full(n.size, 0.5), where=parent_n > 0)
            prior = np.maximum(0.5, inherited)
        return (s + k * prior) / (n + k)


@dataclass(frozen=True)
class Constant:
    """The rate of success of all runs so far, whatever is run: ``(s + 1) / (n + 2)``."""

    name: str = "constant"

    def predict(self, log: RunLog) -> Floats:
        """The same for every run of one instant."""
        s, n = counted(log.past(), log)
        return (s + 1.0) / (n + 2.0)


@dataclass(frozen=True)
class Uniform:
    """A coin: one half, always."""

    name: str = "uniform"

    def predict(self, log: RunLog) -> Floats:
        """One half."""
        return np.full(log.us.size, 0.5)


@dataclass(frozen=True)
class LastOutcome:
    """As often as runs succeeded so far whose procedure had last succeeded, failed, or never run.

    The bare last outcome would say 0 and 1, and lose by log loss whatever it knows; this is the same knowledge said
    honestly.
    """

    name: str = "last_outcome"

    def predict(self, log: RunLog) -> Floats:
        """The rate so far of the runs in the same of the three states, ``(s + 1) / (n + 2)``."""
        told = np.where(log.event_n >= 0, log.event_s > 0, False)
        last = log.past("reasonlet_id").last()
        state = np.where(last < 0, 0, np.where(told[last] if told.size else False, 2, 1)).astype(np.int64)
        s, n = counted(log.past_of(state, state), log)
        return (s + 1.0) / (n + 2.0)


@dataclass(frozen=True)
class LastN:
    """The procedure's last ``n`` outcomes, drawn towards the constant rate by one run's worth: ``(s + c) / (m + 1)``.

    A verdict that changes an outcome enters the window as one more outcome.
    """

    n: int = 10

    @property
    def name(self) -> str:
        """``last_<n>``."""
        return f"last_{self.n}"

    def predict(self, log: RunLog) -> Floats:
        """The windowed rate."""
        past = log.past("reasonlet_id")
        told = (log.event_n >= 0).astype(np.float64)
        s, _ = past.window(np.where(log.event_n >= 0, log.event_s > 0, False).astype(np.float64), self.n)
        m, _ = past.window(told, self.n)
        return (s + Constant().predict(log)) / (m + 1.0)


@dataclass(frozen=True)
class HalfLife:
    """The procedure's record, a run counting half after ``days``; drawn towards the constant rate by one run."""

    days: float = HALF_LIFE_DAYS
    name: str = "half_life"

    def predict(self, log: RunLog) -> Floats:
        """``(S + c) / (N + 1)`` with faded sums S and N."""
        s, n = counted(log.past("reasonlet_id"), log, self.days)
        return (s + Constant().predict(log)) / (n + 1.0)


@dataclass(frozen=True)
class RawCounts:
    """The procedure's bare record ``s / n``; one half before its first run. Says 0 and 1, and pays for it."""

    name: str = "raw_counts"

    def predict(self, log: RunLog) -> Floats:
        """The raw rate."""
        s, n = counted(log.past("reasonlet_id"), log)
        return np.divide(s, n, out=np.full(n.size, 0.5), where=n > 0)


@dataclass(frozen=True)
class PowerLaw:
    """The procedure's record with older runs fading by a power of their age, ``(1 + days) ** -exponent``.

    The form that human forgetting follows better than an exponential (Wixted and Ebbesen 1991).
    """

    exponent: float = 0.5
    k: float = 1.0
    name: str = "power_law"

    def predict(self, log: RunLog) -> Floats:
        """``(S + k*c) / (N + k)`` with faded sums S and N and the constant rate c."""
        past = log.past("reasonlet_id")
        s, n = past.power(log.event_s, self.exponent), past.power(log.event_n, self.exponent)
        return (s + self.k * Constant().predict(log)) / (n + self.k)


@dataclass(frozen=True)
class Hierarchical:
    """A Beta within a Beta: each level's record is drawn towards the rate of the wider level.

    The widest prior adds what each of ``margins`` knows, in log odds (an able executor on a hard question), then every
    level of ``levels`` is one Beta: ``(s + k * rate of the level above) / (n + k)``.

    Attributes:
        margins: Columns whose rates are added in log odds.
        levels: From wide to narrow; a level is a group of columns (`run_log.LEVELS`).
        k: Strength of each prior, in runs.
        half_life_days: Runs count half after so many days on every level; None never forgets.
        name: What it is called.
    """

    margins: tuple[str, ...] = ("scope", "question")
    levels: tuple[tuple[str, ...], ...] = (("scope", "question"), ("scope", "question", "executor_version"))
    k: float = 2.0
    half_life_days: float | None = None
    name: str = "hierarchical"

    def predict(self, log: RunLog) -> Floats:
        """The rate of the narrowest level."""
        overall = Constant().predict(log)
        odds = log_odds(overall)
        total = odds.copy()
        for column in self.margins:
            total += log_odds(self._drawn(log, (column,), overall)) - odds
        rate = 1.0 / (1.0 + np.exp(-total))
        for level in self.levels:
            rate = self._drawn(log, level, rate)
        return rate

    def _drawn(self, log: RunLog, level: tuple[str, ...], towards: Floats) -> Floats:
        s, n = counted(log.past(*level), log, self.half_life_days)
        return (s + self.k * towards) / (n + self.k)


def run_baselines() -> list[RunModel]:
    """The baselines that every table has."""
    return [
        Constant(),
        LastOutcome(),
        LastN(10),
        HalfLife(),
        RankRule(inherit=False, name="own_record"),
        RawCounts(),
        Uniform(),
    ]


def run_rivals() -> list[RunModel]:
    """Models beyond the memory's rule, with untuned parameters."""
    return [PowerLaw(), LastN(3), Hierarchical()]


def counted(past: Past, log: RunLog, half_life_days: float | None = None) -> tuple[Floats, Floats]:
    """Successes and counted runs known before each run, faded if a half-life is given."""
    if half_life_days is None:
        return past.sum(log.event_s), past.sum(log.event_n)
    if not half_life_days > 0:
        raise InvalidInput(f"a half-life must be a number of days above 0, not {half_life_days!r}")
    rate = float(np.log(2.0) / half_life_days)
    # A verdict that takes a success back leaves rounding behind, which must not become a negative count.
    s, n = past.fading(log.event_s, rate), past.fading(log.event_n, rate)
    n = np.maximum(n, 0.0)
    return np.clip(s, 0.0, n), n


def log_odds(p: Floats) -> Floats:
    """``ln(p / (1 - p))``."""
    return np.log(p) - np.log1p(-p)
