"""The page: one file, no network, the right numbers, and no text from a store that a browser would run."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import polars as pl
import pytest

import mnemokit as mk
from mnemokit import terminal
from mnemokit.page.facts import configurations, read_facts, strongest_edges
from mnemokit.page.sections import _silent
from tests import chart_frames as made
from tests.page_reading import Page
from tests.test_charts_every import remote_addresses

HOSTILE = (
    "</script></style><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\"><!-- ' & \u2028"
)


@pytest.fixture(scope="module")
def tau2_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "memory.html"
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2())
        first = mk.report(mem, path).read_bytes()
        assert mk.report(mem, path).read_bytes() == first, "the same memory gives the same page"
    return first.decode("utf-8")


@pytest.fixture(scope="module")
def tau2(tau2_page):
    return Page(tau2_page)


def hostile_turns() -> pl.DataFrame:
    """A log in which every name is an attack."""
    return pl.DataFrame(
        {
            "session_id": [f"{HOSTILE}1", f"{HOSTILE}1", f"{HOSTILE}2", f"{HOSTILE}2"],
            "step": [0, 1, 0, 1],
            "executor": [f"find {HOSTILE}", f"buy {HOSTILE}", f"find {HOSTILE}", f"buy {HOSTILE}"],
            "executor_version": [f"one {HOSTILE}", f"one {HOSTILE}", f"two {HOSTILE}", f"two {HOSTILE}"],
            "ok": [True, False, True, True],
            "scope": [f"scope {HOSTILE}"] * 4,
            "question": [f"question {HOSTILE}"] * 4,
            "user_id": ["person-7 in question"] * 4,
            "session_outcome": ["failure", "failure", "success", "success"],
            "meta": [f'{{"mode {i}": "{i}"}}' for i in "abcd"],
        }
    )


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "hostile.html"
    with mk.open() as mem:
        mem.replay(hostile_turns(), label=f"label {HOSTILE}"[:500])
        return mk.report(mem, path, title=HOSTILE).read_text(encoding="utf-8")


def test_the_counts_of_the_bundled_log_are_on_the_page(tau2):
    for words in (
        "280 sessions",
        "3,866 tool calls, 902 by the user side",
        "49 calls that failed",
        "270 procedures (reasonlets), in 100 lineages",
        "280 runs of procedures",
        "4,087 passings behind the edges",
        "2025-07-31 22:02",
    ):
        assert words in tau2.text


def test_both_versions_are_shown_with_their_sessions_and_an_interval(tau2):
    rows = [row for spec in tau2.specs.values() for rows in spec.get("datasets", {}).values() for row in rows]
    groups = {row["executor_version"]: row for row in rows if "executor_version" in row}
    assert groups["gpt-4.1"]["record"] == "82/140"
    assert groups["ft:gpt-4.1-2025-04-14:sierra:tau2-full-sft:BzrYdMNm"]["record"] == "111/140"
    assert groups["gpt-4.1"]["low"] < 82 / 140 < groups["gpt-4.1"]["high"]


def test_a_version_that_was_run_in_several_ways_is_shown_not_to_be_one_thing(tau2):
    assert "A version is not one thing" in tau2.text
    assert re.search(r"gpt-4\.1 git_commit \w+….*: 100 \(airline, retail, telecom\); \w+….*: 40 \(telecom\)", tau2.text)


def test_failed_sessions_without_a_failed_call_are_counted(tau2):
    turns = mk.datasets.tau2()
    failed = turns.filter(pl.col("session_outcome") == "failure", pl.col("ok").is_not_null())
    silent = failed.group_by("session_id").agg((~pl.col("ok")).any().alias("error")).filter(~pl.col("error"))
    of_all = failed["session_id"].n_unique()
    assert f"{silent.height} of the {of_all} failed sessions had no failed call." in tau2.text


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((0, 40, 40), "All 40 failed sessions had at least one failed call."),
        ((0, 40, 41), "All 40 failed sessions that made calls had at least one failed call."),
        ((40, 40, 40), "None of the 40 failed sessions had a failed call."),
        ((1, 1, 1), "The one failed session had no failed call."),
        ((0, 1, 2), "The one failed session that made calls had at least one failed call."),
        ((12, 40, 50), "12 of the 40 failed sessions that made calls had no failed call."),
    ],
)
def test_how_many_failed_sessions_had_no_failed_call_is_a_sentence(counts, words):
    assert _silent(*counts) == words


def log(*sessions: str, version: str | None = None, meta: str = "{}") -> pl.DataFrame:
    """Sessions without times in which find, buy and pay are called, all of them failed."""
    tools = ("find", "buy", "pay")
    return pl.DataFrame(
        [
            (session, step, tool, version, tool != "pay", "failure", meta)
            for session in sessions
            for step, tool in enumerate(tools)
        ],
        schema={
            "session_id": pl.String,
            "step": pl.Int64,
            "executor": pl.String,
            "executor_version": pl.String,
            "ok": pl.Boolean,
            "session_outcome": pl.String,
            "meta": pl.String,
        },
        orient="row",
    )


def page_of(tmp_path, logs: dict[str, pl.DataFrame], ager: str | None = None) -> Page:
    with mk.open() as mem:
        for label, turns in logs.items():
            mem.replay(turns, label=label, progress=False)
        if ager:
            mem.mnests.apply_ager(ager)
        return Page(mk.report(mem, tmp_path / "page.html").read_text(encoding="utf-8"))


def test_a_passing_without_a_time_shows_no_instant(tmp_path):
    page = page_of(tmp_path, {"made": log("s1", "s2", version="v1")})
    assert "1970" not in page.text
    assert re.search(r"find buy v1 0\.450 2 2 –", page.text)
    assert not any("1970" in str(spec) for spec in page.specs.values())


def test_edges_that_have_faded_are_counted_above_the_table_with_the_way_to_see_them(tmp_path):
    page = page_of(tmp_path, {"tau2": mk.datasets.tau2()}, ager="2025-08-29T00:00Z")
    unseen = "Not shown: 243 faded (decaying) edges with 243 passings; states=['active', 'decaying'] shows them"
    assert f"{unseen} too." in page.text, "in the caption of the chart"
    assert f"{unseen} in charts.edge_weights." in page.text
    assert "heaviest of 377 active edges" in page.text


def test_a_page_on_which_all_edges_have_faded_says_so(tmp_path):
    page = page_of(tmp_path, {"tau2": mk.datasets.tau2()}, ager="2026-08-29T00:00Z")
    assert "Not shown: 620 faded (decaying) edges with 4,087 passings" in page.text


def versions_compared(page: Page) -> str | None:
    found = re.search(r"Which hand-overs differ between ([^?]*)\?", page.text)
    return found.group(1) if found else None


def both(one: str | None, other: str | None) -> pl.DataFrame:
    return pl.concat([log(*(f"{number}{version}" for number in range(4)), version=version) for version in (one, other)])


def test_only_versions_of_one_source_are_compared(tmp_path):
    assert versions_compared(page_of(tmp_path, {"a": both("v1", "v2")})) == "v1 and v2"
    assert versions_compared(page_of(tmp_path, {"a": log("s1", version="v1"), "b": log("s2", version="v2")})) is None
    # A version that two sources have stands for both of them.
    assert versions_compared(page_of(tmp_path, {"a": both("v1", "v2"), "b": log("s3", version="v2")})) is None
    assert versions_compared(page_of(tmp_path, {"a": both("v1", "v2"), "b": log("s3", version="w")})) == "v1 and v2"


def test_what_has_no_version_is_no_version_to_compare(tmp_path):
    assert versions_compared(page_of(tmp_path, {"a": log("s1"), "b": log("s2"), "c": log("s3", version="v1")})) is None
    assert versions_compared(page_of(tmp_path, {"a": both(None, "v1")})) is None


def test_edges_that_no_log_tells_of_are_compared_too(tmp_path):
    with mk.open() as mem:
        for version in ("v1", "v2"):
            for day in range(1, 6):
                mem.mnests.record_passing("find", version, "buy", version, at=f"2025-08-0{day}T12:00Z")
        page = Page(mk.report(mem, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert versions_compared(page) == "v1 and v2"


def test_what_is_different_in_nearly_every_session_is_no_setting():
    slugs = [f'{{"slug": "{name}", "mode": "{mode}"}}' for name, mode in zip("abccdefg", "xxxxyyyy", strict=True)]
    metas = pl.DataFrame({"executor_version": ["v"] * 8, "scope": ["s"] * 8, "meta": slugs, "sessions": [1] * 8})
    assert configurations(metas)["setting"].unique().to_list() == ["mode"]
    # The same few values in many sessions are a setting, even if a version has been run but once with each.
    runs = {"v": [1, 1, 1], "w": [9, 9, 9]}
    metas = pl.DataFrame(
        [
            (version, "s", f'{{"mode": "{m}"}}', n)
            for version, ns in runs.items()
            for m, n in zip("xyz", ns, strict=True)
        ],
        schema=["executor_version", "scope", "meta", "sessions"],
        orient="row",
    )
    assert configurations(metas)["executor_version"].unique().sort().to_list() == ["v", "w"]


def test_the_name_that_claude_code_gives_a_session_is_no_setting():
    with mk.open() as mem:
        mem.replay(Path(__file__).parent / "data" / "traces" / "claude_code", progress=False)
        slugs = mem.sql("SELECT count(DISTINCT meta->>'slug') AS n FROM turns")["n"].item()
        settings = read_facts(mem).configurations
    assert slugs > 5
    assert settings.is_empty()


def test_edges_whose_weights_read_the_same_stand_in_the_order_of_their_passings():
    frame = made.mnests(("a", "b", 0.6121, 3), ("a", "c", 0.6119, 9), ("a", "d", 0.7, 1))
    with mk.open() as mem:
        assert strongest_edges(mem, frame, 3)["uses"].to_list() == [1, 9, 3]


def test_paths_on_a_terminal_have_the_versions_of_the_table_of_edges():
    with mk.open() as mem:
        mem.replay(mk.datasets.tau2(), progress=False)
        walks = mem.mnests.walk("get_details_by_id")
        shown = terminal.paths(walks).head(4)
        versions = terminal.edges(mem.frame("mnests"))["versions"].unique().to_list()
    assert shown.select("path", "versions").is_unique().all()
    assert set(shown["versions"]) == set(versions) == {"gpt-4.1", "ft:gpt-4.1-…sft:BzrYdMNm"}


def test_a_path_through_several_versions_names_them_all():
    walk = made.walk((["find", "buy", "pay"], 0.6)).with_columns(
        versions=pl.lit(["1", "2", None], dtype=pl.List(pl.String))
    )
    assert terminal.paths(walk).select("path", "versions").rows() == [("find -> buy -> pay", "1 -> 2 -> (wanted)")]


def test_an_edge_on_a_terminal_has_no_instant_where_the_log_had_no_times():
    frame = made.mnests(("a", "b", 0.4, 2))
    assert terminal.edges(frame)["last_used"].to_list() == ["2025-08-01 12:00"]
    assert terminal.edges(frame.with_columns(untimed=pl.lit(value=True)))["last_used"].to_list() == [None]


def test_there_is_a_heatmap_a_lineage_tree_tables_and_honest_notes(tau2):
    captions = tau2.text
    for words in (
        "Which executor hands its output to which, and how strong is the edge?",
        "Which versions grew from which, and which of them succeed?",
        "How many sessions succeeded, by executor version?",
        "Which executors fail, and how often?",
        "Which hand-overs differ between",
        "The first 20 of 270 procedures.",
        "heaviest of",
        "Telemetry proves nothing by itself",
        "left out",
    ):
        assert words in captions
    assert tau2.elements["figure"] == len(tau2.specs) >= 5


def test_the_page_would_load_nothing_from_anywhere(tau2_page, tau2):
    assert not remote_addresses(tau2_page)
    assert tau2.policy.startswith("default-src 'none';")
    assert not any('"url"' in str(spec) or "'url'" in str(spec) for spec in tau2.specs.values())


def test_only_the_pages_own_two_scripts_may_run(tau2, hostile_page):
    for page in (tau2, Page(hostile_page)):
        assert len(page.scripts) == 2
        for script in page.scripts:
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in page.policy
        allowed = next(part for part in page.policy.split(";") if "script-src" in part)
        assert "unsafe" not in allowed


def test_no_text_from_a_store_becomes_an_element_or_a_handler(hostile_page):
    page = Page(hostile_page)
    assert page.elements["img"] == page.elements["iframe"] == 0
    assert page.elements["script"] == len(page.specs) + 2
    assert page.elements["style"] == page.elements["title"] == page.elements["body"] == 1
    assert not page.handlers


def test_hostile_names_arrive_unchanged_as_text_and_in_the_data_of_charts(hostile_page):
    page = Page(hostile_page)
    assert "document.title='ran'</script>" in page.text
    executors = {
        row.get("src_executor")
        for spec in page.specs.values()
        for rows in spec.get("datasets", {}).values()
        for row in rows
    }
    assert f"find {HOSTILE}" in executors


def test_no_persons_id_is_on_the_page(hostile_page):
    assert "person-7" not in hostile_page


def test_what_the_log_does_not_tell_is_said(hostile_page):
    page = Page(hostile_page)
    assert "4 calls have no time in the log" in page.text


def test_a_page_of_an_empty_memory_says_that_nothing_is_there(tmp_path):
    with mk.open() as mem:
        page = Page(mk.report(mem, tmp_path / "empty.html").read_text(encoding="utf-8"))
    assert "No log was replayed into this memory." in page.text
    assert "Telemetry proves nothing by itself" in page.text


def test_memory_writes_and_nights_of_the_ager_have_their_sections(tmp_path):
    with mk.open() as mem:
        with mem.session("s1", user_id="learner", brain_id="b1") as session:
            session.add("keys hang by the door", at="2025-08-01T12:00:00+00:00")
        mem.mnests.record_passing("find", "1", "buy", "1", at="2025-08-01T12:00:00+00:00")
        mem.mnests.apply_ager("2025-12-01T03:00:00+00:00")
        page = Page(mk.report(mem, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "What was written to memory when, and what became of it?" in page.text
    assert "What did each night of the ager do to the edges?" in page.text
    assert "keys hang" not in page.text


def test_the_page_suits_light_dark_and_narrow_screens(tau2_page):
    assert "prefers-color-scheme: dark" in tau2_page
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in tau2_page
    assert "max-width: 40rem" in tau2_page


def test_a_page_in_a_folder_that_is_not_there_is_refused(tmp_path):
    with mk.open() as mem, pytest.raises(mk.MnemokitError, match="no page was written"):
        mk.report(mem, tmp_path / "nowhere" / "memory.html")


def test_what_came_out_of_a_session_is_no_setting():
    metas = pl.DataFrame(
        {
            "executor_version": ["v"] * 4,
            "scope": ["a", "a", None, "a"],
            "meta": ['{"reward": 1, "mode": "x"}', '{"reward": 0, "mode": "y"}', "not JSON", "[1]"],
            "sessions": [1, 2, 3, 4],
        }
    )
    assert configurations(metas).rows() == [("v", "mode", "y", "a", 2), ("v", "mode", "x", "a", 1)]
