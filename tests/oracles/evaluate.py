"""Evaluation in plain loops: what was known before each thing happened, and how good what was said of it was."""

from __future__ import annotations

import math
from fractions import Fraction

from tests.oracles import edges as edge_oracle
from tests.oracles import ranking as rank_oracle

# Metrics ------------------------------------------------------------------------------------------------------------


def log_loss(y, p):
    eps = 2.0**-52
    total = 0.0
    for outcome, given in zip(y, p, strict=True):
        said = min(max(given, eps), 1 - eps)
        total -= math.log(said) if outcome else math.log(1 - said)
    return total / len(y)


def auc(y, p):
    good = [said for outcome, said in zip(y, p, strict=True) if outcome]
    bad = [said for outcome, said in zip(y, p, strict=True) if not outcome]
    wins = sum(1.0 if g > b else 0.5 if g == b else 0.0 for g in good for b in bad)
    return wins / (len(good) * len(bad))


def rmse_bins(y, p, bins):
    total = 0.0
    for b in range(bins):
        inside = [i for i in range(len(p)) if min(int(p[i] * bins), bins - 1) == b]
        if inside:
            mean_p = sum(p[i] for i in inside) / len(inside)
            mean_y = sum(y[i] for i in inside) / len(inside)
            total += len(inside) * (mean_p - mean_y) ** 2
    return math.sqrt(total / len(p))


def expected_over_ties(weights, came, value):
    """Mean of value(rank of what came) over every order of the candidates of equal weight; rank None: no candidate."""
    if weights.get(came, 0.0) <= 0:
        return value(None)
    above = sum(w > weights[came] * (1 + 1e-12) for w in weights.values())
    level = sum(abs(w - weights[came]) <= 1e-12 * weights[came] for w in weights.values())
    return sum(value(above + place) for place in range(1, level + 1)) / level


# Runs ---------------------------------------------------------------------------------------------------------------


def rates_before(reasonlets, runs, feedback, *, k=2, parent_rate="smoothed", inherit=True):
    """run_id -> the rank rule's rate from strictly earlier rows, the procedure itself being there."""
    out = {}
    for run in runs:
        now = run["ts_run"]
        known = [row for row in reasonlets if row["ts_captured"] < now or row["reasonlet_id"] == run["reasonlet_id"]]
        if not inherit:
            known = [{**row, "parent_id": None} for row in known]
        ranked = rank_oracle.rank(
            known,
            [row for row in runs if row["ts_run"] < now],
            [row for row in feedback if row["ts_given"] < now],
            k=k,
            parent_rate=parent_rate,
        )
        out[run["run_id"]] = next(row["rate"] for row in ranked if row["reasonlet_id"] == run["reasonlet_id"])
    return out


def constant_before(runs, feedback):
    """run_id -> (s + 1) / (n + 2) over every strictly earlier run."""
    out = {}
    for run in runs:
        verdicts = rank_oracle.latest_verdicts([f for f in feedback if f["ts_given"] < run["ts_run"]])
        told = [verdicts.get(r["run_id"], r["outcome"]) for r in runs if r["ts_run"] < run["ts_run"]]
        told = [outcome for outcome in told if outcome is not None]
        out[run["run_id"]] = Fraction(sum(o == "success" for o in told) + 1, len(told) + 2)
    return out


def hierarchical_before(runs, margins, levels, k):
    """run_id -> rate of the nested Betas; runs are dicts with the columns; no feedback."""
    out = {}
    for run in runs:
        earlier = [r for r in runs if r["ts_run"] < run["ts_run"] and r["outcome"] is not None]

        def drawn(columns, towards, run=run, earlier=earlier):
            like = [r for r in earlier if all(r[c] == run[c] for c in columns)]
            return (sum(r["outcome"] == "success" for r in like) + k * towards) / (len(like) + k)

        overall = (sum(r["outcome"] == "success" for r in earlier) + 1) / (len(earlier) + 2)
        odds = math.log(overall / (1 - overall))
        total = odds
        for margin in margins:
            rate = drawn([margin], overall)
            total += math.log(rate / (1 - rate)) - odds
        rate = 1 / (1 + math.exp(-total))
        for level in levels:
            rate = drawn(level, rate)
        out[run["run_id"]] = rate
    return out


# Edges --------------------------------------------------------------------------------------------------------------


def edge_weights_before(facts, nights, now, src):
    """dst -> weight of the live edges out of src, from facts strictly before now and agers up to now."""
    world = edge_oracle.live_through(
        [fact for fact in facts if fact.ts < now], [night for night in nights if night <= now]
    )
    return {
        record.dst: edge_oracle.weight_at(record, now)
        for record in world.records
        if record.src == src and record.state in ("active", "proto")
    }


def next_probability(weights, facts, now, src, came):
    """What came, under weights, with the Witten-Bell escape over every destination known and one unknown."""
    earlier = [fact for fact in facts if fact.ts < now]
    n = sum(fact.src == src for fact in earlier)
    d = len({fact.dst for fact in earlier if fact.src == src})
    known = len({fact.dst for fact in earlier})
    total = sum(weights.values())
    kept = d / (n + d) if n and total > 0 else 1.0
    part = weights.get(came, 0.0) / total if total > 0 else 0.0
    return (1 - kept) * part + kept / (known + 1)
