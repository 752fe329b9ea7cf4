"""What a write of the procedural memory checks first: its idempotency key, and the erasures it must respect."""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable
from datetime import datetime

from mnemokit.errors import Conflict, Forgotten, InvalidInput, NotFound
from mnemokit.reasonlets.graph import canonical_json
from mnemokit.records import OUTCOMES, CaptureKind, Receipt
from mnemokit.store import Connection

KeyedHash = Callable[[str], str]


def checked_outcome(outcome: str | None) -> str | None:
    """The outcome, if it is one.

    Raises:
        InvalidInput: If it is neither success nor failure nor None.
    """
    if outcome is not None and outcome not in OUTCOMES:
        raise InvalidInput(
            f"outcome must be 'success', 'failure' or None (unknown), not {outcome!r}; nothing was written"
        )
    return outcome


def checked_text(value: object, name: str) -> str:
    """A text that names or asks something: not empty, and Unicode.

    Raises:
        InvalidInput: If it is not.
    """
    text = checked_words(value, name)
    if not text:
        raise InvalidInput(f"{name} must be a text that is not empty, not {value!r}; nothing was written")
    return text


def checked_words(value: object, name: str) -> str | None:
    """A text of any length, or None.

    Raises:
        InvalidInput: If it is another type or holds a lone surrogate.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a text, not {type(value).__name__}; nothing was written")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{name} holds a lone surrogate and is no Unicode text; nothing was written") from None
    return value


def checked_id(value: object, name: str) -> str:
    """An id as receipts and frames give it; whether there is such a row is asked later.

    Raises:
        InvalidInput: If it is no text.
    """
    text = checked_words(value, name)
    if text is None:
        raise InvalidInput(f"{name} must be a text, not None; nothing was written; give an id")
    return text


def checked_number(value: object, name: str) -> float:
    """A number that sets something; whether it is in its range is asked later.

    Raises:
        InvalidInput: If it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{name} must be a number, not {value!r}; nothing was written")
    return float(value)


def checked_count(value: object, name: str) -> int:
    """How many of something, at least 1.

    Raises:
        InvalidInput: If it is no whole number, or below 1.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidInput(f"{name} must be a whole number, not {value!r}; nothing was written")
    if value < 1:
        raise InvalidInput(f"{name} must be at least 1, not {value!r}; nothing was written")
    return int(value)


def checked_provenance(value: object) -> str | None:
    """Provenance as it is kept: a text as given, anything else as its canonical JSON.

    Raises:
        InvalidInput: If JSON cannot carry it.

    Example:
        >>> checked_provenance({"model": "m", "attempt": 2})
        '{"attempt":2,"model":"m"}'
    """
    if value is None or isinstance(value, str):
        return checked_words(value, "provenance")
    return canonical_json(value, "provenance")


def known_result(con: Connection, key_hash: str | None, call: str) -> dict[str, str] | None:
    """What the call with this key returned first, by name; None if the key is new.

    Raises:
        Conflict: If the key belongs to another call.
    """
    if key_hash is None:
        return None
    rows = con.execute("SELECT call, result FROM idempotency_keys WHERE key_hash = ?", [key_hash]).fetchall()
    if not rows:
        return None
    if rows[0][0] != call:
        raise Conflict(
            f"this key was used for {rows[0][0]} before, not for {call}; nothing was written; use another key"
        )
    return json.loads(rows[0][1])


def receipt_of(values: dict[str, str]) -> Receipt:
    """The receipt that was kept under a key."""
    return Receipt(CaptureKind(values["kind"]), values["reasonlet_id"], values["version"], values["run_id"])


def write_alone(con: Connection) -> None:
    """Let no other writer commit beside this transaction: one of the two is retried after the other.

    Whoever adds rows takes numbers for them, so touching the counters meets them all. A removal needs it: a version
    captured, or a log replayed, at the same moment would stand on what is being removed.
    """
    con.execute("UPDATE counters SET next_free = next_free WHERE name IN ('seq', 'turn_no')")


def refuse_forgotten_key(
    con: Connection, run_id: str, keyed_hash: KeyedHash, scope: str | None, subject: str | None
) -> None:
    """Refuse a known key whose run was erased; one whose run was pruned away keeps its first receipt."""
    if con.execute("SELECT 1 FROM runs WHERE run_id = ? LIMIT 1", [run_id]).fetchall():
        return
    refuse_forgotten(con, keyed_hash, None, scope=scope, subject=subject)


def refuse_forgotten(
    con: Connection, keyed_hash: KeyedHash, ts: datetime | None, *, scope: str | None, subject: str | None
) -> None:
    """Refuse what is not later than the erasure of its scope or subject (``ts`` None: whenever it was).

    Raises:
        Forgotten: If it is not.
    """
    erased = erasure_after(con, keyed_hash, ts, scope=scope, subject=subject)
    if erased is not None:
        realm, moment = erased
        raise Forgotten(
            f"this {realm} was erased at {moment.isoformat()}, not before what is to be written; nothing was written; "
            "only what happens after an erasure can be recorded"
        )


def erasure_after(
    con: Connection, keyed_hash: KeyedHash, ts: datetime | None, *, scope: str | None, subject: str | None
) -> tuple[str, datetime] | None:
    """The realm and instant of an erasure of the scope or the subject at or after ``ts`` (None: whenever it was)."""
    if not con.execute("SELECT 1 FROM tombstones LIMIT 1").fetchall():
        return None
    rows = con.execute(
        "SELECT realm, ts_forgotten FROM tombstones WHERE (realm = 'scope' AND name_hash = $scope "
        "OR realm = 'subject' AND name_hash = $subject) AND ($ts IS NULL OR ts_forgotten >= $ts) ORDER BY realm",
        {
            "scope": None if scope is None else keyed_hash(scope),
            "subject": None if subject is None else keyed_hash(subject),
            "ts": ts,
        },
    ).fetchall()
    return rows[0] if rows else None


def check_recall(con: Connection, recall_id: str | None, scope: str) -> None:
    """Refuse a recall that is unknown or searched another scope.

    Raises:
        NotFound: If there is no such recall of the scope.
    """
    if recall_id is None:
        return
    known = con.execute("SELECT 1 FROM recalls WHERE recall_id = ? AND scope = ? LIMIT 1", [recall_id, scope])
    if not known.fetchall():
        raise NotFound(missing_recall(recall_id, scope))


def missing_recall(recall_id: str, scope: str) -> str:
    """What to say of a recall that a run of this scope cannot have followed."""
    return (
        f"there is no recall {recall_id!r} of scope {scope!r}; nothing was written; "
        "give the id of a recall of this scope, or none"
    )
