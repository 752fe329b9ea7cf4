"""The command line: ``mnemokit --help``."""

from __future__ import annotations

import sys
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

import mnemokit as mk
from mnemokit import terminal
from mnemokit.errors import InvalidInput, MnemokitError, NotFound
from mnemokit.turns.reading import RejectedRecords, find_files

app = typer.Typer(
    name="mnemokit",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=(
        "The memory of AI agents, in one DuckDB file: procedures with versions (reasonlets), edges from tool to tool "
        "(mnests), runs, and memory writes that can be taken back.\n\n"
        "Start with 'mnemokit demo'. Then 'mnemokit replay memory.duckdb LOGS' turns your own logs into a memory, and "
        "rank, walk, report read it."
    ),
)

Store = Annotated[Path, typer.Argument(metavar="MEMORY", help="The memory file, for instance memory.duckdb.")]
At = Annotated[str | None, typer.Option("--at", help="As of this instant, ISO 8601 with an offset; else as it stands.")]
Top = Annotated[int, typer.Option("--top", min=1, help="How many rows to show.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines instead of a table.")]
Scope = Annotated[str | None, typer.Option("--scope", help="Only this scope.")]


@app.command()
def demo(
    page: Annotated[Path, typer.Option("--page", help="Where to write the HTML page.")] = Path("memory.html"),
    memory: Annotated[Path | None, typer.Option("--memory", help="Keep the memory in this new file.")] = None,
) -> None:
    """Replay a real log (280 sessions of two versions of an agent) and show what its memory learned."""
    from mnemokit.demo import show_demo

    if memory is not None and memory.exists():
        raise InvalidInput(f"{memory} exists already; the demo was not run; name a new file, or leave --memory out")
    with mk.open(memory) as mem:
        show_demo(mem, page)


@app.command()
def replay(
    memory: Store,
    logs: Annotated[list[str], typer.Argument(metavar="LOGS", help="Files, folders or globs of logged turns.")],
    source: Annotated[str, typer.Option(help="The reader's name; auto decides by content.")] = "auto",
    label: Annotated[str | None, typer.Option(help="What to call the source in the memory.")] = None,
    ager: Annotated[bool, typer.Option(help="Age the edges every night of the log.")] = True,
    strict: Annotated[bool, typer.Option(help="Stop at the first unusable record, with nothing written.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would be done; write nothing.")] = False,
    tz: Annotated[str | None, typer.Option(help="Time zone of naive timestamps.")] = None,
    passings: Annotated[str | None, typer.Option(help="Policy for passings, for instance successive.")] = None,
    captures: Annotated[str | None, typer.Option(help="Policy for captures: session, attempt or none.")] = None,
    parents: Annotated[str, typer.Option(help="How captures find parents: same_question, recall or none.")] = (
        "same_question"
    ),
    memory_limit: Annotated[str | None, typer.Option(help="How much memory DuckDB may use, such as 2GB.")] = None,
) -> None:
    """Turn logged turns into memory, exactly once: doing it twice changes nothing."""
    find_files(list(logs))  # before a memory is made for nothing
    with mk.open(memory, memory_limit=memory_limit) as mem, warnings.catch_warnings():
        warnings.simplefilter("ignore", RejectedRecords)  # the account says so
        report = mem.replay(
            list(logs),
            source=source,
            label=label,
            ager="daily" if ager else None,
            strict=strict,
            dry_run=dry_run,
            tz=tz,
            passings=passings,
            captures=captures,
            parents=parents,
        )
    terminal.say(terminal.account(report))


@app.command()
def ager(
    memory: Store,
    now: Annotated[str | None, typer.Option(help="Age the edges to this instant; else to the present.")] = None,
) -> None:
    """Let every edge fade to an instant: demote the weak, delete the protos nobody wants any more."""
    with _existing(memory, write=True) as mem:
        stats = mem.mnests.apply_ager(now)
    terminal.say(
        f"{stats.decayed} edges brought up to date ({stats.decayed_protos} protos), "
        f"{stats.demoted_to_decaying} demoted ({stats.merged} merged), "
        f"{stats.purged_protos} protos deleted, {stats.recurring_protos} protos recurring, "
        f"{stats.proposed_archive} could be archived"
    )


@app.command()
def rank(memory: Store, scope: Scope = None, at: At = None, top: Top = 20, json: Json = False) -> None:
    """Rank procedures by their record, with what each version inherited from its parent."""
    with _existing(memory) as mem:
        ranked = mem.reasonlets.rank(scope=scope, at=at)
    terminal.show(terminal.ranking(ranked), title="Ranked procedures", top=top, json=json)


@app.command()
def recall(
    memory: Store,
    question: Annotated[str, typer.Argument(help="What is asked.")],
    scope: Annotated[str, typer.Option("--scope", help="The scope to search.")],
    top: Top = 10,
    log: Annotated[bool, typer.Option("--log", help="Write down that this was asked and shown.")] = False,
    json: Json = False,
) -> None:
    """Find procedures for a question, ranked by likeness and record."""
    with _existing(memory, write=log) as mem:
        found = mem.reasonlets.recall(question, scope=scope, limit=top, log=log)
    terminal.show(terminal.recalled(found), title=f"Recalled for {question!r}", top=top, json=json)


