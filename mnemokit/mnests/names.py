"""What a caller may name in the edge memory: executors, versions, tags, rates, wanted signatures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from mnemokit.errors import InvalidInput

LONGEST_NAME = 512
"""Characters that a name, a version or a tag may have."""

Signature = str | Mapping[str, object]


def checked_name(value: object, what: str) -> str:
    """A name: text that is not empty, not blank, and not too long.

    Raises:
        InvalidInput: If it is not.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a text, not {type(value).__name__}; nothing was written")
    if not value.strip():
        raise InvalidInput(f"{what} is empty; nothing was written; give a name")
    if len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"{what} has {len(value)} characters and may have {LONGEST_NAME}; nothing was written; shorten it"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds a lone surrogate and is no Unicode text; nothing was written") from None
    return value


def asked_text(value: object, what: str) -> str:
    """A text that is looked for; whether there is one is asked later.

    Raises:
        InvalidInput: If it is no text.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a text, not {type(value).__name__}; nothing was read")
    return value


def checked_count(value: object, what: str) -> None:
    """Refuse what is no number of rows.

    Raises:
        InvalidInput: If it is not a whole number of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(f"{what} must be a whole number of at least 1, not {value!r}; nothing was read")


def checked_tags(tags: Sequence[str] | None) -> tuple[str, ...]:
    """Tags, each once, in the order given."""
    if tags is None:
        return ()
    if isinstance(tags, str):
        raise InvalidInput(f"tags must be a list of texts, not the text {tags!r}; nothing was written")
    return tuple(dict.fromkeys(checked_name(tag, "a tag") for tag in tags))


def checked_rate(decay_lambda: float) -> float:
    """A decay rate per day: finite and not negative."""
    rate = float(decay_lambda)
    if not (math.isfinite(rate) and rate >= 0):
        raise InvalidInput(f"decay_lambda must be finite and >= 0 per day, not {decay_lambda!r}; nothing was written")
    return rate


def checked_signature(signature: Signature | None) -> str | None:
    """A wanted signature as it is stored: text as given, a mapping as JSON."""
    if signature is None or isinstance(signature, str):
        return signature
    try:
        return json.dumps(dict(signature), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"desired_sig cannot be written as JSON: {error}; nothing was written") from None
