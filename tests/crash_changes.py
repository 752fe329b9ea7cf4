"""A process that is forked and killed: for each line read, a child writes to a store and dies where it is told to.

Nothing of DuckDB runs in the parent, so that its children start in a moment and their death is a real one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

from mnemokit.changes.namespace import Changes
from mnemokit.changes.sessions import Session
from mnemokit.changes.states import Step
from mnemokit.store import Store

WORDS = "the words of vera"

WRITES: dict[str, Callable[[Session, list[str]], object]] = {
    "add": lambda session, ids: session.add([WORDS, "otto one"], contributor_ids=["vera"]),
    "update": lambda session, ids: session.update(ids[0], content=WORDS, tags=["t"], contributor_ids=["vera"]),
    "delete": lambda session, ids: session.delete(ids, contributor_ids=["vera"]),
    "merge": lambda session, ids: session.merge(ids, content=WORDS, contributor_ids=["vera"]),
    "rolling_summary": lambda session, ids: session.rolling_summary(WORDS, contributor_ids=["vera"]),
}


def prepare(store: Store) -> list[str]:
    """What is there before: two traces and a summary by somebody else."""
    otto = Changes(store).session("s0", user_id="otto", brain_id="brain")
    otto.rolling_summary("so far")
    return list(otto.add(["otto one", "otto two"], tags=["kept"], metadata={"x": 1}).trace_ids)


def die(step: Step) -> Callable[[Step], None]:
    """Kill this process when the step begins."""

    def observe(now: Step) -> None:
        if now is step:
            os.kill(os.getpid(), signal.SIGKILL)

    return observe


def run(case: dict) -> None:
    """Do what the case says; the process dies on the way."""
    store = Store(case["path"])
    killer = die(Step(case["step"]))
    meanwhile, write = case.get("meanwhile"), case["write"]

    def observe(now: Step) -> None:
        if meanwhile == "verdict fails" and now is Step.WRITE_VERDICT:
            raise RuntimeError("no verdict can be written")
        if meanwhile == "forget" and now is Step.READ_TOMBSTONES:
            Changes(store).forget_user("vera")
        if meanwhile == "tombstone only" and now is Step.READ_TOMBSTONES:
            Changes(store, killer).forget_user("vera")
        killer(now)

    changes = Changes(store, observe)
    if write == "forget":
        changes.forget_user("vera")
    elif write == "revert":
        changes.revert(case["change_id"])
    else:
        WRITES[write](changes.session("s1", user_id="lena", brain_id="brain"), case["ids"])
    os._exit(3)


def main() -> None:
    """Fork for every line."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
        status = os.waitpid(child, 0)[1]
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
