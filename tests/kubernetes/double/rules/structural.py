"""Structural schemas of custom resources: pruning, defaults, validation, transition rules.

The order is the API server's: unknown fields are dropped, nulls that a default may replace are
dropped, defaults are set, and what is there then must be valid. A rule in CEL is evaluated where
it says that a field never changes; others are named in the log when the definition is created.
Source: "Extend the Kubernetes API with CustomResourceDefinitions".
"""

import copy
import logging
import re
from typing import Any

import jsonschema_rs

from tests.kubernetes.double.errors import (
    ApiObject,
    FieldError,
    bad_value,
    duplicate,
    required,
    unsupported,
)

log = logging.getLogger(__name__)

_COPIED = (
    *("enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "multipleOf"),
    *("minProperties", "maxProperties", "required"),
)
_FORMATS = {"date-time", "date", "ipv4", "ipv6", "uri", "uuid", "email", "hostname"}
_BELOW_ROOT = ("apiVersion", "kind", "metadata")
_NEVER_CHANGES = re.compile(
    r"(?:has\(self\.(?P<a>\w+)\) == has\(oldSelf\.(?P=a)\) && "
    r"\(!has\(self\.(?P=a)\) \|\| self\.(?P=a) == oldSelf\.(?P=a)\)"
    r"|self\.(?P<b>\w+) == oldSelf\.(?P=b)|(?P<c>self == oldSelf))"
)


def _validating(node: ApiObject) -> ApiObject:
    """The JSON Schema of one node."""
    schema: ApiObject = {key: node[key] for key in _COPIED if key in node}
    for side in ("Minimum", "Maximum"):  # draft 4 says them as booleans beside the bound
        exclusive = f"exclusive{side}"
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive):
            schema[exclusive] = schema.pop(side.lower())
    if node.get("format") in _FORMATS:
        schema["format"] = node["format"]
    if node.get("x-kubernetes-int-or-string"):
        schema["type"] = ["integer", "string"]
    elif "type" in node:
        schema["type"] = node["type"]
    if node.get("nullable") and "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*types, "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    if "properties" in node:
        schema["properties"] = {k: _validating(v) for k, v in node["properties"].items()}
    for key in ("items", "additionalProperties", "not"):
        if isinstance(node.get(key), dict):
            schema[key] = _validating(node[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if key in node and not node.get("x-kubernetes-int-or-string"):
            schema[key] = [_validating(part) for part in node[key]]
    return schema


def path_text(parts: list[str | int]) -> str:
    """`spec.containers[0].name`."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


class Structural:
    """The schema of one version of a custom resource."""

    def __init__(self, schema: ApiObject, title: str) -> None:
        self.schema = schema
        root = _validating(schema)
        properties = {k: v for k, v in root.get("properties", {}).items() if k not in _BELOW_ROOT}
        self._validator = jsonschema_rs.validator_for(
            {**root, "properties": properties}, validate_formats=True
        )
        self._rules = list(_rules(schema, []))
        for path, rule in self._rules:
            if not _NEVER_CHANGES.fullmatch(" ".join(rule["rule"].split())):
                log.warning(
                    "%s: no CEL is evaluated here, skipped at %s: %s", title, path, rule["rule"]
                )

    def complete(self, item: ApiObject) -> list[str]:
        """Prune and default `item` in place; the paths of what was unknown."""
        unknown: list[str] = []
        kept = {key: item.pop(key) for key in _BELOW_ROOT if key in item}
        _prune(item, self.schema, "", unknown)
        _default(item, self.schema)
        rest = dict(item)
        item.clear()
        item.update({**kept, **rest})
        return unknown

    def errors(self, item: ApiObject, old: ApiObject | None = None) -> list[FieldError]:
        """What is wrong with a completed object, and with what it changes of `old`."""
        plain = {key: value for key, value in item.items() if key not in _BELOW_ROOT}
        found = [_field_error(error) for error in self._validator.iter_errors(plain)]
        _repeated(plain, self.schema, "", found)
        if old is not None:
            for path, rule in self._rules:
                found += _changed(path, rule, item, old)
        return found


def _prune(value: Any, node: ApiObject, path: str, unknown: list[str]) -> None:
    if isinstance(value, list):
        for at, element in enumerate(value):
            _prune(element, node.get("items") or {}, f"{path}[{at}]", unknown)
        return
    if not isinstance(value, dict):
        return
    properties, more = node.get("properties") or {}, node.get("additionalProperties")
    keeps = node.get("x-kubernetes-preserve-unknown-fields") or more is True
    embedded = _BELOW_ROOT if node.get("x-kubernetes-embedded-resource") else ()
    for key in list(value):
        below = f"{path}.{key}" if path else key
        if key in properties:
            _prune(value[key], properties[key], below, unknown)
        elif isinstance(more, dict):
            _prune(value[key], more, below, unknown)
        elif not keeps and key not in embedded:
            unknown.append(below)
            del value[key]


def _default(value: Any, node: ApiObject) -> None:
    if isinstance(value, list):
        if isinstance(items := node.get("items"), dict):
            for element in value:
                _default(element, items)
        return
    if not isinstance(value, dict):
        return
    properties = node.get("properties") or {}
    for key, below in properties.items():
        if "default" in below:
            if key in value and value[key] is None and not below.get("nullable"):
                del value[key]
            if key not in value:
                value[key] = copy.deepcopy(below["default"])
        if key in value:
            _default(value[key], below)
    if isinstance(more := node.get("additionalProperties"), dict):
        for key, element in value.items():
            if key not in properties:
                _default(element, more)


def _field_error(error: Any) -> FieldError:
    kind, parts = type(error.kind).__name__, list(error.instance_path)
    if kind == "ValidationErrorKind_Required" or kind == "Required":
        return required(path_text([*parts, error.kind.property]))
    field = path_text(parts) or "<nil>"
    value = (
        error.instance
        if isinstance(error.instance, str | int | float | bool)
        else type_of(error.instance)
    )
    if kind == "Enum":
        return unsupported(field, value, [str(option) for option in error.kind.options])
    if kind == "Type":
        types = [t for t in error.kind.types if t != "null"]
        kinds = " or ".join(sorted(types))
        why = f'{field} in body must be of type {kinds}: "{type_of(error.instance)}"'
        return FieldError(
            "FieldValueTypeInvalid", field, f'Invalid value: "{type_of(error.instance)}": {why}'
        )
    return bad_value(field, value, f"{field} in body: {error.message}")


def type_of(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}
    return "null" if value is None else names.get(type(value), "number")


def _repeated(value: Any, node: ApiObject, path: str, found: list[FieldError]) -> None:
    """Elements of sets and maps (x-kubernetes-list-type) that are there twice."""
    if isinstance(value, dict):
        properties, more = node.get("properties") or {}, node.get("additionalProperties")
        for key, element in value.items():
            below = properties.get(key) or (more if isinstance(more, dict) else None)
            if below:
                _repeated(element, below, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        kind, seen = node.get("x-kubernetes-list-type"), []
        for at, element in enumerate(value):
            _repeated(element, node.get("items") or {}, f"{path}[{at}]", found)
            if kind == "map" and isinstance(element, dict):
                key: Any = {k: element.get(k) for k in node.get("x-kubernetes-list-map-keys", [])}
            elif kind == "set":
                key = element
            else:
                continue
            if key in seen:
                found.append(duplicate(f"{path}[{at}]", key))
            seen.append(key)


def _rules(node: ApiObject, path: list[str]) -> list[tuple[str, ApiObject]]:
    """Rules that stand at objects which no list holds, with their paths."""
    found = [(".".join(path), rule) for rule in node.get("x-kubernetes-validations") or []]
    for key, below in (node.get("properties") or {}).items():
        found += _rules(below, [*path, key])
    return found


def _changed(path: str, rule: ApiObject, item: ApiObject, old: ApiObject) -> list[FieldError]:
    match = _NEVER_CHANGES.fullmatch(" ".join(rule["rule"].split()))
    if match is None:
        return []
    new, was = _at(item, path), _at(old, path)
    if new is None or was is None:
        return []  # a transition rule needs both
    name = match["a"] or match["b"]
    if name is not None:
        new, was = new.get(name), was.get(name)
    if new == was:
        return []
    text = rule.get("message") or f"failed rule: {rule['rule']}"
    return [bad_value(path, type_of(_at(item, path)), text)]


def _at(item: Any, path: str) -> Any:
    for part in path.split(".") if path else []:
        item = item.get(part) if isinstance(item, dict) else None
    return item
