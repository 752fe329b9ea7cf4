"""Memory streams of Generative Agents: one JSON document per persona, a node per thing remembered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path

from mnemokit.errors import CorruptLog
from mnemokit.turns.builder import Builder, OpenSession
from mnemokit.turns.documents import read_json
from mnemokit.turns.fields import BadRecord, Obj, as_list, as_obj, instant, meta_text, name, text, whole
from mnemokit.turns.protocol import MemoryWrite, ReadOptions, TurnBatch
from mnemokit.turns.sniff import Head

_NODE = re.compile(r"node_\d+")


@dataclass(frozen=True, slots=True)
class GenerativeAgentsReader:
    """Reader of the associative memory of a persona (``nodes.json``).

    The file holds memory writes and no steps: one session per persona with one row without an executor, the other
    nodes count as ignored; `read_memory_writes` gives them. ``created`` is the simulation's clock, taken as UTC.
    """

    name: str = "generative_agents"
    passings: str = "grouped"
    captures: str = "session"

    def sniff(self, head: Head) -> str | None:
        """Recognise the document by the keys of its first node."""
        for key, value in list(head.document.items())[:1]:
            node = as_obj(value) or {}
            if _NODE.fullmatch(key) and {"node_count", "poignancy"} & node.keys():
                return "a JSON document of nodes with poignancy and filling, as Generative Agents writes it"
        return None

    def read(self, path: Path, options: ReadOptions) -> Iterator[TurnBatch]:
        """One batch: the persona's row."""
        builder = Builder(self.name, str(path), options)
        persona = _persona(path)
        session = OpenSession(builder, session_id=persona, user_id=persona)
        for key, value in _nodes(path):
            try:
                session.message(_created(_node(key, value), options.zone_or_utc()))
            except BadRecord as bad:
                session.reject(key, str(bad), value)
        session.close()
        yield builder.batch()

    def memory(self, path: Path, options: ReadOptions) -> Iterator[MemoryWrite]:
        """Every node that can be used, oldest first; parents are the nodes named in ``filling``."""
        persona = _persona(path)
        for key, value in _nodes(path):
            try:
                node = _node(key, value)
                ts = _created(node, options.zone_or_utc())
                content = text(node.get("description"), "description") or ""
                kind = name(node.get("type"), "type")
            except BadRecord:
                continue
            parents = [parent for parent in as_list(node.get("filling")) if isinstance(parent, str)]
            yield MemoryWrite(
                session_id=persona,
                brain_id=persona,
                trace_key=f"{persona}/{key}",
                type=kind,
                content=content,
                parents=tuple(f"{persona}/{parent}" for parent in parents if _NODE.fullmatch(parent)),
                ts=ts,
                user_id=persona,
                meta=meta_text(
                    (
                        ("poignancy", node.get("poignancy")),
                        ("depth", node.get("depth")),
                        ("expiration", node.get("expiration")),
                    )
                ),
            )


def _persona(path: Path) -> str:
    """The persona's name: of its folder, or of the file where it is not called ``nodes.json``."""
    stem = path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".nodes")
    folders = path.absolute().parts
    if stem == "nodes" and "personas" in folders[:-2]:
        stem = folders[folders.index("personas") + 1]
    return stem.replace("_", " ")


def _nodes(path: Path) -> list[tuple[str, object]]:
    document = as_obj(read_json(path))
    if document is None or not any(_NODE.fullmatch(key) for key in document):
        raise CorruptLog(f"{path}: not a memory of Generative Agents (no object of nodes); nothing was read")
    return sorted(document.items(), key=lambda item: _number(item[1]))


def _number(value: object) -> int:
    try:
        return whole((as_obj(value) or {}).get("node_count"), "node_count")
    except BadRecord:
        return -1


def _node(key: str, value: object) -> Obj:
    node = as_obj(value)
    if node is None or _NODE.fullmatch(key) is None:
        raise BadRecord("a node that is no object, or is not called node_<number>")
    return node


def _created(node: Obj, zone: tzinfo) -> datetime | None:
    return instant(node.get("created"), "created", zone)
