"""The samples that come with the package: the known totals, and no text."""

import json

import polars as pl
import pytest

from mnemokit import datasets, errors
from mnemokit.turns.frame import TURNS_SCHEMA
from mnemokit.turns.memory_writes import MEMORY_SCHEMA

TURNS = [datasets.tau2, datasets.agb, datasets.reflexion, datasets.generative_agents]
MEMORIES = [datasets.reflexion_memory, datasets.generative_agents_memory]


@pytest.mark.parametrize("load", TURNS, ids=lambda load: load.__name__)
def test_samples_are_canonical_frames(load):
    assert dict(load().schema) == TURNS_SCHEMA
    assert set(load()["source"]) == {load.__name__}


@pytest.mark.parametrize("load", MEMORIES, ids=lambda load: load.__name__)
def test_memory_samples_hold_no_content(load):
    writes = load()
    assert dict(writes.schema) == MEMORY_SCHEMA
    assert writes["content"].null_count() == writes.height
    assert writes["trace_key"].n_unique() == writes.height
    assert writes["content_hash"].str.len_chars().unique().to_list() == [64]


@pytest.mark.parametrize("name", ["tau2", "agb", "reflexion", "generative_agents"])
def test_samples_are_small_and_their_licence_lies_beside_them(name):
    folder = next(place for place in datasets.PLACES if place.is_dir())
    files = list(folder.glob(f"{name}_*.parquet"))
    assert files
    assert all(file.stat().st_size < 1_000_000 for file in files)
    assert (folder / f"LICENSE.{name}").is_file()


def test_tau2_facts():
    turns = datasets.tau2()
    sessions = turns.unique("session_id")
    assert sessions.height == 280
    assert turns["executor"].null_count() == 0
    assert turns.height == 3866
    assert turns.filter(requestor="user").height == 902
    assert turns.filter(ok=False).height == 49
    groups = turns.group_by("session_id", "parallel_group").len()
    assert groups.filter(pl.col("len") > 1).height == 154
    by_version = sessions.group_by("executor_version").agg(
        pl.len(), rewarded=(pl.col("session_outcome") == "success").sum()
    )
    assert by_version.select("len", "rewarded").sort("rewarded").rows() == [(140, 82), (140, 111)]


def test_tau2_version_is_not_one_thing():
    """Base telecom without a user ran on another commit than its pair."""
    turns = datasets.tau2().with_columns(
        commit=pl.col("meta").str.json_path_match("$.git_commit"), mode=pl.col("meta").str.json_path_match("$.mode")
    )
    commits = turns.filter(scope="telecom", mode="no-user").group_by("executor_version").agg(pl.col("commit").unique())
    assert commits["commit"].list.len().to_list() == [1, 1]
    assert commits["commit"].list.first().n_unique() == 2


def test_agb_facts():
    turns = datasets.agb()
    assert turns["session_id"].n_unique() == 463
    assert turns["executor"].drop_nulls().len() == 4698
    assert turns.filter(ok=True).height == 2176


def test_reflexion_facts():
    main = datasets.reflexion().filter(scope="alfworld_runs/reflexion_run_logs")
    assert main["session_outcome"].value_counts().sort("count").rows() == [("success", 134), ("failure", 200)]
    writes = datasets.reflexion_memory().filter(pl.col("brain_id").str.starts_with("alfworld_runs/reflexion_run_logs/"))
    assert writes.height == 200
    parents = writes.filter(pl.col("parents").list.len() > 0)
    assert set(parents["parents"].explode()) <= set(writes["trace_key"])


def test_generative_agents_facts():
    writes = datasets.generative_agents_memory()
    assert writes.height == 2105
    assert writes["ts"].null_count() == 0
    assert writes.filter(pl.col("parents").list.len() > 1).height == 269
    assert json.loads(writes["meta"][0])["poignancy"] >= 1


def test_a_missing_sample_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "PLACES", (tmp_path,))
    with pytest.raises(errors.NotFound, match=r"tau2_turns\.parquet is not beside this installation"):
        datasets.tau2()
