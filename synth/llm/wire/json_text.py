"""A JSON value in a model's text, whatever stands around it.

Models put their answer into a fence, say something before it or add a remark. The value that fits
is taken wherever it stands; nothing in it is changed or guessed, and a piece of a value that is cut
off or broken is never taken for the whole.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import jsonschema_rs

_START = re.compile(r"[{\[]|`{3,}|~{3,}")
_BEGUN = re.compile(r'\{\s*"(?:[^"\\]++|\\.)*+"\s*:|\[[\s\[]*(?:\{\s*)?"', re.DOTALL)
"""What no words begin with: a bracket that JSON was meant by, even if it is not right."""
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]', re.DOTALL)
_FENCED = re.compile(r"\s*(`{3,}|~{3,})[^\n`]*\n(.*?)\1\s*", re.DOTALL)

LONGEST_WORDS = 64
"""Characters that words in brackets can be read as JSON for: what goes on longer was meant so."""

MOST_STARTS = 2000
"""Brackets and fences that are looked at: bounds the work on a text of brackets."""


class NotJsonError(Exception):
    """No JSON value can be read in a text; says what is wrong, in words for the model."""


class _Found(NamedTuple):
    """A value among words, or what was meant for one."""

    value: Any
    in_fence: bool
    error: Exception | None
    """Why it is none: it is broken or cut off."""


def value_in(text: str, validator: jsonschema_rs.Validator) -> Any:
    """The value that fits: the whole text, else one in a fence, else one among words, of several
    the last. Where none fits, the likeliest one, for its error to be told. Raises NotJsonError, for
    a value that fits and that a broken one comes after, too: it may be an example."""
    likeliest: list[Any] = []
    error: Exception | None = None
    fenced = _FENCED.fullmatch(text)
    try:
        value = _decoded(fenced[2] if fenced else text)
        if validator.is_valid(value):
            return value
        likeliest.append(value)
        if isinstance(value, str):  # JSON as text in JSON
            return value_in(value, validator)
    except NotJsonError:
        pass
    except (ValueError, RecursionError) as caught:
        error = caught
    fitting: _Found | None = None
    for found in _found_in(text):
        # what a fence holds is meant as the answer; beside it stand examples and remarks
        if fitting is not None and fitting.in_fence and not found.in_fence:
            continue
        if found.error is not None:
            fitting, error = None, found.error
        elif validator.is_valid(found.value):
            fitting, error = found, None
        else:
            likeliest.append(found.value)
    if fitting is not None:
        return fitting.value
    if likeliest and not isinstance(error, _BrokenError):
        return max(likeliest, key=_weight)
    raise NotJsonError(f"it is not JSON: {error}.")


class _BrokenError(ValueError):
    """What begins as JSON does not go on so."""


def _weight(value: Any) -> int:
    """The larger value is likelier to be the answer than an example beside it."""
    return len(json.dumps(value)) if isinstance(value, dict | list) else 0


def _found_in(text: str) -> Iterator[_Found]:
    """Objects and lists in their order, none of them within another."""
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    at, in_fence = 0, False
    for _ in range(MOST_STARTS):
        start = _START.search(text, at)
        if start is None:
            return
        begin = start.start()
        if start[0] not in "{[":
            at, in_fence = start.end(), not in_fence
            continue
        try:
            value, at = decoder.raw_decode(text, begin)
            _check(value)
        except (ValueError, RecursionError) as error:
            is_cut = isinstance(error, json.JSONDecodeError) and (
                error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip())
            )
            reached = error.pos if isinstance(error, json.JSONDecodeError) else len(text)
            if not is_cut and reached - begin < LONGEST_WORDS and not _BEGUN.match(text, begin):
                at = begin + 1  # a bracket of the words
                continue
            yield _Found(None, in_fence, _BrokenError(str(error)))
            end = None if is_cut else _end_of(text, begin)
            if end is None:
                return
            at = end  # what stands in it is a piece of an answer, and no answer
        else:
            yield _Found(value, in_fence, None)


def _end_of(text: str, begin: int) -> int | None:
    """Where the bracket at `begin` is closed."""
    depth = 0
    for token in _TOKEN.finditer(text, begin):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None


def _decoded(text: str) -> Any:
    # line ends within strings are what models write and JSON forbids: the meaning is plain
    value = json.loads(text, strict=False, parse_constant=_refuse_constant)
    _check(value)
    return value


def _check(value: Any) -> None:
    """Raises ValueError for what no table can hold: half a surrogate pair, which an escape can
    spell, and a number too large for a float."""
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
