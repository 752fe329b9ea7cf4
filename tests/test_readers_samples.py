"""Every sample of every format: what is in it, counted independently from the raw file."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from mnemokit.turns import derive_passings, read_batches, read_turns
from mnemokit.turns.derive import default_policies
from mnemokit.turns.frame import TURNS_SCHEMA
from tests.oracles import turns as oracle

DATA = Path(__file__).parent / "data"
RAW = DATA / "raw"
TRACES = DATA / "traces"


def count(path, source="auto"):
    """Sessions, calls, failed calls and records, as the reader gives them."""
    batches = list(read_batches(path, source))
    turns = pl.concat([batch.turns for batch in batches])
    calls = turns.filter(pl.col("executor").is_not_null())
    return oracle.Count(
        sessions=turns["session_id"].n_unique(),
        calls=calls.height,
        failed=calls.filter(ok=False).height,
        records=sum(batch.records for batch in batches),
    )


def names(folder, pattern="*"):
    found = sorted(path for path in folder.glob(pattern) if not path.name.startswith("LICENSE"))
    assert found
    return pytest.mark.parametrize("path", found, ids=[path.name for path in found])


@names(RAW / "tau2", "*.json")
def test_tau2(path):
    assert count(path) == oracle.tau2(path)


@names(RAW / "tau2", "*.json")
def test_tau2_edges_are_those_of_a_plain_count(path):
    turns = read_turns(path)
    for policy, expected in zip(("grouped", "successive"), oracle.tau2_edges(path), strict=True):
        passings = derive_passings(turns, policy)
        assert Counter(passings.select("src_executor", "dst_executor").iter_rows()) == expected


def test_tau2_excerpts_have_parallel_calls_errors_and_calls_by_the_user():
    turns = read_turns(RAW / "tau2")
    assert turns.filter(pl.col("step") != pl.col("parallel_group")).height > 0
    assert turns.filter(ok=False).height > 0
    assert set(turns["requestor"]) == {"assistant", "user"}
    assert turns["scope"].unique().sort().to_list() == ["airline", "telecom"]
    assert json.loads(turns["meta"][0])["mode"] == "default"


@names(RAW / "agb" / "reports", "*/*/report.json")
def test_agb(path):
    assert count(path) == oracle.agb(path)


def test_agb_session_is_agent_and_run_and_the_folder_given_does_not_matter():
    whole = read_turns(RAW / "agb")
    assert whole["session_id"].unique().sort().to_list() == [
        "Auto-GPT/folder10_08-01-02-43",
        "beebot/20230819T081151_full_run",
        "beebot/folder26_08-04-03-24",
    ]
    assert whole["scope"].unique().sort().to_list() == ["Auto-GPT", "beebot"]
    single = read_turns(RAW / "agb" / "reports" / "beebot" / "folder26_08-04-03-24" / "report.json")
    assert single.equals(whole.filter(session_id="beebot/folder26_08-04-03-24"))


def test_agb_reads_both_forms_of_the_time():
    turns = read_turns(RAW / "agb").group_by("session_id").agg(pl.col("ts").first())
    times = {session: ts.isoformat() for session, ts in turns.iter_rows()}
    assert times["beebot/20230819T081151_full_run"] == "2023-08-19T08:53:57+00:00"
    assert times["Auto-GPT/folder10_08-01-02-43"] == "2023-08-01T02:56:00+00:00"


def test_agb_makes_no_passings_and_a_capture_per_attempted_test():
    assert default_policies("agb") == ("grouped", "attempt")
    assert derive_passings(read_turns(RAW / "agb")).height == 0


def test_reflexion_solved_tasks_are_carried_forward_not_run_again():
    folder = RAW / "reflexion" / "alfworld_runs" / "reflexion_run_logs"
    attempts, successes, _, entries = oracle.reflexion(folder)
    batches = list(read_batches(folder))
    turns = pl.concat([batch.turns for batch in batches])
    assert (turns.height, turns.filter(session_outcome="success").height) == (attempts, successes)
    assert sum(batch.records for batch in batches) == entries
    assert turns["session_id"].n_unique() == attempts
    assert turns["ts"].null_count() == attempts


def test_generative_agents_file_without_steps_keeps_one_row():
    path = RAW / "generative_agents" / "Klaus_Mueller.nodes.json"
    nodes = json.loads(path.read_text())
    assert count(path) == oracle.Count(sessions=1, calls=0, failed=0, records=len(nodes))


def test_metnos():
    path = DATA / "metnos" / "turns.jsonl"
    assert count(path) == oracle.metnos(path) == oracle.Count(sessions=60, calls=163, failed=18, records=165)


@names(TRACES / "claude_code", "*.jsonl")
def test_claude_code(path):
    assert count(path) == oracle.claude_code(path)


def test_claude_code_side_chain_of_another_file_belongs_to_its_session():
    turns = read_turns(TRACES / "claude_code").filter(session_id="test-session-004", executor=pl.col("executor"))
    edges = derive_passings(turns).select("src_executor", "dst_executor").rows()
    assert edges == [("Task", "Bash")]


@names(TRACES / "atif", "*.json")
def test_atif(path):
    assert count(path) == oracle.atif(path)


def test_openhands():
    path = TRACES / "openhands" / "output.jsonl"
    assert count(path) == oracle.openhands(path)
    assert count(path).calls == 105


@names(TRACES / "swe_agent", "*.traj*")
def test_swe_agent(path):
    assert count(path) == oracle.swe_agent(path)


def test_inspect_log_without_events():
    path = TRACES / "inspect" / "log_tool_call_error.json"
    assert count(path) == oracle.inspect(json.loads(path.read_text()))
    assert count(path).failed == 11


@pytest.mark.parametrize("name", ["fruit.json", "fruit.eval"])
def test_inspect_document_and_archive(name):
    log = json.loads((TRACES / "inspect_eval" / "fruit.json").read_text())
    expected = oracle.inspect(log)
    assert count(TRACES / "inspect_eval" / name) == expected
    assert (expected.sessions, expected.calls, expected.failed) == (2, 3, 1)
    turns = read_turns(TRACES / "inspect_eval" / name)
    outcomes = dict(turns.select("question", "session_outcome").iter_rows())
    assert outcomes == {"pear": "success", "quince": "failure"}


def test_inspect_document_and_archive_give_the_same_turns():
    document, archive = (read_turns(TRACES / "inspect_eval" / name) for name in ("fruit.json", "fruit.eval"))
    assert document.equals(archive)


@names(TRACES / "langfuse", "*.json")
def test_langfuse(path):
    assert count(path) == oracle.langfuse(path)


def test_langfuse_reads_tools_of_older_exports():
    tools = read_turns(TRACES / "langfuse")["executor"].drop_nulls().sort().to_list()
    assert tools == ["Web-Search", "duckduckgo_search", "getWeather", "get_weather", "say_hello", "search.wikipedia"]


@pytest.mark.parametrize("name", ["trace.jsonl", "body.json"])
def test_openai_agents(name):
    items = oracle.lines(TRACES / "openai_agents" / "trace.jsonl")
    assert count(TRACES / "openai_agents" / name) == oracle.openai_agents(items)
    assert oracle.openai_agents(items).failed == 1


def test_openai_agents_hand_offs_are_passings_between_agents():
    turns = read_turns(TRACES / "openai_agents" / "trace.jsonl")
    edges = derive_passings(turns, "handoffs").select("src_executor", "dst_executor").rows()
    assert edges == [("Desk", "Clerk")]


def test_langsmith():
    path = TRACES / "langsmith" / "runs.jsonl"
    assert count(path) == oracle.langsmith(path)
    assert oracle.langsmith(path).failed == 1


def test_otlp_genai():
    path = TRACES / "otlp_genai" / "spans.jsonl"
    expected = oracle.otlp(path, "gen_ai.conversation.id", ("gen_ai.operation.name", "execute_tool"))
    assert count(path) == expected
    assert (expected.sessions, expected.calls, expected.failed) == (2, 4, 1)


def test_otlp_and_the_sdks_own_json_give_the_same_turns():
    otlp, sdk = (read_turns(TRACES / "otlp_genai" / name) for name in ("spans.jsonl", "sdk.jsonl"))
    calls = [frame.filter(pl.col("executor").is_not_null()) for frame in (otlp, sdk)]
    assert calls[0].equals(calls[1])


def test_openinference():
    path = TRACES / "openinference" / "spans.jsonl"
    expected = oracle.otlp(path, "session.id", ("openinference.span.kind", "TOOL"))
    assert count(path) == expected
    assert (expected.sessions, expected.calls, expected.failed) == (2, 3, 1)
    assert read_turns(path)["user_id"].unique().sort().to_list() == ["user-7", "user-8"]


@pytest.mark.parametrize(
    "path",
    [
        TRACES / "langsmith" / "runs.jsonl",
        TRACES / "openinference" / "spans.jsonl",
        TRACES / "otlp_genai" / "spans.jsonl",
        TRACES / "openai_agents" / "trace.jsonl",
        TRACES / "inspect_eval" / "fruit.eval",
    ],
    ids=lambda path: path.parent.name,
)
def test_calls_of_one_answer_are_parallel(path):
    """Each of these runs begins with two calls side by side, then makes a call that fails."""
    turns = read_turns(path)
    first = turns.filter(pl.col("parallel_group") == turns.filter(pl.col("step") > 0)["parallel_group"].min())
    assert first.height == 2
    edges = derive_passings(turns).filter(pl.col("src_executor").is_in(first["executor"].to_list()))
    assert edges["dst_executor"].n_unique() == 1
    assert edges.height == 2


SAMPLES = [
    *((RAW / name, name) for name in ("tau2", "agb", "reflexion", "generative_agents")),
    *((TRACES / name, name) for name in ("langfuse", "claude_code", "atif", "openhands", "swe_agent", "inspect")),
    (DATA / "metnos" / "turns.jsonl", "metnos"),
    (TRACES / "inspect_eval" / "fruit.eval", "inspect"),
    (TRACES / "openai_agents" / "trace.jsonl", "openai_agents"),
    (TRACES / "langsmith" / "runs.jsonl", "langsmith"),
    (TRACES / "otlp_genai" / "spans.jsonl", "otlp"),
    (TRACES / "openinference" / "spans.jsonl", "otlp"),
]


@pytest.mark.parametrize(("path", "reader"), SAMPLES, ids=[f"{path.name}" for path, _ in SAMPLES])
def test_auto_takes_the_right_reader_and_says_why(path, reader):
    batches = list(read_batches(path))
    assert {batch.reader for batch in batches} == {reader}
    assert all(batch.why for batch in batches)
    assert not any(batch.rejects.height for batch in batches)
    for batch in batches:
        assert dict(batch.turns.schema) == TURNS_SCHEMA
        assert set(batch.turns["source"]) <= {reader}


@pytest.mark.parametrize(("path", "reader"), SAMPLES, ids=[f"{path.name}" for path, _ in SAMPLES])
def test_reading_twice_gives_the_same(path, reader):
    assert read_turns(path).equals(read_turns(path, reader))


@pytest.mark.parametrize(("path", "reader"), SAMPLES, ids=[f"{path.name}" for path, _ in SAMPLES])
def test_no_text_of_a_message_is_in_the_frame(path, reader):
    """Arguments and results come only when they are asked for."""
    del reader
    plain = read_turns(path)
    assert not {"arguments", "result", "arg_values"} & set(plain.columns)
    with_text = read_turns(path, include_text=True)
    assert {"arguments", "result"} < set(with_text.columns)
    assert with_text.height == plain.height
    with_values = read_turns(path, include_values=True)
    assert with_values.schema["arg_values"] == pl.List(pl.UInt64)
    assert with_values.select(plain.columns).equals(plain)


def test_label_replaces_the_source_and_nothing_else():
    path = TRACES / "openhands" / "output.jsonl"
    assert set(read_turns(path, label="mine")["source"]) == {"mine"}
    assert read_turns(path, label="mine").drop("source").equals(read_turns(path).drop("source"))


def test_times_without_zone_are_utc_or_the_zone_given():
    path = RAW / "tau2" / "gpt-4.1_airline_default_gpt-4.1_1trials.json"
    shift = (read_turns(path)["ts"] - read_turns(path, tz="Europe/Rome")["ts"]).unique().to_list()
    assert [delta.total_seconds() for delta in shift] == [7200]
