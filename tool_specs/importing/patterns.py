"""Patterns that the regex engine here cannot take, left out of a normalised schema.

These are lookarounds, back references and patterns too large for the engine's bounds. What is left
accepts all that the original accepts, and perhaps more: a keyword that would refuse more once its
schema is looser (`not`, `if`, `oneOf`, `maxContains`, what looks at members that no other keyword
has named) is left out or loosened as well.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from tool_specs.importing.dialects import ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS
from tool_specs.language.schemas import SchemaError, Validator


class Loosened(NamedTuple):
    schema: Any
    removed: dict[str, str]
    """Place as a JSON pointer -> pattern."""


def without_unsupported(schema: Any) -> Loosened:
    """The schema without the patterns that the engine cannot take; itself if it takes them all."""
    removed: dict[str, str] = {}
    loose = _loose(schema, "", removed)
    return Loosened(loose, removed) if removed else Loosened(schema, {})


@lru_cache(maxsize=4096)
def is_supported(pattern: Any) -> bool:
    try:
        Validator({"pattern": pattern})
    except SchemaError:
        return False
    return True


def _loose(node: Any, place: str, removed: dict[str, str]) -> Any:
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    for key, value in node.items():
        where = f"{place}/{key}"
        if key == "pattern" and not is_supported(value):
            removed[where] = value
        elif key in SCHEMA_MAPS:
            found[key] = {
                name: _loose(one, f"{where}/{_step(name)}", removed)
                for name, one in value.items()
                if key != "patternProperties" or _kept(name, where, removed)
            }
        elif key in SCHEMA_LISTS:
            found[key] = [_loose(one, f"{where}/{i}", removed) for i, one in enumerate(value)]
        elif key == "items" or key in ONE_SCHEMA:
            if not key.startswith("unevaluated"):
                found[key] = _loose(value, where, removed)
        else:
            found[key] = value
    _loosen_what_refuses(node, found)
    return found


def _kept(pattern: str, where: str, removed: dict[str, str]) -> bool:
    if not is_supported(pattern):
        removed[f"{where}/{_step(pattern)}"] = pattern
    return is_supported(pattern)


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _loosen_what_refuses(node: dict[str, Any], found: dict[str, Any]) -> None:
    """Keywords that refuse more where the schemas in them accept more."""
    changed = {key for key in found if found[key] != node[key]}
    if "not" in changed:
        del found["not"]
    if "if" in changed:
        for key in ("if", "then", "else"):
            found.pop(key, None)
    if "contains" in changed:
        found.pop("maxContains", None)
    if len(found.get("patternProperties", ())) < len(node.get("patternProperties", ())):
        found.pop("additionalProperties", None)
    if "oneOf" in changed:
        branches = {"anyOf": found.pop("oneOf")}
        if "anyOf" in found:
            found["allOf"] = [*found.get("allOf", ()), branches]
        else:
            found |= branches
