"""Messages of others as ours: OpenAI's form, calls with ids, results that name their call.

Nothing is made up but ids: where a file has none, or has one twice, a call gets one, and results
are told to answer the oldest open call of their name.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.digest import ordered_json
from records.errors import ItemError
from synth.importing.files import parsed
from synth.rubrics.turns import ROLES

_OTHER_ROLES = {"function": "tool"}
"""As OpenAI had them once."""

_REASONING = ("reasoning_content", "reasoning", "thinking")
"""Keys under which servers tell a thought."""

_LEARNT = ("train", "loss")
"""Keys by which trainers are told whether a message is learnt from."""

IS_ERROR = "is_error"
"""Key of a result of which a file says whether it is an error; no stored message has it."""

_PARTS = frozenset(
    {"text", "refusal", "image_url", "image", "input_audio", "audio", "video", "file"}
)
"""Types of parts of a content. A result may be a list of objects with types of their own."""

_OTHER_ARGUMENTS = ("parameters", "input", "args", "kwargs")
"""Keys under which calls of other forms have their arguments; without them a call would be another
one."""

SHOWN_CHARS = 60
"""Of a value in words about it."""


def list_of(value: Any, what: str, reason: str = "bad_messages") -> list[Any]:
    """A list that may be stored as text. ItemError for anything else."""
    found = parsed(value, what) if isinstance(value, str) else value
    if not isinstance(found, list):
        raise ItemError(reason, f"{what} is {shown(found)}, not a list")
    return found


def json_text(value: Any, what: str) -> str:
    """ItemError for a value that no JSON holds, such as a date or half a character."""
    try:
        text = ordered_json(value)
        text.encode()
    except UnicodeEncodeError as error:
        raise ItemError("not_utf8", f"{what} holds half a character: {error.reason}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise ItemError("not_json", f"{what} is no JSON: {error}") from error
    return text


def shown(value: Any) -> str:
    return f"{str(value)[:SHOWN_CHARS]!r} ({type(value).__name__})"


def message_of(given: Any, place: int) -> dict[str, Any]:
    """ItemError for what is no message of a conversation in text. `place`: for words about it."""
    what = f"message {place}"
    if not isinstance(given, Mapping):
        raise ItemError("bad_messages", f"{what} is {shown(given)}, not an object")
    role = given.get("role")
    role = _OTHER_ROLES.get(role, role) if isinstance(role, str) else role
    if role not in ROLES:
        allowed = ", ".join((*ROLES, *_OTHER_ROLES))
        raise ItemError("unknown_role", f"{what} has role {shown(role)}; known: {allowed}")
    message: dict[str, Any] = {"role": role, "content": _content(given.get("content"), role, what)}
    if role == "tool":
        return message | _texts(given, ("tool_call_id", "name"), what)
    if role != "assistant":
        return message
    message |= _texts(given, ("refusal",), what)
    thoughts = _texts(given, _REASONING, what).values()
    if thought := next(filter(None, thoughts), None):
        message["reasoning_content"] = thought
    if calls := _calls(given, what):
        message["tool_calls"] = calls
    if given.get("weight") == 0 or any(given.get(key) is False for key in _LEARNT):
        message["weight"] = 0  # its author takes it out of the loss
    return message


def _content(value: Any, role: str, what: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(_is_part(part) for part in value):
        return "\n".join(_text_part(part, what) for part in value)
    if role == "tool":  # a result may be any value
        return json_text(value, f"the content of {what}")
    raise ItemError("bad_messages", f"the content of {what} is {shown(value)}, not text")


def _is_part(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, Mapping) else None
    return isinstance(kind, str) and kind in _PARTS


def _text_part(part: Mapping[str, Any], what: str) -> str:
    text = part.get("text") if part["type"] == "text" else part.get("refusal")
    if not isinstance(text, str):
        raise ItemError("not_text", f"{what} has a part of type {shown(part['type'])}")
    return text


def _texts(given: Mapping[str, Any], keys: Iterable[str], what: str) -> dict[str, str]:
    found = {key: given[key] for key in keys if given.get(key) is not None}
    for key, value in found.items():
        if not isinstance(value, str):
            raise ItemError("bad_messages", f"{key} of {what} is {shown(value)}, not text")
    return found


def _calls(given: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    calls = list_of(given.get("tool_calls") or [], f"tool_calls of {what}", "bad_call")
    if given.get("function_call"):
        function = given["function_call"]
        is_text = isinstance(function, str)
        calls = [*calls, parsed(function, f"function_call of {what}") if is_text else function]
    return [call_of(call, what) for call in calls]


def call_of(given: Any, what: str) -> dict[str, Any]:
    """OpenAI's {id, function: {name, arguments}}, or name and arguments alone, as the former; its
    id may be missing. ItemError for what is none."""
    function = given.get("function", given) if isinstance(given, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str) or not name:
        raise ItemError("bad_call", f"a call of {what} is {shown(given)}; it needs a name")
    arguments = function.get("arguments")
    if arguments is None and (other := [key for key in _OTHER_ARGUMENTS if function.get(key)]):
        words = f"the call of {name!r} in {what} has {other[0]} and no arguments; rename them"
        raise ItemError("bad_call", words)
    if not isinstance(arguments, str):
        arguments = json_text({} if arguments is None else arguments, f"a call of {what}")
    call: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    own = given.get("id")
    if own is not None and not isinstance(own, str):
        raise ItemError("bad_call", f"the id of a call of {what} is {shown(own)}, not text")
    return {"id": own, **call} if own else call


def dict_in(text: Any, place: int) -> Any:
    """A call, or a list of them, that may be JSON or written as Python writes it."""
    if not isinstance(text, str):
        return text
    try:
        return parsed(text)
    except ItemError:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            words = f"message {place} is a call and holds {shown(text)}"
            raise ItemError("bad_call", words) from error


def joined(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """With calls that follow one another, or the words before them, in one message: for forms whose
    messages hold one call each."""
    found: list[dict[str, Any]] = []
    for message in messages:
        last = found[-1] if found else None
        is_call = message["role"] == "assistant" and message.get("tool_calls")
        if last is None or not is_call or message["content"] or last["role"] != "assistant":
            found.append(message)
            continue
        both = {**message, **last}
        thoughts = (m["reasoning_content"] for m in (last, message) if "reasoning_content" in m)
        if thought := "\n\n".join(thoughts):
            both["reasoning_content"] = thought
        both["tool_calls"] = [*last.get("tool_calls", ()), *message["tool_calls"]]
        found[-1] = both
    return found


class Paired(NamedTuple):
    """A conversation whose calls and results belong together."""

    messages: list[dict[str, Any]]
    results: dict[str, int]
    """Call id -> place of the message that answers it."""
    has_own_ids: bool
    """Whether every id is the file's."""


