"""Reports of Auto-GPT-Benchmarks: one JSON document per run, with nested suites of tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.turns.builder import Builder, OpenSession
from mnemokit.turns.documents import read_json
from mnemokit.turns.fields import BadRecord, Obj, as_obj, as_text, flag, instant, meta_text, name, name_or_none, text
from mnemokit.turns.protocol import ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head

_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?) seconds?")
_MINUTES_FORM = "%Y-%m-%d-%H:%M"


@dataclass(frozen=True, slots=True)
class AgbReader:
    """Reader of Auto-GPT-Benchmarks reports (``report.json``).

    Session: agent and run folder. Every test that was really attempted is one step, all in one parallel group, so
    that they make no passings; each is a capture by itself (scope the agent, question the test). A test was
    attempted if ``attempted`` is true, or is missing and ``fail_reason`` does not say that it depends on another
    one; the others, and the suites that hold tests, count as ignored. Version: commit of the benchmark, else of the
    agent. ``ts`` is the run's completion; naive ones are UTC.
    """

    name: str = "agb"
    passings: str = "grouped"
    captures: str = "attempt"

    def sniff(self, head: Head) -> str | None:
        """Recognise the document by its top keys."""
        if {"command", "completion_time"} <= head.document.keys() or (
            "tests" in head.document and "benchmark_start_time" in head.document
        ):
            return "a JSON document with command, completion_time and tests, as agbenchmark writes it"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch for the whole report."""
        report = as_obj(read_json(path))
        tests = as_obj(report.get("tests")) if report else None
        if report is None or tests is None:
            raise CorruptLog(f"{path}: not a benchmark report (no object 'tests'); nothing was read")
        builder = Builder(self.name, str(path), options)
        try:
            session, completed = _session(builder, report, path)
        except BadRecord as bad:
            raise CorruptLog(f"{path}: not a benchmark report ({bad}); nothing was read") from None
        for step, (place, test, entry) in enumerate(_entries(tests, "tests")):
            if entry is not None and "tests" in entry:
                session.message(completed)
                continue
            try:
                _read_test(session, completed, step, test, entry)
            except BadRecord as bad:
                session.reject(place, str(bad), entry)
        session.close()
        yield builder.batch()


def _session(builder: Builder, report: Obj, path: Path) -> tuple[OpenSession, datetime | None]:
    agent, run = _agent_and_run(path, builder.options.base)
    version = name_or_none(
        report.get("benchmark_git_commit_sha") or report.get("git_commit_sha"), "benchmark_git_commit_sha"
    )
    session = OpenSession(
        builder, session_id=name(f"{agent}/{run}", "the run's folder"), executor_version=version, scope=agent
    )
    return session, _completed(report.get("completion_time"), builder.options)


def _agent_and_run(path: Path, base: Path | None) -> tuple[str, str]:
    """The first folder below ``reports`` (else below the folder that was given) and the folders below that."""
    folders = list(path.absolute().parent.parts)
    start = len(folders) - 2
    if "reports" in folders[:-1]:
        start = folders.index("reports") + 1
    elif base is not None and len(path.absolute().relative_to(base.absolute()).parts) > 2:
        start = len(base.absolute().parts)
    start = max(0, min(start, len(folders) - 2))
    return folders[start], "/".join(folders[start + 1 :])


def _completed(value: object, options: ReadOptions) -> datetime | None:
    """Completion, in one of its two forms: ISO 8601 with zone, or ``2023-07-31-02:07``, naive."""
    found = text(value, "completion_time", longest=64)
    if found is None:
        return None
    try:
        return datetime.strptime(found, _MINUTES_FORM).replace(tzinfo=options.zone_or_utc()).astimezone(UTC)
    except ValueError:
        return instant(found, "completion_time", options.zone_or_utc())


def _entries(tests: Obj, place: str) -> Iterator[tuple[str, str, Obj | None]]:
    """Every suite and test, suites before what they hold."""
    waiting = [(f"{place}.{key}", key, as_obj(value)) for key, value in reversed(tests.items())]
    while waiting:
        where, key, entry = waiting.pop()
        yield where, key, entry
        inner = as_obj(entry.get("tests")) if entry else None
        if inner is not None:
            waiting += [(f"{where}.tests.{name}", name, as_obj(value)) for name, value in reversed(inner.items())]


def _read_test(session: OpenSession, completed: datetime | None, step: int, test: str, entry: Obj | None) -> None:
    metrics = as_obj(entry.get("metrics")) if entry else None
    if metrics is None:
        raise BadRecord("a test without metrics")
    reason = as_text(metrics.get("fail_reason")) or ""
    attempted = flag(metrics.get("attempted"), "metrics.attempted")
    if attempted is False or (attempted is None and "depends on" in reason):
        session.message(completed)
        return
    executor = name(test, "the test's name")
    ok = flag(metrics.get("success"), "metrics.success")
    session.question = executor
    session.call(
        turn_id=f"{session.session_id}:{step}",
        step=step,
        parallel_group=0,
        executor=executor,
        ts=completed,
        ok=ok,
        meta=meta_text(
            (
                ("difficulty", metrics.get("difficulty")),
                ("run_time_seconds", _seconds(metrics.get("run_time"))),
                ("cost", metrics.get("cost")),
            )
        ),
    )


def _seconds(value: object) -> float | None:
    match = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return float(match.group(1)) if match else None
