"""Charts: each takes a frame (or a memory), answers one question, and is shown, or saved as HTML or PNG."""

from mnemokit.charts.changes import change_timeline
from mnemokit.charts.differences import differences
from mnemokit.charts.edge_diffs import edge_diff
from mnemokit.charts.edges import edge_weights
from mnemokit.charts.history import weight_history
from mnemokit.charts.lineages import lineage
from mnemokit.charts.nights import ager_nights
from mnemokit.charts.notebook import use_in_notebook
from mnemokit.charts.parts import Drawing
from mnemokit.charts.rankings import outcomes, rates, tool_errors
from mnemokit.charts.saving import save
from mnemokit.charts.scores import calibration, scores
from mnemokit.charts.walks import walk_paths

__all__ = [
    "Drawing",
    "ager_nights",
    "calibration",
    "change_timeline",
    "differences",
    "edge_diff",
    "edge_weights",
    "lineage",
    "outcomes",
    "rates",
    "save",
    "scores",
    "tool_errors",
    "use_in_notebook",
    "walk_paths",
    "weight_history",
]
