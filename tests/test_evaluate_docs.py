"""What docs/evaluate.md shows runs, and docs/results.md is what the samples give."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from mnemokit.evaluate.table import RESULT_SCHEMA

ROOT = Path(__file__).parent.parent


def test_the_examples_of_the_evaluation_page_run():
    text = (ROOT / "docs" / "evaluate.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), names)
    table = names["table"]
    assert isinstance(table, pl.DataFrame)
    assert "optimist" in table["model"].to_list()


def test_the_results_page_says_who_won_and_who_lost():
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert "4,698 attempts" in text
    assert re.search(r"chosen model's Brier score is \w+ than the constant rate's \([-+]0\.\d{4} \[", text)
    assert "The memory's own rule is" in text


def test_the_results_page_names_the_models_that_forget_by_what_the_table_says_of_them(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    forgetting = importlib.import_module("results").forgetting
    differences = {"last_10": (-0.02, -0.01), "half_life": (-0.01, 0.01), "last_outcome": (0.01, 0.02)}
    rows = [("runs", "all", "all", name, True, "brier", "own_record", (low + high) / 2, low, high, 99, 999, 0.0, None)
            for name, (low, high) in {**differences, "constant": (0.2, 0.3)}.items()]  # fmt: skip
    said = forgetting(pl.DataFrame(rows, schema=RESULT_SCHEMA, orient="row"))
    assert "better: `last_10` (-0.0150 [-0.0200, -0.0100]); " in said
    assert "not told apart from it: `half_life` (+0.0000 [-0.0100, +0.0100]); " in said
    assert "worse: `last_outcome` (+0.0150 [+0.0100, +0.0200])." in said
    assert "constant" not in said


@pytest.mark.slow
def test_the_results_page_is_what_the_samples_give():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "results.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
