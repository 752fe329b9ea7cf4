"""The command line: teaches, prints, and never shows a traceback for a user's mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mnemokit as mk
from mnemokit.cli import main


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "memory.duckdb"
    with mk.open(path) as mem:
        mem.replay(mk.datasets.tau2().head(600))
        mem.mnests.record_passing("look_up", "1", "wish", dst_exists=False, at="2025-08-01T00:00:00Z")
    return path


COMMANDS = ["demo", "replay", "ager", "rank", "recall", "walk", "forget", "scrub", "export", "report", "evaluate",
            "doctor", "prune", "import-metnos"]  # fmt: skip


def test_help_teaches_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for command in COMMANDS:
        assert command in out
    assert "mnemokit demo" in out
    assert run(capsys)[0] == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_commands_help_says_what_it_does_and_takes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert "Usage" in out
    assert len(out.splitlines()) > 5


def test_the_demo_shows_the_facts_of_the_log_and_writes_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "demo", "--page", tmp_path / "page.html", "--memory", tmp_path / "kept.duckdb")
    assert (code, err) == (0, "")
    for fact in (
        "280 sessions", "3,866 tool calls (902 by the user side)", "49 tool errors", "4,087 grouped",
        "3,586 successive", "100 new reasonlets", "170 versions", "10 plain runs", "Ranked procedures",
        "Strongest edges", str(tmp_path / "page.html"),
    ):  # fmt: skip
        assert fact in out, fact
    assert " 82 " in out
    assert " 111 " in out
    assert (tmp_path / "page.html").stat().st_size > 100_000
    assert run(capsys, "demo", "--memory", tmp_path / "kept.duckdb")[0] == 2


def test_replay_takes_policies_and_a_memory_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "turns.parquet"
    mk.datasets.tau2().head(300).write_parquet(log)
    options = ("--parents", "none", "--passings", "successive", "--memory-limit", "1GB")
    assert run(capsys, "replay", tmp_path / "m.duckdb", log, *options)[0] == 0
    with mk.open(tmp_path / "m.duckdb") as mem:
        assert mem.frame("reasonlets")["parent_id"].null_count() == mem.frame("reasonlets").height > 0
    code, _, err = run(capsys, "replay", tmp_path / "other.duckdb", log, "--parents", "nearest")
    assert code == 2
    assert "use one of same_question, recall, none" in err


def test_replay_says_why_records_were_rejected_and_that_arguments_are_swapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, memory = tmp_path / "log.csv", tmp_path / "m.duckdb"
    log.write_text("session_id,step,executor,ts\na,0,find,2025-03-01T10:00:00\n", encoding="utf-8")
    code, out, err = run(capsys, "replay", memory, log)
    assert (code, err) == (0, "")
    assert "Rejected: ts has no time zone (give tz=): 1 (table rejects)." in out
    code, _, err = run(capsys, "replay", log, memory)
    assert code == 2
    assert "log.csv is not a DuckDB file; it was left as it is" in err
    code, _, err = run(capsys, "replay", tmp_path / "new.duckdb", tmp_path / "nope.csv")
    assert code == 2
    assert "there is no file at" in err
    assert not (tmp_path / "new.duckdb").exists()


def test_the_module_is_the_command_line() -> None:
    done = subprocess.run([sys.executable, "-m", "mnemokit", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "replay" in done.stdout


def test_replay_prints_the_account_and_again_the_duplicates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mk.datasets.tau2().head(200).write_parquet(tmp_path / "turns.parquet")
    code, out, _ = run(capsys, "replay", tmp_path / "m.duckdb", tmp_path / "turns.parquet", "--label", "tau2")
    assert code == 0
    assert "200 turns, 0 duplicates, 0 rejects, 0 ignored" in out
    _, out, _ = run(capsys, "replay", tmp_path / "m.duckdb", tmp_path / "turns.parquet", "--label", "tau2")
    assert "0 turns, 200 duplicates" in out
    _, out, _ = run(capsys, "replay", tmp_path / "n.duckdb", tmp_path / "turns.parquet", "--dry-run", "--no-ager")
    assert "Would give" in out


@pytest.mark.parametrize(
    "args",
    [
        ("rank",),
        ("rank", "--scope", "airline"),
        ("walk", "get_user_details"),
        ("recall", "task 1", "--scope", "airline"),
    ],
)
def test_reading_commands_print_tables_and_json_lines(
    args: tuple[str, ...], memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *rest = args
    code, out, _ = run(capsys, command, memory, *rest)
    assert code == 0
    assert out.strip()
    _, out, _ = run(capsys, command, memory, *rest, "--json", "--top", "2")
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) <= 2


def test_report_writes_the_page(memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "report", memory, tmp_path / "page.html")
    assert code == 0
    assert str(tmp_path / "page.html") in out


def test_ager_export_scrub_prune_forget_and_doctor_say_what_they_did(
    tmp_path: Path, memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.duckdb"
    with mk.open(memory) as mem:
        mem.copy_to(copy)
    assert "edges brought up to date" in run(capsys, "ager", copy, "--now", "2025-09-01T00:00:00Z")[1]
    assert "runs.parquet" in run(capsys, "export", copy, tmp_path / "out")[1]
    assert "bytes smaller" in run(capsys, "scrub", copy)[1]
    assert run(capsys, "prune", copy, "--days", "1", "--now", "2025-09-01T00:00:00Z", "--dry-run")[0] == 0
    assert run(capsys, "forget", copy, "somebody")[0] == 0
    code, out, _ = run(capsys, "doctor", copy)
    assert code == 0, out
    assert "duckdb" in out
    assert run(capsys, "evaluate", copy)[0] == 0


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["rank", "nowhere.duckdb"], "nowhere.duckdb does not exist"),
        (["rank"], "Missing argument"),
        (["sing"], "No such command"),
        (["rank", "x", "--colour"], "No such option"),
        (["ager", "MEMORY", "--now", "2025-09-01"], "time zone"),
        (["ager", "MEMORY", "--now", "soon"], "ISO 8601"),
        (["replay", "MEMORY", "no/such/*.json"], "no file"),
        (["replay", "MEMORY", "MEMORY"], "memory.duckdb"),
        (["evaluate", "MEMORY", "--target", "weather"], "weather"),
        (["walk", "MEMORY", "nobody_is_called_this"], "nobody_is_called_this"),
    ],
)
def test_a_users_mistake_gives_one_clear_line_and_exit_code_2(
    args: list[str], says: str, memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *[str(memory) if arg == "MEMORY" else arg for arg in args])
    assert code == 2
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
    assert err.startswith("mnemokit: ")


def test_the_installed_command_works_and_shows_no_traceback() -> None:
    command = Path(sys.executable).with_name("mnemokit")
    done = subprocess.run([command, "rank", "nowhere.duckdb"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
