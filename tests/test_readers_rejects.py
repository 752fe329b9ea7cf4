"""Records that cannot be used: each is a reject with its place and reason, and the account always adds up."""

import json
import re
import zipfile
from pathlib import Path

import polars as pl
import pytest

from mnemokit.errors import CorruptLog
from mnemokit.turns import read_batches
from mnemokit.turns.frame import REJECTS_SCHEMA

DATA = Path(__file__).parent / "data"
TRACES = DATA / "traces"
LONG = "x" * 600
EVAL = TRACES / "inspect_eval" / "fruit.eval"


def read(path, source="auto"):
    batches = list(read_batches(path, source))
    turns = pl.concat([batch.turns for batch in batches])
    rejects = pl.concat([batch.rejects for batch in batches])
    assert dict(rejects.schema) == REJECTS_SCHEMA
    assert rejects["reason"].null_count() == 0
    assert (rejects["file"] == str(path)).all()
    return turns, rejects, sum(batch.ignored for batch in batches)


def places(rejects):
    return dict(rejects.select("place", "reason").iter_rows())


def written(tmp_path, value, name="log.json"):
    path = tmp_path / name
    if name.endswith(".jsonl"):
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in value))
    else:
        path.write_text(json.dumps(value))
    return path


def call(name="find", number=1, **more):
    return {"id": f"call_{number}", "name": name, "arguments": {}, "requestor": "assistant"} | more


def simulation(*messages, **more):
    return {"id": "s1", "task_id": "t", "messages": list(messages), "reward_info": {"reward": 1.0}} | more


def message(turn, *calls, **more):
    return {"role": "assistant", "turn_idx": turn, "timestamp": "2025-08-01T12:00:00", "tool_calls": list(calls)} | more


def tau2_run(*simulations):
    about = {"agent_info": {"llm": "m"}, "environment_info": {"domain_name": "shop"}}
    return {"info": about, "tasks": [], "simulations": list(simulations)}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (call(name=None), "name is missing"),
        (call(name=7.5), "name is a number, not text"),
        (call(name=LONG), "name is longer than 512 characters"),
        (call(name="\ud800"), "name holds a lone surrogate"),
        ("find", "a tool call that is no object"),
        (None, "a tool call that is no object"),
        (call(requestor=["u"]), "requestor is an array, not text"),
    ],
    ids=["no name", "number", "long", "surrogate", "text", "null", "requestor"],
)
def test_a_call_that_cannot_be_used_is_one_reject_and_the_rest_goes_on(tmp_path, bad, reason):
    path = written(tmp_path, tau2_run(simulation(message(0, call()), message(1, bad), message(2))))
    turns, rejects, ignored = read(path)
    assert turns["executor"].to_list() == ["find"]
    assert places(rejects) == {"simulations[0].messages[1].tool_calls[0]": reason}
    assert ignored == 1


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("turn_idx", "first", "turn_idx is text, not a whole number"),
        ("turn_idx", None, "turn_idx is null, not a whole number"),
        ("turn_idx", 10**400, r"turn_idx is 2^62 or beyond"),
        ("turn_idx", float("nan"), "turn_idx is a number, not a whole number"),
        ("timestamp", "yesterday", "timestamp is no ISO 8601 instant"),
        ("timestamp", 1754049600, "timestamp is a number, not text"),
        ("timestamp", "9999-12-31T23:59:59-23:59", "timestamp is no ISO 8601 instant"),
    ],
)
def test_a_message_that_cannot_be_placed_rejects_its_calls(tmp_path, field, value, reason):
    path = written(
        tmp_path, tau2_run(simulation(message(0, call(), call()), message(1, call(), call(), **{field: value})))
    )
    turns, rejects, ignored = read(path)
    assert (turns.height, ignored) == (2, 0)
    assert rejects["reason"].to_list() == [reason, reason]


def test_a_session_that_cannot_be_used_is_one_reject(tmp_path):
    good = simulation(message(0, call()))
    path = written(tmp_path, tau2_run(good, simulation(id=None), 7, simulation(id={"a": 1})))
    turns, rejects, ignored = read(path)
    assert (turns.height, ignored) == (1, 0)
    assert places(rejects) == {
        "simulations[1]": "id is missing",
        "simulations[2]": "a simulation that is no object",
        "simulations[3]": "id is an object, not text",
    }


def test_a_session_whose_calls_were_all_rejected_gets_no_row(tmp_path):
    turns, rejects, ignored = read(written(tmp_path, tau2_run(simulation(message(0, call(name=None))))))
    assert (turns.height, rejects.height, ignored) == (0, 1, 0)


