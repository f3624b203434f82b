"""A value that a JSON Schema allows, for schemas that an answerer knows nothing of."""

import re
from typing import Any

_MAX_DEPTH = 8
_FORMS = {"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z"}


def sample(schema: dict[str, Any], text: str, depth: int = 0) -> Any:
    """The simplest valid value; free strings are made of the first words of `text`. Covers types,
    enums, bounds, required properties and unions, not patterns nor references."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return schema[key][0] if key == "enum" else sample(schema[key][0], text, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return conform({}, schema, text, depth) if depth < _MAX_DEPTH else {}
    if kind == "array":
        count = schema.get("minItems", 0) if depth < _MAX_DEPTH else 0
        return [sample(schema.get("items") or {}, text, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        above = schema.get("exclusiveMinimum")
        low = max(0, schema.get("minimum", 0), -1 if above is None else above + 1)
        return min(low, schema["maximum"]) if "maximum" in schema else low
    if kind in ("boolean", "null"):
        return False if kind == "boolean" else None
    words = (
        _FORMS.get(schema.get("format", "")) or " ".join(re.findall(r"\w+", text)[:12]) or "none"
    )
    while len(words) < schema.get("minLength", 0):
        words += " " + words
    return words[: schema.get("maxLength", 200)]


def conform(value: Any, schema: dict[str, Any], text: str, depth: int = 0) -> Any:
    """The value with what the schema requires and it lacks, without what the schema refuses."""
    members = schema.get("properties")
    if isinstance(value, dict):
        members = members if isinstance(members, dict) else {}
        is_open = schema.get("additionalProperties", True) is not False
        kept = {k: v for k, v in value.items() if is_open or k in members}
        kept = {k: conform(v, members.get(k) or {}, text, depth + 1) for k, v in kept.items()}
        lacking = [k for k in schema.get("required") or [] if k not in kept]
        return kept | {k: sample(members.get(k) or {}, text, depth + 1) for k in lacking}
    if isinstance(value, str) and isinstance(schema.get("maxLength"), int):
        return value[: schema["maxLength"]]
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        kept_items = value[: schema.get("maxItems")]
        return [conform(v, schema["items"], text, depth + 1) for v in kept_items]
    return value
