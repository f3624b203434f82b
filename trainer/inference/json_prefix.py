"""Whether a text is, or can still become, a JSON value under a schema: for constrained decoding.

Enforced are types, declared and required properties, enums, constants and items, also where they
come by unions, `allOf` or references within the schema (`trainer.inference.json_schema`). Left to
whoever executes the call: formats (dates, too), patterns, lengths, ranges. Where a schema declares
properties, others are refused. Keys come once; between tokens of JSON stands one space or line
break at most, since a model could go on with blanks for ever.

Texts are bytes of UTF-8 read as Latin-1 (`as_bytes`), because a token may end within a letter.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from trainer.inference.json_schema import Said, Schema

Fit = Literal["whole", "prefix", "no"]

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NUMBER_BEGUN = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.(?:\d+(?:[eE][+-]?\d*)?)?|[eE][+-]?\d*)?)?")
_ESCAPE_BEGUN = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{0,4})?')
_LONGEST_NUMBER = 40
_LARGEST_NUMBER = 2**53 - 1
"""Either way: above it not every whole number has a value of its own, and tools take none."""
_DEEPEST = 24
"""Here nothing is opened that need not be: where a schema says nothing, or leads back to itself, a
model could nest for ever."""


class _UnfinishedError(Exception):
    """The text ended inside something that may still become right."""


class _WrongError(Exception):
    """No continuation helps."""


def as_bytes(text: str) -> str:
    """A text as letters that stand for a byte each."""
    return text.encode().decode("latin-1")


def _spelt(value: Any) -> str:
    return as_bytes(json.dumps(value, ensure_ascii=False))


class _Read(NamedTuple):
    text: str
    schema: Schema


def fit_of(text: str, schema: Schema) -> Fit:
    """Of a value that ends with a bracket or quote; a bare number is never known to be whole."""
    try:
        end = _value(_Read(text, schema), 0, schema.root, 0)
    except _UnfinishedError:
        return "prefix"
    except _WrongError:
        return "no"
    return "whole" if end == len(text) else "no"


def _value(read: _Read, at: int, schema: Any, depth: int) -> int:
    """The position behind the value that begins at `at`."""
    unfinished = False
    for said in read.schema.alternatives(schema):
        try:
            return _as_said(read, at, said, depth)
        except _UnfinishedError:
            unfinished = True
        except _WrongError:
            continue
    raise _UnfinishedError if unfinished else _WrongError


def _as_said(read: _Read, at: int, said: Said, depth: int) -> int:
    text = read.text
    if said.values is not None:
        return _literal(text, at, [_spelt(value) for value in said.values])
    match said.kind or _kind_at(text, at, depth):
        case "object":
            return _object(read, at, said, depth)
        case "array":
            return _array(read, at, said, depth)
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


def _kind_at(text: str, at: int, depth: int) -> str:
    """Where a schema says nothing, the value's own first letter does."""
    if _peek(text, at) in "{[" and depth >= _DEEPEST:
        raise _WrongError
    kinds = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean"}
    return kinds.get(text[at], "null" if text[at] == "n" else "number")


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


def _array(read: _Read, at: int, said: Said, depth: int) -> int:
    text = read.text
    _expect(text, at, "[")
    at = _blank(text, at + 1)
    if _peek(text, at) == "]":
        return at + 1
    if said.items is False or depth >= _DEEPEST:
        raise _WrongError
    while True:
        at = _blank(text, _value(read, at, said.items, depth + 1))
        match _peek(text, at):
            case ",":
                at = _blank(text, at + 1)
            case "]":
                return at + 1
            case _:
                raise _WrongError


def _object(read: _Read, at: int, said: Said, depth: int) -> int:
    text = read.text
    closed = bool(said.properties) or said.others is False
    names = {_spelt(name): name for name in _names(said, depth)}
    seen: set[str] = set()
    _expect(text, at, "{")
    at = _blank(text, at + 1)
    if _peek(text, at) == "}":
        return _end(at, said.required)
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
        at = _value(read, _blank(text, at + 1), said.properties.get(name, said.others), depth + 1)
        at = _blank(text, at)
        match _peek(text, at):
            case "," if not closed or len(seen) < len(names):
                at = _blank(text, at + 1)
            case "}":
                return _end(at, [n for n in said.required if n not in seen])
            case _:
                raise _WrongError


def _names(said: Said, depth: int) -> Iterable[str]:
    """Declared properties; where a schema goes on for ever, at last the required ones alone."""
    return said.properties if depth < _DEEPEST else said.required


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
