"""How uncertain is an edge, given calls whose order means nothing?"""

from __future__ import annotations

import numpy as np
import polars as pl

from mnemokit.errors import NotEnoughData
from mnemokit.evaluate.comparing.edges import SUPPORT
from mnemokit.evaluate.comparing.groups import numbered_turns
from mnemokit.evaluate.comparing.resampling import REPLICATES, Sums, interval_of_shares, too_few
from mnemokit.evaluate.intervals import SEED
from mnemokit.evaluate.metrics import Floats, Ints
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
    "low_sessions": pl.Float64(),
    "high_sessions": pl.Float64(),
    "n_sessions": pl.Int64(),
    "note": pl.String(),
}
"""Columns of `parallel`: uses under the policy ``grouped``, which knows no order (``sessions``: those that took it so);
under ``successive`` in the order logged; and ``successive`` over random orders of parallel calls: least, 2.5 %, mean,
97.5 %, most. ``certain``: the same in every order tried. ``low`` and ``high`` are about orders of this very log;
``low_sessions`` and ``high_sessions`` are 95 % of the mean over all orders when as many sessions are drawn anew,
``n_sessions`` those in which some order takes the edge. If the log has fewer than `MIN_SESSIONS` sessions, or fewer
than `SUPPORT` of them can have taken it, they are 0 and infinity, with a ``note``."""

_BATCH_CELLS = 10_000_000


def parallel(
    turns: pl.DataFrame,
    *,
    orders: int = ORDERS,
    rng: np.random.Generator | None = None,
    replicates: int = REPLICATES,
) -> pl.DataFrame:
    """Count each edge under random orders of calls that were made in parallel.

    Args:
        turns: A frame of turns.
        orders: How many orders to try.
        rng: Shuffles, then draws sessions; left out, a generator with the documented seed.
        replicates: How often sessions are drawn.

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
    drawn = _over_sessions(steps, cells, n, generator, replicates)
    total = steps["session"].n_unique()
    note = pl.coalesce(
        too_few(pl.lit(total), "in the log"), too_few(pl.col("n_sessions"), "can have taken it", SUPPORT)
    )
    table = table.join(drawn, on="cell", how="left").with_columns(note=note)
    spread = pl.col("most") - pl.col("least")
    return (
        table.with_columns(
            pl.col("grouped", "sessions").fill_null(0),
            certain=pl.col("most") == pl.col("least"),
            spread=spread,
            low_sessions=pl.when(pl.col("note").is_null()).then("low_sessions").otherwise(0.0),
            high_sessions=pl.when(pl.col("note").is_null()).then("high_sessions").otherwise(float("inf")),
        )
        .sort("spread", "mean", "src_executor", "dst_executor", descending=[True, True, False, False])
        .select(pl.col(name).cast(dtype) for name, dtype in PARALLEL_SCHEMA.items())
    )


def _count(code: Ints, inside: np.ndarray, n: int) -> Ints:
    """How often each executor directly follows each other one within a session."""
    cell = code[:-1] * n + code[1:]
    return np.bincount(cell[inside], minlength=n * n).astype(np.int64)


def _over_sessions(steps: pl.DataFrame, cells: Ints, n: int, rng: np.random.Generator, replicates: int) -> pl.DataFrame:
    """Each edge's mean count over all orders, sessions drawn: ``cell, low_sessions, high_sessions, n_sessions``."""
    expected = _expected(steps, n)
    rows = pl.DataFrame({"session": steps["session"].unique().sort()}).with_row_index("row")
    batch = max(1, _BATCH_CELLS // rows.height)
    parts: list[pl.DataFrame] = []
    for start in range(0, cells.size, batch):
        some = pl.DataFrame({"cell": cells[start : start + batch]})
        places = expected.join(some.with_row_index("column"), on="cell").join(rows, on="session")
        mean: Floats = np.zeros((rows.height, some.height))
        mean[places["row"].to_numpy(), places["column"].to_numpy()] = places["expected"].to_numpy()
        sums = Sums(mean, np.ones_like(mean))
        low, high = interval_of_shares(sums, (0.0, float("inf")), rng=rng, replicates=replicates)
        parts.append(
            some.with_columns(
                low_sessions=pl.Series(low * rows.height),
                high_sessions=pl.Series(high * rows.height),
                n_sessions=pl.Series((mean > 0).sum(axis=0)),
            )
        )
    empty = {"cell": pl.Int64, "low_sessions": pl.Float64, "high_sessions": pl.Float64, "n_sessions": pl.Int64}
    return pl.concat(parts) if parts else pl.DataFrame(schema=empty)


def _expected(steps: pl.DataFrame, n: int) -> pl.DataFrame:
    """Each session's mean count of each edge over all orders, worked out exactly: ``session, cell, expected``.

    Of m calls in any order, each pair of different ones stands side by side, this one first, in one order in m; the
    last of one group and the first of the next are each of the m with the same chance.
    """
    held = steps.group_by("session", "group", "code").agg(held=pl.len().cast(pl.Float64))
    held = held.with_columns(size=pl.col("held").sum().over("group"))
    inside = held.join(held, on=["session", "group"], suffix="_next").with_columns(
        expected=pl.col("held") * (pl.col("held_next") - (pl.col("code") == pl.col("code_next"))) / pl.col("size")
    )
    after = held.with_columns(group=pl.col("group") - 1)
    between = held.join(after, on=["session", "group"], suffix="_next").with_columns(
        expected=pl.col("held") / pl.col("size") * pl.col("held_next") / pl.col("size_next")
    )
    return (
        pl.concat([part.select("session", "code", "code_next", "expected") for part in (inside, between)])
        .group_by("session", cell=pl.col("code") * n + pl.col("code_next"))
        .agg(pl.col("expected").sum())
        .sort("session", "cell")
    )
