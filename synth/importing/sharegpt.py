"""ShareGPT's turns as messages.

A turn holds the results of all calls of the message before it, and words beside calls stand in the
turn of the calls. The export `sharegpt` of this project says in columns of its own which result
ends where; of other files the results are told apart where LLaMA-Factory's mark stands between as
many as there are calls, and are one result else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from records.chat.sharegpt import BETWEEN_RESULTS, CALL_MARKS
from records.errors import ItemError
from synth.importing.messages import call_of, dict_in, joined, list_of, message_of, shown

_FROM = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "function_response": "tool",
    "tool": "tool",
}
"""Senders, as LLaMA-Factory and its relatives write them -> role."""

_OWN_COLUMNS = ("calls", "results")


def messages_of(turns: Any, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation in a row's `turns`, with its column `system`."""
    given = list_of(turns, "conversations")
    own = _OwnColumns(row) if all(row.get(name) is not None for name in _OWN_COLUMNS) else None
    messages: list[dict[str, Any]] = []
    for place, one in enumerate(given):
        messages += _sent(one, place, messages, own)
    if own is not None:
        own.check_end()
    system = row.get("system")
    said = system or (own is not None and system is not None)  # others write none as empty text
    if said and not any(message["role"] == "system" for message in messages):
        messages.insert(0, message_of({"role": "system", "content": system}, 0))
    return joined(messages)


def _sent(
    given: Any, place: int, before: Sequence[Mapping[str, Any]], own: "_OwnColumns | None"
) -> list[dict[str, Any]]:
    if not isinstance(given, Mapping) or "from" not in given:
        return [message_of(given, place)]
    sender, value = given["from"], given.get("value")
    if not isinstance(sender, str) or sender not in _FROM:
        known = ", ".join(_FROM)
        raise ItemError("unknown_role", f"message {place} is from {shown(sender)}; known: {known}")
    role = _FROM[sender]
    if sender == "function_call":
        said, calls = _said_and_calls(value, place)
        if own is not None:
            calls = [{"id": own.next_id(place), **call} for call in calls]
        return [{"role": role, "content": said, "tool_calls": calls}]
    if role == "tool" and isinstance(value, str):
        results = [{"content": value}]
        if own is not None:
            results = own.results_in(value, place)
        elif len(several := value.split(BETWEEN_RESULTS)) == _num_calls(before):
            results = [{"content": one} for one in several]
        return [message_of({"role": role, **one}, place) for one in results]
    return [message_of({"role": role, "content": value}, place)]


def _num_calls(messages: Sequence[Mapping[str, Any]]) -> int:
    return len(messages[-1].get("tool_calls", ())) if messages else 0


def _said_and_calls(value: Any, place: int) -> tuple[str, list[dict[str, Any]]]:
    what, said = f"message {place}", ""
    begin, end = CALL_MARKS
    try:
        read = dict_in(value, place)
    except ItemError:
        said, mark, marked = value.partition(begin)
        if not mark:
            raise
        read = dict_in(marked.rstrip().removesuffix(end), place)
    made = [call_of(call, what) for call in (read if isinstance(read, list) else [read])]
    if not made:
        raise ItemError("bad_call", f"{what} is a call and holds an empty list")
    return said, made


class _OwnColumns:
    """What the columns `calls` and `results` say: the id of each call; of each result its call,
    tool and length, in their order."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._calls, self._results = (list_of(row[name], name) for name in _OWN_COLUMNS)
        self._calls_read = self._results_read = 0

    def next_id(self, place: int) -> str:
        own = next(iter(self._calls[self._calls_read :]), None)
        if not isinstance(own, str):
            raise _not_told(f"message {place} has a call whose id is {shown(own)}")
        self._calls_read += 1
        return own

    def results_in(self, value: str, place: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        rest = value
        while True:
            content, rest = self._next_content(rest, place)
            one = self._results[self._results_read]
            self._results_read += 1
            told = {"tool_call_id": one.get("call_id"), "name": one.get("name")}
            found.append({**told, "content": content})
            if not rest:
                return found
            if not rest.startswith(BETWEEN_RESULTS):
                raise _not_told(f"result {self._results_read} ends amid message {place}")
            rest = rest.removeprefix(BETWEEN_RESULTS)

    def _next_content(self, rest: str, place: int) -> tuple[str, str]:
        number = self._results_read
        one = self._results[number] if number < len(self._results) else None
        chars = one.get("chars") if isinstance(one, Mapping) else None
        if not isinstance(chars, int) or not 0 <= chars <= len(rest):
            raise _not_told(f"message {place} has no result of {shown(one)}")
        return rest[:chars], rest[chars:]

    def check_end(self) -> None:
        left = len(self._calls) - self._calls_read, len(self._results) - self._results_read
        if any(left):
            raise _not_told(f"{left[0]} calls and {left[1]} results stand in no turn")


def _not_told(words: str) -> ItemError:
    return ItemError(
        "bad_results",
        f"the columns calls and results do not fit the turns: {words}; without both columns the "
        "turns are read alone",
    )
