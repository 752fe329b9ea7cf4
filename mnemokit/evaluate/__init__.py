"""Is a ranking or a decay any good? Predictions made only from the past, beside baselines that are hard to beat."""

from mnemokit.evaluate import rendering
from mnemokit.evaluate.comparing.comparison import Comparison, compare, compare_turns
from mnemokit.evaluate.crediting import credit
from mnemokit.evaluate.hiding import hidden
from mnemokit.evaluate.next_executor import predict_next
from mnemokit.evaluate.other_rules import WhatIf, what_if
from mnemokit.evaluate.predictions import Predictions
from mnemokit.evaluate.procedures import predict_runs
from mnemokit.evaluate.recalls import off_policy, predict_recalls
from mnemokit.evaluate.scoring import fit, policy_value, predictions, score, sweep

__all__ = [
    "Comparison",
    "Predictions",
    "WhatIf",
    "compare",
    "compare_turns",
    "credit",
    "fit",
    "hidden",
    "off_policy",
    "policy_value",
    "predict_next",
    "predict_recalls",
    "predict_runs",
    "predictions",
    "rendering",
    "score",
    "sweep",
    "what_if",
]
