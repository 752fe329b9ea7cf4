"""The readers that come with mnemokit, and those that other packages register."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from mnemokit.errors import InvalidInput
from mnemokit.turns.protocol import Reader
from mnemokit.turns.readers.agb import AgbReader
from mnemokit.turns.readers.atif import AtifReader
from mnemokit.turns.readers.canonical import CanonicalReader
from mnemokit.turns.readers.claude_code import ClaudeCodeReader
from mnemokit.turns.readers.generative_agents import GenerativeAgentsReader
from mnemokit.turns.readers.inspect import InspectReader
from mnemokit.turns.readers.langfuse import LangfuseReader
from mnemokit.turns.readers.langsmith import LangSmithReader
from mnemokit.turns.readers.metnos import MetnosReader
from mnemokit.turns.readers.openai_agents import OpenAIAgentsReader
from mnemokit.turns.readers.openhands import OpenHandsReader
from mnemokit.turns.readers.otlp import OtlpReader
from mnemokit.turns.readers.reflexion import ReflexionReader
from mnemokit.turns.readers.swe_agent import SweAgentReader
from mnemokit.turns.readers.tau2 import Tau2Reader
from mnemokit.turns.readers.tau_bench import TauBenchReader

ENTRY_POINT_GROUP = "mnemokit.readers"

_OWN: tuple[Reader, ...] = (
    CanonicalReader(),
    Tau2Reader(),
    TauBenchReader(),
    AgbReader(),
    ReflexionReader(),
    GenerativeAgentsReader(),
    MetnosReader(),
    ClaudeCodeReader(),
    OpenHandsReader(),
    SweAgentReader(),
    AtifReader(),
    InspectReader(),
    LangfuseReader(),
    LangSmithReader(),
    OpenAIAgentsReader(),
    OtlpReader(),
)


@cache
def all_readers() -> dict[str, Reader]:
    """Every reader by name: those registered by other packages, then mnemokit's own.

    Example:
        >>> "tau2" in all_readers()
        True
    """
    found: dict[str, Reader] = {}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        try:
            reader = _loaded(point)
            found[reader.name] = reader
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the other readers still read
            why = str(error) if isinstance(error, _NoReaderError) else told(error)
            warnings.warn(
                f"the reader {point.name!r} ({point.value}) cannot be loaded and is left out: {why}", stacklevel=2
            )
    for reader in _OWN:
        found.setdefault(reader.name, reader)
    return found


def is_own(reader: Reader) -> bool:
    """Whether a reader comes with mnemokit, whose tests hold it to what batches must be."""
    return any(reader is own for own in _OWN)


def told(error: Exception) -> str:
    """An error of foreign code in one short line.

    Example:
        >>> told(KeyError("x"))
        "KeyError: 'x'"
    """
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"


class _NoReaderError(Exception):
    """What was loaded is no reader."""


def _loaded(point: EntryPoint) -> Reader:
    loaded: object = point.load()
    reader: object = loaded() if isinstance(loaded, type) else loaded
    for attribute in ("name", "passings", "captures"):
        value = getattr(reader, attribute, None)
        if not isinstance(value, str) or not value:
            raise _NoReaderError(f"it has no {attribute}")
    for method in ("sniff", "read"):
        if not callable(getattr(reader, method, None)):
            raise _NoReaderError(f"it has no {method}")
    return cast("Reader", reader)


def reader_named(name: str) -> Reader:
    """The reader of this name.

    Raises:
        InvalidInput: If there is none; the message lists the names there are.
    """
    readers = all_readers()
    if name not in readers:
        raise InvalidInput(f"source={name!r} is no reader; use 'auto' or one of {', '.join(sorted(readers))}")
    return readers[name]
