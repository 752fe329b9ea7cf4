"""Which policies a row goes by: those of the format that it was logged in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.turns.reading import read_turns

RAW = Path(__file__).parent / "data" / "raw"
FORMATS = ("tau2", "agb")


def files() -> list[Path]:
    return sorted(path for name in FORMATS for path in (RAW / name).rglob("*.json"))


def captures(mem: mk.Memory) -> Counter[tuple]:
    kept = mem.frame("runs").join(mem.frame("reasonlets").select("reasonlet_id", "graph", "scope"), on="reasonlet_id")
    return Counter(kept.select("session_id", "graph", "outcome").rows())


@pytest.mark.parametrize("chunk_rows", [10, 2_000_000])
@pytest.mark.parametrize("backwards", [True, False])
def test_one_label_over_several_formats_keeps_the_policies_of_each(chunk_rows: int, backwards: bool) -> None:
    with mk.open() as mem, mk.open() as apart:
        paths = files()[::-1] if backwards else files()
        report = mem.replay(paths, label="x", chunk_rows=chunk_rows)
        alone = [apart.replay(sorted((RAW / name).rglob("*.json"))) for name in FORMATS]
        assert report.source == "x"
        assert report.captures == sum(one.captures for one in alone)
        assert captures(mem) == captures(apart)


def test_a_labelled_session_that_goes_on_in_a_later_call_keeps_the_policies_of_its_format() -> None:
    with mk.open() as mem, mk.open() as whole:
        turns = read_turns(RAW / "agb")
        mem.replay(turns.head(20), label="x")
        mem.replay(turns, label="x")
        whole.replay(turns, label="x")
        assert captures(mem) == captures(whole)
        assert mem.frame("runs").height == turns["executor"].count()


@pytest.mark.parametrize("label", [None, "x"])
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_a_file_of_turns_gives_what_the_same_frame_gives(tmp_path: Path, kind: str, label: str | None) -> None:
    with mk.open() as first:
        first.replay(files())
        turns, expected = first.frame("turns"), captures(first)
    path = tmp_path / f"turns.{kind}"
    if kind == "parquet":
        turns.write_parquet(path)
    else:
        written = turns.with_columns(pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))
        written.write_ndjson(path) if kind == "jsonl" else written.write_csv(path)
    with mk.open() as mem, mk.open() as from_frame:
        report = mem.replay(path, label=label)
        same = from_frame.replay(turns, label=label)
        assert (report.turns, report.passings, report.captures) == (same.turns, same.passings, same.captures)
        assert captures(mem) == captures(from_frame) == expected
