"""The canonical frame as Parquet, JSON lines and CSV: what goes in comes out, rows that cannot be used are rejects."""

import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemokit import datasets
from mnemokit.errors import CorruptLog
from mnemokit.turn_log import TurnLog
from mnemokit.turns import read_batches, read_turns
from mnemokit.turns.readers import canonical

LINES = Path(__file__).parent / "data" / "turn_lines.jsonl"


def json_lines(frame, path):
    text = frame.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z"))
    path.write_text("".join(json.dumps(row) + "\n" for row in text.iter_rows(named=True)))


def csv_lines(frame, path):
    frame.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z")).write_csv(path)


WRITERS = {
    "turns.parquet": lambda frame, path: frame.write_parquet(path),
    "turns.jsonl": json_lines,
    "turns.csv": csv_lines,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("load", [datasets.tau2, datasets.agb, datasets.reflexion], ids=lambda load: load.__name__)
def test_what_goes_in_comes_out(tmp_path, name, load):
    WRITERS[name](load(), tmp_path / name)
    assert read_turns(tmp_path / name).equals(load())


def test_a_frame_keeps_its_own_source_unless_a_label_is_given(tmp_path):
    datasets.tau2().write_parquet(tmp_path / "turns.parquet")
    assert set(read_turns(tmp_path)["source"]) == {"tau2"}
    assert set(read_turns(tmp_path, label="mine")["source"]) == {"mine"}


@pytest.mark.parametrize("name", WRITERS)
def test_three_columns_are_enough(tmp_path, name):
    frame = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["a", None]})
    write = {"turns.parquet": frame.write_parquet, "turns.jsonl": frame.write_ndjson, "turns.csv": frame.write_csv}
    write[name](tmp_path / name)
    turns = read_turns(tmp_path / name)
    assert turns.select("source", "turn_id", "parallel_group", "executor").rows() == [
        ("turns", "s:0", 0, "a"),
        ("turns", "s:1", 1, None),
    ]


@pytest.mark.parametrize("name", ["turns.jsonl", "turns.csv"])
def test_instants_without_offset_need_tz(tmp_path, name):
    frame = pl.DataFrame({"session_id": ["s"], "step": [0], "executor": ["a"], "ts": ["2025-08-01T12:00:00"]})
    (frame.write_ndjson if name == "turns.jsonl" else frame.write_csv)(tmp_path / name)
    (batch,) = read_batches(tmp_path / name)
    assert batch.rejects["reason"].to_list() == ["ts has no time zone (give tz=)"]
    turns = read_turns(tmp_path / name, tz="Europe/Rome")
    assert turns["ts"].item() == datetime(2025, 8, 1, 10, tzinfo=UTC)


def test_parquet_without_zone_needs_tz(tmp_path):
    frame = pl.DataFrame({"session_id": ["s"], "step": [0], "executor": ["a"], "ts": [datetime(2025, 8, 1)]})  # noqa: DTZ001
    frame.write_parquet(tmp_path / "turns.parquet")
    with pytest.raises(CorruptLog, match="column 'ts' of a frame of turns has no time zone; give tz="):
        read_turns(tmp_path)
    assert read_turns(tmp_path, tz="UTC")["ts"].item() == datetime(2025, 8, 1, tzinfo=UTC)


def test_parquet_rows_that_cannot_be_used_are_rejects(tmp_path):
    frame = pl.DataFrame({"session_id": ["s", None, "s"], "step": [0, 1, 2], "executor": ["a", "b", ""]})
    frame.write_parquet(tmp_path / "turns.parquet")
    (batch,) = read_batches(tmp_path)
    assert batch.turns["executor"].to_list() == ["a"]
    assert batch.rejects.select("place", "reason").rows() == [
        ("row 1", "session_id is null"),
        ("row 2", "executor is empty"),
    ]
    assert batch.records == 3


