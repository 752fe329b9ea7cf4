"""Somebody who watches a replay sees how many records are done, of how many, and then the captures."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.replay import run
from mnemokit.replay.expected import records_expected
from tests.test_replay_accounts import TURNS


class Watched:
    """Stands for the bar on a terminal and notes what it is told."""

    shown = True
    noted: list[tuple[str, int | None, list[int]]]

    def __init__(self, wanted: bool | None = None) -> None:
        type(self).noted = []

    def begin(self, what: str, total: int | None = None) -> None:
        self.noted.append((what, total, []))

    def advance(self, rows: int) -> None:
        self.noted[-1][2].append(rows)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *error: object) -> None:
        return None


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    monkeypatch.setattr(run, "Progress", Watched)
    return Watched


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"dry_run": True}])
def test_records_have_a_total_and_captures_are_a_phase_of_their_own(
    watched: type[Watched], options: dict[str, bool]
) -> None:
    with mk.open() as mem:
        mem.replay(TURNS, chunk_rows=2, **options)
    assert watched.noted == [("records", 3, [2, 1]), ("captures", 2, [2])]


def test_every_batch_moves_it_on_and_not_every_chunk(watched: type[Watched], tmp_path: Path) -> None:
    for name in "abc":
        TURNS.with_columns(source=pl.lit(name)).write_parquet(tmp_path / f"{name}.parquet")
    with mk.open() as mem:
        mem.replay(tmp_path)
    assert watched.noted == [("records", 9, [3, 3, 3]), ("captures", 6, [6])]


def test_the_total_is_known_for_frames_and_parquet_alone(tmp_path: Path) -> None:
    TURNS.write_parquet(tmp_path / "a.parquet")
    assert records_expected(TURNS) == 3
    assert records_expected(tmp_path / "a.parquet") == 3
    assert records_expected([tmp_path / "a.parquet", str(tmp_path / "*.parquet")]) == 3
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    assert records_expected(tmp_path) is None
    (tmp_path / "broken.parquet").write_text('{"session_id": "s", "step": 0, "executor": "a"}\n')
    assert records_expected(tmp_path) is None


def test_shown_on_demand_it_says_how_many_of_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    with mk.open() as mem:
        mem.replay(TURNS, progress=True)
    shown = capsys.readouterr().err
    assert "3 of 3 records" in shown
    assert "2 of 2 captures" in shown


def test_where_nobody_watches_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with mk.open() as mem:
        mem.replay(TURNS)
        mem.replay(TURNS, label="again", progress=False)
    assert capsys.readouterr().err == ""
