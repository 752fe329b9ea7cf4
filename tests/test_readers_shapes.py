"""The shapes in which a format comes, and the rules of its reader, on small documents."""

import json
from pathlib import Path

import polars as pl
import pytest

from mnemokit.turns import derive_captures, derive_passings, read_batches, read_turns
from mnemokit.turns.derive import default_policies
from mnemokit.turns.reading import choose

DATA = Path(__file__).parent / "data"
TRACES = DATA / "traces"


def written(tmp_path, value, name="log.json"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(line) + "\n" for line in value))
    else:
        path.write_text(json.dumps(value))
    return path


def edges(turns, policy="grouped"):
    return derive_passings(turns, policy).select("src_executor", "dst_executor").rows()


# tau-bench, first version --------------------------------------------------------------------------------------------


def tool_call(name, call_id, arguments="{}"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(call_id, content):
    return {"role": "tool", "tool_call_id": call_id, "name": "x", "content": content}


def trial(task=3, number=0, reward=1.0):
    return {
        "task_id": task,
        "trial": number,
        "reward": reward,
        "info": {"task": {"user_id": "mia_li_3668"}},
        "traj": [
            {"role": "system", "content": "policy"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [tool_call("get_user", "c1"), tool_call("get_fare", "c2")],
            },
            answer("c1", "Error: user not found"),
            answer("c2", '{"fare": 10}'),
            {"role": "assistant", "content": None, "tool_calls": [tool_call("book", "c1")]},
            answer("c1", "done"),
            {"role": "user", "content": "thanks"},
        ],
    }


def test_tau_bench(tmp_path):
    turns = read_turns(written(tmp_path, [trial(), trial(number=1, reward=0.0)]))
    assert set(turns["source"]) == {"tau_bench"}
    first = turns.head(3)
    assert first.select("executor", "step", "parallel_group", "ok", "requestor").rows() == [
        ("get_user", 1, 1, False, "assistant"),
        ("get_fare", 2, 1, True, "assistant"),
        ("book", 5, 5, True, "assistant"),
    ]
    assert first.select("question", "user_id", "session_outcome", "scope", "executor_version").unique().rows() == [
        ("3", "mia_li_3668", "success", None, None)
    ]
    assert turns["session_outcome"].unique().sort().to_list() == ["failure", "success"]
    assert turns["ts"].null_count() == turns.height
    assert edges(first) == [("get_user", "book"), ("get_fare", "book")]


def test_tau_bench_call_ids_may_recur_in_a_session(tmp_path):
    """The second call c1 takes the answer after it, not the first one's."""
    turns = read_turns(written(tmp_path, [trial()]))
    assert turns.filter(executor="book")["ok"].item() is True


def test_tau_bench_the_same_trial_in_two_files_is_one_and_another_is_another(tmp_path):
    same = trial()
    other = trial(reward=0.0)
    other["traj"] = other["traj"][:4]
    for name, value in (("a.json", [same]), ("b.json", [same]), ("c.json", [other])):
        written(tmp_path, value, name)
    turns = read_turns(tmp_path)
    assert turns["session_id"].n_unique() == 2


# Langfuse -----------------------------------------------------------------------------------------------------------


def observation(number, name, kind="TOOL", **more):
    start = f"2025-08-01T12:00:{number:02d}.000Z"
    end = f"2025-08-01T12:00:{number + 1:02d}.000Z"
    about = {"id": f"o{number}", "traceId": "t1", "type": kind, "name": name, "startTime": start, "endTime": end}
    return about | {"parentObservationId": "p", "level": "DEFAULT", "input": {}, "output": {}} | more


def test_langfuse_trace_with_observations_inside_lists_and_lines_give_the_same_steps(tmp_path):
    observations = [
        observation(5, "b", level="ERROR"),
        observation(1, "a"),
        observation(9, "c", parentObservationId=None),
    ]
    trace = {"id": "t1", "name": "shop", "sessionId": "s1", "userId": "u1", "version": "7", "projectId": "p"}
    inside = read_turns(written(tmp_path, trace | {"observations": observations}, "inside.json"))
    beside = read_turns(written(tmp_path, {"trace": trace, "observations": observations}, "beside.json"))
    several = read_turns(written(tmp_path, [trace | {"observations": observations}], "list.json"))
    assert inside.equals(beside)
    assert inside.equals(several)
    assert inside.select("executor", "ok", "executor_version", "user_id", "scope").rows() == [
        ("a", True, "7", "u1", "shop"),
        ("b", False, "7", "u1", "shop"),
        ("c", True, "7", "u1", "shop"),
    ]
    lines = read_turns(written(tmp_path, observations, "lines.jsonl"))
    assert lines.select("turn_id", "step", "executor", "ok").equals(inside.select("turn_id", "step", "executor", "ok"))
    assert set(lines["session_id"]) == {"t1"}


def test_langfuse_tools_of_one_parent_that_overlap_are_parallel(tmp_path):
    late = {"endTime": "2025-08-01T12:00:30.000Z"}
    observations = [observation(1, "a", **late), observation(3, "b"), observation(31, "c")]
    turns = read_turns(written(tmp_path, {"trace": {"id": "t1", "projectId": "p"}, "observations": observations}))
    assert edges(turns) == [("a", "c"), ("b", "c")]
    apart = [observation(1, "a", **late), observation(3, "b", parentObservationId="q"), observation(31, "c")]
    turns = read_turns(written(tmp_path, {"trace": {"id": "t1", "projectId": "p"}, "observations": apart}))
    assert edges(turns) == [("a", "b"), ("b", "c")]


def test_langfuse_a_span_whose_name_a_model_called_is_a_tool(tmp_path):
    output = {"additional_kwargs": {"tool_calls": [{"function": {"name": "Web-Search"}}]}}
    observations = [
        observation(1, "model", "GENERATION", output=json.dumps(output)),
        observation(2, "Web-Search", "SPAN"),
        observation(4, "format", "SPAN"),
    ]
    turns = read_turns(written(tmp_path, {"trace": {"id": "t1", "projectId": "p"}, "observations": observations}))
    assert turns["executor"].to_list() == ["Web-Search"]


# OpenTelemetry ----------------------------------------------------------------


def span(number, name, texts, **more):
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in texts.items()]
    nanos = 1_754_049_600_000_000_000 + number * 1_000_000_000
    about = {"traceId": "aa", "spanId": f"b{number}", "name": name, "attributes": listed}
    about["startTimeUnixNano"] = str(nanos)
    return about | {"endTimeUnixNano": str(nanos + 500), "parentSpanId": "bb", "status": {}} | more


