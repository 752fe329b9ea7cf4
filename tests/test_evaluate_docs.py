"""What docs/evaluate.md shows runs, and docs/results.md is what the samples give."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

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


@pytest.mark.slow
def test_the_results_page_is_what_the_samples_give():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "results.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
