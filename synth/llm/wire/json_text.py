"""A JSON value in a model's text, whatever stands around it.

Models put their answer into a fence, say something before it or add a remark. The value that fits
is taken wherever it stands; nothing in it is changed or guessed.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import jsonschema_rs

_FENCE = re.compile(r"```[ \t]*[A-Za-z0-9_-]*[ \t]*\r?\n?(.*?)```", re.DOTALL)
_START = re.compile(r"[{\[]")

MOST_STARTS = 2000
"""Brackets that are tried as the beginning of a value: bounds the work on a text of brackets."""


class NotJsonError(Exception):
    """No JSON value can be read in a text; says what is wrong, in words for the model."""


def value_in(text: str, validator: jsonschema_rs.Validator) -> Any:
    """The value that fits: the whole text, else a fence, else a value among words, of several the
    last. Where none fits, the likeliest one, for its error to be told. Raises NotJsonError."""
    likeliest: list[Any] = []
    first_error: Exception | None = None
    try:
        value = _decoded(text)
        if validator.is_valid(value):
            return value
        likeliest.append(value)
        if isinstance(value, str):  # JSON as text in JSON
            return value_in(value, validator)
    except NotJsonError:
        pass
    except (ValueError, RecursionError) as error:
        first_error = error
    fitting = None
    for found in _values_among_words(text):
        if validator.is_valid(found):
            fitting = (found,)
        elif isinstance(found, dict | list):
            likeliest.append(found)
    if fitting is not None:
        return fitting[0]
    if likeliest:
        return max(likeliest, key=_weight)
    raise NotJsonError(f"it is not JSON: {first_error}.")


def _weight(value: Any) -> int:
    """The larger value is likelier to be the answer than an example beside it."""
    return len(json.dumps(value)) if isinstance(value, dict | list) else 0


def _values_among_words(text: str) -> Iterator[Any]:
    for fence in _FENCE.finditer(text):
        try:
            yield _decoded(fence[1])
        except (ValueError, RecursionError):
            continue
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    at = 0
    for _ in range(MOST_STARTS):
        start = _START.search(text, at)
        if start is None:
            return
        try:
            value, at = decoder.raw_decode(text, start.start())
            json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()):
                return  # cut off: what stands in it is a piece of an answer, and no answer
            at = start.end()
        except (ValueError, RecursionError):
            at = start.end()
        else:
            yield value


def _decoded(text: str) -> Any:
    # line ends within strings are what models write and JSON forbids: the meaning is plain
    value = json.loads(text, strict=False, parse_constant=_refuse_constant)
    # an escape can spell half a surrogate pair, which no table can hold
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
