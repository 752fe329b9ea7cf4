"""Charts as files that need no network: HTML, PNG and SVG."""

from __future__ import annotations

import os
from pathlib import Path

import vl_convert

from mnemokit.charts.parts import Drawing
from mnemokit.charts.pictures import packed
from mnemokit.errors import InvalidInput

_KINDS = ("html", "png", "svg")


def save(chart: Drawing, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
    """Write a chart to a file that can be opened anywhere, without a network.

    Args:
        chart: The chart.
        path: Its ending says what is written: ``.html`` (with everything it needs inside), ``.png`` or ``.svg``.
        scale: Pixels per point of a PNG.

    Returns:
        The path.

    Raises:
        InvalidInput: If the ending is another one, or the folder does not exist.

    Example:
        >>> import tempfile
        >>> import mnemokit as mk
        >>> import polars as pl
        >>> chart = mk.charts.tool_errors(pl.DataFrame({"executor": ["find"], "s": [1], "n": [10]}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mk.charts.save(chart, f"{folder}/errors.svg").name
        'errors.svg'
    """
    target = Path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in _KINDS:
        raise InvalidInput(f"a chart is saved as .html, .png or .svg, not as {target.name!r}; nothing was written")
    if not target.parent.is_dir():
        raise InvalidInput(f"the folder {target.parent} does not exist; nothing was written; make it first")
    if kind == "html":
        chart.save(target, format="html", inline=True)
    elif kind == "png":
        target.write_bytes(packed(vl_convert.vegalite_to_png(chart.to_dict(), scale=scale)))
    else:
        chart.save(target, format="svg")
    return target
