"""What holds for every chart: it asks a question, names its units, needs no network, says what it leaves out."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert

from mnemokit import charts, errors
from mnemokit.charts import parts
from mnemokit.charts.pictures import packed
from tests import chart_frames as made

CURVE = pl.DataFrame(
    {"predicted": [0.2, 0.8], "observed": [0.1, 0.9], "n": [9, 4], "low": [0.0, 0.5], "high": [0.4, 1.0]}
)
SCORES = pl.DataFrame(
    {
        "model": ["memory", "constant"],
        "metric": ["brier", "brier"],
        "value": [0.2, 0.25],
        "low": [0.1, 0.2],
        "high": [0.3, 0.3],
    }
)


CUT = pl.DataFrame(
    {
        "model": ["memory"] * 3,
        "metric": ["log_loss"] * 3,
        "value": [0.6, 0.65, 1.7],
        "low": [0.55, 0.6, 0.6],
        "high": [0.65, 0.7, 2.8],
        "k": [1.0, 2.0, 3.0],
    }
)
DIFFERENCES = pl.DataFrame(
    {
        "src_executor": ["find"],
        "dst_executor": ["buy"],
        "uses_a": [3],
        "left_a": [10],
        "uses_b": [8],
        "left_b": [10],
        "difference": [0.5],
        "low": [0.1],
        "high": [0.8],
    }
)


def mnests(name: str = "find") -> pl.DataFrame:
    return made.mnests((name, f"{name} again", 0.9, 12), (f"{name} again", "pay", 0.3, 1), version=f"{name} 1")


def ranked(name: str = "find") -> pl.DataFrame:
    return made.ranked((name, None, "1.0", 1, 4), (f"{name} again", name, "1.1", 3, 3))


def turns(name: str = "find") -> pl.DataFrame:
    return made.turns(("s1", name, True, name, "success"), ("s2", name, False, f"{name} 2", "failure"))


# Each chart, with a name that stands wherever the frame holds a text of its users.
FULL: dict[str, Callable[[str], charts.Drawing]] = {
    "edge_weights": lambda name="find": charts.edge_weights(mnests(name)),
    "edge_weights by version": lambda name="find": charts.edge_weights(mnests(name), by_version=True),
    "edge_weights by passings": lambda name="find": charts.edge_weights(mnests(name), by="uses"),
    "edge_diff": lambda name="find": charts.edge_diff(
        mnests(name), made.mnests((name, "b", 0.4, 3)), names=(name, "b")
    ),
    "weight_history": lambda name="find": charts.weight_history(
        made.events((0, "passing", 0.3), (1, "passing", 0.44), mnest_id=name, dst=name)
    ),
    "ager_nights": lambda _name="": charts.ager_nights(made.ager_runs(5, demoted=1)),
    "lineage": lambda name="find": charts.lineage(ranked(name)),
    "lineage too long": lambda name="find": charts.lineage(
        made.ranked(
            (f"{name}0", None, "1.0", 1, 2), *((f"{name}{n}", f"{name}{n - 1}", name, 1, 2) for n in range(1, 70))
        )
    ),
    "rates": lambda name="find": charts.rates(ranked(name)),
    "outcomes": lambda name="find": charts.outcomes(turns(name)),
    "tool_errors": lambda name="find": charts.tool_errors(turns(name)),
    "walk_paths": lambda name="find": charts.walk_paths(made.walk(([name, "buy", "pay"], 0.6))),
    "differences": lambda name="find": charts.differences(
        DIFFERENCES.with_columns(src_executor=pl.lit(name)), names=(name, "b")
    ),
    "calibration": lambda name="find": charts.calibration(CURVE.with_columns(model=pl.lit(name))),
    "scores": lambda name="find": charts.scores(SCORES.with_columns(pl.col("model") + name)),
    "scores of a sweep, one cut": lambda name="find": charts.scores(CUT.with_columns(pl.col("model") + name)),
    "change_timeline": lambda name="find": charts.change_timeline(made.changes(5, actor=name)),
}
EMPTY: dict[str, Callable[[], charts.Drawing]] = {
    "edge_weights": lambda: charts.edge_weights(made.mnests()),
    "edge_diff": lambda: charts.edge_diff(made.mnests(), made.mnests()),
    "weight_history": lambda: charts.weight_history(made.events()),
    "ager_nights": lambda: charts.ager_nights(made.ager_runs(0)),
    "lineage": lambda: charts.lineage(made.ranked()),
    "rates": lambda: charts.rates(made.ranked()),
    "outcomes": lambda: charts.outcomes(made.turns()),
    "tool_errors": lambda: charts.tool_errors(made.turns()),
    "walk_paths": lambda: charts.walk_paths(made.walk()),
    "differences": lambda: charts.differences(DIFFERENCES.clear()),
    "calibration": lambda: charts.calibration(CURVE.clear()),
    "scores": lambda: charts.scores(SCORES.clear()),
    "change_timeline": lambda: charts.change_timeline(made.changes(0)),
}


def test_every_public_chart_is_in_these_tests():
    functions = set(charts.__all__) - {"Drawing", "save", "use_in_notebook"}
    assert {name.split()[0] for name in FULL} == functions
    assert set(EMPTY) == functions


@pytest.mark.parametrize("name", FULL)
def test_the_title_of_a_chart_is_a_question(name):
    title = FULL[name]().to_dict()["title"]
    assert title["text"].endswith("?")
    assert title["subtitle"], "how to read it stands below the question"


@pytest.mark.parametrize("name", FULL)
def test_every_quantity_on_an_axis_or_in_a_legend_says_what_it_is(name):
    for channel in _channels(FULL[name]().to_dict()):
        if channel.get("type") in ("quantitative", "temporal"):
            assert channel.get("title"), channel


@pytest.mark.parametrize("name", FULL)
def test_time_is_drawn_in_utc(name):
    for channel in _channels(FULL[name]().to_dict(), only=("x", "y")):
        if channel.get("type") == "temporal":
            assert channel["scale"]["type"] == "utc"
            assert "UTC" in channel["title"]


@pytest.mark.parametrize("name", FULL)
def test_a_chart_is_a_png(name, tmp_path):
    data = charts.save(FULL[name](), tmp_path / "chart.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 3_000


def test_a_picture_is_packed_again_without_losing_a_pixel():
    spec = FULL["edge_weights"]().to_dict()
    png = vl_convert.vegalite_to_png(spec)
    small = packed(png)
    assert len(small) < len(png) / 2
    assert vl_convert.svg_to_png(_shown(small)) == vl_convert.svg_to_png(_shown(png))


def _shown(png: bytes) -> str:
    """A drawing that shows a picture, so that a program other than ours unpacks it."""
    data = base64.b64encode(png).decode()
    image = f'<image href="data:image/png;base64,{data}"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300">{image}</svg>'


def test_a_chart_as_html_asks_for_nothing_from_a_network(tmp_path):
    page = charts.save(FULL["edge_weights"](), tmp_path / "chart.html").read_text(encoding="utf-8")
    assert "vegaEmbed" in page
    assert not remote_addresses(page)


@pytest.mark.parametrize("name", EMPTY)
def test_a_chart_of_nothing_says_so(name, tmp_path):
    chart = EMPTY[name]()
    assert chart.to_dict()["mark"]["type"] == "text"
    assert charts.save(chart, tmp_path / "empty.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("name", EMPTY)
def test_a_frame_without_a_needed_column_is_refused_and_its_columns_are_listed(name):
    wrong = pl.DataFrame({"colour": ["red"]})
    function = getattr(charts, name)
    with pytest.raises(errors.InvalidInput, match=rf"charts\.{name} needs column .*this frame has colour"):
        function(wrong, wrong) if name == "edge_diff" else function(wrong)


def _pandas(frame: pl.DataFrame):
    return frame.to_pandas()


# Each chart of frames, given frames of another library.
OF_FRAMES: dict[str, Callable[[Callable], charts.Drawing]] = {
    "edge_weights": lambda to: charts.edge_weights(to(mnests())),
    "edge_diff": lambda to: charts.edge_diff(to(mnests()), to(made.mnests(("a", "b", 0.4, 3)))),
    "weight_history": lambda to: charts.weight_history(
        to(made.events((0, "passing", 0.3), (1, "passing", 0.44))), decay_lambda=to(mnests())
    ),
    "ager_nights": lambda to: charts.ager_nights(to(made.ager_runs(5, demoted=1))),
    "lineage": lambda to: charts.lineage(to(ranked())),
    "rates": lambda to: charts.rates(to(ranked())),
    "outcomes": lambda to: charts.outcomes(to(turns())),
    "tool_errors": lambda to: charts.tool_errors(to(turns())),
    "walk_paths": lambda to: charts.walk_paths(to(made.walk((["find", "buy", "pay"], 0.6)))),
    "differences": lambda to: charts.differences(to(DIFFERENCES)),
    "calibration": lambda to: charts.calibration(to(CURVE)),
    "scores": lambda to: charts.scores(to(SCORES)),
    "change_timeline": lambda to: charts.change_timeline(to(made.changes(5))),
}


@pytest.mark.parametrize("to", [_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy], ids=["pandas", "arrow", "lazy"])
@pytest.mark.parametrize("name", EMPTY)
def test_a_chart_of_a_frame_of_another_library_is_that_of_the_same_rows(name, to):
    draw = OF_FRAMES[name]
    assert _drawn(draw(to)) == _drawn(draw(lambda frame: frame))


def _drawn(chart: charts.Drawing) -> str:
    """What is drawn; the names of data sets are hashes of their content."""
    return json.dumps(chart.to_dict(), sort_keys=True)


@pytest.mark.parametrize("name", EMPTY)
def test_what_is_no_frame_is_refused_by_name(name):
    with pytest.raises(errors.InvalidInput, match=r"frame .*not dict; nothing was drawn|two sides"):
        OF_FRAMES[name](lambda _frame: {"colour": ["red"]})


HOSTILE = "</script><img src=x onerror=alert(1)>\n\"'\u2028\\{{datum.x}}"


@pytest.mark.parametrize("name", FULL)
def test_hostile_names_stay_text(name, tmp_path):
    drawn = charts.save(FULL[name](HOSTILE), tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert "<img" not in drawn
    assert "<script" not in drawn


@pytest.mark.parametrize("name", FULL)
def test_no_name_is_ever_written_into_an_expression_that_a_browser_computes(name):
    vega = vl_convert.vegalite_to_vega(FULL[name](HOSTILE).to_dict())
    assert not [text for text in _expressions(vega) if "onerror" in text or "\u2028" in text]


def _expressions(part, computed: bool = False):
    if isinstance(part, str):
        if computed:
            yield part
    elif isinstance(part, list):
        for each in part:
            yield from _expressions(each, computed)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key != "values":
                yield from _expressions(value, key in ("expr", "signal", "update", "test", "as", "filter", "init"))


def test_a_chart_is_saved_only_as_what_its_name_says(tmp_path):
    with pytest.raises(errors.InvalidInput, match=r"\.html, \.png or \.svg"):
        charts.save(FULL["rates"](), tmp_path / "chart.gif")
    with pytest.raises(errors.InvalidInput, match="folder"):
        charts.save(FULL["rates"](), tmp_path / "nowhere" / "chart.png")


@pytest.mark.parametrize("name", ["edge_weights", "edge_diff", "weight_history", "lineage", "rates", "walk_paths"])
@pytest.mark.parametrize("top", [0, 1_000_000])
def test_no_chart_draws_more_than_can_be_seen(name, top):
    frames = {
        "edge_weights": (mnests(),),
        "edge_diff": (mnests(), mnests()),
        "weight_history": (made.events((0, "passing", 0.3)),),
        "lineage": (ranked(),),
        "rates": (ranked(),),
        "walk_paths": (made.walk((["a", "b"], 0.5)),),
    }
    with pytest.raises(errors.InvalidInput, match="top must be from 1 to"):
        getattr(charts, name)(*frames[name], top=top)


@pytest.mark.parametrize("name", FULL)
def test_the_vega_lite_of_jupyterlab_draws_a_chart_as_the_newer_one_does(name):
    spec = FULL[name]().to_dict()
    older, newer = (vl_convert.vegalite_to_vega(spec, vl_version=version) for version in ("5.20", "6.4"))
    assert [older.get(part) for part in ("scales", "legends", "axes", "data")] == [
        newer.get(part) for part in ("scales", "legends", "axes", "data")
    ]


def test_in_a_notebook_a_chart_carries_its_specification_and_a_picture():
    charts.use_in_notebook()
    try:
        bundle = FULL["rates"]()._repr_mimebundle_()
    finally:
        alt.renderers.enable("default")
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["application/vnd.vegalite.v5+json"]["title"]["text"].endswith("?")
    assert "text/html" not in bundle


def test_charts_can_be_put_together():
    together = alt.hconcat(charts.rates(ranked()), charts.lineage(ranked()))
    assert len(together.to_dict()["hconcat"]) == 2


def test_colours_of_names_are_told_apart_with_every_colour_blindness():
    for matrix in _CVD.values():
        seen = [_lab(_simulate(colour, matrix)) for colour in parts.CATEGORIES]
        apart = [float(np.linalg.norm(one - other)) for number, one in enumerate(seen) for other in seen[number + 1 :]]
        assert min(apart) > 8  # CIE76: about 2 is just noticeable side by side


def test_weights_and_rates_use_vegas_ramps_whose_lightness_tells_them_apart():
    colours = json.dumps([FULL["edge_weights"]().to_dict(), FULL["lineage"]().to_dict(), FULL["edge_diff"]().to_dict()])
    assert set(re.findall(r'"range": "(\w+)"', colours)) == {"heatmap", "diverging"}


def test_mnemokit_is_imported_without_altair():
    code = "import sys, mnemokit, mnemokit.page; print([m for m in ('altair', 'vl_convert') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_altair_is_imported_in_the_charts_only():
    package = Path(charts.__file__).parent.parent
    users = {
        file.relative_to(package).parts[0]
        for file in package.rglob("*.py")
        if re.search(r"^\s*(import|from) altair", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert users == {"charts"}


class _Addresses(HTMLParser):
    """Collects whatever a browser would load by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.extend(
            f"{tag} {name}={value}"
            for name, value in attrs
            if name in ("src", "href", "data", "action", "poster", "srcset", "background")
            and value
            and not value.startswith(("#", "data:"))
        )


def remote_addresses(page: str) -> list[str]:
    """What a page would load from elsewhere: sources and links in its elements, and @import and url() in its styles."""
    parser = _Addresses()
    parser.feed(page)
    styles = "".join(re.findall(r"<style[^>]*>(.*?)</style>", page, re.DOTALL))
    return parser.found + re.findall(r"@import[^;]*|url\((?!['\"]?data:)[^)]*\)", styles)


def _channels(spec, only: tuple[str, ...] | None = None):
    if isinstance(spec, list):
        for each in spec:
            yield from _channels(each, only)
    elif isinstance(spec, dict):
        for name, value in spec.items():
            if name == "encoding":
                for channel, field in value.items():
                    drawn = channel in ("x", "y", "color", "fill", "size", "shape")
                    if isinstance(field, dict) and drawn and (only is None or channel in only):
                        yield field
            elif name != "datasets":
                yield from _channels(value, only)


# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
_CVD = {
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def _simulate(colour: str, matrix: np.ndarray) -> np.ndarray:
    rgb = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.clip(matrix @ linear, 0, 1)


def _lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = (to_xyz @ linear) / np.array([0.9505, 1.0, 1.089])
    f = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
