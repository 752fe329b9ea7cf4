"""Why a procedure ranks where it does: the sentence, the numbers, and what each run did to its rate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from mnemokit.errors import NotFound
from mnemokit.frames import FLAG, FLOAT, INSTANT, INT, TEXT, conform
from mnemokit.reasonlets.ranking import ranked
from mnemokit.records import RankParams
from mnemokit.store import Connection, fetch, query

RUN_STEPS_SCHEMA: dict[str, pl.DataType] = {
    "run_id": TEXT,
    "ts_run": INSTANT,
    "outcome": TEXT,
    "verdict": TEXT,
    "counted": FLAG,
    "n": INT,
    "s": INT,
    "rate": FLOAT,
    "change": FLOAT,
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a reasonlet has its rate.

    Attributes:
        reasonlet_id: The reasonlet.
        sentence: The whole of it in words.
        numbers: Its ranked row: n, s, own, prior, prior_source, parent_rate, rate, rate_low, rate_high, ...
        parent: The parent's ranked row; None without a live parent.
        runs: Its runs in order: ``run_id, ts_run, outcome`` (the run's own), ``verdict`` (what counts), ``counted``,
            and the record and rate after the run: ``n, s, rate, change``. The first change is from the prior.
    """

    reasonlet_id: str
    sentence: str
    numbers: dict[str, object]
    parent: dict[str, object] | None
    runs: pl.DataFrame

    def __str__(self) -> str:
        """The sentence."""
        return self.sentence


def explain(con: Connection, reasonlet_id: str, params: RankParams, at: datetime | None) -> Explanation:
    """Explain one reasonlet's rate, now or as of an instant.

    Raises:
        NotFound: If it is unknown, or was captured later than ``at``.
    """
    known = con.execute("SELECT seq FROM reasonlets WHERE reasonlet_id = ?", [reasonlet_id]).fetchall()
    rows = ranked(con, params, at=at, among=[seq for (seq,) in known])
    own = rows.filter(pl.col("reasonlet_id") == reasonlet_id)
    if own.is_empty():
        raise NotFound(
            f"there is no reasonlet {reasonlet_id!r}{'' if at is None else f' at {at.isoformat()}'}; check the id"
        )
    numbers = own.row(0, named=True)
    above = rows.filter(pl.col("reasonlet_id").is_in([numbers["parent_id"]]))
    parent = above.row(0, named=True) if above.height else None
    runs = fetch(con, query("runs_of"), {"reasonlet_id": reasonlet_id, "at": at})
    return Explanation(
        reasonlet_id,
        _sentence(numbers, parent, params, unknown=runs["verdict"].null_count()),
        numbers,
        parent,
        _steps(runs, float(numbers["prior"]), params),
    )


def _steps(runs: pl.DataFrame, prior: float, params: RankParams) -> pl.DataFrame:
    """The record and the rate after each run, under the prior as it is asked for."""
    counted = runs.with_columns(
        counted=pl.col("verdict").is_not_null(),
        n=pl.col("verdict").is_not_null().cum_sum().cast(INT),
        s=(pl.col("verdict") == "success").fill_null(value=False).cum_sum().cast(INT),
    )
    rated = counted.with_columns(rate=(pl.col("s") + params.k * prior) / (pl.col("n") + params.k))
    return conform(
        rated.with_columns(change=pl.col("rate") - pl.col("rate").shift(1, fill_value=prior)), RUN_STEPS_SCHEMA
    )


def _sentence(numbers: dict[str, object], parent: dict[str, object] | None, params: RankParams, *, unknown: int) -> str:
    runs = f"{numbers['s']} of {numbers['n']} counted runs succeeded" if numbers["n"] else "no run counted yet"
    if unknown:
        runs += f" ({unknown} of unknown outcome left out)"
    return (
        f"Version {numbers['version']} of {numbers['question']!r} ranks by a rate of {numbers['rate']:.4f} "
        f"({100 * params.interval:g} in 100 of its belief between {numbers['rate_low']:.4f} and "
        f"{numbers['rate_high']:.4f}): {runs}, drawn towards a prior of {numbers['prior']:.4f} that weighs as much as "
        f"{params.k:g} runs; "
        f"{_origin(numbers, parent)}."
    )


def _origin(numbers: dict[str, object], parent: dict[str, object] | None) -> str:
    if parent is None:
        return "the prior is neutral, for it has no parent to inherit from"
    record = f"its parent {parent['version']} ({parent['s']} of {parent['n']}, {numbers['parent_rate']:.4f})"
    if numbers["prior_source"] == "parent":
        return f"the prior comes from {record}"
    return f"the prior is neutral, for {record} is not above one half and nothing bad is inherited"
