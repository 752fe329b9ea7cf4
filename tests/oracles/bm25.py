"""Similarity by words, as the rule says it: BM25(q, d) / BM25(q, q), clipped to 1, over the questions of one scope."""

from __future__ import annotations

import math
import unicodedata

UNSPACED = (
    "CJK UNIFIED",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC ITERATION",
    "IDEOGRAPHIC CLOSING",
    "IDEOGRAPHIC NUMBER ZERO",
    "HIRAGANA",
    "HENTAIGANA",
    "KATAKANA",
    "COMBINING KATAKANA-HIRAGANA",
    "HANGUL SYLLABLE",
)


def kind_of(letter):
    """word, unspaced, sign, between, or nothing (as if it were not there)."""
    category, name = unicodedata.category(letter), unicodedata.name(letter, "")
    if category == "Cf" or "VARIATION SELECTOR" in name:
        return "nothing"
    if category == "So":
        return "sign"
    if category[0] not in "LMN":
        return "between"
    return "unspaced" if name.startswith(UNSPACED) else "word"


def tokens(text):
    """Runs of letters, marks and digits after NFKC and case folding; elsewhere each character and each pair."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    letters = [(kind_of(letter), letter) for letter in folded if kind_of(letter) != "nothing"]
    found = []
    for place, (kind, letter) in enumerate(letters):
        before, last = letters[place - 1] if place else ("between", "")
        if kind == "word" and before == "word":
            found[-1] += letter
        elif kind in ("unspaced", "sign"):
            found += [last + letter, letter] if before == kind else [letter]
        elif kind == "word":
            found.append(letter)
    return found


def similarities(question, questions, k1=1.2, b=0.75):
    """name -> similarity of the questions (name -> text) that share a term; N, df and lengths are the scope's."""
    texts = {name: tokens(text) for name, text in questions.items() if text is not None}
    asked = tokens(question)
    if not texts or not asked:
        return {}
    mean = sum(map(len, texts.values())) / len(texts)

    def idf(term):
        df = sum(term in text for text in texts.values())
        return math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))

    def bm25(text):
        score = 0.0
        for term in asked:
            tf = text.count(term)
            score += idf(term) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(text) / mean))
        return score

    return {name: min(1.0, bm25(text) / bm25(asked)) for name, text in texts.items() if set(asked) & set(text)}
