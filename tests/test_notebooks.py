"""Notebooks are what their scripts say, were run to the end, and show their charts to who reads them on the web."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("*.py"))


def cells(script: Path) -> list[tuple[str, str]]:
    """The cells of a percent script: kind and text."""
    body = script.read_text(encoding="utf-8").split("\n# ---\n", 1)[1]
    found = []
    for piece in re.split(r"^# %%", body, flags=re.MULTILINE)[1:]:
        head, text = piece.split("\n", 1)
        kind = "markdown" if "[markdown]" in head else "code"
        if kind == "markdown":
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.strip("\n").split("\n"))
        found.append((kind, text.strip()))
    return found


def notebook(script: Path) -> dict:
    return json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))


def outputs(script: Path) -> list[dict]:
    return [output for cell in notebook(script)["cells"] for output in cell.get("outputs", [])]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_is_its_script(script):
    assert [(cell["cell_type"], "".join(cell["source"]).strip()) for cell in notebook(script)["cells"]] == cells(script)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_was_run_from_top_to_bottom_without_an_error(script):
    code = [cell for cell in notebook(script)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(script) if output["output_type"] == "error"]
    assert not [output for output in outputs(script) if output.get("name") == "stderr"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_chart_has_a_picture_that_shows_without_running_anything(script):
    charts = [
        output["data"] for output in outputs(script) if any("vegalite" in kind for kind in output.get("data", {}))
    ]
    assert len(charts) >= script.read_text(encoding="utf-8").count("\nmk.charts.") - 1 >= 1
    for data in charts:
        assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
        assert "text/html" not in data, "Altair's own HTML would load its program from the network"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_no_folder_of_a_machine_is_in_a_notebook(script):
    said = json.dumps([output.get("data", output.get("text", "")) for output in outputs(script)])
    assert not re.findall(r"/(?:home|root|work|tmp|Users)/", re.sub(r'"image/png": "[^"]*"', "", said))
    assert script.with_suffix(".ipynb").stat().st_size < 1_500_000
