"""Values of perturbations: others of the same kind, and arguments of no meaning."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from random import Random
from typing import Any

_ID = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)


def parsed(text: str) -> Any:
    """The JSON value that a text is, or the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def swapped(value: Any, old: Any, new: Any) -> Any:
    """`value` with what equals `old`, type and all, replaced at every depth."""
    if isinstance(value, dict):
        return {key: swapped(item, old, new) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [swapped(item, old, new) for item in value]
    return new if type(value) is type(old) and value == old else value


def other_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Another value of the kind, or None."""
    choices = [v for v in schema.get("enum") or () if v != value]
    if choices:
        return choices[0]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if not isinstance(value, str) or not value:
        return None
    if re.fullmatch(r"\d{4}-\d\d-\d\d.*", value):
        return _next_day(value)
    return next_id(value) or f"{value}, or something like it"


def _next_day(value: str) -> str | None:
    try:
        moved = date.fromisoformat(value[:10]) + timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return moved.isoformat() + value[10:]


def next_id(value: str) -> str | None:
    """The id after this one; None for what does not end in a number."""
    found = _ID.fullmatch(value)
    return f"{found[1]}{int(found[2]) + 1:0{len(found[2])}d}" if found else None


def spellings(value: str | int | float) -> Iterable[tuple[str, str]]:
    """Ways in which a value is written, each with the same of another value."""
    other = other_value(value, {})
    if not isinstance(value, str):
        for form in ("{:,.2f}", "{:.2f}", "{:,}", "{}"):
            yield form.format(value), form.format(other)
    elif day := _next_day(value):
        yield value, day
        yield value[:10], day[:10]
    elif _ID.fullmatch(value):
        yield value, other


def properties(schema: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Those that say more of a value than that there may be one."""
    own = (schema or {}).get("properties") or {}
    return {name: found for name, found in own.items() if isinstance(found, Mapping)}


def filled(schema: Mapping[str, Any], rng: Random) -> dict[str, Any]:
    """Arguments that a schema asks for, with values of no meaning."""
    found = {}
    for name in schema.get("required", ()):
        own = properties(schema).get(name, {})
        kinds = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
        plain = kinds.get(str(own.get("type")), f"{name.replace('_', ' ')} {rng.randint(1, 9)}")
        found[name] = next(iter(own.get("enum") or ()), plain)
    return found
