"""OpenAPI 3 documents as tools: one per operation, all its inputs merged into one schema.

Path, query and header parameters and the members of a JSON body or of a form become properties of
one object; a body's member whose name a parameter has is called `body_<name>`, a body that is no
plain object `body`. A body counts as given: few documents say that theirs is required, and mean it.
Cookies and the headers that HTTP clients set themselves are nobody's argument.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from records.errors import ConfigError
from tool_specs.importing.dialects import Dialect, Reading, UnusableError, pointed_at
from tool_specs.importing.tool_lists import Listing, ToolListSource

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
MAX_OPERATIONS = 5_000
MAX_REFERENCES = 8
"""A parameter, body or answer that is a reference to one that is a reference ..."""

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
"""Bodies of fields; JSON is taken first where a body may be either."""

_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json(?:;.*)?|\*/\*|application/\*", re.IGNORECASE)
_OF_THE_CLIENT = frozenset({"accept", "authorization", "content-type"})
"""Header parameters that the specification itself says to ignore."""

_MERGED = frozenset(
    {"type", "properties", "required", "title", "description", "additionalProperties", "examples"}
)
"""What a body's schema may say for its members to stand beside the parameters."""


def listing_of(document: Mapping[str, Any], source: ToolListSource) -> Listing:
    """The document's operations as listed tools. ConfigError for a version that is not 3."""
    version = str(document.get("openapi", document.get("swagger")))
    if not version.startswith(("3.0", "3.1", "3.2")):
        raise ConfigError(f"an OpenAPI document of version {version}; convert it to OpenAPI 3")
    if not isinstance(document.get("paths"), Mapping):
        raise ConfigError("an OpenAPI document without paths; there are no operations in it")
    dialect: Dialect = "openapi-3.0" if version.startswith("3.0") else "2020-12"
    tools: list[dict[str, Any]] = []
    for path, item in document["paths"].items():
        tools += _tools_of_path(document, dialect, str(path), item)
        if len(tools) > MAX_OPERATIONS:
            raise ConfigError(f"an OpenAPI document of over {MAX_OPERATIONS} operations; split it")
    return Listing(source, tools, dialect="2020-12")  # each part is normalised where it stands


def _tools_of_path(
    document: Mapping[str, Any], dialect: Dialect, path: str, item: Any
) -> Iterator[dict[str, Any]]:
    """The path's operations; one unusable tool for a path that cannot be read."""
    try:
        item = _followed(document, item)
    except UnusableError as error:
        name = _plain_name(f"path_{path}")
        yield {"name": name, "inputSchema": error, "annotations": {"http": path}}
        return
    for method in METHODS:
        if isinstance(operation := item.get(method), Mapping):
            yield _tool(document, dialect, path, method, operation, item.get("parameters"))


def _tool(
    document: Mapping[str, Any],
    dialect: Dialect,
    path: str,
    method: str,
    operation: Mapping[str, Any],
    shared: Any,
) -> dict[str, Any]:
    named = operation.get("operationId")
    fallback = _plain_name(f"{method}_{path}")
    words = [operation.get(key) for key in ("summary", "description")]
    texts = [text.strip() for text in words if isinstance(text, str) and text.strip()]
    is_read = method in ("get", "head", "options")
    tool = {
        "name": named if isinstance(named, str) and named else fallback,
        "description": "\n".join(dict.fromkeys(texts)),
        "annotations": {
            "readOnlyHint": is_read,
            "destructiveHint": method == "delete",
            "idempotentHint": is_read or method in ("put", "delete"),
            "openWorldHint": True,
            "http": f"{method.upper()} {path}",
        },
    }
    try:
        tool["inputSchema"] = _Operation(document, dialect).inputs(operation, shared)
    except UnusableError as error:
        tool["inputSchema"] = error
    try:
        tool["outputSchema"] = _Operation(document, dialect).output(operation)
    except UnusableError:
        tool["outputSchema"] = None
    return tool


def _plain_name(text: str) -> str:
    return re.sub(r"[\W_]+", "_", text).strip("_")


