"""The ranking rule in plain Python and exact fractions, one reasonlet at a time."""

from __future__ import annotations

from fractions import Fraction

HALF = Fraction(1, 2)


def latest_verdicts(feedback):
    """run_id -> outcome of the feedback given last; feedback rows are dicts with ts_given and seq."""
    latest = {}
    for row in sorted(feedback, key=lambda row: (row["ts_given"], row["seq"])):
        latest[row["run_id"]] = row["outcome"]
    return latest


def own_records(reasonlets, runs, feedback):
    """reasonlet_id -> (s, n)."""
    verdicts = latest_verdicts(feedback)
    records = {row["reasonlet_id"]: [0, 0] for row in reasonlets}
    for run in runs:
        outcome = verdicts.get(run["run_id"], run["outcome"]) if run["run_id"] in verdicts else run["outcome"]
        if run["reasonlet_id"] in records and outcome is not None:
            records[run["reasonlet_id"]][1] += 1
            records[run["reasonlet_id"]][0] += outcome == "success"
    return {name: tuple(record) for name, record in records.items()}


def rank(reasonlets, runs, feedback=(), *, at=None, k=2, parent_rate="smoothed", scope=None):
    """Ranked rows as dicts: reasonlet_id, n, s, prior, prior_source, rate, alpha, beta; best first."""
    if at is not None:
        reasonlets = [row for row in reasonlets if row["ts_captured"] <= at]
        runs = [row for row in runs if row["ts_run"] <= at]
        feedback = [row for row in feedback if row["ts_given"] <= at]
    if scope is not None:
        reasonlets = [row for row in reasonlets if row["scope"] == scope]
    k = Fraction(k)
    records = own_records(reasonlets, runs, feedback)
    rows = []
    for row in reasonlets:
        s, n = records[row["reasonlet_id"]]
        prior = HALF
        if row["parent_id"] in records:
            parent_s, parent_n = records[row["parent_id"]]
            if parent_rate == "smoothed":
                inherited = (parent_s + k / 2) / (parent_n + k)
            else:
                inherited = Fraction(parent_s, parent_n) if parent_n else HALF
            prior = max(HALF, inherited)
        rows.append(
            {
                "reasonlet_id": row["reasonlet_id"],
                "n": n,
                "s": s,
                "prior": prior,
                "prior_source": "parent" if prior > HALF else "neutral",
                "rate": (s + k * prior) / (n + k),
                "alpha": s + k * prior,
                "beta": n - s + k * (1 - prior),
                "newer": row["ts_captured"],
            }
        )
    rows.sort(key=lambda row: row["reasonlet_id"])
    rows.sort(key=lambda row: (row["rate"], row["n"], row["newer"]), reverse=True)
    return rows
