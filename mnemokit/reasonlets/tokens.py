"""The terms of a text, for any script.

A text is brought to Unicode's NFKC form and case-folded; a term is then a run of letters, marks and digits. Scripts
written without spaces between words (Chinese, Japanese, Korean syllables) give overlapping pairs of characters, and a
character that stands alone gives itself, as search engines do for them.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import cache
from itertools import groupby


def tokens(text: str) -> list[str]:
    """The terms of a text, in order, repeated ones repeated.

    Example:
        >>> tokens("Refund the ORDER_17, Straße!")
        ['refund', 'the', 'order', '17', 'strasse']
        >>> tokens("退款政策 ok")
        ['退款', '款政', '政策', 'ok']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    found: list[str] = []
    for kind, letters in groupby(folded, _kind):
        run = "".join(letters)
        if kind is _Kind.WORD:
            found.append(run)
        elif kind is _Kind.UNSPACED:
            found += [run[place : place + 2] for place in range(len(run) - 1)] if len(run) > 1 else [run]
    return found


_ASCII_WORD = re.compile(r"[a-z0-9]+")

# Blocks of scripts whose words are not set apart: kana, Han (with its extensions), Hangul syllables.
_UNSPACED = (
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)


class _Kind(Enum):
    WORD = 1
    UNSPACED = 2
    BETWEEN = 3


@cache
def _kind(letter: str) -> _Kind:
    if unicodedata.category(letter)[0] not in "LMN":
        return _Kind.BETWEEN
    code = ord(letter)
    return _Kind.UNSPACED if any(first <= code <= last for first, last in _UNSPACED) else _Kind.WORD
