"""Write the pictures in docs/img and the gallery docs/charts.md anew: ``make docs``.

Every picture is made by the code that stands beside it in the gallery, from logs that come with mnemokit.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import altair as alt
import polars as pl

import mnemokit as mk
from mnemokit import charts

DOCS = Path(__file__).parent
IMAGES = DOCS / "img"
SCALE = 1.25


def edge_weights(mem: mk.Memory) -> charts.Drawing:
    """280 sessions of two versions of an agent (tau2-bench), both versions together."""
    return mk.charts.edge_weights(mem)


def edge_weights_by_version(mem: mk.Memory) -> charts.Drawing:
    """The same, a panel for each version."""
    return mk.charts.edge_weights(mem, by_version=True, top=20)


def edge_diff(mem: mk.Memory) -> charts.Drawing:
    """The two versions against each other."""
    mnests = mem.frame("mnests")
    base = mnests.filter(src_version="gpt-4.1")
    tuned = mnests.filter(src_version="ft:gpt-4.1-2025-04-14:sierra:tau2-full-sft:BzrYdMNm")
    return mk.charts.edge_diff(base, tuned, names=("gpt-4.1", "fine-tuned"), min_uses=5)


def weight_history(mem: mk.Memory) -> charts.Drawing:
    """One edge, and what it fades to until November if nothing comes."""
    return mk.charts.weight_history(mem, src="toggle_data", dst="can_send_mms", until="2025-11-15T00:00Z")


def lineage(mem: mk.Memory) -> charts.Drawing:
    """The deepest lineages: tasks that were done again in another way."""
    return mk.charts.lineage(mem.reasonlets.rank(), top=12)


def rates(mem: mk.Memory) -> charts.Drawing:
    """The airline tasks: few runs each, so the intervals are wide, and they should be."""
    return mk.charts.rates(mem.reasonlets.rank(scope="airline"), top=20)


def outcomes(mem: mk.Memory) -> charts.Drawing:
    """The two versions were not run in the same way everywhere; the page of this log warns of it."""
    return mk.charts.outcomes(mem, by="executor_version")


def tool_errors(mem: mk.Memory) -> charts.Drawing:
    """49 failed calls in all."""
    return mk.charts.tool_errors(mem)


def walk_paths(mem: mk.Memory) -> charts.Drawing:
    """Along the heaviest edges from one executor."""
    return mk.charts.walk_paths(mem.mnests.walk("get_user_details", max_depth=3), top=15)


def ager_nights(mem: mk.Memory) -> charts.Drawing:
    """The log itself covers less than a day; here the ager goes on for four months in which nothing comes."""
    day, days = datetime(2025, 8, 2, 3, tzinfo=UTC), timedelta(days=1)
    for night in range(120):
        mem.mnests.apply_ager(day + night * days)
    return mk.charts.ager_nights(mem)


def change_timeline(mem: mk.Memory) -> charts.Drawing:
    """A made week: one write reverted, and a visitor forgotten at its end, with every summary that he is in."""
    start, hours = datetime(2025, 8, 4, 9, tzinfo=UTC), timedelta(hours=1)
    for day in range(7):
        with mem.session(f"day {day}", user_id="ada", brain_id="house") as session:
            for hour in (0, 2, 5):
                said = session.add(f"note {day}.{hour}", at=start + (24 * day + hour) * hours)
            visitor = ("bert",) if day % 3 == 1 else ()
            session.rolling_summary(f"day {day}", contributor_ids=visitor, at=start + (24 * day + 8) * hours)
        if day == 4:
            mem.changes.revert(said.change_id)
    mem.changes.forget_user("bert")
    return mk.charts.change_timeline(mem)


def differences(mem: mk.Memory) -> charts.Drawing:
    """The two versions compared, session by session: the list starts with what many sessions support."""
    versions = mk.evaluate.compare(mem, by="executor_version")
    return mk.charts.differences(versions.edges(), names=("gpt-4.1", "fine-tuned"), top=15)


def scores(mem: mk.Memory) -> charts.Drawing:
    """Which executor comes next? As probabilities the weights do badly on this short log, and are shown doing so."""
    table = mk.evaluate.score(mem, "next_executor", versions="collapsed")
    return mk.charts.scores(table.filter(pl.col("metric").is_in(["log_loss", "hit@1"])))


def calibration(mem: mk.Memory) -> charts.Drawing:
    """Another log, with more runs a procedure: Auto-GPT-Benchmarks, scored from 17 August 2023 on."""
    mem.replay(mk.datasets.agb())
    made = mk.evaluate.predictions(mem, "runs", since="2023-08-17T00:00Z", until="2024-01-01T00:00Z")
    return mk.charts.calibration(made.bins(10).filter(pl.col("model").is_in(["rank_rule", "power_law"])))


PICTURES: tuple[Callable[[mk.Memory], charts.Drawing], ...] = (
    edge_weights,
    edge_weights_by_version,
    edge_diff,
    weight_history,
    lineage,
    rates,
    outcomes,
    tool_errors,
    walk_paths,
    ager_nights,
    change_timeline,
    differences,
    scores,
    calibration,
)

HEAD = """# Charts

