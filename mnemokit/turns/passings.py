"""Policies that say who handed work to whom: from turns to passings, set-based."""

from __future__ import annotations

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.turns.frame import UTC_INSTANT
from mnemokit.turns.ordering import grouped_steps, ordered_steps

UNVERSIONED = "unversioned"
"""Stands for the version of an executor where the log has none."""

#: The columns of a frame of passings. ``ts`` is the destination's, null if untimed; ``decay_lambda`` is null for the
#: default rate.
PASSINGS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "source": pl.String,
    "session_id": pl.String,
    "turn_id": pl.String,
    "step": pl.Int64,
    "src_turn_id": pl.String,
    "src_step": pl.Int64,
    "src_executor": pl.String,
    "src_version": pl.String,
    "dst_executor": pl.String,
    "dst_version": pl.String,
    "dst_exists": pl.Boolean,
    "ts": UTC_INSTANT,
    "tags": pl.List(pl.String),
    "desired_sig": pl.String,
    "decay_lambda": pl.Float64,
}


def grouped(turns: pl.DataFrame) -> pl.DataFrame:
    """Each step of a parallel group passes to every step of the session's next group.

    The order inside a group means nothing, so no edge depends on it.

    Example:
        >>> turns = pl.DataFrame({"session_id": ["s"] * 3, "step": [0, 1, 2], "parallel_group": [0, 0, 2],
        ...                       "executor": ["a", "b", "c"]})
        >>> from mnemokit.turns import derive_passings
        >>> derive_passings(turns).select("src_executor", "dst_executor").rows()
        [('a', 'c'), ('b', 'c')]
    """
    steps = grouped_steps(turns)
    before = steps.shift(1)
    same = steps["session_no"] == before["session_no"]
    simple = same & steps["alone"] & before["alone"]
    place = pl.int_range(pl.len(), dtype=pl.Int64)
    chain = steps.select(src=place - 1, dst=place).filter(simple)
    if chain.height < same.sum():
        chain = pl.concat([chain, _between_groups(steps)]).sort("dst", "src")
    return _passings(turns, _rows(steps, chain))


def successive(turns: pl.DataFrame) -> pl.DataFrame:
    """Each step passes to the next one of its session, in the order of the steps, parallel or not."""
    return _passings(turns, _neighbours(ordered_steps(turns)))


def handoffs(turns: pl.DataFrame) -> pl.DataFrame:
    """Only what the log itself calls a hand-off: a step whose ``meta`` names ``handoff_from``.

    The source is the executor named there (its version in ``handoff_from_version``, else unversioned); the step
    is the destination's.
    """
    given = (
        turns.filter(pl.col("executor").is_not_null() & pl.col("meta").str.contains("handoff_from", literal=True))
        .with_columns(
            src_executor=pl.col("meta").str.json_path_match("$.handoff_from"),
            src_version=pl.col("meta").str.json_path_match("$.handoff_from_version"),
        )
        .filter(pl.col("src_executor").str.len_chars() > 0)
        .unique(["source", "session_id", "turn_id", "step"], keep="first", maintain_order=True)
    )
    return given.select(
        "source",
        "session_id",
        "turn_id",
        "step",
        *numbered(turns),
        src_turn_id=pl.lit(None, dtype=pl.String),
        src_step=pl.lit(None, dtype=pl.Int64),
        src_executor="src_executor",
        src_version=pl.col("src_version").fill_null(UNVERSIONED),
        dst_executor="executor",
        dst_version=pl.col("executor_version").fill_null(UNVERSIONED),
        ts="ts",
        **_DEFAULTS,
    ).select(*PASSINGS_SCHEMA, *numbered(turns))


def value_flow(turns: pl.DataFrame) -> pl.DataFrame:
    """A step passes to a later one whose arguments hold a value that its result held.

    Each argument value points to the latest earlier group whose results hold it. Needs the columns ``arg_values``
    and ``result_values``, as `read_turns` gives them with ``include_values=True``.

    Raises:
        InvalidInput: If the frame has no hashed values.
    """
    if not _has_values(turns):
        raise InvalidInput(
            "the policy value_flow needs hashed values: read the log with include_values=True, "
            "or give a frame with columns arg_values and result_values"
        )
    return _passings(turns, _flows(turns))


