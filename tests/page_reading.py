"""A page read back as a browser's parser reads it: elements, handlers, scripts, data and words."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser


class Page(HTMLParser):
    """The parsed page."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: Counter[str] = Counter()
        self.handlers: list[str] = []
        self.policy = ""
        self.scripts: list[str] = []
        self.specs: dict[str, dict[str, object]] = {}
        self.words: list[str] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements[tag] += 1
        told = dict(attrs)
        self.handlers.extend(name for name in told if name.startswith("on"))
        if told.get("http-equiv") == "Content-Security-Policy":
            self.policy = told["content"] or ""
        if tag in ("script", "style"):
            self._open.append((tag, told))
            if tag == "script":
                self.scripts.append("")

    def handle_endtag(self, tag):
        if self._open and self._open[-1][0] == tag:
            _, told = self._open.pop()
            if tag == "script" and told.get("type") == "application/json":
                self.specs[str(told["id"])] = json.loads(self.scripts.pop())

    def handle_data(self, data):
        if not self._open:
            self.words.append(data)
        elif self._open[-1][0] == "script":
            self.scripts[-1] += data

    @property
    def text(self) -> str:
        """What a reader sees, before any script has run."""
        return " ".join(" ".join(self.words).split())