def test_a_session_without_calls_keeps_one_row_that_stands_for_a_message(tmp_path):
    path = written(tmp_path, tau2_run(simulation(message(0), message(1)), simulation(id="s2")))
    turns, rejects, ignored = read(path)
    assert (rejects.height, ignored) == (0, 1)
    assert turns.select("session_id", "step", "executor", "session_outcome").rows() == [
        ("s1", 0, None, "success"),
        ("s2", 0, None, "success"),
    ]


def test_a_reward_that_is_no_number_is_no_outcome(tmp_path):
    rewards = [float("nan"), True, "1", None, 0.5, 1]
    sessions = [simulation(id=f"s{n}", reward_info={"reward": reward}) for n, reward in enumerate(rewards)]
    turns, _, _ = read(written(tmp_path, tau2_run(*sessions)))
    assert turns["session_outcome"].to_list() == [None, None, None, None, "failure", "success"]


def test_an_excerpt_shows_no_content(tmp_path):
    path = written(tmp_path, tau2_run(simulation(message(0, call(name=None, arguments={"user": "Ada Lovelace"})))))
    _, rejects, _ = read(path)
    assert "Ada" not in rejects["excerpt"].item()
    assert '"arguments"' in rejects["excerpt"].item()


LINE_FORMATS = {
    "claude_code": TRACES / "claude_code" / "tool_call_conversation.jsonl",
    "metnos": DATA / "metnos" / "turns.jsonl",
    "openhands": TRACES / "openhands" / "output.jsonl",
    "langsmith": TRACES / "langsmith" / "runs.jsonl",
    "otlp": TRACES / "otlp_genai" / "spans.jsonl",
    "openai_agents": TRACES / "openai_agents" / "trace.jsonl",
}
BROKEN_LINES = {
    '{"a": ': r"not JSON \(.*\) at character \d+ of the line",
    "7": "the line is a number, not an object|a line without|a run without|an item that is neither",
    b'{"a": "\xff"}': "not UTF-8 at byte 7 of the line",
    "[" * 100_000: "nested too deeply",
    '{"a": ' + "9" * 5000 + "}": "a number with too many digits",
}


@pytest.mark.parametrize("source", LINE_FORMATS)
def test_in_line_formats_a_bad_line_is_a_reject(tmp_path, source):
    good = LINE_FORMATS[source].read_bytes().splitlines()
    bad = [line.encode() if isinstance(line, str) else line for line in BROKEN_LINES]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join([*good[:2], *bad, b"", *good[2:]]) + b"\n")
    turns, rejects, ignored = read(path)
    plain_turns, plain_rejects, plain_ignored = read(LINE_FORMATS[source])
    assert plain_rejects.height == 0
    assert turns.equals(plain_turns)
    assert ignored == plain_ignored
    assert rejects["place"].str.extract(r"line (\d+)").cast(pl.Int64).to_list() == [3, 4, 5, 6, 7]
    for reason, expected in zip(rejects["reason"], BROKEN_LINES.values(), strict=True):
        assert re.search(expected, reason), reason


@pytest.mark.parametrize("source", LINE_FORMATS)
def test_a_truncated_last_line_is_a_reject(tmp_path, source):
    raw = LINE_FORMATS[source].read_bytes().rstrip()
    path = tmp_path / "log.jsonl"
    path.write_bytes(raw[:-20])
    _, rejects, _ = read(path)
    assert rejects.height == 1


def test_a_line_of_50_mb_is_read_or_rejected_in_bounded_memory(tmp_path, monkeypatch):
    line = json.dumps({"sessionId": "s", "uuid": "u", "parentUuid": None, "type": "user", "note": "x" * 50_000_000})
    path = written(tmp_path, [line, line], "log.jsonl")
    turns, rejects, ignored = read(path)
    assert (turns.height, rejects.height, ignored) == (1, 0, 1)
    monkeypatch.setattr("mnemokit.turns.documents.MAX_LINE_BYTES", 1_000_000)
    turns, rejects, ignored = read(path)
    assert (turns.height, ignored) == (0, 0)
    assert places(rejects) == {f"line {n}": "a line longer than 1000000 bytes" for n in (1, 2)}


def test_the_person_of_a_reject_is_kept_so_that_it_can_be_erased(tmp_path):
    rows = [{"session_id": "s", "step": "x", "executor": "a", "user_id": "u7"}]
    _, rejects, _ = read(written(tmp_path, rows, "log.jsonl"))
    assert rejects["user_id"].to_list() == ["u7"]


# Archives -----------------------------------------------------------------------------------------------------------


