"""Short excerpts of records that could not be used, without what people wrote in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

EXCERPT_CHARS = 160

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[^"]+', re.DOTALL)
_KEY = re.compile(r'"[A-Za-z_][A-Za-z0-9_.\-]{0,39}"')
_WORD = re.compile(r"[^\W\d_][\w.@+-]*|\d[\w.@+-]*")
_LITERALS = frozenset({"true", "false", "null", "NaN", "Infinity"})


def redact(raw: str | bytes) -> str:
    """The shape of a record: JSON keys and punctuation stay, texts become ``"…"``, numbers ``0``, other words ``…``.

    Args:
        raw: The record as it stands in the file.

    Returns:
        At most 160 characters on one line.

    Example:
        >>> redact('{"name": "Ada Lovelace", "age": 36, "ok": tru')
        '{"name": "…", "age": 0, "ok": …'
    """
    piece = raw[: EXCERPT_CHARS * 4]
    text = piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece
    parts = [match.group() for match in _TOKEN.finditer(text)]
    shown: list[str] = []
    for index, part in enumerate(parts):
        if part.startswith('"'):
            following = parts[index + 1] if index + 1 < len(parts) else ""
            is_key = following.lstrip().startswith(":") and _KEY.fullmatch(part) is not None
            shown.append(part if is_key else '"…"')
        else:
            shown.append(_WORD.sub(_mask, part))
    line = " ".join("".join(shown).split())
    line = "".join(char if char.isprintable() else "�" for char in line)
    return line if len(line) <= EXCERPT_CHARS else line[: EXCERPT_CHARS - 1] + "…"


def shape_of(frame: pl.DataFrame, columns: Sequence[str]) -> pl.Expr:
    """What `redact` leaves of a frame's rows: their columns that are not null, as of an object of JSON.

    Args:
        frame: The frame whose rows are meant.
        columns: Its columns that may be shown.

    Returns:
        An expression for rows of the frame: texts of at most 160 characters.

    Example:
        >>> frame = pl.DataFrame({"name": ["Ada Lovelace", None], "age": [36, 28], "ok": [True, False]})
        >>> frame.select(shape_of(frame, ["name", "age", "ok"])).to_series().to_list()
        ['{"name": "…", "age": 0, "ok": true}', '{"age": 0, "ok": false}']
    """
    there = [name for name in columns if name in frame.columns]
    parts = pl.concat_str([_masked(name, frame.schema[name]) for name in there], separator=", ", ignore_nulls=True)
    line = pl.concat_str(pl.lit("{"), parts, pl.lit("}"))
    short = pl.concat_str(line.str.head(EXCERPT_CHARS - 1), pl.lit("…"))
    return pl.when(line.str.len_chars() <= EXCERPT_CHARS).then(line).otherwise(short)


def _masked(name: str, dtype: pl.DataType) -> pl.Expr:
    value = pl.lit("0") if dtype.is_numeric() else pl.lit('"…"')
    if dtype == pl.Boolean:
        value = pl.when(pl.col(name)).then(pl.lit("true")).otherwise(pl.lit("false"))
    return pl.when(pl.col(name).is_not_null()).then(pl.concat_str(pl.lit(f'"{name}": '), value))


def _mask(match: re.Match[str]) -> str:
    word = match.group()
    if word in _LITERALS:
        return word
    return "0" if word[0].isdigit() else "…"
