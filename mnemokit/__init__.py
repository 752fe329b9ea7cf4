"""mnemokit: the memory of AI agents, in dataframes.

``mk.open`` opens a memory, ``mem.replay`` fills it from logged turns, ``mem.reasonlets.rank`` and ``mem.mnests`` read
it, ``mk.evaluate`` asks whether it was right.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mnemokit.errors import (
    ConcurrentWrite,
    Conflict,
    CorruptLog,
    Forgotten,
    InvalidInput,
    MissingExtra,
    MnemokitError,
    NotEnoughData,
    NotFound,
    QueryError,
    ReadOnly,
    StoreLocked,
    StoreVersion,
    UnknownFormat,
)
from mnemokit.records import (
    AgerStats,
    CaptureKind,
    EdgeParams,
    MnestState,
    RankParams,
    Receipt,
    ReplayReport,
    Verdict,
)

if TYPE_CHECKING:
    from mnemokit import charts, datasets, evaluate, spark
    from mnemokit.changes.session_change import SessionChange
    from mnemokit.evaluate.comparing.edges import EdgesLeftOut
    from mnemokit.fold.ageing import age
    from mnemokit.fold.edge_weights import decay
    from mnemokit.fold.passings import fold_passings
    from mnemokit.memory import Memory
    from mnemokit.memory import open_memory as open  # noqa: A004 - mk.open is the name that users know
    from mnemokit.page import report
    from mnemokit.reasonlets.embedding import Embedder, WordLlamaEmbedder
    from mnemokit.reasonlets.ranking import rank
    from mnemokit.turn_log import TurnLog
    from mnemokit.turns.derive import derive_captures, derive_passings
    from mnemokit.turns.frame import UnusedColumn, check_turns
    from mnemokit.turns.memory_writes import read_memory_writes
    from mnemokit.turns.reading import EmptyLog, RejectedRecords, read_batches, read_turns

__version__ = "0.1.0"

__all__ = [
    "AgerStats",
    "CaptureKind",
    "ConcurrentWrite",
    "Conflict",
    "CorruptLog",
    "EdgeParams",
    "EdgesLeftOut",
    "Embedder",
    "EmptyLog",
    "Forgotten",
    "InvalidInput",
    "Memory",
    "MissingExtra",
    "MnemokitError",
    "MnestState",
    "NotEnoughData",
    "NotFound",
    "QueryError",
    "RankParams",
    "ReadOnly",
    "Receipt",
    "RejectedRecords",
    "ReplayReport",
    "SessionChange",
    "StoreLocked",
    "StoreVersion",
    "TurnLog",
    "UnknownFormat",
    "UnusedColumn",
    "Verdict",
    "WordLlamaEmbedder",
    "age",
    "charts",
    "check_turns",
    "datasets",
    "decay",
    "derive_captures",
    "derive_passings",
    "evaluate",
    "fold_passings",
    "open",
    "rank",
    "read_batches",
    "read_memory_writes",
    "read_turns",
    "report",
    "spark",
]

# Loaded when first asked for: importing mnemokit is quick, and loads no package that the program does not use.
_LATE = {
    "EdgesLeftOut": ("mnemokit.evaluate.comparing.edges", "EdgesLeftOut"),
    "Embedder": ("mnemokit.reasonlets.embedding", "Embedder"),
    "EmptyLog": ("mnemokit.turns.reading", "EmptyLog"),
    "Memory": ("mnemokit.memory", "Memory"),
    "RejectedRecords": ("mnemokit.turns.reading", "RejectedRecords"),
    "SessionChange": ("mnemokit.changes.session_change", "SessionChange"),
    "TurnLog": ("mnemokit.turn_log", "TurnLog"),
    "UnusedColumn": ("mnemokit.turns.frame", "UnusedColumn"),
    "WordLlamaEmbedder": ("mnemokit.reasonlets.embedding", "WordLlamaEmbedder"),
    "age": ("mnemokit.fold.ageing", "age"),
    "charts": ("mnemokit.charts", None),
    "check_turns": ("mnemokit.turns.frame", "check_turns"),
    "datasets": ("mnemokit.datasets", None),
    "decay": ("mnemokit.fold.edge_weights", "decay"),
    "derive_captures": ("mnemokit.turns.derive", "derive_captures"),
    "derive_passings": ("mnemokit.turns.derive", "derive_passings"),
    "evaluate": ("mnemokit.evaluate", None),
    "fold_passings": ("mnemokit.fold.passings", "fold_passings"),
    "open": ("mnemokit.memory", "open_memory"),
    "rank": ("mnemokit.reasonlets.ranking", "rank"),
    "read_batches": ("mnemokit.turns.reading", "read_batches"),
    "read_memory_writes": ("mnemokit.turns.memory_writes", "read_memory_writes"),
    "read_turns": ("mnemokit.turns.reading", "read_turns"),
    "report": ("mnemokit.page", "report"),
    "spark": ("mnemokit.spark", None),
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for."""
    if name not in _LATE:
        raise AttributeError(f"module 'mnemokit' has no attribute {name!r}")
    module_name, attribute = _LATE[name]
    module = import_module(module_name)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Every public name."""
    return sorted(__all__)
