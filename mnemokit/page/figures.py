"""Charts on the page: each a figure with its question as a caption, its data beside it, drawn when the page opens."""

from __future__ import annotations

from typing import cast

from mnemokit import charts
from mnemokit.page.html import Markup, data_block, tag


class Figures:
    """Hands out figures with names of their own."""

    def __init__(self) -> None:
        """No figure yet."""
        self._count = 0

    def add(self, chart: charts.Drawing, *, fit: int | None = None) -> Markup:
        """A chart as a figure.

        Args:
            chart: The chart. Its title becomes the caption, so that it can wrap on a narrow screen.
            fit: Let the chart be as wide as the page has room, up to this many pixels; None keeps its own width, and a
                narrow screen scrolls it.
        """
        self._count += 1
        name = f"spec-{self._count}"
        spec = cast("dict[str, object]", chart.to_dict())
        title, lines = _take_title(spec)
        spec["description"] = title
        spec.pop("config", None)
        more = {"data_fit": "width", "data_most": str(fit)} if fit is not None else {}
        return tag(
            "figure",
            tag("figcaption", tag("h3", title), *(tag("p", line) for line in lines)),
            tag("div", class_="chart", data_spec=name, role="img", aria_label=title, **more),
            data_block(spec, name),
        )


def _take_title(spec: dict[str, object]) -> tuple[str, list[str]]:
    title = cast("dict[str, object]", spec.pop("title", {}))
    lines = cast("list[str]", title.get("subtitle", []))
    return str(title.get("text", "")), [" ".join(lines)] if lines else []