def archive(tmp_path, members, compression=zipfile.ZIP_DEFLATED):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content if isinstance(content, (str, bytes)) else json.dumps(content))
    return path


HEADER = {"version": 2, "status": "success", "eval": {"task": "fruit", "model": "m", "run_id": "r"}}
SAMPLE = {
    "id": "pear",
    "epoch": 1,
    "uuid": "u1",
    "events": [{"event": "tool", "id": "c1", "function": "look_up", "timestamp": "2025-08-01T12:00:00+00:00"}],
}


def test_a_deflated_archive_is_read_too(tmp_path):
    turns, _, _ = read(archive(tmp_path, {"header.json": HEADER, "samples/pear_epoch_1.json": SAMPLE}))
    assert turns.select("session_id", "executor", "scope").rows() == [("u1", "look_up", "fruit")]


def test_an_unfinished_archive_has_its_header_in_the_journal(tmp_path):
    turns, _, _ = read(archive(tmp_path, {"_journal/start.json": HEADER, "samples/pear_epoch_1.json": SAMPLE}))
    assert turns.height == 1


def test_a_zip_bomb_is_a_reject(tmp_path):
    bomb = b'{"id": "' + b"0" * 100_000_000
    path = archive(tmp_path, {"header.json": HEADER, "samples/a.json": bomb, "samples/pear_epoch_1.json": SAMPLE})
    assert path.stat().st_size < 200_000
    turns, rejects, ignored = read(path)
    assert (turns.height, ignored) == (1, 0)
    assert places(rejects) == {"samples/a.json": "it unpacks to more than 300 times its size"}


def test_a_sample_larger_than_the_limit_is_a_reject(tmp_path, monkeypatch):
    monkeypatch.setattr("mnemokit.turns.archives.MAX_MEMBER_BYTES", 1_000)
    path = archive(tmp_path, {"header.json": HEADER, "samples/a.json": "x" * 2_000}, zipfile.ZIP_STORED)
    monkeypatch.setattr("mnemokit.turns.archives.unpack.__kwdefaults__", {"limit": 1_000})
    _, rejects, _ = read(path)
    assert places(rejects) == {"samples/a.json": "it unpacks to more than 1000 bytes"}


def test_a_header_that_lies_about_its_size_cannot_fill_the_memory(tmp_path):
    """The sizes in the archive's directory are set to 100 bytes; far more would come out."""
    path = archive(tmp_path, {"header.json": HEADER, "samples/a.json": b"0" * 50_000_000})
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\x01\x02", raw.index(b"PK\x01\x02") + 4)
    raw[at + 24 : at + 28] = (100).to_bytes(4, "little")
    path.write_bytes(raw)
    _, rejects, _ = read(path)
    assert rejects["place"].to_list() == ["samples/a.json"]
    assert "cannot be unpacked" in rejects["reason"].item()


def test_a_broken_sample_is_a_reject_and_the_rest_goes_on(tmp_path):
    members = {"header.json": HEADER, "samples/a.json": '{"id": ', "samples/b.json": "[1]", "samples/c.json": SAMPLE}
    turns, rejects, ignored = read(archive(tmp_path, members))
    assert (turns.height, ignored) == (1, 0)
    found = places(rejects)
    assert "the JSON is cut off" in found["samples/a.json"]
    assert found["samples/b.json"] == "the sample is an array, not an object"


@pytest.mark.parametrize("cut", [50, 500, 3000, 9000])
def test_a_truncated_archive_is_refused(tmp_path, cut):
    path = tmp_path / "log.eval"
    path.write_bytes(EVAL.read_bytes()[:cut])
    with pytest.raises(CorruptLog, match="the archive is broken"):
        read(path)


def test_a_damaged_sample_of_a_zstd_archive_is_a_reject(tmp_path):
    raw = bytearray(EVAL.read_bytes())
    with zipfile.ZipFile(EVAL) as file:
        info = file.getinfo("samples/pear_epoch_1.json")
    middle = info.header_offset + info.compress_size // 2
    raw[middle : middle + 40] = b"\x00" * 40
    path = tmp_path / "log.eval"
    path.write_bytes(raw)
    turns, rejects, _ = read(path)
    assert rejects["place"].to_list() == ["samples/pear_epoch_1.json"]
    assert "cannot be unpacked" in rejects["reason"].item()
    assert turns["question"].to_list() == ["quince"]


def test_a_zip_of_something_else_is_no_inspect_archive(tmp_path):
    with pytest.raises(CorruptLog, match=r"not an Inspect archive \(no header.json\)"):
        read(archive(tmp_path, {"word/document.xml": "<w/>"}))