def test_parquet_is_read_in_slices_with_places_counted_through(tmp_path, monkeypatch):
    monkeypatch.setattr(canonical, "PARQUET_ROWS", 10)
    frame = datasets.tau2().with_columns(
        executor=pl.when(pl.int_range(pl.len()) == 25).then(pl.lit("")).otherwise("executor")
    )
    frame.write_parquet(tmp_path / "turns.parquet")
    batches = list(read_batches(tmp_path, batch_rows=5))
    assert len(batches) == 387
    assert pl.concat([batch.rejects for batch in batches])["place"].to_list() == ["row 25"]
    assert sum(batch.records for batch in batches) == 3866


def test_parquet_of_something_else_is_not_recognised_and_refused_when_asked(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(CorruptLog, match="no reader recognises this file"):
        read_turns(tmp_path)
    with pytest.raises(CorruptLog, match="column 'session_id' is missing"):
        read_turns(tmp_path, "turns")


def test_json_lines_read_together_and_one_by_one_agree(tmp_path):
    """One odd line makes the reader look at each line of its batch; the others come out the same."""
    together = read_turns(LINES)
    path = tmp_path / "turns.jsonl"
    path.write_text(LINES.read_text() + '{"session_id": ["x"], "step": 0, "executor": "a"}\n')
    (batch,) = read_batches(path)
    assert batch.turns.equals(together)
    assert batch.rejects.select("place", "reason").rows() == [("line 25", "session_id is an array, not text")]


ROWS = st.fixed_dictionaries(
    {
        "session_id": st.sampled_from(["s1", "s2", 7]),
        "step": st.integers(0, 2**40),
        "executor": st.sampled_from(["a", 'odd "name"\n', "é", None]),
    },
    optional={
        "ok": st.sampled_from([True, False, None]),
        "ts": st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2199, 12, 31)).map(  # noqa: DTZ001
            lambda moment: moment.replace(tzinfo=UTC).isoformat()
        ),
        "parallel_group": st.integers(0, 5),
        "question": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
        "session_outcome": st.sampled_from(["success", "failure", None]),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=8))
def test_both_ways_of_reading_json_lines_always_agree(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("lines") / "turns.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    fast = read_turns(path, "turns")
    slow = read_turns(path, "turns", include_text=True).drop("arguments", "result")
    assert fast.equals(slow)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"step": 0, "executor": "a"}', "session_id is missing"),
        ('{"session_id": "s", "executor": "a"}', "step is null, not a whole number"),
        ('{"session_id": "s", "step": 1.5, "executor": "a"}', "step is a number, not a whole number"),
        ('{"session_id": "s", "step": 1, "executor": "a", "ok": "yes"}', "ok is text, not true or false"),
        ('{"session_id": "s", "step": 1, "executor": "a", "ts": 5}', "ts is a number, not text"),
        (
            '{"session_id": "s", "step": 1, "executor": "a", "session_outcome": "won"}',
            "session_outcome is not success, failure or null",
        ),
        ('{"session_id": "s\\ud800", "step": 1, "executor": "a"}', "session_id holds a lone surrogate"),
        ('{"session_id": "s", "step": 1, "executor": {"a": 1}}', "executor is an object, not text"),
    ],
)
def test_a_line_that_is_no_turn_is_a_reject_with_its_reason(tmp_path, line, reason):
    path = tmp_path / "turns.jsonl"
    path.write_text('{"session_id": "s", "step": 0, "executor": "a"}\n' + line + "\n")
    (batch,) = read_batches(path, "turns")
    assert (batch.turns.height, batch.rejects["place"].to_list()) == (1, ["line 2"])
    assert batch.rejects["reason"].item().startswith(reason)


def test_csv_cells_are_read_by_what_the_column_is(tmp_path):
    path = tmp_path / "turns.csv"
    path.write_text(
        'session_id,step,executor,ok,question\n"s,1",0,a,true,"two\nlines"\n"s,1",1,b,FALSE,\n"s,1",2,c,,x\n'
    )
    turns = read_turns(path)
    assert turns.select("session_id", "step", "ok", "question").rows() == [
        ("s,1", 0, True, "two\nlines"),
        ("s,1", 1, False, None),
        ("s,1", 2, None, "x"),
    ]


