"""Which files, which reader, and one clear line where a file is broken."""

import json
import re
import shutil
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from mnemokit.errors import CorruptLog, InvalidInput, UnknownFormat
from mnemokit.turns import read_batches, read_turns
from mnemokit.turns.frame import REJECTS_SCHEMA, TURNS_SCHEMA
from mnemokit.turns.protocol import TurnBatch
from mnemokit.turns.readers import all_readers, reader_named
from mnemokit.turns.reading import EmptyLog, RejectedRecords, find_files, frame_batches
from mnemokit.turns.sniff import HEAD_BYTES, Head, partial_json, read_head

DATA = Path(__file__).parent / "data"
TAU2 = DATA / "raw" / "tau2" / "gpt-4.1_airline_default_gpt-4.1_1trials.json"
CLAUDE = DATA / "traces" / "claude_code" / "tool_call_conversation.jsonl"


def refused(path, error=CorruptLog, source="auto"):
    with pytest.raises(error) as caught:
        read_turns(path, source)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def file(tmp_path):
    def write(content, name="log.json"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_an_empty_file_says_so(file):
    for content in ("", " \n\n"):
        path = file(content)
        assert refused(path) == f"{path}: the file is empty; nothing was read"
        for source in ("tau2", "agb", "inspect"):
            assert "the file is empty" in refused(path, source=source)


def test_a_log_of_lines_without_a_line_yet_has_no_records(file):
    path = file("\n", "turns.jsonl")
    for source in ("auto", "turns"):
        (batch,) = read_batches(path, source, include_values=True)
        assert (batch.records, batch.reader) == (0, "turns")
        assert {"arg_values", "result_values"} <= set(batch.turns.columns)
    assert batch.why == "source='turns' was given"
    with pytest.warns(EmptyLog, match=r"turns\.jsonl: the file is empty, it has no records"):
        assert read_turns(path).height == 0


def test_an_empty_file_among_others_is_passed_over_and_told(tmp_path):
    shutil.copy(CLAUDE, tmp_path / "b.jsonl")
    (tmp_path / "a.jsonl").write_text("")
    (tmp_path / "c.json").write_text(" \n")
    for source in ("auto", "claude_code"):
        (batch,) = read_batches(tmp_path, source)
        assert batch.turns.equals(read_turns(CLAUDE))
        assert batch.why.endswith("; empty and passed over: a.jsonl, c.json")


def test_empty_files_only_have_no_records(tmp_path):
    for name in ("a.jsonl", "b.json"):
        (tmp_path / name).write_text("")
    batches = list(read_batches(tmp_path))
    assert [(batch.records, batch.why) for batch in batches] == [(0, "the file is empty, it has no records")] * 2


def test_an_empty_label_is_refused_for_no_capture_could_be_of_its_scope():
    frame = pl.DataFrame({"session_id": ["s"], "step": [0], "executor": ["a"]})
    for label in ("", "x" * 513):
        for read in (lambda label: read_batches(TAU2, label=label), lambda label: frame_batches(frame, label=label)):
            with pytest.raises(InvalidInput, match="label must be a text of 1 to 512 characters; nothing was read"):
                read(label)


def test_rejects_of_a_frame_are_placed_in_the_whole_frame_whatever_the_batches():
    frame = pl.DataFrame(
        {
            "source": ["a", "b", "a", "b"],
            "session_id": ["", "s", "", ""],
            "step": range(4),
            "executor": ["x"] * 4,
        }
    )
    for rows in (1, 2, 3, 100):
        batches = list(frame_batches(frame, batch_rows=rows))
        assert sum(batch.records for batch in batches) == 4
        rejects = pl.concat([batch.rejects for batch in batches])
        assert rejects.select("source", "file", "place").rows() == [
            ("a", "frame", "row 0"),
            ("a", "frame", "row 2"),
            ("b", "frame", "row 3"),
        ]
        assert set(rejects["excerpt"]) == {'{"source": "…", "session_id": "…", "step": 0, "executor": "…"}'}
    (batch,) = frame_batches(frame, label="mine")
    assert set(batch.rejects["source"]) == {"mine"}


def test_a_truncated_document_says_where(file):
    raw = TAU2.read_bytes()
    path = file(raw[: len(raw) // 2])
    message = refused(path)
    assert re.fullmatch(
        rf"{re.escape(str(path))}: the JSON is cut off at line \d+ column \d+; nothing was read", message
    )


def test_a_document_that_is_no_json_lists_what_was_tried(file):
    message = refused(file("Dear diary, today was fine."), UnknownFormat)
    assert "no reader recognises this file (tried turns, tau2, tau_bench, agb" in message
    assert "nothing was read; give source= if you know its format" in message


def test_json_of_no_known_format_lists_what_was_tried(file):
    for content in ('{"a": 1}', "[1, 2]", "null", '{"a": 1}\n{"a": 2}\n', "3"):
        assert "no reader recognises this file" in refused(file(content), UnknownFormat)


@pytest.mark.parametrize("source", sorted(set(all_readers()) - {"turns", "metnos", "claude_code", "openhands"}))
def test_a_document_of_the_wrong_format_is_refused_by_every_reader(file, source):
    message = refused(file('{"a": {"b": [1, 2]}}'), source=source)
    assert "nothing was read" in message
    assert "log.json" in message


@pytest.mark.parametrize("source", sorted(set(all_readers()) - {"turns", "metnos", "claude_code", "openhands"}))
def test_a_document_that_is_no_json_is_refused_by_every_reader(file, source):
    assert "not JSON" in refused(file('{"a": }'), source=source)
    assert "not UTF-8 at byte 6" in refused(file(b'{"a": \xff}'), source=source)


def test_a_deep_or_huge_document_is_refused(file):
    assert "nested too deeply" in refused(file('{"simulations":' + "[" * 100_000), source="tau2")
    assert "too many digits" in refused(file('{"simulations": [' + "9" * 5_000 + "]}"), source="tau2")


def test_a_missing_file_is_an_input_error():
    with pytest.raises(InvalidInput, match=r"no file at nowhere/\*\.json; nothing was read"):
        read_turns("nowhere/*.json")
    with pytest.raises(InvalidInput, match="no file at an empty list"):
        read_turns([])


def test_an_unknown_source_lists_the_readers():
    with pytest.raises(InvalidInput, match="source='tau3' is no reader; use 'auto' or one of agb, atif"):
        read_turns(TAU2, "tau3")


def test_every_file_is_recognised_before_the_first_is_read(tmp_path):
    shutil.copy(TAU2, tmp_path / "a.json")
    (tmp_path / "b.json").write_text('{"a": 1}')
    with pytest.raises(UnknownFormat, match=r"b\.json"):
        read_batches(tmp_path)


def test_a_folder_a_glob_and_a_list_are_files_in_natural_order(tmp_path):
    for name in ("trial_10.json", "trial_2.json", "deep/trial_1.json", ".hidden", "LICENSE", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    folder = [path.relative_to(tmp_path).as_posix() for path, _ in find_files(tmp_path)]
    assert folder == ["deep/trial_1.json", "trial_2.json", "trial_10.json"]
    matched = [path.name for path, _ in find_files(tmp_path / "trial_*.json")]
    assert matched == ["trial_2.json", "trial_10.json"]
    assert [base for _, base in find_files(str(tmp_path / "**" / "*.json"))] == [tmp_path] * 3
    both = find_files([tmp_path / "trial_10.json", tmp_path])
    assert [path.name for path, _ in both] == ["trial_10.json", "trial_1.json", "trial_2.json"]


def test_reading_a_folder_of_several_formats_keeps_the_source_of_each(tmp_path):
    shutil.copy(TAU2, tmp_path)
    shutil.copy(CLAUDE, tmp_path)
    assert read_turns(tmp_path)["source"].unique().sort().to_list() == ["claude_code", "tau2"]


def test_rejects_are_never_silent(file):
    path = file(CLAUDE.read_text() + "no json\n", "log.jsonl")
    with pytest.warns(RejectedRecords, match="1 records could not be used and are left out"):
        turns = read_turns(path)
    assert turns.equals(read_turns(CLAUDE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_turns(CLAUDE).height == 1


def test_strict_stops_at_the_first_reject_and_says_where(file):
    path = file(CLAUDE.read_text() + "no json\n", "log.jsonl")
    message = r"log.jsonl: line 5: not JSON \(Expecting value\) at character 1 of the line; strict=True stopped here"
    with pytest.raises(CorruptLog, match=message):
        read_turns(path, strict=True)


def test_a_reader_of_another_package_is_found_by_entry_point(tmp_path):
    """Run in a process of its own, with a package on the path that declares the entry point."""
    package = tmp_path / "diary"
    package.mkdir()
    (package / "__init__.py").write_text(DIARY)
    about = tmp_path / "diary-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: diary\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[mnemokit.readers]\ndiary = diary:DiaryReader\ngone = diary:NoSuchReader\n"
    )
    log = tmp_path / "log.diary"
    log.write_text("DIARY\nmonday wash\nmonday cook\n")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from mnemokit.turns import read_turns, derive_passings\n"
        "turns = read_turns(sys.argv[2])\n"
        "print(turns['source'].unique().to_list(), derive_passings(turns).height)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(log)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "['diary'] 1\n", done.stderr
    assert "the reader 'gone' (diary:NoSuchReader) cannot be loaded" in done.stderr


DIARY = """
import polars as pl
from mnemokit.turns.builder import Builder, OpenSession


class DiaryReader:
    name = "diary"
    passings = "grouped"
    captures = "session"

    def sniff(self, head):
        return "it begins with DIARY" if head.text.startswith("DIARY") else None

    def read(self, path, options):
        builder = Builder(self.name, str(path), options)
        session = OpenSession(builder, session_id="diary")
        for step, line in enumerate(path.read_text().splitlines()[1:]):
            session.call(turn_id=str(step), step=step, parallel_group=step, executor=line.split()[1])
        session.close()
        yield builder.batch()
"""


def test_own_readers_have_names_policies_and_a_docstring():
    for name, reader in all_readers().items():
        assert reader.name == name == reader_named(name).name
        assert type(reader).__doc__


def test_a_partial_document_shows_what_is_there():
    text = json.dumps({"a": [1, {"b": "c"}, "d"], "e": {"f": None, "g": True}})
    for end in range(len(text) + 1):
        value = partial_json(text[:end])
        assert value is None or isinstance(value, dict)
    assert partial_json(text[:-1]) == json.loads(text)
    assert partial_json('{"a": "x\\') == {"a": None}
    assert partial_json('[{"a": 1}, {"b"') == [{"a": 1}, {}]
    assert partial_json("[" * 500) is not None


def test_the_head_of_a_large_file_is_enough(tmp_path):
    run = json.loads(TAU2.read_text())
    run["tasks"] = [{"filler": "x" * HEAD_BYTES}] * 3
    path = tmp_path / "large.json"
    path.write_text(json.dumps(run))
    assert not read_head(path).whole
    assert read_turns(path).equals(read_turns(TAU2))
    line = {"type": "user", "sessionId": "s", "uuid": "u", "parentUuid": None, "message": {"content": "x" * HEAD_BYTES}}
    path.write_text(json.dumps(line) + "\n")
    assert read_turns(path)["source"].to_list() == ["claude_code"]


def test_a_byte_order_mark_is_no_hindrance(file):
    path = file(b"\xef\xbb\xbf" + TAU2.read_bytes())
    assert read_turns(path).equals(read_turns(TAU2))
    path = file(b"\xef\xbb\xbf" + CLAUDE.read_bytes(), "log.jsonl")
    assert read_turns(path).equals(read_turns(CLAUDE))


def test_windows_line_ends_are_no_hindrance(file):
    path = file(CLAUDE.read_bytes().replace(b"\n", b"\r\n"), "log.jsonl")
    assert read_turns(path).equals(read_turns(CLAUDE))


def test_head_of_something_else_is_harmless():
    head = Head(Path("x"), b"\x89PNG\r\n\x1a\n\x00\xff", whole=True)
    assert head.lines == []
    assert head.items == []
    assert head.document == {}
    assert all(reader.sniff(head) is None for reader in all_readers().values())


def test_a_frame_read_in_small_batches_is_the_same():
    whole = read_turns(CLAUDE.parent)
    small = pl.concat([batch.turns for batch in read_batches(CLAUDE.parent, batch_rows=1)])
    assert small.sort("turn_id").equals(whole.sort("turn_id"))


# Readers of other packages --------------------------------------------------------------------------------------------


class Foreign:
    """A reader of another package that gives what it was made with."""

    name = "foreign"
    passings = "grouped"
    captures = "session"

    def __init__(self, *batches, sniffs="it says so"):
        self.batches = batches
        self.sniffs = sniffs

    def sniff(self, head):
        if isinstance(self.sniffs, Exception):
            raise self.sniffs
        return self.sniffs

    def read(self, path, options):
        yield from self.batches


def foreign_turns(**columns):
    given = {"source": ["foreign"] * 2, "session_id": ["s", "s"], "turn_id": ["0", "1"], "step": [0, 1]}
    given |= {"parallel_group": [0, 1], "executor": ["a", "b"]} | columns
    return pl.DataFrame({name: values for name, values in given.items() if values is not None})


NO_REJECTS = pl.DataFrame(schema=REJECTS_SCHEMA)


@pytest.fixture
def foreign(monkeypatch, tmp_path):
    """Registers a reader, and gives the file that it is to read."""

    def register(reader):
        monkeypatch.setattr("mnemokit.turns.reading.all_readers", lambda: {reader.name: reader, **all_readers()})
        monkeypatch.setattr("mnemokit.turns.reading.reader_named", lambda name: reader)
        path = tmp_path / "log.foreign"
        path.write_text("x\n")
        return path

    return register


def test_rows_of_a_foreign_reader_are_held_to_what_our_own_keep(foreign):
    odd = foreign_turns(source=["mine", None], session_outcome=["won", "success"], scope=["", ""])
    good = foreign_turns(session_id=["s", ""], ts=[datetime(2025, 1, 1, tzinfo=UTC), None])
    path = foreign(Foreign(TurnBatch(odd, NO_REJECTS, 1), TurnBatch(good, NO_REJECTS, 0)))
    first, second = read_batches(path, include_values=True)
    assert first.turns.select("source", "scope", "session_outcome").rows() == [("foreign", None, "success")]
    assert list(first.turns.columns) == [*TURNS_SCHEMA, "arg_values", "result_values"]
    assert first.rejects.select("source", "file", "place", "reason").rows() == [
        ("mine", str(path), "row 0", "session_outcome is not success, failure or null")
    ]
    assert second.rejects["place"].to_list() == ["row 3"]
    assert (first.records, second.records) == (3, 2)


def test_rejects_of_a_foreign_reader_get_what_they_lack(foreign):
    rejects = pl.DataFrame({"place": ["line 3", None], "reason": ["no verb", None]})
    (batch,) = read_batches(foreign(Foreign(TurnBatch(foreign_turns(), rejects, 0))))
    assert dict(batch.rejects.schema) == REJECTS_SCHEMA
    assert batch.rejects.select("source", "place", "reason").rows() == [
        ("foreign", "line 3", "no verb"),
        ("foreign", "unknown", "the reader does not say why"),
    ]
    assert (batch.rejects["file"] == batch.file).all()


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        (TurnBatch(foreign_turns(session_id=None), NO_REJECTS, 0), "column 'session_id' is missing"),
        (TurnBatch(foreign_turns(step=["0", "1"]), NO_REJECTS, 0), "column 'step' .* must be Int64"),
        (TurnBatch(foreign_turns(), NO_REJECTS, -1), "ignored is no count"),
        (TurnBatch(foreign_turns(), pl.DataFrame({"x": [1]}), 0), "rejects without the column 'reason'"),
        (TurnBatch([1], NO_REJECTS, 0), "turns are no Polars frame"),
        (foreign_turns(), "it is no TurnBatch"),
    ],
)
def test_a_batch_of_a_foreign_reader_that_cannot_be_one_is_refused_in_one_line(foreign, batch, why):
    path = foreign(Foreign(batch))
    with pytest.raises(CorruptLog, match=why) as caught:
        list(read_batches(path))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: the reader 'foreign' gave a batch that cannot be used: ")


def test_a_foreign_reader_that_cannot_tell_is_passed_over_with_a_warning(foreign):
    foreign(Foreign(sniffs=KeyError("x")))
    with pytest.warns(UserWarning, match=r"the reader 'foreign' failed to recognise a file \(KeyError: 'x'\)"):
        assert read_turns(CLAUDE)["source"].unique().to_list() == ["claude_code"]


@pytest.mark.parametrize("answer", [False, ""])
def test_a_foreign_reader_that_says_no_in_its_own_way_is_understood(foreign, answer):
    foreign(Foreign(sniffs=answer))
    assert read_turns(CLAUDE)["source"].unique().to_list() == ["claude_code"]


class Point:
    """An entry point that loads what it was made with, or fails."""

    value = "somewhere:Reader"

    def __init__(self, name, loads):
        self.name = name
        self.loads = loads

    def load(self):
        if isinstance(self.loads, Exception):
            raise self.loads
        return self.loads


@pytest.mark.parametrize(
    ("loads", "why"),
    [
        (ValueError("not today"), "ValueError: not today"),
        (RuntimeError("two\nlines"), "RuntimeError: two"),
        (object, "it has no name"),
        (Foreign, None),
        (type("Nameless", (Foreign,), {"name": ""}), "it has no name"),
        (type("Half", (Foreign,), {"passings": None}), "it has no passings"),
        (type("Deaf", (Foreign,), {"sniff": 3}), "it has no sniff"),
    ],
)
def test_a_reader_that_cannot_be_loaded_is_a_warning_that_names_it(monkeypatch, loads, why):
    monkeypatch.setattr("mnemokit.turns.readers.entry_points", lambda group: [Point("odd", loads)])
    if why is None:
        assert "foreign" in all_readers.__wrapped__()
        return
    with pytest.warns(UserWarning, match="odd") as caught:
        found = all_readers.__wrapped__()
    assert "tau2" in found
    assert [str(one.message) for one in caught] == [
        f"the reader 'odd' (somewhere:Reader) cannot be loaded and is left out: {why}"
    ]
