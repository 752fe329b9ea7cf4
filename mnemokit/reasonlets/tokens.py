"""The terms of a text, for any script.

A text is brought to Unicode's NFKC form and case-folded; signs that nobody sees (category Cf, such as soft hyphens and
joiners, and variation selectors) are taken out. A term is then a run of letters, marks and digits. Scripts written
without spaces between words (Chinese, Japanese, Korean syllables) give each character and each pair of neighbours: the
pairs stand for words, and a single character finds what holds it. Pictures (emoji and other signs of category So) give
the same, so that flags and joined emoji are pairs; colours of skin are left out. The length of a text is the number of
all these terms.

What is stored is indexed by these terms. Where the rule changes, a migration notes that stores made before are to be
indexed anew; see ``question_index.bring_up_to_date``.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import cache
from itertools import groupby, pairwise


def tokens(text: str) -> list[str]:
    """The terms of a text, in order, repeated ones repeated.

    Example:
        >>> tokens("Refund the ORDER_17, Straße!")
        ['refund', 'the', 'order', '17', 'strasse']
        >>> tokens("退款政策 ok 👍")
        ['退', '退款', '款', '款政', '政', '政策', '策', 'ok', '👍']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    seen = (letter for letter in folded if _kind(letter) is not _Kind.UNSEEN)
    found: list[str] = []
    for kind, letters in groupby(seen, _kind):
        run = "".join(letters)
        if kind is _Kind.WORD:
            found.append(run)
        elif kind is not _Kind.BETWEEN:
            found.append(run[0])
            for before, letter in pairwise(run):
                found += [before + letter, letter]
    return found


_ASCII_WORD = re.compile(r"[a-z0-9]+")

# Blocks of scripts whose words are not set apart: kana, Han (with its extensions and its signs for repetition, closing
# and zero), Hangul syllables.
_UNSPACED = (
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x323AF),
)

# Whether a sign is drawn as text or as an emoji, or which form a character has, makes no other word of it.
_VARIATION_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))


class _Kind(Enum):
    WORD = 1
    UNSPACED = 2
    PICTURE = 3
    BETWEEN = 4
    UNSEEN = 5


@cache
def _kind(letter: str) -> _Kind:
    category = unicodedata.category(letter)
    if category == "Cf" or _within(letter, _VARIATION_SELECTORS):
        return _Kind.UNSEEN
    if category == "So":
        return _Kind.PICTURE
    if category[0] not in "LMN":
        return _Kind.BETWEEN
    return _Kind.UNSPACED if _within(letter, _UNSPACED) else _Kind.WORD


def _within(letter: str, blocks: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(letter) <= last for first, last in blocks)
