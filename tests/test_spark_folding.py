"""What executors do with frames, without Spark: however rows are cut into stretches, the whole is the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import mnemokit as mk
from mnemokit.errors import InvalidInput
from mnemokit.instants import to_us
from mnemokit.records import EdgeParams
from mnemokit.replay.ticks import Bounds, daily_ticks
from mnemokit.turns.frame import TURNS_SCHEMA, VALUE_COLUMNS
from tests.support_spark import KEYS, PANDAS_WARNING, made_log

pytestmark = pytest.mark.filterwarnings(PANDAS_WARNING)

START = datetime(2025, 3, 1, 2, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOSELY = {"rel_tol": 0, "abs_tol": 1e-12}

passing = st.fixed_dictionaries(
    {
        "dst_version": st.sampled_from([None, "1", "2"]),
        "days": st.sampled_from([0, 0, 0, 1, 30, 200]),
        "timed": st.sampled_from([True, True, True, False]),
        "decay_lambda": st.sampled_from([None, None, None, 0.0, 0.05]),
        "tags": st.sampled_from([None, ["a"], ["b", "a"]]),
        "desired_sig": st.sampled_from([None, "{}", '{"inputs": ["x"]}']),
    }
)


def as_passings(rows: list[dict]) -> pl.DataFrame:
    """Passings of one pair and of another, in order of time; times are made by adding up pauses, and tie often."""
    moment, made = START, []
    for number, row in enumerate(rows):
        moment += timedelta(days=row["days"], hours=number % 2)
        seq = number + 1
        made.append(
            {
                "src_executor": "find",
                "src_version": "1",
                "dst_executor": "buy" if number % 3 else "pay",
                "dst_version": row["dst_version"],
                "ts": moment if row["timed"] else EPOCH + timedelta(microseconds=seq),
                "seq": seq,
                "untimed": not row["timed"],
                "turn_id": f"t{seq}",
                "tags": row["tags"],
                "desired_sig": row["desired_sig"] if row["dst_version"] is None else None,
                "decay_lambda": row["decay_lambda"],
            }
        )
    from mnemokit.spark.folding import PASSED

    return pl.DataFrame(made, schema=PASSED).sort("ts", "seq")


def ticks_of(passings: pl.DataFrame) -> list[datetime]:
    timed = passings.filter(~pl.col("untimed"))["ts"]
    return daily_ticks(Bounds(timed.min(), timed.max()), 3)


def folded(passings: pl.DataFrame, stretches: list[pl.DataFrame]) -> dict[str, pl.DataFrame]:
    from mnemokit.spark.folding import OUTPUT, fold_bucket

    ticks = np.array([to_us(tick) for tick in ticks_of(passings)], dtype=np.int64)
    parts: dict[str, list[pl.DataFrame]] = {kind: [pl.DataFrame(schema=schema)] for kind, schema in OUTPUT.items()}
    for kind, rows in fold_bucket(iter(stretches), ticks, EdgeParams()):
        parts[kind].append(rows)
    return {kind: pl.concat(rows) for kind, rows in parts.items()}


def cut(frame: pl.DataFrame, places: set[int]) -> list[pl.DataFrame]:
    bounds = sorted({0, frame.height, *(place % frame.height for place in places)})
    return [frame[begin:end] for begin, end in pairwise(bounds)]


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(passing, min_size=1, max_size=40), places=st.sets(st.integers(0, 1000), max_size=6))
def test_a_bucket_folded_in_stretches_is_the_fold_of_all_its_passings(rows: list[dict], places: set[int]) -> None:
    passings = as_passings(rows)
    got = folded(passings, cut(passings, places))
    whole = mk.fold_passings(passings.drop("turn_id"), ager=ticks_of(passings))
    order = [*KEYS, "state"]
    assert_frame_equal(got["mnest"].sort(order).drop("mnest_id"), whole.mnests.sort(order).drop("mnest_id"), **CLOSELY)
    columns = ["ts", "kind", "delta", "weight", "old_state", "new_state", *KEYS]
    texts = [pl.col(name).cast(pl.String) for name in ("kind", "old_state", "new_state", *KEYS)]
    order = ["ts", *KEYS, "kind", "weight", "delta"]
    assert_frame_equal(
        got["event"].select(columns).sort(order),
        whole.events.with_columns(texts).select(columns).sort(order),
        **CLOSELY,
    )
    nights = got["night"].group_by("ts_ager").sum().sort("ts_ager")
    assert_frame_equal(nights, whole.ager_runs.select(nights.columns))


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(passing, min_size=1, max_size=40), places=st.sets(st.integers(0, 1000), max_size=6))
def test_ids_do_not_depend_on_how_a_bucket_is_cut(rows: list[dict], places: set[int]) -> None:
    passings = as_passings(rows)
    one, other = folded(passings, [passings]), folded(passings, cut(passings, places))
    for kind in ("mnest", "event"):
        order = ["mnest_id"] if kind == "mnest" else ["ts", "seq", "kind", "mnest_id"]
        assert one[kind].sort(order)["mnest_id"].equals(other[kind].sort(order)["mnest_id"])
    assert one["mnest"]["mnest_id"].is_unique().all()


def test_an_edge_that_waits_for_nights_of_its_own_ages_to_the_last_one() -> None:
    rows = [{"dst_version": "1", "days": 0, "timed": True, "decay_lambda": None, "tags": None, "desired_sig": None}]
    passings = as_passings(rows * 2).with_columns(dst_executor=pl.Series(["early", "late"]))
    passings = passings.with_columns(ts=pl.Series([START, START + timedelta(days=300)], dtype=pl.Datetime("us", "UTC")))
    got = folded(passings, [passings[:1], passings[1:]])
    states = dict(got["mnest"].select("dst_executor", "state").iter_rows())
    assert states == {"early": "decaying", "late": "active"}
    assert got["night"].height == 300


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), places=st.sets(st.integers(0, 1000), max_size=5))
def test_passings_are_numbered_as_one_machine_derives_them_wherever_the_turns_are_cut(
    seed: int, places: set[int]
) -> None:
    from mnemokit.spark.steps import numbered_passings
    from mnemokit.turns.passings import grouped

    log = mk.check_turns(made_log(8, seed)).unique(["source", "session_id", "turn_id", "step"], maintain_order=True)
    whole = mk.derive_passings(log)
    numbered = log.with_row_index("log_row").with_columns(
        pl.col("log_row").cast(pl.Int64),
        session_row=pl.col("log_row").min().over("source", "session_id").cast(pl.Int64),
    )
    ordered = numbered.sort("session_row", "log_row")
    got = pl.concat(list(numbered_passings(iter(cut(ordered, places)), grouped)))
    assert_frame_equal(got.drop("nth"), whole)
    assert got["nth"].to_list() == list(range(1, whole.height + 1))


def test_rows_that_cannot_be_used_come_apart_with_their_place() -> None:
    from mnemokit.spark.steps import unusable_turns, usable_turns

    rows = pl.DataFrame(
        {
            "session_id": ["s", "", "s", "s"],
            "step": [0, 1, 2, None],
            "executor": ["a", "b", "c", "d"],
            "file": ["f"] * 4,
            "file_row": [10, 11, 12, 13],
            "log_row": [110, 111, 112, 113],
        }
    )
    (turns,) = usable_turns(iter([rows.drop("file", "file_row")]), None, "mine")
    assert turns.select("source", "executor", "log_row").rows() == [("mine", "a", 110), ("mine", "c", 112)]
    (rejects,) = unusable_turns(iter([rows]), None, None)
    assert rejects.select("source", "file", "place", "reason").rows() == [
        ("turns", "f", "row 11", "session_id is empty"),
        ("turns", "f", "row 13", "step is null"),
    ]


def test_only_columns_that_a_policy_may_look_at_travel() -> None:
    from mnemokit.spark.steps import columns_seen, turns_schema

    assert "meta" not in columns_seen("successive")
    assert "meta" in columns_seen("handoffs")
    assert set(columns_seen("value_flow")) >= set(VALUE_COLUMNS)
    assert columns_seen(lambda turns: turns) == list(TURNS_SCHEMA)
    assert list(turns_schema("grouped")) == list(TURNS_SCHEMA)
    with pytest.raises(InvalidInput, match="'nearest' is no policy"):
        columns_seen("nearest")


def test_columns_go_to_spark_and_back_as_they_are() -> None:
    import pyarrow as pa

    from mnemokit.spark.columns import ROWS_SENT, over_batches, spark_schema

    schema = {
        "names": pl.String,
        "ts": pl.Datetime("us", "UTC"),
        "values": pl.List(pl.UInt64),
        "found": pl.Struct({"tags": pl.List(pl.String), "weight": pl.Float64}),
    }
    frame = pl.DataFrame(
        {
            "names": ["a", None],
            "ts": [START, None],
            "values": [[2**64 - 1, 0], None],
            "found": [{"tags": ["x", None], "weight": 0.1}, None],
        },
        schema=schema,
    )
    met: list[pl.DataFrame] = []

    def work(frames):
        for rows in frames:
            met.append(rows)
            yield rows

    sent = list(over_batches(lambda frames: [*frames, frame], schema)(iter([])))
    assert sent[0].schema.field("names").type == pa.string()
    assert sent[0].schema.field("values").type == pa.list_(pa.decimal128(20, 0))
    rome = sent[0].set_column(1, "ts", sent[0].column("ts").cast(pa.timestamp("us", "Europe/Rome")))
    back = list(over_batches(work, schema, rows=3)(iter([rome, rome, rome])))
    assert [rows.height for rows in met] == [4, 2]
    assert_frame_equal(met[0], pl.concat([frame, frame]))
    assert sum(batch.num_rows for batch in back) == 6
    assert "`values` ARRAY<DECIMAL(20, 0)>, `found` STRUCT<`tags`: ARRAY<STRING>, `weight`: DOUBLE>" in spark_schema(
        schema
    )
    long = pl.DataFrame({"names": ["x"] * (ROWS_SENT + 1)})
    assert [b.num_rows for b in over_batches(lambda _: [long], {"names": pl.String})(iter([]))] == [ROWS_SENT, 1]
