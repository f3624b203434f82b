"""Tool results read as items: small rows of named scalars, from JSON or from plain text."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, NamedTuple

Scalar = str | int | float | bool

_TRANSIENT = re.compile(
    r"rate.?limit|too many requests|time[d -]?out|temporar|try again|retry|unavailable|overload"
    r"|\b(?:429|502|503|504)\b|\bbusy\b|connection|transient",
    re.IGNORECASE,
)
_TEXT_ERROR = re.compile(
    r"\s*(?:error|fatal|exception|traceback|invalid|failed)\b"
    r"|[\w ]{0,40}\b(?:already exists|does not exist|not found|denied)\b",
    re.IGNORECASE,
)
_LIKE_JSON = re.compile(r'\s*(?:\{\s*(?:["}]|$)|\[\s*(?:[\[{"\d\]-]|$))')
_PAIR = re.compile(r"^\s*([A-Za-z][\w \-]{0,30}):\s+(\S.*)$")
_LOOKS_LIKE_ID = re.compile(r"^[A-Za-z]+[-_]\d+$|^[0-9a-f]{7,40}$")
_MAX_ITEMS = 400
"""Items read of one result: more is not searched."""


class PastCall(NamedTuple):
    """A call that was made, with what came back. Arguments that did not parse are empty."""

    number: int
    name: str
    arguments: dict[str, Any]
    result: str
    error: str
    """Code and message of an error, else empty."""

    @property
    def transient(self) -> bool:
        return bool(self.error) and bool(_TRANSIENT.search(self.error))

    @property
    def value(self) -> Any:
        return parsed(self.result)


@dataclass(frozen=True, eq=False)
class ResultItem:
    """One row of a result. `around` are scalars of what it lay in and of the call's arguments."""

    tool: str
    fields: dict[str, Scalar]
    around: dict[str, Scalar]

    @cached_property
    def key(self) -> str:
        """The first field that is an identifier by its name or its form, else empty."""
        for name, value in self.fields.items():
            if name.lower() == "id" or (len(name) > 2 and name.lower().endswith("id")):
                return str(value)
            if isinstance(value, str) and _LOOKS_LIKE_ID.match(value):
                return value
        return ""

    @cached_property
    def refers(self) -> tuple[str, ...]:
        return tuple(v for v in self.fields.values() if isinstance(v, str))

    @cached_property
    def lies_in(self) -> tuple[str, ...]:
        return tuple(v for v in self.around.values() if isinstance(v, str))


@lru_cache(maxsize=4096)
def parsed(text: str) -> Any:
    """The JSON value of a result; plain text becomes rows of its `Key: value` lines, or a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _rows_of_text(text) or text


def _rows_of_text(text: str) -> list[dict[str, str]]:
    """A new row begins at an empty line or when a key comes again."""
    rows: list[dict[str, str]] = [{}]
    for line in text.splitlines():
        pair = _PAIR.match(line)
        if not line.strip() and rows[-1]:
            rows.append({})
        elif pair:
            key = pair.group(1).strip().lower().replace(" ", "_")
            if key in rows[-1]:
                rows.append({})
            rows[-1][key] = pair.group(2).strip()
    return [row for row in rows if row]


def error_of(text: str) -> str:
    """Code and message when the result is an error, else empty."""
    value = parsed(text)
    if isinstance(value, dict):
        error = value.get("error") or (value.get("isError") and value)
        if isinstance(error, dict):
            return f"{error.get('code', '')}: {error.get('message', '')}".strip(": ")
        return str(error) if error else ""
    return text.strip() if _TEXT_ERROR.match(text) else ""


def garbled(text: str) -> bool:
    """Looks like JSON that was cut or mangled on its way."""
    return bool(_LIKE_JSON.match(text)) and isinstance(parsed(text), str)


def items_of(call: PastCall) -> tuple[ResultItem, ...]:
    if call.error:
        return ()
    given = tuple((k, v) for k, v in call.arguments.items() if _is_scalar(v))
    return _items(call.name, given, call.result)


@lru_cache(maxsize=1024)
def _items(tool: str, given: tuple[tuple[str, Scalar], ...], result: str) -> tuple[ResultItem, ...]:
    """The same objects for the same call, so that what is found out about them can be kept."""
    return tuple(islice(_walk(parsed(result), dict(given), tool), _MAX_ITEMS))


def _walk(value: Any, around: dict[str, Scalar], tool: str, depth: int = 0) -> Iterator[ResultItem]:
    parts = value if isinstance(value, list) else []
    if isinstance(value, dict):
        own = {k: v for k, v in value.items() if _is_scalar(v)}
        if own:
            yield ResultItem(tool, own, around)
        parts, around = list(value.values()), around | own
    for part in parts if depth < 6 else ():
        if isinstance(part, list | dict):
            yield from _walk(part, around, tool, depth + 1)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float | bool) and value != ""


def next_cursor(call: PastCall) -> str | None:
    """The token of the next page, when the result says that there is one."""
    value = call.value
    if isinstance(value, dict):
        for key, token in value.items():
            known = "cursor" in key.lower() or key.lower() in ("next", "next_page", "page_token")
            if (known or key.endswith("_next")) and isinstance(token, str | int) and token != "":
                return str(token)
    return None
