"""Logs packed with gzip are read as the files in them."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.turns import packed
from tests.test_readers_samples import TRACES

SAMPLES = sorted(path for path in TRACES.rglob("*") if path.suffix in (".json", ".jsonl", ".traj", ".log"))


def pack(path: Path, into: Path) -> Path:
    target = into / f"{path.name}.gz"
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_packed_log_gives_the_turns_of_the_file_in_it(path: Path, tmp_path: Path) -> None:
    plain = mk.read_turns(path)
    assert mk.read_turns(pack(path, tmp_path)).equals(plain)


def test_a_packed_csv_of_turns_is_read(tmp_path: Path) -> None:
    text = "session_id,step,executor\ns,0,find\ns,1,buy\n"
    (tmp_path / "turns.csv").write_text(text)
    assert mk.read_turns(pack(tmp_path / "turns.csv", tmp_path))["executor"].to_list() == ["find", "buy"]


def test_a_packed_log_is_told_by_its_first_bytes_not_by_its_name(tmp_path: Path) -> None:
    target = tmp_path / "turns.jsonl"
    target.write_bytes(gzip.compress(b'{"session_id": "s", "step": 0, "executor": "find"}\n'))
    assert mk.read_turns(target).height == 1


def test_of_a_packed_log_that_is_cut_off_what_was_read_stays_and_the_error_says_so(tmp_path: Path) -> None:
    rows = pl.DataFrame({"session_id": [f"s{n // 10}" for n in range(60_000)], "step": [n % 10 for n in range(60_000)],
                         "executor": [f"tool{n * n % 97}" for n in range(60_000)]})  # fmt: skip
    rows.write_ndjson(tmp_path / "turns.jsonl")
    whole = pack(tmp_path / "turns.jsonl", tmp_path).read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) * 9 // 10])
    with mk.open() as mem:
        with pytest.raises(
            mk.CorruptLog, match=r"cut.jsonl.gz: it cannot be unpacked to its end .* turns .* the store"
        ):
            mem.replay(tmp_path / "cut.jsonl.gz", chunk_rows=10_000)
        before = mem.frame("turns").height
        assert 0 < before < 60_000
        report = mem.replay(tmp_path / "turns.jsonl.gz")
        assert (report.duplicates, mem.frame("turns").height) == (before, 60_000)


def test_a_packed_document_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MAX_DOCUMENT_BYTES", 1_000_000)
    bomb = b'{"simulations": [], "tasks": [], "info": {}, "x": "' + b"a" * 2_000_000 + b'"}'
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(bomb))
    with pytest.raises(mk.CorruptLog, match="unpacks to more than 1000000 bytes; nothing was read"):
        mk.read_turns(tmp_path / "bomb.json.gz", source="tau2")