class _Operation:
    def __init__(self, document: Mapping[str, Any], dialect: Dialect) -> None:
        self._document = document
        self._normal = Reading(document, dialect).read

    def inputs(self, operation: Mapping[str, Any], shared: Any) -> dict[str, Any]:
        """One schema of everything that a caller gives. Raises UnusableError."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        own = {(p["in"], p["name"]): p for p in self._parameters(operation.get("parameters"))}
        both = {(p["in"], p["name"]): p for p in self._parameters(shared)} | own
        for (place, name), parameter in both.items():
            if place == "cookie" or (place == "header" and name.lower() in _OF_THE_CLIENT):
                continue
            key = _free(name, place, properties)
            properties[key] = self._described(parameter, self._parameter_schema(parameter))
            if place == "path" or parameter.get("required") is True:
                required.append(key)
        rest = self._body(operation.get("requestBody"), properties, required)
        return {"type": "object", "properties": properties, "required": required, **rest}

    def output(self, operation: Mapping[str, Any]) -> Any:
        """Schema of the JSON answer of the first status that means success, None without one."""
        responses = operation.get("responses")
        if not isinstance(responses, Mapping):
            return None
        for status in sorted(map(str, responses)):
            if status.startswith("2"):
                schema = self._json_schema(self._followed(responses.get(status)))
                return None if schema is None else self._normal(schema)
        return None

    def _parameters(self, listed: Any) -> Iterator[Mapping[str, Any]]:
        for one in listed if isinstance(listed, list) else ():
            parameter = self._followed(one)
            if not (
                isinstance(parameter.get("name"), str) and isinstance(parameter.get("in"), str)
            ):
                raise UnusableError("invalid_schema", "a parameter without name or place")
            yield parameter

    def _parameter_schema(self, parameter: Mapping[str, Any]) -> Any:
        if "schema" in parameter:
            return self._normal(parameter["schema"])
        schema = self._json_schema(parameter)
        return {} if schema is None else self._normal(schema)

    def _body(self, body: Any, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
        """Adds the body's members; what else it says of the object that they are merged into."""
        if body is None:
            return {}
        body = self._followed(body)
        schema = self._json_schema(body)
        if schema is None:
            schema = self._form_schema(body)
        if schema is None:
            raise UnusableError(
                "not_json_body",
                "a body in no form of JSON",
                f"and no form; it is {_kinds_of(body)}",
            )
        plain = self._normal(schema)
        if not isinstance(plain, dict) or plain.keys() - _MERGED or "properties" not in plain:
            key = _free("body", "json", properties)
            properties[key] = self._described(body, plain)
            required.append(key)
            return {}
        for name, member in plain["properties"].items():
            if isinstance(member, dict) and member.get("readOnly") is True:
                continue  # an answer's, and never sent
            key = _free(name, "body", properties)
            properties[key] = member
            if name in plain.get("required", ()):
                required.append(key)
        return {key: plain[key] for key in ("additionalProperties",) if key in plain}

    def _described(self, owner: Mapping[str, Any], schema: Any) -> Any:
        words = owner.get("description")
        if not isinstance(schema, dict) or not isinstance(words, str):
            return schema
        return schema | {"description": words}

    def _json_schema(self, content: Mapping[str, Any]) -> Any:
        kinds = content.get("content")
        for kind, media in kinds.items() if isinstance(kinds, Mapping) else ():
            if _JSON.fullmatch(str(kind)) and isinstance(media, Mapping):
                return media.get("schema", {})
        return None

    def _form_schema(self, content: Mapping[str, Any]) -> Any:
        kinds = content.get("content")
        for kind, media in kinds.items() if isinstance(kinds, Mapping) else ():
            plain = str(kind).partition(";")[0].strip().lower()
            if plain in FORMS and isinstance(media, Mapping):
                return media.get("schema", {})
        return None

    def _followed(self, node: Any) -> Mapping[str, Any]:
        return _followed(self._document, node)


def _kinds_of(body: Mapping[str, Any]) -> str:
    kinds = body.get("content")
    return ", ".join(map(str, kinds)) if isinstance(kinds, Mapping) and kinds else "no content"


def _free(name: str, place: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name = f"{place}_{name}"
    return name


def _followed(document: Mapping[str, Any], node: Any) -> Mapping[str, Any]:
    """What a reference object names, inside the document. Raises UnusableError."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(node, Mapping):
            raise UnusableError("broken_reference", "no object where one must stand")
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return node
        node = pointed_at(document, ref)
    raise UnusableError("recursive_schema", "references that lead in a circle")
