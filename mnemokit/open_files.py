"""Which files this process has open, how often, and the queue of each file's writers.

DuckDB lets one process hold a file, so everybody who writes to it is in this process: they queue here instead of
meeting in a conflict that one of them loses, which a slow writer could lose again and again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class OpenFile:
    """A file that is open: by how many stores, and the lock that its writers take in turn.

    A store takes its own lock first and this one second, always, so that two stores never wait for each other.
    """

    stores: int = 0
    writing: threading.RLock = field(default_factory=threading.RLock)


_files: dict[Path, OpenFile] = {}
_files_lock = threading.Lock()


def note_open(path: Path) -> OpenFile:
    """One store more has the file open."""
    with _files_lock:
        file = _files.setdefault(path.resolve(), OpenFile())
        file.stores += 1
        return file


def note_closed(path: Path) -> None:
    """One store fewer has the file open."""
    with _files_lock:
        file = _files[path.resolve()]
        file.stores -= 1
        if not file.stores:
            del _files[path.resolve()]
