"""Damaged logs of every format: no crash, and every record is a turn, a reject or ignored."""

import copy
import json
import os
import random
from pathlib import Path

import polars as pl
import pytest

from mnemokit.errors import CorruptLog
from mnemokit.turns import read_batches
from mnemokit.turns.readers import all_readers

DATA = Path(__file__).parent / "data"
TRACES = DATA / "traces"
SLOW = bool(os.environ.get("MNEMOKIT_SLOW"))

VALUES = [
    None, True, False, 0, -1, 1.5, 10**18, 2**62, 2**63, -(2**64), 10**400, float("nan"), float("inf"), -0.0, "",
    "x", "9" * 30, "\ud800", "\x00", "é" * 600, "2025-08-01T12:00:00Z", "0001-01-01T00:00:00", "2025-02-30", [[]],
    "9999-12-31T23:59:59-12:00", [], {}, [None], {"a": None}, [{"id": 1}], {"type": "tool"}, {"name": {"name": 1}},
]  # fmt: skip

LINES = {
    "turns": DATA / "turn_lines.jsonl",
    "claude_code": TRACES / "claude_code" / "agent_session.jsonl",
    "metnos": DATA / "metnos" / "turns.jsonl",
    "langsmith": TRACES / "langsmith" / "runs.jsonl",
    "otlp": TRACES / "otlp_genai" / "spans.jsonl",
    "openai_agents": TRACES / "openai_agents" / "trace.jsonl",
}
DOCUMENTS = {
    "tau2": DATA / "raw" / "tau2" / "gpt-4.1_airline_default_gpt-4.1_1trials.json",
    "agb": DATA / "raw" / "agb" / "reports" / "Auto-GPT" / "folder10_08-01-02-43" / "report.json",
    "reflexion": DATA / "raw" / "reflexion" / "alfworld_runs" / "reflexion_run_logs" / "env_results_trial_0.json",
    "generative_agents": DATA / "raw" / "generative_agents" / "Klaus_Mueller.nodes.json",
    "atif": TRACES / "atif" / "openhands_hello-world.trajectory.json",
    "swe_agent": TRACES / "swe_agent" / "function_calling_simple.traj",
    "inspect": TRACES / "inspect_eval" / "fruit.json",
    "langfuse": TRACES / "langfuse" / "langgraph-python-2025-08-22.trace.json",
    "openai_agents": TRACES / "openai_agents" / "body.json",
}


