"""Cut small excerpts from the raw logs for the tests of the readers.

    python tests/data/make_excerpts.py RAW_FOLDER

RAW_FOLDER holds a folder per log, as data/README.md lists them. What is kept is real; long texts are cut to 160
characters. `traces` and `metnos` are copied as they are.
"""

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
MAX_CHARS = 160


def cut(value):
    """The same value with long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARS else value[:MAX_CHARS] + "…[cut]"
    if isinstance(value, list):
        return [cut(item) for item in value]
    if isinstance(value, dict):
        return {key: cut(item) for key, item in value.items()}
    return value


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")
    print(f"{path.relative_to(HERE)}: {path.stat().st_size} bytes")


def tau2(raw, out):
    """Four simulations of each of two runs: with parallel calls, errors, calls by the user, and without a reward."""
    for name in ("gpt-4.1_airline_default_gpt-4.1_1trials.json", "gpt-4.1-ft_telecom_default_gpt-4.1_1trials.json"):
        run = json.loads((raw / "tau2" / name).read_text())
        telling = sorted(run["simulations"], key=interest, reverse=True)[:2]
        run["simulations"] = [
            *run["simulations"][:2],
            *(item for item in telling if item not in run["simulations"][:2]),
        ]
        run["tasks"] = []
        for simulation in run["simulations"]:
            simulation["reward_info"] = {"reward": simulation["reward_info"]["reward"]}
            for message in simulation["messages"]:
                message.pop("raw_data", None)
        write(out / "tau2" / name, cut(run))
    shutil.copy(raw / "tau2" / "LICENSE", out / "tau2")


def interest(simulation):
    messages = simulation["messages"]
    parallel = sum(len(message.get("tool_calls") or []) > 1 for message in messages)
    errors = sum(bool(message.get("error")) for message in messages)
    return (parallel > 0) + (errors > 0), parallel + errors


def agb(raw, out):
    """Three runs, the smallest of their kind: either form of the time, nested suites, `attempted` there and missing."""
    folder = raw / "agb_reports" / "reports"
    reports = sorted(folder.glob("*/*/report.json"), key=lambda path: (path.stat().st_size, str(path)))
    kinds = {}
    for path in reports:
        report = json.loads(path.read_text())
        tests = list(leaves(report["tests"]))
        attempted = sum(test["metrics"].get("attempted") is True for test in tests)
        missing = sum("attempted" not in test["metrics"] for test in tests)
        nested = any("tests" in test for test in report["tests"].values())
        kind = ("T" in report["completion_time"], missing > 0)
        if nested and (attempted > 2 or missing > 5) and any(test["metrics"]["success"] for test in tests):
            kinds.setdefault(kind, path)
    for path in kinds.values():
        write(out / "agb" / path.relative_to(folder.parent), cut(json.loads(path.read_text())))
    shutil.copy(raw / "agb_reports" / "LICENSE", out / "agb")


def leaves(tests):
    for test in tests.values():
        if "tests" in test:
            yield from leaves(test["tests"])
        else:
            yield test


def reflexion(raw, out):
    """The first 25 environments of the first four trials."""
    folder = "alfworld_runs/reflexion_run_logs"
    for trial in range(4):
        name = f"env_results_trial_{trial}.json"
        entries = json.loads((raw / "reflexion" / folder / name).read_text())
        write(out / "reflexion" / folder / name, cut(entries[:25]))
    shutil.copy(raw / "reflexion" / "LICENSE", out / "reflexion")


def generative_agents(raw, out):
    """The oldest 120 nodes of one persona, and the newest 40."""
    name = "Klaus_Mueller.nodes.json"
    nodes = json.loads((raw / "generative_agents" / name).read_text())
    kept = list(nodes.items())[:40] + list(nodes.items())[-120:]
    write(out / "generative_agents" / name, cut(dict(kept)))
    shutil.copy(raw / "generative_agents" / "LICENSE", out / "generative_agents")


def main(raw):
    out = HERE / "raw"
    tau2(raw, out)
    agb(raw, out)
    reflexion(raw, out)
    generative_agents(raw, out)
    for name in ("langfuse", "claude_code", "atif", "openhands", "swe_agent", "inspect"):
        shutil.copytree(raw / "traces" / name, HERE / "traces" / name, dirs_exist_ok=True)
    shutil.copy(raw / "metnos" / "turns.jsonl", HERE / "metnos")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
