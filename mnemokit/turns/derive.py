"""What the turns of a log mean: passings and captures, by named policies that a user can replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import polars as pl

from mnemokit.errors import InvalidInput
from mnemokit.given_frames import Frame, as_polars
from mnemokit.turns import captures, passings
from mnemokit.turns.captures import CAPTURES_SCHEMA
from mnemokit.turns.frame import TURNS_SCHEMA, check_turns
from mnemokit.turns.passings import PASSINGS_SCHEMA, UNVERSIONED
from mnemokit.turns.protocol import VALUE_POLICIES
from mnemokit.turns.readers import all_readers

__all__ = [
    "CAPTURES",
    "CAPTURES_SCHEMA",
    "PASSINGS",
    "PASSINGS_SCHEMA",
    "UNVERSIONED",
    "default_policies",
    "derive_captures",
    "derive_passings",
    "needs_values",
]

PassingsPolicy = Callable[[pl.DataFrame], pl.DataFrame]
CapturesPolicy = Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame]
Policy = TypeVar("Policy")

#: Policies for passings, by name; a user may add to it or give a function of the same kind instead of a name.
PASSINGS: dict[str, PassingsPolicy] = {
    "grouped": passings.grouped,
    "successive": passings.successive,
    "handoffs": passings.handoffs,
    "value_flow": passings.value_flow,
    "value_flow_or_successive": passings.value_flow_or_successive,
    "none": passings.none,
}

#: Policies for captures, by name.
CAPTURES: dict[str, CapturesPolicy] = {
    "session": captures.session,
    "attempt": captures.attempt,
    "none": captures.none,
}


def derive_passings(turns: Frame, policy: str | PassingsPolicy = "grouped") -> pl.DataFrame:
    """Who handed work to whom.

    Args:
        turns: A frame of turns (see `check_turns` for what it needs).
        policy: A name of `PASSINGS`, or a function from canonical turns to passings.

    Returns:
        One row per passing, with the columns of `PASSINGS_SCHEMA`: sessions in the order of their first row, inside
        a session by destination, then source. ``ts`` is the destination's (UTC, null if untimed).

    Raises:
        InvalidInput: If the policy is unknown, or the frame or what the policy returns has the wrong columns.

    Example:
        >>> turns = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["find", "buy"]})
        >>> derive_passings(turns).select("src_executor", "src_version", "dst_executor").rows()
        [('find', 'unversioned', 'buy')]
    """
    chosen = _named(PASSINGS, policy, "passings")
    return _checked(chosen(_canonical(turns)), PASSINGS_SCHEMA, policy)


def derive_captures(
    turns: Frame,
    policy: str | CapturesPolicy = "session",
    *,
    passings: str | PassingsPolicy | Frame = "grouped",
) -> pl.DataFrame:
    """What was done as one procedure.

    Args:
        turns: A frame of turns.
        policy: A name of `CAPTURES`, or a function from canonical turns and passings to captures.
        passings: The passings of these turns, or the policy that derives them.

    Returns:
        One row per capture, with the columns of `CAPTURES_SCHEMA`: ``graph`` as JSON text, ``ts`` of the capture's
        last step (UTC, null if untimed).

    Raises:
        InvalidInput: As `derive_passings`.

    Example:
        >>> turns = pl.DataFrame({"session_id": ["s", "s"], "step": [0, 1], "executor": ["find", "buy"]})
        >>> derive_captures(turns)["graph"].item()
        '{"nodes":[{"id":"buy"},{"id":"find"}],"edges":[{"src":"find","dst":"buy"}],"properties":{}}'
    """
    chosen = _named(CAPTURES, policy, "captures")
    ready = _canonical(turns)
    named = isinstance(passings, str) or callable(passings)
    if named:
        between = derive_passings(ready, cast("str | PassingsPolicy", passings))
    else:
        between = as_polars(passings, "passings")
    return _checked(chosen(ready, between), CAPTURES_SCHEMA, policy)


def default_policies(source: str) -> tuple[str, str]:
    """Names of the policies for passings and captures that suit a source; the usual ones for an unknown source.

    Example:
        >>> default_policies("tau2")
        ('grouped', 'session')
    """
    reader = all_readers().get(source)
    return ("grouped", "session") if reader is None else (reader.passings, reader.captures)


def needs_values(policy: str | PassingsPolicy | None) -> bool | None:
    """Does this policy for passings look at hashed values of arguments and results?

    None, the policy that suits each reader, gives None: `read_batches` then decides per file.

    Example:
        >>> needs_values("grouped"), needs_values("value_flow")
        (False, True)
    """
    if policy is None:
        return None
    return policy in VALUE_POLICIES or bool(getattr(policy, "needs_values", False))


def _named(policies: dict[str, Policy], policy: str | Policy, what: str) -> Policy:
    if not isinstance(policy, str):
        return policy
    if policy not in policies:
        raise InvalidInput(f"{what}={policy!r} is no policy; use one of {', '.join(policies)}, or give a function")
    return policies[policy]


def _canonical(given: Frame) -> pl.DataFrame:
    turns = as_polars(given, "turns")
    ready = all(turns.schema.get(name) == dtype for name, dtype in TURNS_SCHEMA.items())
    return turns if ready else check_turns(turns)


def _checked(frame: pl.DataFrame, schema: dict[str, pl.DataType | type[pl.DataType]], policy: object) -> pl.DataFrame:
    for name, dtype in schema.items():
        if frame.schema.get(name) != dtype:
            label = policy if isinstance(policy, str) else getattr(policy, "__name__", "given")
            have = frame.schema.get(name, "missing")
            raise InvalidInput(f"the policy {label!r} must return column {name!r} as {dtype}, not {have}")
    return frame.select(*schema, *passings.numbered(frame))
