"""What is in a raw log, counted with nothing but json and zip reading: sessions, calls, failed calls, records.

A record is one tool call, or one message or line without calls.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


@dataclass
class Count:
    sessions: int
    calls: int
    failed: int
    records: int

    def __add__(self, other: Count) -> Count:
        return Count(
            self.sessions + other.sessions,
            self.calls + other.calls,
            self.failed + other.failed,
            self.records + other.records,
        )


def lines(path: Path) -> list:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def tau2(path: Path) -> Count:
    run = json.loads(path.read_text())
    calls = failed = records = 0
    for simulation in run["simulations"]:
        for message in simulation["messages"]:
            made = message.get("tool_calls") or []
            calls += len(made)
            records += max(1, len(made))
            failed += message["role"] == "tool" and message["error"]
    return Count(len(run["simulations"]), calls, failed, records)


def tau2_edges(path: Path) -> tuple[Counter, Counter]:
    """Edges between names by the grouped and by the successive policy."""
    grouped: Counter = Counter()
    successive: Counter = Counter()
    for simulation in json.loads(path.read_text())["simulations"]:
        groups = [
            [call["name"] for call in message["tool_calls"]]
            for message in sorted(simulation["messages"], key=lambda message: message["turn_idx"])
            if message.get("tool_calls")
        ]
        for before, after in pairwise(groups):
            grouped.update((a, b) for a in before for b in after)
        flat = [name for group in groups for name in group]
        successive.update(pairwise(flat))
    return grouped, successive


def agb(path: Path) -> Count:
    report = json.loads(path.read_text())
    entries = list(agb_entries(report["tests"]))
    real = [entry["metrics"] for entry in entries if "tests" not in entry and really_attempted(entry["metrics"])]
    return Count(1, len(real), sum(not metrics["success"] for metrics in real), len(entries))


def agb_entries(tests: dict):
    for entry in tests.values():
        yield entry
        yield from agb_entries(entry.get("tests", {}))


def really_attempted(metrics: dict) -> bool:
    if "attempted" in metrics:
        return metrics["attempted"]
    return "depends on" not in (metrics.get("fail_reason") or "")


def reflexion(folder: Path) -> tuple[int, int, int, int]:
    """Attempts, successes, notes and entries of the trials in a folder."""
    before: dict = {}
    attempts = successes = notes = entries = 0
    number = 0
    while (folder / f"env_results_trial_{number}.json").is_file():
        trial = json.loads((folder / f"env_results_trial_{number}.json").read_text())
        for entry in trial:
            entries += 1
            last = before.get(entry["name"], {"is_success": False, "memory": []})
            notes += len(entry["memory"]) - len(last["memory"])
            if not last["is_success"]:
                attempts += 1
                successes += entry["is_success"]
        before = {entry["name"]: entry for entry in trial}
        number += 1
    return attempts, successes, notes, entries


def metnos(path: Path) -> Count:
    turns = lines(path)
    steps = [step for turn in turns for step in turn["steps"]]
    sessions = {turn["turn_id"] for turn in turns if turn["steps"]}
    failed = sum(not step["result"]["ok"] for step in steps)
    return Count(len(sessions), len(steps), failed, sum(max(1, len(turn["steps"])) for turn in turns))


def claude_code(path: Path) -> Count:
    calls = failed = records = 0
    sessions = set()
    for line in lines(path):
        sessions.add(line["sessionId"])
        content = line.get("message", {}).get("content")
        blocks = content if isinstance(content, list) else []
        made = sum(block["type"] == "tool_use" for block in blocks)
        calls += made
        records += max(1, made)
        failed += sum(block["type"] == "tool_result" and block.get("is_error", False) for block in blocks)
    return Count(len(sessions), calls, failed, records)


def atif(path: Path) -> Count:
    made = [len(step.get("tool_calls") or []) for step in json.loads(path.read_text())["steps"]]
    return Count(1, sum(made), 0, sum(max(1, n) for n in made))


def openhands(path: Path) -> Count:
    calls = failed = records = 0
    instances = lines(path)
    for instance in instances:
        for event in instance["history"]:
            records += 1
            calls += "action" in event and "tool_call_metadata" in event
            failed += event.get("extras", {}).get("metadata", {}).get("exit_code", 0) != 0
    return Count(len(instances), calls, failed, records)


def swe_agent(path: Path) -> Count:
    value = json.loads(path.read_text())
    if isinstance(value, list):
        answers = [message["content"].startswith("<returncode>") for message in value if message["role"] == "user"]
        blocks = sum(
            "```mswea_bash_command" in message["content"] for message in value if message["role"] == "assistant"
        )
        # Two blocks were cut away with the end of their message; their answers tell of them.
        cut = sum(
            "```" not in one["content"] and two["content"].startswith("<returncode>")
            for one, two in pairwise(value)
            if one["role"] == "assistant"
        )
        failed = sum(
            message["content"].startswith("<returncode>") and not message["content"].startswith("<returncode>0<")
            for message in value
        )
        assert sum(answers) <= blocks + cut
        return Count(1, blocks + cut, failed, len(value))
    if "trajectory" in value:
        return Count(1, sum(bool(item["action"].strip()) for item in value["trajectory"]), 0, len(value["trajectory"]))
    made = [len(message.get("tool_calls") or []) for message in value["history"]]
    return Count(1, sum(made), 0, sum(max(1, n) for n in made))


def inspect(log: dict) -> Count:
    total = Count(0, 0, 0, 0)
    for sample in log["samples"]:
        tools = [event for event in sample.get("events", []) if event["event"] == "tool"]
        records = sample.get("events", [])
        if not tools and any(message["role"] == "tool" for message in sample["messages"]):
            tools = [message for message in sample["messages"] if message["role"] == "tool"]
            records = sample["messages"]
        elif not tools:
            records = sample["messages"]
        failed = sum(item.get("error") is not None for item in tools)
        total += Count(1, len(tools), failed, len(records))
    return total


def langfuse(path: Path) -> Count:
    """Tools were looked up by eye in every file: those of type TOOL, and these spans of older exports."""
    spans = {"duckduckgo_search", "Web-Search", "tool.search.wikipedia.start-12"}
    value = json.loads(path.read_text())
    tools = [item for item in value["observations"] if item["type"] == "TOOL" or item["name"] in spans]
    return Count(1, len(tools), sum(item["level"] == "ERROR" for item in tools), len(value["observations"]))


def openai_agents(items: list) -> Count:
    sessions = {item["group_id"] for item in items if item["object"] == "trace"}
    calls = [item for item in items if item.get("span_data", {}).get("type") in ("function", "handoff")]
    return Count(len(sessions), len(calls), sum(item["error"] is not None for item in calls), len(items))


def langsmith(path: Path) -> Count:
    runs = lines(path)
    tools = [run for run in runs if run["run_type"] == "tool"]
    sessions = {run["extra"]["metadata"]["thread_id"] for run in runs}
    return Count(len(sessions), len(tools), sum("error" in run for run in tools), len(runs))


def otlp(path: Path, session_key: str, tool: tuple[str, str]) -> Count:
    """Spans of OTLP lines; a tool's span has the attribute named."""
    spans = []
    for line in lines(path):
        for group in line["resourceSpans"]:
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    values = {item["key"]: next(iter(item["value"].values()), None) for item in span["attributes"]}
                    spans.append((span, values))
    tools = [span for span, values in spans if values.get(tool[0]) == tool[1]]
    sessions = {values[session_key] for _, values in spans if session_key in values}
    return Count(len(sessions), len(tools), sum(span["status"].get("code") == 2 for span in tools), len(spans))


