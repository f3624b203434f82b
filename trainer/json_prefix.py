"""Whether a text is, or can still become, a JSON value under a schema: for constrained decoding.

Enforced are types, declared and required properties, enums, constants, unions and items. Left to
whoever executes the call: formats (dates, too), patterns, lengths, ranges, references. Where a
schema declares properties, others are refused. Keys come once; between tokens of JSON stands one
space or line break at most, since a model could go on with blanks for ever.

Texts are bytes of UTF-8 read as Latin-1 (`as_bytes`), because a token may end within a letter.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Fit = Literal["whole", "prefix", "no"]

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NUMBER_BEGUN = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.(?:\d+(?:[eE][+-]?\d*)?)?|[eE][+-]?\d*)?)?")
_ESCAPE_BEGUN = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{0,4})?')
_LONGEST_NUMBER = 40
_LARGEST_NUMBER = 2**53 - 1
"""Either way: above it not every whole number has a value of its own, and tools take none."""
_DEEPEST = 24
"""Where a schema says nothing, no bracket is opened at this depth: a model could nest for ever."""


class _UnfinishedError(Exception):
    """The text ended inside something that may still become right."""


class _WrongError(Exception):
    """No continuation helps."""


def as_bytes(text: str) -> str:
    """A text as letters that stand for a byte each."""
    return text.encode().decode("latin-1")


def _spelt(value: Any) -> str:
    return as_bytes(json.dumps(value, ensure_ascii=False))


def fit_of(text: str, schema: Mapping[str, Any]) -> Fit:
    """Of a value that ends with a bracket or quote; a bare number is never known to be whole."""
    try:
        end = _value(text, 0, schema, 0)
    except _UnfinishedError:
        return "prefix"
    except _WrongError:
        return "no"
    return "whole" if end == len(text) else "no"


def _value(text: str, at: int, schema: Any, depth: int) -> int:
    """The position behind the value that begins at `at`."""
    schema = schema if isinstance(schema, Mapping) else {}
    for union in ("anyOf", "oneOf"):
        if options := schema.get(union):
            return _any_of(text, at, [_joined(schema, union, one) for one in options], depth)
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return _any_of(text, at, [{**schema, "type": kind} for kind in kinds], depth)
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return _literal(text, at, [_spelt(v) for v in values])
    match kinds or _kind_at(text, at, depth):
        case "object":
            return _object(text, at, schema, depth)
        case "array":
            return _array(text, at, schema.get("items"), depth)
        case "string":
            return _string(text, at)
        case "integer" | "number" as kind:
            return _number(text, at, whole=kind == "integer")
        case "boolean":
            return _literal(text, at, ["true", "false"])
        case "null":
            return _literal(text, at, ["null"])
        case _:
            raise _WrongError


def _joined(schema: Mapping[str, Any], union: str, option: Any) -> dict[str, Any]:
    """An option of a union, with what the schema says beside the union."""
    own: Mapping[str, Any] = option if isinstance(option, Mapping) else {}
    beside = {key: value for key, value in schema.items() if key != union}
    joined = {**beside, **own}
    for key in ("properties", "required"):
        if key in beside and key in own:
            joined[key] = _both(beside[key], own[key])
    return joined


def _both(a: Any, b: Any) -> Any:
    return {**a, **b} if isinstance(a, Mapping) else [*a, *b]


def _kind_at(text: str, at: int, depth: int) -> str:
    """Where a schema says nothing, the value's own first letter does."""
    if _peek(text, at) in "{[" and depth >= _DEEPEST:
        raise _WrongError
    kinds = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean"}
    return kinds.get(text[at], "null" if text[at] == "n" else "number")


def _any_of(text: str, at: int, options: Sequence[Any], depth: int) -> int:
    unfinished = False
    for option in options:
        try:
            return _value(text, at, option, depth + 1)
        except _UnfinishedError:
            unfinished = True
        except _WrongError:
            continue
    raise _UnfinishedError if unfinished else _WrongError


