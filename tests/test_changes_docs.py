"""The documentation prints the table of moves that the code allows, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

from mnemokit.changes.states import moves_as_markdown

PAGE = Path(__file__).parents[1] / "docs" / "session_changes.md"


def test_the_documentation_prints_the_table_of_allowed_moves():
    text = PAGE.read_text(encoding="utf-8")
    begin, end = (text.index(mark) for mark in ("<!-- moves:", "<!-- end of moves"))
    printed = text[text.index("\n", begin) + 1 : end]
    assert printed.strip() == moves_as_markdown().strip()


def test_the_documentation_s_first_example_runs(tmp_path, monkeypatch):
    example = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(example[1], names)
    assert (tmp_path / "memory.duckdb").exists()