def test_csv_rows_that_cannot_be_used_are_rejects(tmp_path):
    path = tmp_path / "turns.csv"
    cells = b"session_id,step,executor,ok\ns,0,a,true\ns,1,a\ns,x,a,true\ns,3,a,maybe\n\xff,4,a,true\n"
    path.write_bytes(cells + b's,5,"' + b"x" * 200_000 + b'",\n')
    (batch,) = read_batches(path)
    assert batch.turns["step"].to_list() == [0]
    reasons = batch.rejects["reason"].to_list()
    assert reasons[0] == "3 cells, but the header has 4"
    assert reasons[1] == "step is text, not a whole number"
    assert reasons[2] == "ok is text, not true or false"
    assert reasons[3] == "session_id holds a lone surrogate"
    assert reasons[4].startswith("not CSV (field larger than field limit")


def test_a_csv_of_something_else_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CorruptLog, match="its first line must name executor, session_id, step"):
        read_turns(tmp_path, "turns")


def test_meta_may_be_an_object_in_json_lines(tmp_path):
    path = tmp_path / "turns.jsonl"
    path.write_text('{"session_id": "s", "step": 0, "executor": "a", "meta": {"mode": "x"}}\n')
    assert json.loads(read_turns(path)["meta"].item()) == {"mode": "x"}


def test_the_files_of_a_turn_log_are_read(tmp_path):
    with TurnLog(tmp_path / "turns.jsonl") as log:
        log.append(session_id="s", step=0, executor="find", ok=True, meta={"note": 1}, user_id="u")
        log.append(session_id="s", step=1, executor="buy", ok=False)
    turns = read_turns(tmp_path)
    assert turns.select("session_id", "executor", "ok", "user_id").rows() == [
        ("s", "find", True, "u"),
        ("s", "buy", False, None),
    ]
    assert turns["ts"].null_count() == 0