def export(*spans, **resource):
    attributes = [{"key": key.replace("_", "."), "value": {"stringValue": value}} for key, value in resource.items()]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": list(spans)}]}]}


TOOL = {"gen_ai.operation.name": "execute_tool"}


def test_otlp_what_another_span_of_the_trace_says_holds_for_its_tools(tmp_path):
    agent = {"gen_ai.conversation.id": "c1", "gen_ai.agent.name": "desk", "gen_ai.agent.version": "3", "user.id": "u1"}
    lines = [
        export(span(1, "execute_tool find", TOOL | {"gen_ai.tool.name": "find"}), service_name="shop"),
        export(span(2, "execute_tool buy", TOOL | {"error.type": "timeout"}), service_name="shop"),
        export(span(0, "invoke_agent desk", agent), service_name="shop"),
    ]
    path = written(tmp_path, lines, "spans.jsonl")
    turns = read_turns(path)
    assert turns.select("session_id", "executor", "executor_version", "requestor", "ok", "user_id", "scope").rows() == [
        ("c1", "find", "3", "desk", True, "u1", "shop"),
        ("c1", "buy", "3", "desk", False, "u1", "shop"),
    ]
    document = {"resourceSpans": [line["resourceSpans"][0] for line in lines]}
    assert read_turns(written(tmp_path, document, "spans.json")).equals(turns)
    small = pl.concat([batch.turns for batch in read_batches(path, batch_rows=1)])
    assert small.equals(turns)


def test_otlp_two_conversations_in_one_trace_are_not_guessed(tmp_path):
    spans = [span(n, "invoke_agent", {"gen_ai.conversation.id": f"c{n}"}) for n in (0, 1)]
    turns = read_turns(written(tmp_path, export(*spans, span(2, "execute_tool find", TOOL))))
    assert turns.filter(executor="find")["session_id"].item() == "aa"


def test_otlp_a_service_version_stands_in_for_an_agents(tmp_path):
    turns = read_turns(written(tmp_path, export(span(1, "execute_tool find", TOOL), service_version="1.2")))
    assert turns["executor_version"].item() == "1.2"
    assert turns["scope"].item() is None


def test_otlp_values_of_every_kind_are_read(tmp_path):
    attributes = [
        {"key": "openinference.span.kind", "value": {"stringValue": "tool"}},
        {"key": "output.value", "value": {"kvlistValue": {"values": [{"key": "id", "value": {"intValue": "77"}}]}}},
        {"key": "input.value", "value": {"arrayValue": {"values": [{"doubleValue": 2.5}, {"boolValue": True}]}}},
    ]
    turns = read_turns(written(tmp_path, export(span(1, "find", {}, attributes=attributes))), include_text=True)
    assert turns.select("executor", "arguments", "result").rows() == [("find", "[2.5, true]", '{"id": 77}')]


