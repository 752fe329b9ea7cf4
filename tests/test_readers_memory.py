"""Memory writes in logs: each note once, with its parents, and without its text unless it is asked for."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

from mnemokit.errors import CorruptLog, InvalidInput
from mnemokit.turns import read_memory_writes
from mnemokit.turns.memory_writes import MEMORY_SCHEMA
from tests.oracles import turns as oracle

RAW = Path(__file__).parent / "data" / "raw"
RUN = RAW / "reflexion" / "alfworld_runs" / "reflexion_run_logs"
KLAUS = RAW / "generative_agents" / "Klaus_Mueller.nodes.json"


def test_reflexion_a_note_is_written_once_though_every_later_trial_repeats_it():
    _, _, notes, _ = oracle.reflexion(RUN)
    writes = read_memory_writes(RUN)
    assert dict(writes.schema) == MEMORY_SCHEMA
    assert writes.height == notes
    assert writes["trace_key"].n_unique() == notes
    assert writes["untimed"].all()


def test_reflexion_the_parent_of_a_note_is_the_note_before():
    writes = read_memory_writes(RUN)
    for row in writes.iter_rows(named=True):
        number = int(row["trace_key"].rsplit("_", 1)[1])
        before = [row["trace_key"].rsplit("_", 1)[0] + f"_{number - 1}"] if number else []
        assert row["parents"] == before
        assert row["session_id"].startswith(row["brain_id"])


def test_generative_agents_parents_are_the_nodes_named_and_times_the_simulations():
    nodes = json.loads(KLAUS.read_text())
    writes = read_memory_writes(KLAUS)
    assert writes.height == len(nodes)
    found = {row["trace_key"]: row for row in writes.iter_rows(named=True)}
    for key, node in nodes.items():
        row = found[f"Klaus Mueller/{key}"]
        named = [name for name in node["filling"] or [] if isinstance(name, str)]
        assert row["parents"] == [f"Klaus Mueller/{name}" for name in named]
        assert row["ts"].strftime("%Y-%m-%d %H:%M:%S") == node["created"]
        assert row["type"] == node["type"]
    assert writes.filter(pl.col("parents").list.len() > 1).height > 0
    assert writes["ts"].is_sorted()


def test_content_comes_only_when_it_is_asked_for():
    plain = read_memory_writes(KLAUS)
    full = read_memory_writes(KLAUS, include_text=True)
    assert plain["content"].null_count() == plain.height
    assert full.drop("content").equals(plain.drop("content"))
    for content, digest, chars in full.select("content", "content_hash", "chars").iter_rows():
        assert hashlib.sha256(content.encode()).hexdigest() == digest
        assert len(content) == chars


def test_the_persona_is_named_by_its_folder_where_the_file_is_called_nodes(tmp_path):
    path = tmp_path / "personas" / "Maria Lopez" / "bootstrap_memory" / "associative_memory" / "nodes.json"
    path.parent.mkdir(parents=True)
    path.write_text(KLAUS.read_text())
    assert set(read_memory_writes(path)["brain_id"]) == {"Maria Lopez"}


def test_a_label_and_a_zone_can_be_given():
    writes = read_memory_writes(KLAUS, label="sim", tz="America/Chicago")
    assert set(writes["source"]) == {"sim"}
    assert (writes["ts"] - read_memory_writes(KLAUS)["ts"]).unique().dt.total_hours().to_list() == [6]


def test_a_format_without_memory_writes_says_so():
    with pytest.raises(InvalidInput, match="the format tau2 holds no memory writes"):
        read_memory_writes(RAW / "tau2")


def test_a_broken_file_is_refused(tmp_path):
    path = tmp_path / "Klaus.nodes.json"
    path.write_text(KLAUS.read_text()[:5_000])
    with pytest.raises(CorruptLog, match="the JSON is cut off"):
        read_memory_writes(path)