def _literal(text: str, at: int, values: Sequence[str]) -> int:
    """The longest of the values that stands here."""
    for value in sorted(values, key=len, reverse=True):
        if text.startswith(value, at):
            return at + len(value)
    rest = text[at:]
    raise _UnfinishedError if any(value.startswith(rest) for value in values) else _WrongError


def _string(text: str, at: int) -> int:
    _expect(text, at, '"')
    at += 1
    while at < len(text):
        if text[at] == '"':
            return at + 1
        if text[at] == "\\":
            found = _ESCAPE_BEGUN.match(text, at)
            assert found is not None
            if found.end() == at + 1 and at + 1 < len(text):
                raise _WrongError
            if found.group().startswith("\\u") and found.end() - at < 6 and found.end() < len(text):
                raise _WrongError
            at = found.end()
        elif text[at] < " ":
            raise _WrongError
        else:
            at += 1
    raise _UnfinishedError


def _number(text: str, at: int, *, whole: bool) -> int:
    begun = _NUMBER_BEGUN.match(text, at)
    assert begun is not None
    length = begun.end() - at
    if length > _LONGEST_NUMBER or (whole and not _is_whole(begun.group())):
        raise _WrongError
    if length == _LONGEST_NUMBER and not begun.group()[-1].isdigit():
        raise _WrongError  # there is no room left for the digit that it needs
    found = _NUMBER.match(text, at)
    if found is not None and abs(float(found.group())) > _LARGEST_NUMBER:
        raise _WrongError
    if begun.end() == len(text):
        raise _UnfinishedError
    if found is None or found.end() != begun.end():
        raise _WrongError
    return found.end()


def _is_whole(number: str) -> bool:
    return not set(number) & set(".eE")


def _array(text: str, at: int, items: Any, depth: int) -> int:
    _expect(text, at, "[")
    at = _blank(text, at + 1)
    if _peek(text, at) == "]":
        return at + 1
    while True:
        at = _blank(text, _value(text, at, items, depth + 1))
        match _peek(text, at):
            case ",":
                at = _blank(text, at + 1)
            case "]":
                return at + 1
            case _:
                raise _WrongError


def _object(text: str, at: int, schema: Mapping[str, Any], depth: int) -> int:
    declared: Mapping[str, Any] = schema.get("properties") or {}
    closed = bool(declared) or schema.get("additionalProperties") is False
    others = schema.get("additionalProperties")
    missing = [name for name in schema.get("required") or () if name in declared]
    names = {_spelt(name): name for name in declared}
    seen: set[str] = set()
    _expect(text, at, "{")
    at = _blank(text, at + 1)
    if _peek(text, at) == "}":
        return _end(at, missing)
    while True:
        begin = at
        if closed:
            at = _literal(text, at, [spelt for spelt in names if names[spelt] not in seen])
        else:
            at = _string(text, at)
        name = names.get(text[begin:at], text[begin:at])
        if name in seen:
            raise _WrongError
        seen.add(name)
        at = _blank(text, at)
        _expect(text, at, ":")
        at = _value(text, _blank(text, at + 1), declared.get(name, others), depth + 1)
        at = _blank(text, at)
        match _peek(text, at):
            case "," if not closed or len(seen) < len(declared):
                at = _blank(text, at + 1)
            case "}":
                return _end(at, [n for n in missing if n not in seen])
            case _:
                raise _WrongError


def _end(at: int, missing: Sequence[str]) -> int:
    if missing:
        raise _WrongError
    return at + 1


def _peek(text: str, at: int) -> str:
    if at >= len(text):
        raise _UnfinishedError
    return text[at]


def _expect(text: str, at: int, wanted: str) -> None:
    if _peek(text, at) != wanted:
        raise _WrongError


def _blank(text: str, at: int) -> int:
    return at + 1 if at < len(text) and text[at] in " \n" else at