def test_otlp_metrics_and_logs_beside_spans_are_ignored(tmp_path):
    lines = [export(span(1, "execute_tool find", TOOL)), {"resourceMetrics": []}, {"resourceLogs": []}, {"other": 1}]
    batches = list(read_batches(written(tmp_path, lines, "spans.jsonl")))
    assert sum(batch.turns.height for batch in batches) == 1
    assert sum(batch.ignored for batch in batches) == 2
    assert pl.concat([batch.rejects for batch in batches])["reason"].to_list() == ["a line without resourceSpans"]


def test_otlp_time_is_kept_to_the_microsecond(tmp_path):
    tool = span(0, "execute_tool find", TOOL, startTimeUnixNano="1754049600123456789")
    turns = read_turns(written(tmp_path, export(tool)))
    assert turns["ts"].dt.epoch("us").item() == turns["step"].item() == 1754049600123456


# LangSmith ----------------------------------------------------------------------------------------------------------


def run(number, kind="tool", **more):
    about = {"id": f"r{number}", "name": f"tool{number}", "run_type": kind, "trace_id": "t1", "parent_run_id": "p"}
    times = {"start_time": f"2025-08-01T12:00:0{number}", "end_time": f"2025-08-01T12:00:0{number}.5"}
    return about | times | {"session_name": "shop", "extra": {"metadata": {}}} | more


def test_langsmith_lists_bodies_and_nested_runs_give_the_same_steps(tmp_path):
    parent = run(0, "chain", parent_run_id=None)
    children = [run(1), run(2, error="boom")]
    flat = read_turns(written(tmp_path, [parent, *children], "list.json"))
    assert flat.select("executor", "ok", "scope", "session_id").rows() == [
        ("tool1", True, "shop", "t1"),
        ("tool2", False, "shop", "t1"),
    ]
    for name, value in (
        ("runs.json", {"runs": [parent, *children]}),
        ("body.json", {"post": [parent, *children], "patch": []}),
        ("nested.json", parent | {"child_runs": children}),
        ("lines.jsonl", [parent, *children]),
    ):
        assert read_turns(written(tmp_path, value, name)).equals(flat), name


def test_langsmith_a_missing_start_is_read_from_the_dotted_order(tmp_path):
    dotted = "20250801T120000000000Zt1.20250801T120001000001Zr1"
    turns = read_turns(written(tmp_path, [run(1, start_time=None, dotted_order=dotted)]))
    assert turns["ts"].dt.strftime("%H:%M:%S.%6f").item() == "12:00:01.000001"


def test_langsmith_an_unfinished_run_is_neither_good_nor_bad(tmp_path):
    assert read_turns(written(tmp_path, [run(1, end_time=None)]))["ok"].to_list() == [None]


# SWE-agent ----------------------------------------------------------------------------------------------------------


def test_swe_agent_executor_is_the_first_word_of_the_action(tmp_path):
    steps = [{"action": "open  x.py\n"}, {"action": ""}, {"action": "edit 1:2\nfoo"}, {"action": None}]
    value = {"environment": "swe_main", "trajectory": steps, "history": [], "info": {"exit_status": "submitted"}}
    (batch,) = read_batches(written(tmp_path, value, "marshmallow__1867.traj"))
    assert batch.turns.select("executor", "step").rows() == [("open", 0), ("edit", 2)]
    assert batch.ignored == 2
    row = batch.turns.row(0, named=True)
    assert (row["question"], row["scope"], row["session_outcome"]) == ("marshmallow__1867", "swe_main", None)
    assert json.loads(row["meta"]) == {"exit_status": "submitted"}


def test_swe_agent_session_is_the_name_and_what_is_in_the_file(tmp_path):
    value = {"environment": "e", "trajectory": [{"action": "ls"}], "info": {}}
    first = read_turns(written(tmp_path, value, "a/x.traj"))
    again = read_turns(written(tmp_path, value, "b/x.traj"))
    other = read_turns(written(tmp_path, value | {"info": {"exit_status": "x"}}, "c/x.traj"))
    assert first.equals(again)
    assert first["session_id"].item() != other["session_id"].item()


