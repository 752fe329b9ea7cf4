"""Similarity by words, as the rule says it: BM25(q, d) / BM25(q, q), clipped to 1, over the questions of one scope."""

from __future__ import annotations

import math
import unicodedata

UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HANGUL SYLLABLE")


def tokens(text):
    """Runs of letters, marks and digits after NFKC and case folding; pairs of characters in unspaced scripts."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    found, run, unspaced = [], "", False

    def end():
        if run and unspaced:
            found.extend([run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)])
        elif run:
            found.append(run)

    for letter in [*folded, " "]:
        inside = unicodedata.category(letter)[0] in "LMN"
        kind = unicodedata.name(letter, "").startswith(UNSPACED)
        if not inside or kind != unspaced:
            end()
            run = ""
        if inside:
            run, unspaced = run + letter, kind
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
