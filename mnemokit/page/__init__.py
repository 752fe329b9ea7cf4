"""A memory as one HTML page that opens anywhere, without a network."""

from __future__ import annotations

import os
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from mnemokit.errors import InvalidInput
from mnemokit.page.html import Markup, joined, script_hash, tag, text

if TYPE_CHECKING:
    from mnemokit.memory import Memory


def report(
    mem: Memory, path: str | os.PathLike[str] = "memory.html", *, title: str = "What this memory learned"
) -> Path:
    """Write a page that shows what is in a memory: counts, outcomes, procedures, lineages, edges, failures.

    The page is one file with everything inside it: charts, their data, and the program that draws them. It makes no
    request to any network, and its content security policy forbids it to. Every text from the memory is escaped. No
    person's id is on it; questions and the names of executors are.

    Args:
        mem: The memory; it is only read.
        path: The file to write; an older one is replaced.
        title: The page's heading.

    Returns:
        The path.

    Raises:
        InvalidInput: If the folder does not exist.

    Example:
        >>> import tempfile
        >>> import mnemokit as mk
        >>> with tempfile.TemporaryDirectory() as folder, mk.open() as mem:
        ...     mk.report(mem, Path(folder) / "memory.html").name
        'memory.html'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"the folder {target.parent} does not exist; no page was written; make it first")
    target.write_text(_page(mem, title), encoding="utf-8")
    return target


def _page(mem: Memory, title: str) -> str:
    # Charts load Altair, which takes longer than the rest of the package together; only a page needs it here.
    from mnemokit.page.facts import read_facts
    from mnemokit.page.figures import Figures
    from mnemokit.page.sections import all_sections, lead

    facts = read_facts(mem)
    sections = all_sections(mem, facts, Figures())
    libraries, script = _libraries(), _template("page.js")
    policy = (
        f"default-src 'none'; script-src {script_hash(libraries)} {script_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts: dict[str, Markup] = {
        "policy": text(policy),
        "title": text(title),
        "style": Markup(_template("page.css")),
        "lead": tag("p", lead(facts, mem.path), class_="soft"),
        "contents": joined(tag("a", section.title, href=f"#{section.name}") for section in sections),
        "sections": joined(
            tag("section", tag("h2", section.title), section.body, id=section.name) for section in sections
        ),
        "footer": text(f"Made by mnemokit {version('mnemokit')}. This file needs no network, and asks for none."),
        "libraries": Markup(libraries),
        "script": Markup(script),
    }
    return Template(_template("page.html")).substitute({name: part.text for name, part in parts.items()})


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the installed vl-convert; nothing is downloaded."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


@cache
def _template(name: str) -> str:
    return resources.files("mnemokit").joinpath("templates", name).read_text(encoding="utf-8")