def test_mini_swe_agent_document_with_blocks_or_tool_calls(tmp_path):
    blocks = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "Look.\n```bash\nls -la\n```"},
        {"role": "user", "content": "<returncode>2</returncode>"},
        {"role": "assistant", "content": "I give up."},
    ]
    about = {"trajectory_format": "mini-swe-agent-1", "info": {"mini_version": "1.9", "exit_status": "x"}}
    turns = read_turns(written(tmp_path, about | {"messages": blocks}, "a.traj.json"))
    assert turns.select("executor", "ok", "executor_version", "question").rows() == [("ls", False, "1.9", "a")]
    calls = [
        *blocks[:2],
        {"role": "assistant", "content": "", "tool_calls": [tool_call("bash", "c1")]},
        answer("c1", "<returncode>0</returncode>"),
    ]
    turns = read_turns(written(tmp_path, about | {"messages": calls}, "b.traj.json"))
    assert turns.select("executor", "ok").rows() == [("bash", True)]


# OpenHands ----------------------------------------------------------------------------------------------------------


def event(number, **more):
    return {"id": number, "timestamp": f"2025-08-01T12:00:{number:02d}", "source": "agent"} | more


def called(name, response):
    return {"tool_call_metadata": {"function_name": name, "model_response": {"id": response}}}


def test_openhands_calls_of_one_response_are_parallel_and_errors_are_failures(tmp_path):
    history = [
        event(0, action="message", source="user"),
        event(1, action="run", **called("execute_bash", "m1")),
        event(2, action="read", **called("editor", "m1")),
        event(3, observation="run", cause=1, extras={"metadata": {"exit_code": 2}}),
        event(4, observation="error", cause=2),
        event(5, action="run", args={"command": "ls"}),
        event(6, observation="run", cause=5, extras={"metadata": {"exit_code": 0}}),
        event(7, action="finish", **called("finish", "m2")),
    ]
    instance = {
        "instance_id": "x-1",
        "history": history,
        "report": {"resolved": True},
        "metadata": {"agent_class": "A"},
    }
    turns = read_turns(written(tmp_path, [instance], "output.jsonl"))
    assert turns.select("executor", "ok", "parallel_group", "session_outcome").rows() == [
        ("execute_bash", False, 1, "success"),
        ("editor", False, 1, "success"),
        ("run", True, 5, "success"),
        ("finish", None, 7, "success"),
    ]


def test_openhands_the_same_instance_in_two_runs_is_two_sessions(tmp_path):
    first = {"instance_id": "x-1", "history": [event(1, action="run", **called("bash", "m"))]}
    second = {"instance_id": "x-1", "history": [event(9, action="run", **called("bash", "m"))]}
    assert read_turns(written(tmp_path, [first, second], "output.jsonl"))["session_id"].n_unique() == 2


# Claude Code --------------------------------------------------------------------------------------------------------


def line(number, content, kind="assistant", message="m1", **more):
    about = {"sessionId": "s", "uuid": f"u{number}", "parentUuid": None, "type": kind, "version": "2.0.76"}
    when = {"timestamp": "2026-01-31T13:00:00.000Z", "message": {"id": message, "content": content}}
    return about | when | more


def use(name, call_id):
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def result(call_id, **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": "x"} | more


def test_claude_code_blocks_of_one_message_over_several_lines_are_parallel_and_keep_the_files_order(tmp_path):
    lines = [
        {"type": "summary", "summary": "x", "leafUuid": "u9"},
        line(1, [use("Read", "c1")]),
        line(2, [use("Grep", "c2")]),
        line(3, [result("c1"), result("c2", is_error=True)], "user", "m2"),
        line(4, [use("Edit", "c3")], message="m3"),
        line(5, "plain text", "user"),
    ]
    (batch,) = read_batches(written(tmp_path, lines, "s.jsonl"))
    assert batch.turns.select("executor", "ok", "executor_version").rows() == [
        ("Read", True, "2.0.76"),
        ("Grep", False, "2.0.76"),
        ("Edit", None, "2.0.76"),
    ]
    assert batch.turns["step"].diff().drop_nulls().to_list() == [1, 1]
    assert batch.ignored == 3
    assert edges(batch.turns) == [("Read", "Edit"), ("Grep", "Edit")]


def test_claude_code_a_grown_file_keeps_the_keys_of_what_was_there(tmp_path):
    lines = [line(number, [use("Read", f"c{number}")], message=f"m{number}") for number in range(5)]
    before = read_turns(written(tmp_path, lines[:3], "s.jsonl"))
    after = read_turns(written(tmp_path, lines, "s.jsonl"))
    assert after.head(3).select("session_id", "turn_id", "step").equals(before.select("session_id", "turn_id", "step"))


# ATIF ---------------------------------------------------------------------------------------------------------------


def test_atif_a_continuation_comes_after_and_its_copied_context_is_ignored(tmp_path):
    step = {"step_id": 1, "source": "agent", "tool_calls": [{"tool_call_id": "c", "function_name": "bash"}] * 2}
    agent = {"name": "t", "version": "2.0.0"}
    first = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": [step, step | {"step_id": 2}]}
    copied = step | {"is_copied_context": True}
    more = first | {"agent": agent | {"extra": {"continuation_index": 1}}, "steps": [copied, step | {"step_id": 2}]}
    written(tmp_path, first, "a.json")
    written(tmp_path, more, "b.json")
    batches = list(read_batches(tmp_path))
    turns = pl.concat([batch.turns for batch in batches])
    assert turns["step"].to_list() == [1, 2, 3, 4, 1_000_002, 1_000_003]
    assert turns["executor_version"].unique().to_list() == ["2.0.0"]
    assert batches[1].ignored == 2
    assert derive_passings(turns).height == 8


# Inspect ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ({"a": "C"}, "success"),
        ({"a": 1.0, "b": True}, "success"),
        ({"a": "C", "b": "I"}, "failure"),
        ({"a": "P"}, None),
        ({"a": 0.5}, None),
        ({}, None),
        ({"a": {"x": 1}}, None),
        ({"a": float("nan")}, None),
    ],
    ids=str,
)
def test_inspect_outcome_is_what_all_scores_say(tmp_path, scores, outcome):
    sample = {"id": 1, "epoch": 1, "messages": [], "scores": {key: {"value": value} for key, value in scores.items()}}
    log = {"version": 2, "status": "success", "eval": {"task": "t", "run_id": "r", "model": "m"}, "samples": [sample]}
    turns = read_turns(written(tmp_path, log))
    assert turns.select("session_id", "session_outcome").rows() == [("r:1:1", outcome)]