class _OpenCall(NamedTuple):
    given: str | None
    """The id that the file has."""
    id: str
    name: str
    place: int


def paired(messages: Sequence[dict[str, Any]]) -> Paired:
    """Every call gets an id that no other call of the conversation has, and each result that of the
    call that it answers: by its own id, else by its name, the newest message's calls first, in
    their order. A result that answers no call stays without one."""
    taken = {call["id"] for m in messages for call in m.get("tool_calls", ()) if "id" in call}
    used: set[str] = set()
    waiting: list[_OpenCall] = []
    results: dict[str, int] = {}
    found, count, has_own_ids = [], 0, True
    for place, message in enumerate(messages):
        if calls := message.get("tool_calls"):
            named = []
            for call in calls:
                own = call.get("id")
                new = own
                while new is None or new in used or (new != own and new in taken):
                    new, count, has_own_ids = f"call_{count}", count + 1, False
                used.add(new)
                waiting.append(_OpenCall(own, new, call["function"]["name"], place))
                named.append({**call, "id": new})
            message = {**message, "tool_calls": named}
        elif message["role"] == "tool":
            answered = _answered(message, waiting)
            if answered is None:
                message = {**message, "tool_call_id": message.get("tool_call_id", "")}
            else:
                waiting.remove(answered)
                results[answered.id] = place
                has_own_ids &= answered.id == message.get("tool_call_id")
                name = message.get("name") or answered.name
                message = {**message, "tool_call_id": answered.id, "name": name}
        found.append(message)
    return Paired(found, results, has_own_ids)


def _answered(message: Mapping[str, Any], waiting: Sequence[_OpenCall]) -> _OpenCall | None:
    own, name = message.get("tool_call_id"), message.get("name")
    fits = [
        call for call in waiting if (call.given == own if own else name in (None, "", call.name))
    ]
    newest = max((call.place for call in fits), default=None)
    return next((call for call in fits if call.place == newest), None)


def checked(messages: Sequence[Mapping[str, Any]]) -> None:
    """ItemError for a conversation from which nothing could be learnt, or that no file can hold."""
    if not messages:
        raise ItemError("no_messages", "the conversation is empty")
    if not any(message["role"] == "assistant" for message in messages):
        raise ItemError("no_answer", "no message is the assistant's")
    json_text(messages, "the conversation")
