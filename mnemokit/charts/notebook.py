"""Charts in a notebook without a network: the interactive chart where it is understood, a picture everywhere else."""

from __future__ import annotations

import altair as alt
import vl_convert

from mnemokit.charts.pictures import packed


def use_in_notebook(*, scale: float = 1.25) -> None:
    """Show charts as an interactive chart and as a picture, both inside the notebook.

    Altair's own default loads its program from the network. After this call a chart carries its Vega-Lite
    specification, which notebook programs that know it draw by themselves, and a PNG, which shows everywhere else: on
    the web, in an exported page, in a notebook that was never run again.

    Args:
        scale: Pixels per point of the picture.

    Example:
        >>> use_in_notebook()
        >>> alt.renderers.active
        'mnemokit'
        >>> _ = alt.renderers.enable("default")
    """

    def bundle(spec: dict[str, object], **_: object) -> dict[str, object]:
        older = {**spec, "$schema": _SCHEMA}
        return {_MIME: older, "image/png": packed(vl_convert.vegalite_to_png(spec, scale=scale))}

    alt.renderers.register(_NAME, bundle)
    alt.renderers.enable(_NAME)


_NAME = "mnemokit"
# JupyterLab draws Vega-Lite 5 by itself, and not yet 6; these charts use nothing that 5 does not know.
_MIME = "application/vnd.vegalite.v5+json"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
