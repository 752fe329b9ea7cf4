"""How uncertain is an edge, given calls whose order means nothing?"""

from __future__ import annotations

import numpy as np
import polars as pl

from mnemokit.errors import NotEnoughData
from mnemokit.evaluate.comparing.groups import numbered_turns
from mnemokit.evaluate.intervals import SEED
from mnemokit.evaluate.metrics import Ints
from mnemokit.turns.derive import derive_passings

ORDERS = 200
"""Random orders that are tried, unless told otherwise."""

PARALLEL_SCHEMA: dict[str, pl.DataType] = {
    "src_executor": pl.String(),
    "dst_executor": pl.String(),
    "grouped": pl.Int64(),
    "as_logged": pl.Int64(),
    "least": pl.Int64(),
    "low": pl.Float64(),
    "mean": pl.Float64(),
    "high": pl.Float64(),
    "most": pl.Int64(),
    "sessions": pl.Int64(),
    "certain": pl.Boolean(),
}
"""Columns of `parallel`: uses under the policy ``grouped``, which knows no order; under ``successive`` in the order
logged; and ``successive`` over random orders of parallel calls: least, 2.5 %, mean, 97.5 %, most. ``certain``: the same
in every order tried."""


def parallel(turns: pl.DataFrame, *, orders: int = ORDERS, rng: np.random.Generator | None = None) -> pl.DataFrame:
    """Count each edge under random orders of calls that were made in parallel.

    Args:
        turns: A frame of turns.
        orders: How many orders to try.
        rng: Shuffles; left out, a generator with the documented seed.

    Returns:
        One row per edge (executors by name), most uncertain first; see `PARALLEL_SCHEMA`.

    Raises:
        NotEnoughData: If the log has no step.
    """
    rows = numbered_turns(turns)
    steps = rows.filter(pl.col("executor").is_not_null()).sort("session", "step", "turn_id", maintain_order=True)
    if steps.is_empty():
        raise NotEnoughData("this log has no step: there is no edge to look at")
    steps = steps.with_columns(
        group=pl.struct("session", "parallel_group").rle_id().cast(pl.Int64),
        code=pl.col("executor").rank("dense").cast(pl.Int64) - 1,
    )
    names = steps.select("code", "executor").unique().sort("code")["executor"]
    session, group, code = (steps[name].to_numpy() for name in ("session", "group", "code"))
    generator = np.random.default_rng(SEED) if rng is None else rng
    n = names.len()
    inside = session[1:] == session[:-1]
    logged = _count(code, inside, n)
    seen = np.zeros((orders, logged.size), dtype=np.int64)
    for i in range(orders):
        shuffled = np.lexsort((generator.random(code.size), group))
        seen[i] = _count(code[shuffled], inside, n)
    grouped = derive_passings(rows.drop("session"), "grouped")
    number = pl.DataFrame({"name": names, "number": np.arange(n)})
    together = (
        grouped.join(number.rename({"name": "src_executor", "number": "src"}), on="src_executor")
        .join(number.rename({"name": "dst_executor", "number": "dst"}), on="dst_executor")
        .group_by(cell=pl.col("src") * n + pl.col("dst"))
        .agg(grouped=pl.len(), sessions=pl.struct("source", "session_id").n_unique())
    )
    cells = np.flatnonzero((logged > 0) | (seen.max(axis=0) > 0))
    chosen = seen[:, cells]
    table = pl.DataFrame(
        {
            "cell": cells,
            "src_executor": names.gather(cells // n),
            "dst_executor": names.gather(cells % n),
            "as_logged": logged[cells],
            "least": chosen.min(axis=0),
            "low": np.quantile(chosen, 0.025, axis=0),
            "mean": chosen.mean(axis=0),
            "high": np.quantile(chosen, 0.975, axis=0),
            "most": chosen.max(axis=0),
        }
    ).join(together, on="cell", how="left")
    spread = pl.col("most") - pl.col("least")
    return (
        table.with_columns(
            pl.col("grouped", "sessions").fill_null(0), certain=pl.col("most") == pl.col("least"), spread=spread
        )
        .sort("spread", "mean", "src_executor", "dst_executor", descending=[True, True, False, False])
        .select(pl.col(name).cast(dtype) for name, dtype in PARALLEL_SCHEMA.items())
    )


def _count(code: Ints, inside: np.ndarray, n: int) -> Ints:
    """How often each executor directly follows each other one within a session."""
    cell = code[:-1] * n + code[1:]
    return np.bincount(cell[inside], minlength=n * n).astype(np.int64)
