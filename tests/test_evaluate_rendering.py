"""Tables for papers say what the result frame says."""

from __future__ import annotations

import polars as pl
import pytest

import mnemokit as mk
from mnemokit.evaluate.rendering import against, overview, to_latex, to_markdown


@pytest.fixture(scope="module")
def table():
    with mk.open() as mem:
        mem.replay(mk.datasets.agb(), label="agb", progress=False)
        return mk.evaluate.score(mem, since="2023-08-17T00:00:00+00:00", replicates=200)


def test_the_overview_has_a_row_per_model_best_first(table):
    shown = overview(table, sort_by="brier")
    values = table.filter(pl.col("metric") == "brier", pl.col("versus").is_null()).sort("value", maintain_order=True)
    assert shown["model"].to_list() == values["model"].to_list()
    row = values.row(0, named=True)
    assert shown["brier"][0] == f"{row['value']:.4f} [{row['low']:.4f}, {row['high']:.4f}]"
    assert overview(table, sort_by="auc")["auc"][0] > overview(table, sort_by="auc")["auc"][-1]
    with pytest.raises(mk.InvalidInput, match="no metric 'luck'"):
        overview(table, sort_by="luck")


def test_a_verdict_is_given_only_where_the_interval_excludes_nothing(table):
    for row in against(table, "rank_rule", "brier").iter_rows(named=True):
        told = table.filter(
            pl.col("model") == "rank_rule", pl.col("metric") == "brier", pl.col("versus") == row["versus"]
        ).row(0, named=True)
        if told["high"] < 0:
            assert row["verdict"] == "better"
        elif told["low"] > 0:
            assert row["verdict"] == "worse"
        else:
            assert row["verdict"] == "not told apart"
    with pytest.raises(mk.InvalidInput, match="no difference of 'nobody'"):
        against(table, "nobody", "brier")


def test_more_is_better_where_more_is_better(table):
    auc = dict(against(table, "rank_rule", "auc").select("versus", "verdict").iter_rows())
    assert auc["constant"] == "better"


def test_markdown_and_latex_escape_what_they_must():
    frame = pl.DataFrame({"name": ["a_b & 50 %", "c|d"], "value": [0.5, None]})
    assert to_markdown(frame).splitlines()[2:] == ["| a_b & 50 % | 0.5000 |", "| c\\|d |  |"]
    latex = to_latex(frame, caption="100 %", label="tab:x")
    assert r"a\_b \& 50 \% & 0.5000 \\" in latex
    assert r"\caption{100 \%}" in latex
    assert r"\label{tab:x}" in latex