# Metnos -------------------------------------------------------------------------------------------------------------


def test_metnos_values_flow_inside_a_request_and_each_request_is_a_procedure():
    path = DATA / "metnos" / "turns.jsonl"
    passings_policy, captures_policy = default_policies("metnos")
    assert (passings_policy, captures_policy) == ("value_flow_or_successive", "session")
    (batch,) = read_batches(path, include_values=None)
    assert "arg_values" in batch.turns.columns
    flows = derive_passings(batch.turns, "value_flow")
    both = derive_passings(batch.turns, passings_policy)
    assert flows.height == both.height == 101
    captures = derive_captures(batch.turns, captures_policy, passings=both)
    assert captures.height == 60
    kinds = {
        turn["turn_id"]: turn["final_kind"] for turn in map(json.loads, path.read_text().splitlines()) if turn["steps"]
    }
    assert captures.filter(outcome="failure").height == sum(kind == "error" for kind in kinds.values()) == 18
    assert captures.filter(outcome="success").height == 42
    assert captures["question"].null_count() == 0


def test_metnos_a_repeated_turn_is_the_same_record_and_lines_without_a_request_are_ignored():
    path = DATA / "metnos" / "turns.jsonl"
    turns = [json.loads(line) for line in path.read_text().splitlines()]
    repeated = sum(len(turn["steps"]) for turn in turns) - sum(
        len(steps) for steps in {turn["turn_id"]: turn["steps"] for turn in turns if turn["steps"]}.values()
    )
    (batch,) = read_batches(path)
    keys = batch.turns.select("source", "session_id", "turn_id", "step")
    assert keys.height - keys.n_unique() == repeated == 2
    assert batch.ignored == 2


def test_values_are_hashed_by_default_only_where_the_readers_policy_looks_at_them():
    (batch,) = read_batches(TRACES / "langsmith" / "runs.jsonl", include_values=None)
    assert "arg_values" not in batch.turns.columns


# Reflexion ----------------------------------------------------------------------------------------------------------


def test_reflexion_without_the_trial_before_every_entry_is_an_attempt(tmp_path):
    source = DATA / "raw" / "reflexion" / "alfworld_runs" / "reflexion_run_logs"
    entries = json.loads((source / "env_results_trial_2.json").read_text())
    path = written(tmp_path, entries, "env_results_trial_2.json")
    (batch,) = read_batches(path)
    assert (batch.turns.height, batch.ignored) == (len(entries), 0)
    (batch,) = read_batches(source / "env_results_trial_2.json")
    assert batch.ignored > 0


def test_every_reader_says_why_it_took_a_file(tmp_path):
    path = written(tmp_path, [trial()])
    reader, why = choose(path)
    assert (reader.name, why) == (
        "tau_bench",
        "a JSON list of trials with task_id, reward and traj, as tau-bench writes it",
    )
    assert choose(path, "tau_bench")[1] == "source='tau_bench' was given"
