"""Pieces of HTML: every text that comes from a store is escaped here, and nowhere else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that is safe to put into a page as it is."""

    text: str

    def __add__(self, other: Markup) -> Markup:
        """Both, one after the other."""
        return Markup(self.text + other.text)


EMPTY = Markup("")


def text(words: object) -> Markup:
    """Words as HTML, with everything escaped that means something to a browser.

    Example:
        >>> text("<b>&").text
        '&lt;b&gt;&amp;'
    """
    return Markup(html.escape(_visible(str(words)), quote=True))


def tag(name: str, *content: Markup | str, **attributes: str) -> Markup:
    """An element. Strings are escaped; an attribute ``class_`` is ``class``, and ``data_x`` is ``data-x``.

    Example:
        >>> tag("p", "1 < 2", class_="soft").text
        '<p class="soft">1 &lt; 2</p>'
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_visible(value), quote=True)}"'
        for key, value in attributes.items()
    )
    inside = "".join(piece.text if isinstance(piece, Markup) else text(piece).text for piece in content)
    return Markup(f"<{name}{said}>{inside}</{name}>")


def joined(pieces: Iterable[Markup], between: str = "\n") -> Markup:
    """Pieces, one after the other."""
    return Markup(between.join(piece.text for piece in pieces))


def numbers(cards: Sequence[tuple[str, str]]) -> Markup:
    """Large numbers with what they count."""
    return tag("ul", *(tag("li", tag("b", number), tag("span", words)) for number, words in cards), class_="numbers")


def table(
    frame: pl.DataFrame, caption: str, headings: Mapping[str, str], bar: tuple[str, str, str] | None = None
) -> Markup:
    """A frame as a table.

    Args:
        frame: The rows; numbers are set right. Columns that ``headings`` does not name are left out.
        caption: What the table shows.
        headings: Column to heading, in the order of the columns on the page.
        bar: Columns of a value, its lower and its upper bound (0 to 1), drawn as a bar in a last column.
    """
    numeric = {name for name in headings if frame.schema[name].is_numeric()}
    head = tag(
        "tr",
        *(
            tag("th", words, scope="col", **({"class_": "number"} if name in numeric else {}))
            for name, words in headings.items()
        ),
        tag("th", "0 to 100 %", scope="col", class_="scale") if bar else EMPTY,
    )
    drawn = [_bar(*row) for row in frame.select(bar).iter_rows()] if bar else [EMPTY] * frame.height
    rows = [
        tag("tr", *(_cell(value, number=name in numeric) for name, value in zip(headings, row, strict=True)), last)
        for row, last in zip(frame.select(list(headings)).iter_rows(), drawn, strict=True)
    ]
    return tag(
        "div",
        tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *rows)),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def data_block(value: object, name: str) -> Markup:
    r"""JSON inside a page: no text in it can end the script element or start a comment.

    Example:
        >>> data_block({"a": "</script><!--"}, "spec-1").text
        '<script type="application/json" id="spec-1">{"a":"\\u003c/script\\u003e\\u003c!--"}</script>'
    """
    packed = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    safe = packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(f'<script type="application/json" id="{html.escape(name, quote=True)}">{safe}</script>')


def script_hash(script: str) -> str:
    """What a content security policy names a script by."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _cell(value: Cell, *, number: bool) -> Markup:
    if value is None:
        return tag("td", Markup("&ndash;"), **({"class_": "number"} if number else {}))
    if isinstance(value, bool):
        return tag("td", "yes" if value else "no")
    if isinstance(value, float):
        return tag("td", f"{value:.3f}", class_="number")
    if isinstance(value, int):
        return tag("td", f"{value:,}", class_="number")
    return tag("td", str(value), class_="long" if len(str(value)) > _SHORT else "short")


_SHORT = 26


def _bar(value: float, low: float, high: float) -> Markup:
    line = tag("i", style=f"left:{low:.1%};width:{high - low:.1%}") + tag("b", style=f"left:{value:.1%}")
    return tag("td", tag("div", line, class_="bar"), class_="scale")


# Signs that turn the direction of text around, so that a name reads as another one.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _visible(words: str) -> str:
    """Lone surrogates cannot be written as UTF-8, and control characters not be seen: they become a sign."""
    return "".join(
        "\ufffd" if "\ud800" <= sign <= "\udfff" or (sign < " " and sign not in "\n\t") or sign in _TURNING else sign
        for sign in words
    )