@app.command()
def walk(
    memory: Store,
    start: Annotated[str, typer.Argument(help="The executor to start from.")],
    depth: Annotated[int, typer.Option(min=1, help="How many edges at most.")] = 3,
    top: Top = 20,
    json: Json = False,
) -> None:
    """Follow the heaviest edges from an executor."""
    with _existing(memory) as mem:
        paths = mem.mnests.walk(start, max_depth=depth, limit=top)
        if paths.is_empty() and not mem.sql(_KNOWN, {"name": start})["known"].item():
            raise NotFound(f"{memory} has no edge from or to {start!r}; an edge's names are those of executors (tools)")
    terminal.show(terminal.paths(paths), title=f"Paths from {start}", top=top, json=json)


@app.command()
def report(
    memory: Store,
    page: Annotated[Path, typer.Argument(help="The HTML file to write.")] = Path("memory.html"),
) -> None:
    """Write one HTML page about the memory; it opens without a network."""
    with _existing(memory) as mem:
        terminal.say(f"written: {mk.report(mem, page)}")


@app.command()
def forget(
    memory: Store,
    user: Annotated[str, typer.Argument(help="The person to forget.")],
    scrub: Annotated[bool, typer.Option(help="Also rewrite the file, so that no byte of it is left.")] = True,
) -> None:
    """Forget a person everywhere: their procedures, runs, feedback, turns, and every memory write about them."""
    from mnemokit.changes.forgetting import forget_everywhere

    with _existing(memory, write=True) as mem:
        terminal.say(str(forget_everywhere(mem, user)))
        if scrub:
            mem.scrub()
            terminal.say("the file was rewritten without them")


@app.command()
def scrub(memory: Store) -> None:
    """Rewrite the file so that no byte of erased rows is left in it."""
    with _existing(memory, write=True) as mem:
        terminal.say(f"{memory}: {mem.scrub():,} bytes smaller")


@app.command()
def export(memory: Store, folder: Annotated[Path, typer.Argument(help="The folder to write to.")]) -> None:
    """Write every table as Parquet."""
    with _existing(memory) as mem:
        for file in mem.export(folder):
            terminal.say(str(file))


@app.command("import-metnos")
def import_metnos(
    memory: Store,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A mnest.sqlite of that system; it is only read.")],
) -> None:
    """Take over the edges, with ids and history, of a Metnos edge store."""
    from mnemokit.mnests.metnos import import_metnos as run

    with mk.open(memory) as mem:
        terminal.say(str(run(mem, path)))


@app.command()
def evaluate(
    memory: Store,
    target: Annotated[str, typer.Option(help="runs, next_executor or recall.")] = "runs",
    top: Top = 60,
    json: Json = False,
) -> None:
    """Ask whether the memory would have been right, beside honest baselines."""
    with _existing(memory) as mem:
        scores = mk.evaluate.score(mem, target=target)
    terminal.show(scores, title=f"Was the memory right about {target}?", top=top, json=json)


@app.command()
def doctor(
    memory: Annotated[Path | None, typer.Argument(metavar="MEMORY", help="A memory file to look at.")] = None,
) -> None:
    """Say what is installed, and whether a memory file is in order."""
    from mnemokit.doctor import check_store, versions

    terminal.show(versions(), title="Installed", top=100, json=False)
    if memory is None:
        return
    with _existing(memory) as mem:
        findings = check_store(mem)
    terminal.show(findings, title=str(memory), top=1000, json=False)
    if not findings["ok"].all():
        raise typer.Exit(1)


@app.command()
def prune(
    memory: Store,
    days: Annotated[int, typer.Option(min=1, help="Unused for so many days.")],
    now: Annotated[str | None, typer.Option(help="Counted from this instant; else from the present.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; write nothing.")] = False,
) -> None:
    """Remove procedures that nobody ran or was shown for so long."""
    with _existing(memory, write=not dry_run) as mem:
        terminal.say(str(mem.reasonlets.prune(unused_for=timedelta(days=days), now=now, dry_run=dry_run)))


def main(args: list[str] | None = None) -> None:
    """Run the command line; a user's mistake gives one line and exit code 2, never a traceback."""
    code: object = 0
    try:
        code = app(args, standalone_mode=False)
    except MnemokitError as error:
        _fail(" ".join(str(error).split()))
    except TyperException as error:
        text = error.format_message()
        if text.startswith("Usage:"):
            terminal.say(text)
            sys.exit(0)
        _fail(f"{' '.join(text.split())} (see mnemokit --help)")
    except typer.Abort:
        _fail("stopped; nothing more was written")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.strerror or error}: {error.filename or ''}")
    sys.exit(code if isinstance(code, int) else 0)


_KNOWN = "SELECT count(*) > 0 AS known FROM mnests WHERE src_executor = $name OR dst_executor = $name"


def _fail(text: str) -> None:
    typer.echo(f"mnemokit: {text}", err=True)
    sys.exit(2)


def _existing(path: Path, *, write: bool = False) -> mk.Memory:
    if not path.exists():
        raise NotFound(f"{path} does not exist; make it with: mnemokit replay {path} LOGS")
    return mk.open(path, read_only=not write)