def test_arguments_in_json_lines_can_be_hashed(tmp_path):
    path = tmp_path / "turns.jsonl"
    rows = [
        {"session_id": "s", "step": 0, "executor": "find", "result": {"id": "C77"}},
        {"session_id": "s", "step": 1, "executor": "buy", "arguments": {"id": "C77"}},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    turns = read_turns(path, include_values=True)
    assert turns["arg_values"][1].to_list() == turns["result_values"][0].to_list() != []
    assert "arg_values" not in read_turns(path).columns


def test_hashed_values_of_parquet_are_kept_when_asked_for(tmp_path):
    frame = pl.DataFrame(
        {"session_id": ["s"], "step": [0], "executor": ["a"], "arg_values": [[1]], "result_values": [[2]]},
        schema_overrides={"arg_values": pl.List(pl.UInt64), "result_values": pl.List(pl.UInt64)},
    )
    frame.write_parquet(tmp_path / "turns.parquet")
    assert read_turns(tmp_path, include_values=True)["arg_values"].to_list() == [[1]]
    assert "arg_values" not in read_turns(tmp_path).columns
    assert read_turns(tmp_path, include_text=True)["arguments"].to_list() == [None]


@pytest.mark.parametrize("name", WRITERS)
def test_rows_that_cannot_be_used_keep_their_own_source_and_person(tmp_path, name):
    frame = pl.DataFrame(
        {
            "source": ["a", "b", "a"],
            "session_id": ["s"] * 3,
            "step": [0, 1, 2],
            "executor": ["x"] * 3,
            "ts": [datetime(2025, 1, 1, tzinfo=UTC)] * 3,
            "user_id": ["u0", "u1", "u2"],
            "session_outcome": [None, "won", "Ada wrote to ada@example.org"],
        }
    )
    WRITERS[name](frame, tmp_path / name)
    (batch,) = read_batches(tmp_path / name)
    assert batch.rejects.select("source", "reason", "user_id").rows() == [
        ("b", "session_outcome is not success, failure or null", "u1"),
        ("a", "session_outcome is not success, failure or null", "u2"),
    ]
    assert batch.rejects["excerpt"].null_count() == 0
    assert not batch.rejects["excerpt"].str.contains("Ada|won").any()
    (labelled,) = read_batches(tmp_path / name, label="mine")
    assert set(labelled.rejects["source"]) == {"mine"}


def test_a_csv_row_of_another_length_names_no_person_for_its_cells_may_stand_in_other_columns(tmp_path):
    path = tmp_path / "turns.csv"
    path.write_text("session_id,step,user_id,executor\ns,x,u1,a\ns,0,a secret\n")
    (batch,) = read_batches(path)
    assert batch.rejects["user_id"].to_list() == ["u1", None]


@pytest.mark.parametrize("name", WRITERS)
def test_naive_instants_of_skipped_and_repeated_hours_are_placed_alike_in_every_form(tmp_path, name):
    naive = ["2025-03-30T02:30:00", "2025-10-26T02:30:00", "2025-07-01T12:00:00"]
    frame = pl.DataFrame({"session_id": ["s"] * 3, "step": [0, 1, 2], "executor": ["a"] * 3, "ts": naive})
    if name == "turns.parquet":
        frame.with_columns(pl.col("ts").str.to_datetime()).write_parquet(tmp_path / name)
    else:
        (frame.write_ndjson if name == "turns.jsonl" else frame.write_csv)(tmp_path / name)
    turns = read_turns(tmp_path / name, tz="Europe/Rome")
    assert turns["ts"].to_list() == [
        datetime(2025, 3, 30, 1, 30, tzinfo=UTC),
        datetime(2025, 10, 26, 0, 30, tzinfo=UTC),
        datetime(2025, 7, 1, 10, tzinfo=UTC),
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_an_instant_of_a_year_that_no_log_is_of_is_a_reject_in_every_form(tmp_path, name):
    ts = [datetime(year, 12, 30, tzinfo=UTC) for year in (2025, 9999, 2500, 1969)]
    frame = pl.DataFrame({"session_id": ["s"] * 4, "step": range(4), "executor": ["a"] * 4, "ts": ts})
    WRITERS[name](frame, tmp_path / name)
    (batch,) = read_batches(tmp_path / name)
    assert batch.turns["step"].to_list() == [0]
    assert batch.rejects["reason"].to_list() == ["ts is not within the years 1970 to 2199"] * 3


LINE = '{"session_id": "s", "step": 0, "executor": "a"}\n'


def test_a_last_line_that_is_still_being_written_counts_as_ignored_until_it_is_whole(tmp_path):
    path = tmp_path / "turns.jsonl"
    last = '{"session_id":"s","step":1,"executor":"é"}\n'.encode()
    for end in range(1, len(last) - 1):
        path.write_bytes(LINE.encode() + last[:end])
        (batch,) = read_batches(path)
        assert (batch.turns.height, batch.rejects.height, batch.ignored) == (1, 0, 1), last[:end]
        assert batch.why.endswith("; the last line is not finished, it counts as ignored")
    for whole in (last, last[:-1]):
        path.write_bytes(LINE.encode() + whole)
        (batch,) = read_batches(path)
        assert (batch.turns.height, batch.rejects.height, batch.ignored) == (2, 0, 0)


@pytest.mark.parametrize("end", ["no json", '{"a": \n', '{"step": 1}', "[1, 2"])
def test_any_other_bad_line_stays_a_reject_also_as_the_last_one(tmp_path, end):
    path = tmp_path / "turns.jsonl"
    path.write_text(LINE + end)
    (batch,) = read_batches(path)
    assert (batch.turns.height, batch.rejects.height, batch.ignored) == (1, 1, 0)
