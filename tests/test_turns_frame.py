"""The canonical frame: what it accepts, what it fills in, and one clear line where it does not."""

from datetime import UTC, date, datetime

import polars as pl
import pytest

from mnemokit.errors import InvalidInput
from mnemokit.turns.frame import MAX_NAME_CHARS, TURNS_SCHEMA, check_turns, empty_turns, split_turns


def frame(**columns):
    given = {"session_id": ["s", "s"], "step": [0, 1], "executor": ["a", "b"]} | columns
    return pl.DataFrame(given)


def test_a_frame_needs_session_step_and_executor_and_the_rest_is_filled_in():
    turns = check_turns(frame())
    assert dict(turns.schema) == TURNS_SCHEMA
    assert turns["source"].to_list() == ["turns", "turns"]
    assert turns["turn_id"].to_list() == ["s:0", "s:1"]
    assert turns["parallel_group"].to_list() == [0, 1]
    assert turns["ts"].null_count() == 2


def test_a_canonical_frame_stays_as_it_is():
    turns = check_turns(frame())
    assert check_turns(turns).equals(turns)
    assert check_turns(empty_turns()).equals(empty_turns())


@pytest.mark.parametrize("missing", ["session_id", "step", "executor"])
def test_a_missing_column_is_named_with_those_there_are(missing):
    with pytest.raises(InvalidInput, match=f"column '{missing}' is missing; it needs .* and has "):
        check_turns(frame().drop(missing))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"step": ["0", "1"]}, "column 'step' of a frame of turns must be Int64, not String"),
        ({"executor": [1, 2]}, "column 'executor' of a frame of turns must be String, not Int64"),
        ({"ok": ["yes", "no"]}, "column 'ok' of a frame of turns must be Boolean, not String"),
        ({"ts": [date(2025, 1, 1)] * 2}, "column 'ts' of a frame of turns must be Datetime.*, not Date"),
        ({"ts": [datetime(2025, 1, 1)] * 2}, "column 'ts' of a frame of turns has no time zone; give tz="),  # noqa: DTZ001
        ({"session_id": ["s", None]}, "row 1 of this frame of turns cannot be used: session_id is null"),
        ({"session_id": ["", "s"]}, "row 0 of this frame of turns cannot be used: session_id is empty"),
        ({"executor": ["a", "x" * (MAX_NAME_CHARS + 1)]}, "row 1 .* executor is longer than 512 characters"),
        ({"executor_version": ["", "1"]}, "row 0 .* executor_version is empty"),
        ({"session_outcome": [None, "won"]}, "row 1 .* session_outcome is won, not success, failure or null"),
        ({"step": [0, None]}, "row 1 .* step is null"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_value_that_cannot_be_is_refused_in_one_line(columns, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        check_turns(frame(**columns))
    assert "\n" not in str(caught.value)


def test_an_integer_beyond_64_bits_is_refused():
    with pytest.raises(InvalidInput, match=r"holds an integer of 2\^63 or beyond"):
        check_turns(frame(step=pl.Series([0, 2**63], dtype=pl.UInt64)))


def test_instants_of_any_zone_become_utc():
    rome = pl.Series(["2025-08-01T12:00:00+02:00"] * 2).str.to_datetime(time_zone="Europe/Rome")
    assert check_turns(frame(ts=rome))["ts"][0] == datetime(2025, 8, 1, 10, tzinfo=UTC)


def test_naive_instants_are_taken_in_the_zone_given():
    naive = [datetime(2025, 8, 1, 12)] * 2  # noqa: DTZ001
    assert check_turns(frame(ts=naive), tz="Europe/Rome")["ts"][0] == datetime(2025, 8, 1, 10, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="tz='Mars/Base' is no time zone"):
        check_turns(frame(ts=naive), tz="Mars/Base")


def test_categories_and_numbers_become_text_where_text_is_meant():
    turns = check_turns(frame(executor=pl.Series(["a", "b"], dtype=pl.Categorical), session_id=[7, 7], question=[1, 2]))
    assert turns.select("session_id", "executor", "question").rows() == [("7", "a", "1"), ("7", "b", "2")]


def test_columns_that_are_not_canonical_are_dropped():
    assert "note" not in check_turns(frame(note=["x", "y"])).columns


def test_split_keeps_the_good_rows_and_says_why_of_the_others():
    turns, rejects = split_turns(frame(session_outcome=["won", "failure"], user_id=["u1", "u2"]))
    assert turns["executor"].to_list() == ["b"]
    assert rejects.select("place", "reason", "user_id").rows() == [
        ("row 0", "session_outcome is won, not success, failure or null", "u1")
    ]