def value_flow_or_successive(turns: pl.DataFrame) -> pl.DataFrame:
    """As `value_flow`, and the step before passes to every step into which no value was seen to flow.

    Without hashed values no flow is seen, and this is `successive`.
    """
    if not _has_values(turns):
        return successive(turns)
    steps = ordered_steps(turns)
    flows = _flows(turns)
    rest = _neighbours(steps).join(flows, on="dst", how="anti")
    place = steps.select("row", place=pl.int_range(pl.len(), dtype=pl.Int64))
    pairs = (
        pl.concat([flows, rest])
        .join(place.rename({"row": "dst", "place": "dst_place"}), on="dst")
        .join(place.rename({"row": "src", "place": "src_place"}), on="src")
        .sort("dst_place", "src_place")
    )
    return _passings(turns, pairs)


def none(turns: pl.DataFrame) -> pl.DataFrame:  # noqa: ARG001 - a policy takes turns
    """No passings."""
    return pl.DataFrame(schema=PASSINGS_SCHEMA)


_DEFAULTS: dict[str, pl.Expr] = {
    "dst_exists": pl.lit(value=True),
    "tags": pl.lit(None, dtype=pl.List(pl.String)),
    "desired_sig": pl.lit(None, dtype=pl.String),
    "decay_lambda": pl.lit(None, dtype=pl.Float64),
}


def _neighbours(steps: pl.DataFrame) -> pl.DataFrame:
    """Pairs of rows of turns: each step and the one before it in its session."""
    pairs = steps.select(src=pl.col("row").shift(1), dst="row", same=pl.col("session_no").diff() == 0)
    return pairs.filter("same").select("src", "dst")


def _rows(steps: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Pairs of rows of turns, from pairs of places among the steps."""
    return pairs.select(pl.lit(steps.get_column("row")).gather(pl.col(name)).alias(name) for name in ("src", "dst"))


def _between_groups(steps: pl.DataFrame) -> pl.DataFrame:
    """Pairs of places between neighbouring groups of which one has several steps."""
    placed = steps.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64))
    groups = steps.group_by("group_no", maintain_order=True).agg(pl.col("session_no").first(), pl.col("alone").first())
    before = groups.shift(1)
    several = (groups["session_no"] == before["session_no"]) & ~(groups["alone"] & before["alone"])
    later = groups.filter(several).select("group_no", before=pl.col("group_no") - 1)
    return (
        placed.select("group_no", dst="place")
        .join(later, on="group_no")
        .join(placed.select(before="group_no", src="place"), on="before")
        .select("src", "dst")
    )


def _flows(turns: pl.DataFrame) -> pl.DataFrame:
    """Pairs of rows of turns between which a value flowed."""
    steps = grouped_steps(turns)
    placed = pl.concat(
        [
            steps.select("session_no", "group_no", place=pl.int_range(pl.len(), dtype=pl.Int64)),
            turns.select("arg_values", "result_values")[steps.get_column("row")],
        ],
        how="horizontal",
    )
    made = placed.select("session_no", "group_no", src="place", value="result_values").explode("value").drop_nulls()
    used = placed.select("session_no", "group_no", dst="place", value="arg_values").explode("value").drop_nulls()
    key = ["session_no", "value"]
    latest = (
        used.sort("group_no")
        .join_asof(
            made.select(*key, "group_no", made_in="group_no").unique().sort("group_no"),
            on="group_no",
            by=key,
            strategy="backward",
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .drop_nulls("made_in")
        .select(*key, "dst", group_no="made_in")
    )
    return _rows(steps, latest.join(made, on=[*key, "group_no"]).select("src", "dst").unique().sort("dst", "src"))


def _has_values(turns: pl.DataFrame) -> bool:
    return {"arg_values", "result_values"} <= set(turns.columns)


def _passings(turns: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Look up both ends of each pair of rows of turns."""
    sources = turns.select(
        src_turn_id="turn_id",
        src_step="step",
        src_executor="executor",
        src_version=pl.col("executor_version").fill_null(UNVERSIONED),
    )[pairs.get_column("src")]
    destinations = turns.select(
        "source",
        "session_id",
        "turn_id",
        "step",
        *numbered(turns),
        dst_executor="executor",
        dst_version=pl.col("executor_version").fill_null(UNVERSIONED),
        ts="ts",
    )[pairs.get_column("dst")]
    return (
        pl.concat([destinations, sources], how="horizontal")
        .with_columns(**_DEFAULTS)
        .select(*PASSINGS_SCHEMA, *numbered(turns))
    )


def numbered(turns: pl.DataFrame) -> list[str]:
    """The column by which a store knows its turns, where the frame has it; it is handed on to the passings."""
    return ["turn_no"] if "turn_no" in turns.columns else []