def mutate(value, rng):
    """The same JSON value with one to three places changed."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.randint(1, 3)):
        spots = []
        waiting = [value]
        while waiting:
            item = waiting.pop()
            keys = item.keys() if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
            spots += [(item, key) for key in keys]
            waiting += [item[key] for key in keys if isinstance(item[key], (dict, list))]
        if not spots:
            break
        # Shallow places matter more than the leaves of a long result.
        item, key = spots[min(int(rng.expovariate(0.05)), len(spots) - 1)]
        action = rng.random()
        if action < 0.7:
            item[key] = copy.deepcopy(rng.choice(VALUES))
        elif action < 0.85 and isinstance(item, dict):
            del item[key]
        elif isinstance(item, list):
            item.insert(key, copy.deepcopy(rng.choice(VALUES)))
        else:
            item[rng.choice(["\ud800", "", "id", "x" * 700])] = item[key]
    return value


def damaged_line(line, rng):
    """A line, damaged in one of the ways in which logs are."""
    kind = rng.random()
    if kind < 0.75:
        return json.dumps(mutate(json.loads(line), rng)).encode()
    if kind < 0.85:
        return line[: rng.randint(1, len(line))]
    raw = bytearray(line)
    for _ in range(rng.randint(1, 5)):
        raw[rng.randrange(len(raw))] = rng.choice([0xFF, 0x00, 0x22, 0x7B, 0x5D, 0x5C, 0xC3, 0x2C])
    return bytes(raw).replace(b"\n", b" ").replace(b"\r", b" ")


def fuzz_lines(tmp_path, source, count, seed):
    rng = random.Random(seed)
    samples = LINES[source].read_bytes().splitlines()
    lines = [damaged_line(rng.choice(samples), rng) for _ in range(count)]
    lines = [line for line in lines if line.strip()]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    records = 0
    for batch in read_batches(path, source, include_values=True, batch_rows=5_000):
        records += batch.records
        usable(batch.turns)
    return len(lines), records


def usable(turns):
    """What the frame promises of every row."""
    assert (
        turns.select("source", "session_id", "turn_id", "step", "parallel_group").null_count().sum_horizontal().item()
        == 0
    )
    assert turns["session_id"].str.len_chars().min() in (None, *range(1, 513))
    assert (turns["executor"].drop_nulls().str.len_chars() > 0).all()
    assert set(turns["session_outcome"].unique()) <= {"success", "failure", None}


@pytest.mark.slow
@pytest.mark.parametrize("source", LINES)
def test_damaged_lines_are_counted_one_by_one(tmp_path, source):
    """100,000 lines in the long form."""
    count = (100_000 if SLOW else 15_000) // len(LINES) + 300
    lines, records = fuzz_lines(tmp_path, source, count, seed=1)
    one_record_per_line = source in ("turns", "langsmith", "openai_agents")
    assert records == lines if one_record_per_line else records >= lines


def fuzz_documents(tmp_path, source, count, seed):
    rng = random.Random(seed)
    original = json.loads(DOCUMENTS[source].read_text())
    path = tmp_path / DOCUMENTS[source].name
    messages: list[str] = []
    for _ in range(count):
        path.write_text(json.dumps(mutate(original, rng)))
        try:
            batches = list(read_batches(path, source, include_values=True))
        except CorruptLog as error:
            messages.append(str(error))
            continue
        for batch in batches:
            usable(batch.turns)
    assert not any("\n" in message for message in messages)
    return count - len(messages), len(messages)


@pytest.mark.slow
@pytest.mark.parametrize("source", DOCUMENTS)
def test_damaged_documents_are_read_or_refused_in_one_line(tmp_path, source):
    count = 600 if SLOW else 40
    read, refused = fuzz_documents(tmp_path, source, count, seed=3)
    assert read + refused == count
    assert read > 0


@pytest.mark.parametrize("source", sorted(all_readers()))
def test_any_reader_survives_any_sample(source):
    """A sample read as another format is refused or rejected, never a crash."""
    messages: list[str] = []
    for path in [*LINES.values(), *DOCUMENTS.values(), TRACES / "inspect_eval" / "fruit.eval"]:
        try:
            batches = list(read_batches(path, source))
        except CorruptLog as error:
            messages.append(str(error))
            continue
        assert sum(batch.records for batch in batches) > 0
    assert not any("\n" in message for message in messages)


def test_damaged_archives_and_parquet_files_are_refused_or_read(tmp_path):
    rng = random.Random(5)
    parquet = tmp_path / "turns.parquet"
    pl.DataFrame({"session_id": ["s"] * 50, "step": range(50), "executor": ["a"] * 50}).write_parquet(parquet)
    messages: list[str] = []
    for sample, source in ((TRACES / "inspect_eval" / "fruit.eval", "inspect"), (parquet, "turns")):
        original = sample.read_bytes()
        path = tmp_path / f"damaged{sample.suffix}"
        for _ in range(60):
            raw = bytearray(original)
            for _ in range(rng.randint(1, 30)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            path.write_bytes(raw[: rng.randint(10, len(raw))] if rng.random() < 0.2 else raw)
            try:
                for batch in read_batches(path, source):
                    usable(batch.turns)
            except CorruptLog as error:
                messages.append(str(error))
    assert len(messages) > 10
    assert not any("\n" in message for message in messages)