<!-- Written by docs/make_gallery.py; `make docs` writes it anew. -->

Each chart is a function from a frame (or a memory) to an Altair chart. It asks one question in its title, says below it
how to read it and what was left out, and needs no network: `mk.charts.save(chart, "chart.html")` (also `.png`, `.svg`)
writes a file that opens anywhere, and after `mk.charts.use_in_notebook()` a notebook shows it as an interactive chart
and as a picture (Altair's own default loads its program from the network).

Weights and rates are drawn with Vega's named ramps (heatmap: yellow-green-blue; diverging: orange-blue), names with
Okabe and Ito's colours; both are told apart with every common form of colour blindness, and an Altair theme may replace
the ramps. Times are UTC. Limits are in the docstrings; what is beyond them is named in the title, never cut silently.

The code under each question draws the picture; `mem` is a memory with the bundled log in it:

```python
from datetime import UTC, datetime, timedelta

import polars as pl

import mnemokit as mk

mem = mk.open()
mem.replay(mk.datasets.tau2())
```
"""


def main() -> None:
    """Draw everything."""
    IMAGES.mkdir(exist_ok=True)
    for draw in PICTURES:
        with mk.open() as mem:
            mem.replay(mk.datasets.tau2(), progress=False)
            charts.save(draw(mem), IMAGES / f"{draw.__name__}.png", scale=SCALE)
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2(), progress=False)
        charts.save(first_look(mem), IMAGES / "first_look.png", scale=SCALE)
    (DOCS / "charts.md").write_text(gallery(), encoding="utf-8")


def first_look(mem: mk.Memory) -> alt.HConcatChart:
    """The picture of the README."""
    return alt.hconcat(
        charts.edge_weights(mem, top=24),
        alt.vconcat(charts.outcomes(mem), charts.lineage(mem.reasonlets.rank(), top=8), spacing=28),
        spacing=36,
    ).resolve_scale(color="independent", size="independent")


def gallery() -> str:
    """The gallery as Markdown."""
    return "\n".join([HEAD, *(_entry(draw) for draw in PICTURES)])


def _entry(draw: Callable[[mk.Memory], charts.Drawing]) -> str:
    chart = getattr(charts, draw.__name__.removesuffix("_by_version"))
    question = (inspect.getdoc(chart) or "").split("\n", 1)[0]
    code = textwrap.dedent("".join(inspect.getsourcelines(draw)[0][2:])).replace("return ", "").strip()
    about = inspect.getdoc(draw)
    return (
        f"## {draw.__name__}\n\n{question}\n\n```python\n{code}\n```\n\n"
        f"![{question}](img/{draw.__name__}.png)\n\n{about}\n"
    )


if __name__ == "__main__":
    main()
