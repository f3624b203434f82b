"""Schemas that somebody else wrote, checked: normalised, within bounds, and of use to a caller."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from records.digest import canonical_json
from tool_specs.importing.dialects import Dialect, UnusableError, normalised
from tool_specs.importing.patterns import without_unsupported
from tool_specs.importing.satisfiability import unsatisfiable
from tool_specs.language.schemas import SchemaError, Validator

MAX_SCHEMA_BYTES = 16_000
"""Canonical JSON of one input schema, references written out; prompts hold a dozen tools."""

MAX_DEPTH = 24
"""Of nested JSON; a nested object costs two."""


class CheckedSchema(NamedTuple):
    schema: dict[str, Any] | None
    """In draft 2020-12 without references; None where it cannot be used."""
    fault: str | None = None
    detail: str = ""
    """Of the fault, in words."""
    removed: Mapping[str, str] = {}
    """Place -> pattern that the regex engine cannot take, and that was left out."""


def usable_schema(schema: Any, dialect: Dialect | None = None) -> CheckedSchema:
    """The input schema of a tool, whose arguments are an object in any case."""
    if not isinstance(schema, Mapping):
        return CheckedSchema(None, "missing_schema")
    found = checked_schema(schema, dialect)
    if found.schema is None:
        return found
    kinds = found.schema.get("type", "object")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        return CheckedSchema(None, "invalid_schema", "arguments are an object")
    return satisfiable(found._replace(schema=found.schema | {"type": "object"}))


def satisfiable(found: CheckedSchema) -> CheckedSchema:
    """The schema itself, or a fault where nothing satisfies it."""
    if found.schema is not None and unsatisfiable(found.schema):
        return CheckedSchema(None, "unsatisfiable_schema", "no value satisfies the schema")
    return found


def checked_schema(schema: Any, dialect: Dialect | None = None) -> CheckedSchema:
    """Any schema, normalised and within bounds, or what is wrong with it."""
    try:
        plain = normalised(schema, dialect)
        if not isinstance(plain, dict):
            return CheckedSchema(None, "invalid_schema")
        if depth(plain) > MAX_DEPTH:
            return CheckedSchema(None, "deep_schema")
        if len(canonical_json(plain).encode()) > MAX_SCHEMA_BYTES:
            return CheckedSchema(None, "huge_schema")
        return _compiled(plain)
    except UnusableError as error:
        return CheckedSchema(None, error.reason, error.detail)
    except SchemaError as error:
        return CheckedSchema(None, "invalid_schema", str(error))
    except (ValueError, RecursionError):  # no JSON: NaN, lone surrogates
        return CheckedSchema(None, "invalid_schema")


def _compiled(plain: dict[str, Any]) -> CheckedSchema:
    """Raises SchemaError for what is no schema whatever its patterns are."""
    try:
        Validator(plain)
    except SchemaError as error:
        if '"regex"' not in str(error):
            raise
    else:
        return CheckedSchema(plain)
    loose, removed = without_unsupported(plain)
    Validator(loose)
    return CheckedSchema(loose, removed=removed)


def depth(node: Any) -> int:
    """Levels of a JSON value, a scalar being one; stops counting well above MAX_DEPTH."""
    layer, levels = [node], 0
    while layer and levels <= 2 * MAX_DEPTH:
        levels += 1
        layer = [
            child
            for one in layer
            if isinstance(one, Mapping | list)
            for child in (one.values() if isinstance(one, Mapping) else one)
        ]
    return levels
