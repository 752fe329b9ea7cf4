"""The canonical frame: what it accepts, what it fills in, and one clear line where it does not."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from mnemokit.errors import InvalidInput
from mnemokit.turns.frame import MAX_NAME_CHARS, REJECTS_SCHEMA, TURNS_SCHEMA, check_turns, split_turns


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
    assert check_turns(turns.clear()).equals(turns.clear())


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
        ({"session_outcome": [None, "won"]}, "row 1 .* session_outcome is not success, failure or null"),
        ({"user_id": ["u", "x" * (MAX_NAME_CHARS + 1)]}, "row 1 .* user_id is longer than 512 characters"),
        ({"ts": [datetime(2500, 1, 1, tzinfo=UTC)] * 2}, "row 0 .* ts is not within the years 1970 to 2199"),
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
        ("row 0", "session_outcome is not success, failure or null", "u1")
    ]


def test_an_empty_text_is_null_so_that_no_turn_is_stored_that_a_capture_refuses():
    texts = ("requestor", "user_id", "scope", "question", "meta")
    turns = check_turns(frame(**{name: ["", "x"] for name in texts}))
    assert turns.select(texts).rows() == [(None,) * 5, ("x",) * 5]
    turns, rejects = split_turns(frame(scope=["", ""]))
    assert (turns["scope"].to_list(), rejects.height) == ([None, None], 0)


def test_a_reason_quotes_no_value():
    _, rejects = split_turns(frame(session_outcome=["ada@example.org " * 1000, "failure"]))
    assert rejects["reason"].item() == "session_outcome is not success, failure or null"


def test_a_reject_keeps_the_source_and_the_person_of_its_row_and_shows_its_shape():
    odd = frame(source=["a", "b"], session_outcome=["won", "lost"], user_id=["Ada", "x" * 600], ok=[True, None])
    _, rejects = split_turns(odd, first_row=5, file="frame")
    assert dict(rejects.schema) == REJECTS_SCHEMA
    assert rejects.select("source", "file", "place", "user_id").rows() == [
        ("a", "frame", "row 5", "Ada"),
        ("b", "frame", "row 6", None),
    ]
    assert rejects["excerpt"].to_list() == [
        f'{{"source": "…", "session_id": "…", "step": 0, "executor": "…"{ok}, "user_id": "…", "session_outcome": "…"}}'
        for ok in (', "ok": true', "")
    ]


def test_a_reject_whose_own_source_is_no_name_has_that_of_the_log():
    _, rejects = split_turns(frame(source=["", "x" * 600]), source="mine")
    assert rejects["source"].to_list() == ["mine", "mine"]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome"])
def test_instants_of_years_that_no_log_is_of_are_rejects(unit, zone):
    first, last = datetime(1970, 1, 1, tzinfo=UTC), datetime(2199, 12, 31, 23, 59, 59, tzinfo=UTC)
    moments = [first, last, first - timedelta(seconds=1), last + timedelta(seconds=1)]
    step = list(range(4))
    given = {"session_id": ["s"] * 4, "step": step, "executor": ["a"] * 4}
    ts = pl.Series(moments, dtype=pl.Datetime("us", "UTC")).cast(pl.Datetime(unit, "UTC")).dt.convert_time_zone(zone)
    naive = ts.dt.replace_time_zone(None)
    for column, tz in ((ts, None), (naive, zone)):
        turns, rejects = split_turns(pl.DataFrame(given | {"ts": column}), tz=tz)
        assert turns["ts"].to_list() == [first, last]
        assert rejects.select("place", "reason").rows() == [
            ("row 2", "ts is not within the years 1970 to 2199"),
            ("row 3", "ts is not within the years 1970 to 2199"),
        ]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Rome"])
@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_number_that_is_no_instant_is_a_reject_too(unit, zone):
    ts = pl.Series([2**62, -(2**62), 2**63 - 1, None], dtype=pl.Int64).cast(pl.Datetime(unit, zone))
    given = {"session_id": ["s"] * 4, "step": range(4), "executor": ["a"] * 4, "ts": ts}
    turns, rejects = split_turns(pl.DataFrame(given), tz="America/New_York")
    assert (turns["step"].to_list(), turns["ts"].to_list()) == ([3], [None])
    assert rejects["place"].to_list() == ["row 0", "row 1", "row 2"]


@pytest.mark.parametrize("zone", ["Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"])
def test_hours_that_a_clock_skips_or_repeats_are_placed_as_python_places_them(zone):
    days = [datetime(2011, 12, 29), datetime(2025, 3, 8), datetime(2025, 3, 29), datetime(2025, 4, 5)]  # noqa: DTZ001
    days += [datetime(2025, 10, 4), datetime(2025, 10, 25), datetime(2025, 11, 1)]  # noqa: DTZ001
    naive = [day + timedelta(minutes=10 * n) for day in days for n in range(3 * 144)]
    given = {"session_id": ["s"] * len(naive), "step": range(len(naive)), "executor": ["a"] * len(naive), "ts": naive}
    turns, rejects = split_turns(pl.DataFrame(given), tz=zone)
    assert rejects.height == 0
    assert turns["ts"].to_list() == [moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for moment in naive]


def test_a_zone_that_cannot_be_used_is_refused_in_one_line():
    naive = [datetime(2025, 8, 1, 12)] * 2  # noqa: DTZ001
    for tz in ("Factory", "localtime", "", "../etc"):
        with pytest.raises(InvalidInput, match="is no time zone"):
            check_turns(frame(ts=naive), tz=tz)
