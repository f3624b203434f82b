"""A value that a JSON Schema allows, for schemas that no rule here was written for."""

import re
from typing import Any

from synth.offline.words import split

_MAX_DEPTH = 8


def sample(schema: dict[str, Any], text: str, depth: int = 0) -> Any:
    """The simplest valid value; free strings are made of the first words of `text`. Covers types,
    enums, bounds, required properties and unions, not patterns nor references."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return sample(schema[key][0], text, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return _object(schema, text, depth)
    if kind == "array":
        count = schema.get("minItems", 0) if depth < _MAX_DEPTH else 0
        return [sample(schema.get("items") or {}, text, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        number = max(low, 0) if "maximum" not in schema else min(max(low, 0), schema["maximum"])
        return number + 1 if number == schema.get("exclusiveMinimum") else number
    if kind == "boolean":
        return False
    return None if kind == "null" else _string(schema, text)


def _object(schema: dict[str, Any], text: str, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    if depth >= _MAX_DEPTH:
        return {}
    return {
        name: sample(properties.get(name) or {}, text, depth + 1)
        for name in schema.get("required") or []
    }


def _string(schema: dict[str, Any], text: str) -> str:
    forms = {"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z"}
    if schema.get("format") in forms:
        return forms[schema["format"]]
    words = " ".join(split(re.sub(r"[^\x20-\x7e]", " ", text))[:12]) or "none"
    least, most = schema.get("minLength", 0), schema.get("maxLength", 200)
    while len(words) < least:
        words += " " + words
    return words[:most]


def conform(value: Any, schema: dict[str, Any], text: str) -> Any:
    """The value with what the schema requires and it lacks, without what the schema refuses."""
    properties = schema.get("properties")
    if isinstance(value, dict) and isinstance(properties, dict):
        known = {
            k: conform(v, properties.get(k) or {}, text)
            for k, v in value.items()
            if k in properties or schema.get("additionalProperties", True) is not False
        }
        lacking = [k for k in schema.get("required") or [] if k not in known]
        return known | {k: sample(properties.get(k) or {}, text) for k in lacking}
    if isinstance(value, str) and isinstance(schema.get("maxLength"), int):
        return value[: schema["maxLength"]]
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        most = schema.get("maxItems")
        return [conform(v, schema["items"], text) for v in value][:most]
    return value
