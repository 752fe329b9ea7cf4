"""Chat messages with tool calls, as many formats hold them."""

from __future__ import annotations

from collections.abc import Callable

from mnemokit.turns.builder import OpenSession
from mnemokit.turns.fields import BadRecord, Obj, as_list, as_obj, dig, name, objects


def read_chat(
    session: OpenSession,
    messages: list[object],
    place: str,
    *,
    failed: Callable[[Obj], bool | None],
) -> None:
    """Add the tool calls of a list of chat messages to a session.

    A message's ``tool_calls`` hold ``function.name`` (or ``function`` or ``name``) and ``id``; the answer is the
    later message whose ``tool_call_id`` is that id. Ids may recur in a session: a call takes the first answer after
    it. Step: the message's place, moved on by the extra calls before it.

    Args:
        session: Where the calls go.
        messages: Decoded messages, in order.
        place: Where the list stands in the document.
        failed: Whether an answer says that the call failed; None if it does not say.
    """
    answers = _answers(messages)
    extra = 0
    for index, item in enumerate(messages):
        message = as_obj(item) or {}
        calls = as_list(message.get("tool_calls"))
        if not calls:
            session.message()
        first = index + extra
        for position, call in enumerate(calls):
            where = f"{place}[{index}].tool_calls[{position}]"
            try:
                answer = answers.pop((index, position), None)
                verdict = None if answer is None else failed(answer)
                session.call(
                    turn_id=f"{session.session_id}:{index}",
                    step=first + position,
                    parallel_group=first,
                    executor=_called(call),
                    requestor="assistant",
                    ok=None if verdict is None else not verdict,
                    arguments=dig(call, "function", "arguments") or dig(call, "arguments"),
                    result=None if answer is None else answer.get("content"),
                )
            except BadRecord as bad:
                session.reject(where, str(bad), call)
        extra += max(0, len(calls) - 1)


def _called(call: object) -> str:
    if as_obj(call) is None:
        raise BadRecord("a tool call that is no object")
    function = dig(call, "function")
    if isinstance(function, str):
        return name(function, "function")
    return name(dig(call, "function", "name") or dig(call, "name"), "function.name")


def _answers(messages: list[object]) -> dict[tuple[int, int], Obj]:
    """The answer to each call, by the places of message and call."""
    open_calls: dict[str, list[tuple[int, int]]] = {}
    found: dict[tuple[int, int], Obj] = {}
    for index, item in enumerate(messages):
        message = as_obj(item)
        if message is None:
            continue
        key = message.get("tool_call_id")
        if message.get("role") == "tool" and isinstance(key, str) and open_calls.get(key):
            found[open_calls[key].pop(0)] = message
        for position, call in enumerate(as_list(message.get("tool_calls"))):
            call_id = dig(call, "id")
            if isinstance(call_id, str):
                open_calls.setdefault(call_id, []).append((index, position))
    return found


def call_names(value: object) -> set[str]:
    """Names of the tools that a model's output calls, at any depth."""
    found: set[str] = set()
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        obj = as_obj(item)
        if obj is None:
            waiting.extend(as_list(item))
            continue
        for call in objects(obj.get("tool_calls")):
            called = dig(call, "function", "name") or dig(call, "name")
            if isinstance(called, str):
                found.add(called)
        waiting.extend(obj.values())
    return found
