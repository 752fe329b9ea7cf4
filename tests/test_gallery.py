"""The gallery of charts is what its script writes, shows every chart, and its code runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import mnemokit as mk

DOCS = Path(__file__).parent.parent / "docs"


def _script():
    spec = importlib.util.spec_from_file_location("make_gallery", DOCS / "make_gallery.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


GALLERY = _script()


def test_the_gallery_is_what_its_script_writes():
    assert (DOCS / "charts.md").read_text(encoding="utf-8") == GALLERY.gallery()


def test_every_public_chart_has_its_picture():
    shown = {draw.__name__ for draw in GALLERY.PICTURES}
    assert set(mk.charts.__all__) - {"Drawing", "save", "use_in_notebook"} <= shown
    for name in (*shown, "first_look"):
        picture = DOCS / "img" / f"{name}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 250_000


@pytest.mark.parametrize("draw", GALLERY.PICTURES, ids=lambda draw: draw.__name__)
def test_the_code_of_the_gallery_runs(draw):
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2(), progress=False)
        assert draw(mem).to_dict()["title"]["text"].endswith("?")