# Policies, one row at a time ------------------------------------------------------------


def distinct_steps(rows: list[dict]) -> list[dict]:
    """Steps with an executor, an exact repeat (session, turn, step) once."""
    seen = {}
    for row in rows:
        if row["executor"] is not None:
            seen.setdefault((row["source"], row["session_id"], row["turn_id"], row["step"]), row)
    return list(seen.values())


def sessions_of(rows: list[dict]) -> dict[tuple, list[dict]]:
    found: dict[tuple, list[dict]] = {}
    for row in distinct_steps(rows):
        found.setdefault((row["source"], row["session_id"]), []).append(row)
    return found


def groups_of(steps: list[dict]) -> list[list[dict]]:
    groups: dict[int, list[dict]] = {}
    for step in steps:
        groups.setdefault(step["parallel_group"], []).append(step)
    return sorted(groups.values(), key=lambda group: (min(step["step"] for step in group), group[0]["parallel_group"]))


def end(row: dict) -> tuple:
    return row["executor"], row["executor_version"] or "unversioned"


def grouped_passings(rows: list[dict]) -> Counter:
    found: Counter = Counter()
    for key, steps in sessions_of(rows).items():
        for before, after in pairwise(groups_of(steps)):
            found.update((key, end(a), end(b), b["turn_id"], b["step"]) for a in before for b in after)
    return found


def successive_passings(rows: list[dict]) -> Counter:
    found: Counter = Counter()
    for key, steps in sessions_of(rows).items():
        ordered = sorted(steps, key=lambda step: step["step"])
        found.update((key, end(a), end(b), b["turn_id"], b["step"]) for a, b in pairwise(ordered))
    return found


def flow_passings(rows: list[dict]) -> set:
    """Each argument value points to the latest earlier group whose results hold it."""
    found = set()
    for key, steps in sessions_of(rows).items():
        groups = groups_of(steps)
        for number, group in enumerate(groups):
            for step in group:
                for value in step["arg_values"]:
                    for earlier in reversed(groups[:number]):
                        givers = [giver for giver in earlier if value in giver["result_values"]]
                        if givers:
                            ends = [(giver["turn_id"], giver["step"]) for giver in givers]
                            found |= {(key, *giver, step["turn_id"], step["step"]) for giver in ends}
                            break
    return found


def session_graphs(rows: list[dict], passings: Counter) -> dict[tuple, tuple[set, set]]:
    """Nodes and edges of each session, without versions."""
    found = {key: ({step["executor"] for step in steps}, set()) for key, steps in sessions_of(rows).items()}
    for key, source, destination, _, _ in passings:
        found[key][1].add((source[0], destination[0]))
    return found
