"""Memory writes of real logs: exactly once, and nothing comes back after a forget."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from mnemokit.changes.namespace import Changes
from mnemokit.errors import InvalidInput
from mnemokit.store import Store
from tests.support_changes import contents, words_left

DATA = Path(__file__).parents[1] / "data"
T0 = datetime(2025, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def changes(store: Store) -> Changes:
    return Changes(store)


def log(*rows: dict) -> pl.DataFrame:
    """A log of writes to one brain."""
    schema = {
        "session_id": pl.String,
        "brain_id": pl.String,
        "trace_key": pl.String,
        "content": pl.String,
        "user_id": pl.String,
        "contributor_ids": pl.List(pl.String),
        "parents": pl.List(pl.String),
        "ts": pl.Datetime("us", "UTC"),
    }
    empty = dict.fromkeys(schema) | {"session_id": "s1", "brain_id": "brain"}
    return pl.DataFrame([empty | {"content": f"words of {row['trace_key']}"} | row for row in rows], schema=schema)


# Real logs -----------------------------------------------------------------------------------------------------------


def test_generative_agents_has_2105_traces_with_several_parents(changes):
    nodes = pl.read_parquet(DATA / "generative_agents_memory.parquet")
    report = changes.import_writes(nodes)
    assert (report.writes, report.duplicates, report.forgotten, report.missing_parents) == (2105, 0, 0, 0)
    traces = changes.traces()
    assert traces["parents"].list.len().sum() == nodes["parents"].list.len().sum()
    assert traces.filter(pl.col("parents").list.len() > 1).height > 250
    assert set(traces["parents"].explode().drop_nulls()) <= set(traces["trace_id"])
    assert traces["ts_created"].sort().to_list() == nodes["ts"].sort().to_list()
    assert changes.changes()["verdict"].unique().to_list() == ["kept"]
    assert changes.audit().ok


def test_reflexion_has_200_writes_in_order_without_a_time(changes):
    every = pl.read_parquet(DATA / "reflexion_memory.parquet")
    writes = every.filter(pl.col("brain_id").str.starts_with("alfworld_runs/reflexion_run_logs/"))
    assert changes.import_writes(writes).writes == 200
    traces = changes.traces()
    assert traces["untimed"].all()
    assert traces["brain_id"].to_list() == writes["brain_id"].to_list()
    assert traces["ts_created"].is_sorted()
    assert traces["ts_created"].max() < datetime(1970, 1, 2, tzinfo=UTC)


def test_importing_a_log_twice_changes_nothing_and_says_how_many_it_knew(changes):
    nodes = pl.read_parquet(DATA / "generative_agents_memory.parquet")
    changes.import_writes(nodes.head(1000))
    report = changes.import_writes(nodes)
    assert (report.writes, report.duplicates) == (1105, 1000)
    was = changes.traces()
    assert changes.import_writes(nodes).duplicates == 2105
    assert_frame_equal(changes.traces(), was)
    whole = Changes(Store())
    whole.import_writes(nodes)
    assert whole.traces()["parents"].list.len().to_list() == was["parents"].list.len().to_list()


def test_importing_a_real_log_after_forget_brings_nothing_back(store, changes):
    nodes = pl.read_parquet(DATA / "generative_agents_memory.parquet")
    changes.import_writes(nodes)
    changes.forget_user("Maria Lopez")
    assert changes.traces().height == 2105 - 600
    assert words_left(store, "'Maria Lopez'", '"Maria Lopez"') == []
    again = changes.import_writes(nodes)
    assert (again.writes, again.duplicates, again.forgotten) == (0, 2105, 0)
    other = changes.import_writes(nodes.with_columns(source=pl.lit("another label")))
    assert (other.writes, other.forgotten) == (2105 - 600, 600)
    assert words_left(store, "'Maria Lopez'", '"Maria Lopez"') == []


# Rules ---------------------------------------------------------------------------------------------------------------


def test_every_row_is_a_write_a_duplicate_or_refused(changes):
    changes.import_writes(log({"trace_key": "a"}))
    changes.forget_user("vera")
    report = changes.import_writes(
        log({"trace_key": "a"}, {"trace_key": "b"}, {"trace_key": "b"}, {"trace_key": "c", "user_id": "vera"})
    )
    assert (report.writes, report.duplicates, report.forgotten) == (1, 2, 1)


def test_equal_texts_of_a_log_stay_the_traces_that_they_were(changes):
    changes.import_writes(log({"trace_key": "a", "content": "same"}, {"trace_key": "b", "content": "same"}))
    assert contents(changes) == ["same", "same"]


def test_a_live_write_resolves_to_words_of_a_log_also_where_only_their_hash_was_imported(changes):
    frame = log({"trace_key": "a", "content": None}).with_columns(
        content_hash=pl.lit(hashlib.sha256(b"the words").hexdigest())
    )
    changes.import_writes(frame)
    (trace_id,) = changes.traces()["trace_id"]
    verdict = changes.session("s2", user_id="lena", brain_id="brain").add("the words")
    assert verdict.trace_ids == (trace_id,)
    assert contents(changes) == [None]


def test_a_log_s_people_are_noted_like_a_session_s(store, changes):
    changes.import_writes(
        log(
            {"trace_key": "a", "user_id": "lena", "contributor_ids": ["lena", "vera", "anonymous"], "ts": T0},
            {"trace_key": "b", "user_id": "lena", "contributor_ids": ["vera"], "ts": T0 + HOUR},
            {"trace_key": "c", "user_id": "anonymous"},
        )
    )
    with store.read() as con:
        rows = con.execute("SELECT user_id, role, ts_noted FROM session_rows ORDER BY ALL").fetchall()
    assert rows == [("lena", "learner", T0), ("vera", "visitor", T0)]


def test_contributors_are_inherited_from_parents_however_far_up_and_whatever_the_order(changes):
    changes.import_writes(log({"trace_key": "root", "user_id": "ann", "contributor_ids": ["ben"]}))
    changes.import_writes(
        log(
            {"trace_key": "leaf", "user_id": "lena", "parents": ["middle"]},
            {"trace_key": "middle", "user_id": "otto", "parents": ["root", "nowhere"]},
        )
    )
    assert changes.changes()["contributor_ids"].to_list() == [["ben"], ["ann", "ben", "otto"], ["ann", "ben"]]


def test_parents_that_are_nowhere_are_left_out_and_counted(changes):
    report = changes.import_writes(log({"trace_key": "a", "parents": ["nowhere", "a2"]}, {"trace_key": "a2"}))
    assert report.missing_parents == 1
    assert changes.traces()["parents"].list.len().to_list() == [1, 0]


def test_importing_an_old_log_after_forget_brings_nothing_back(store, changes):
    old = log(
        {"trace_key": "a", "user_id": "lena", "contributor_ids": ["vera"]},
        {"trace_key": "b", "user_id": "vera"},
        {"trace_key": "c", "user_id": "lena", "parents": ["b"]},
        {"trace_key": "d", "user_id": "lena", "parents": ["c"]},
        {"trace_key": "e", "user_id": "lena"},
    )
    changes.forget_user("vera")
    report = changes.import_writes(old)
    assert (report.writes, report.forgotten) == (1, 4)
    assert contents(changes) == ["words of e"]
    assert words_left(store, "vera") == []


def test_what_builds_on_a_trace_that_is_gone_for_good_is_refused(changes):
    changes.import_writes(log({"trace_key": "a", "user_id": "vera"}))
    changes.forget_user("vera")
    assert changes.import_writes(log({"trace_key": "b", "parents": ["a"]})).forgotten == 1


def test_after_readmission_only_what_was_written_since_is_taken(changes):
    changes.forget_user("vera", at=T0)
    changes.readmit("vera", at=T0 + HOUR)
    report = changes.import_writes(
        log(
            {"trace_key": "before", "user_id": "vera", "ts": T0 - HOUR},
            {"trace_key": "between", "user_id": "vera", "ts": T0},
            {"trace_key": "since", "user_id": "vera", "ts": T0 + HOUR},
            {"trace_key": "no one knows", "user_id": "vera"},
        )
    )
    assert (report.writes, report.forgotten) == (1, 3)
    assert contents(changes) == ["words of since"]


def test_imported_writes_are_reverted_and_asked_about_like_any_other(changes):
    changes.import_writes(log({"trace_key": "a", "ts": T0}))
    ((trace_id, change_id),) = changes.changes().select(pl.col("trace_ids").list.first(), "change_id").rows()
    assert changes.blame(trace_id)["change_id"].unique().to_list() == [change_id]
    assert changes.timeline(trace_id)["after"].str.contains("words of a").to_list() == [True]
    assert changes.traces(T0).height == 1
    assert changes.revert(change_id).trace_ids == (trace_id,)
    assert contents(changes) == []


def test_the_log_s_own_names_of_traces_are_kept_only_as_keyed_hashes(store, changes):
    changes.import_writes(log({"trace_key": "named after anna", "content": "words"}))
    with store.read() as con:
        kept = con.execute("SELECT * FROM idempotency_keys").fetchall()
    assert "anna" not in repr(kept)
    assert words_left(store, "anna") == []


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"session_id": ["s"]}), "no column 'brain_id'"),
        (log({"trace_key": "a"}).with_columns(parents=pl.lit("a")), "column 'parents'"),
        (log({"trace_key": "a"}).with_columns(ts=pl.lit(T0.replace(tzinfo=None))), "column 'ts'"),
        (log({"trace_key": "a"}, {"trace_key": "b", "session_id": None}), "row 1"),
    ],
)
def test_a_frame_that_cannot_be_used_is_refused_and_nothing_is_written(changes, frame, message):
    with pytest.raises(InvalidInput, match=message):
        changes.import_writes(frame)
    assert changes.changes().is_empty()


def test_an_empty_log_is_no_error(changes):
    assert changes.import_writes(log()).writes == 0


def test_metadata_that_is_no_json_is_kept_as_text(changes):
    changes.import_writes(log({"trace_key": "a"}, {"trace_key": "b"}).with_columns(meta=pl.Series(['{"x":1}', "x=1"])))
    assert changes.traces()["metadata"].to_list() == ['{"x":1}', '"x=1"']
