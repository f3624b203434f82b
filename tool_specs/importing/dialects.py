"""JSON Schemas of any dialect as one: draft 2020-12, without references, accepting the same values.

Read with their dialect's own rules: what a keyword means, and which ones are not known and so mean
nothing. Forms that 2020-12 does not have (boolean exclusiveMinimum, lists under `items`) are read
as the older drafts do wherever they stand. Local references are written out; nothing is fetched.
The work is bounded by the nodes of the result.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

Dialect = Literal["draft-04", "draft-06", "draft-07", "2019-09", "2020-12", "openapi-3.0", "any"]
"""`any`: not declared. Read as 2020-12 with `nullable`, as most who declare nothing mean it."""

MAX_NODES = 10_000
"""Of the result, references written out."""

TEXT_NODE = 100
"""Characters that count as one node more: text too is copied by references that multiply."""

MAX_REFS = 32
"""References inside references; a deeper chain is taken for a recursion."""


class UnusableError(ValueError):
    """A schema that cannot be normalised; `reason` is the word for it, `detail` says it to people.

    The message is part of the ids of tools without a schema, so `why` stands in the detail alone.
    """

    def __init__(self, reason: str, what: str, why: str = "") -> None:
        super().__init__(f"{reason}: {what}")
        self.reason, self.detail = reason, f"{what} {why}".strip()


_ORDER = ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12")

_NEW_IN: dict[str, int] = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 1),
    **dict.fromkeys(("if", "then", "else"), 2),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "minContains", "maxContains"), 3),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), 3),
    "prefixItems": 4,
}
"""Keyword -> index in _ORDER of the first draft that knows it; 0 for the others."""

ONE_SCHEMA = frozenset(
    {
        "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SCHEMA_MAPS = frozenset({"dependentSchemas", "patternProperties", "properties"})
_PLAIN = frozenset(
    {
        "const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "maxContains",
        "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems",
        "minLength", "minProperties", "minimum", "multipleOf", "pattern", "required", "type",
        "uniqueItems",
    }
)  # fmt: skip
WORDS = frozenset(
    {
        "contentEncoding", "contentMediaType", "default", "deprecated", "description", "examples",
        "format", "readOnly", "title", "writeOnly",
    }
)  # fmt: skip
"""Keywords that accept and refuse nothing. All others (x-..., $comment, xml) are left out."""

_RELATED = (
    {"properties", "patternProperties", "additionalProperties"},
    {"prefixItems", "items"},
    {"contains", "minContains", "maxContains"},
    {"if", "then", "else"},
)
"""Keywords that read each other within one object."""


def dialect_of(schema: Mapping[str, Any]) -> Dialect:
    """What `$schema` declares; `any` without one, and for one that nobody knows."""
    declared = schema.get("$schema")
    name = declared.rstrip("#").lower() if isinstance(declared, str) else ""
    for dialect in ("draft-04", "draft-06", "draft-07", "2019-09", "2020-12"):
        if f"/{dialect}/" in f"{name}/":
            return dialect
    return "any"


def normalised(schema: Any, dialect: Dialect | None = None) -> dict[str, Any] | bool:
    """The schema in draft 2020-12 without references. `dialect`: where it is known from elsewhere.
    Raises UnusableError."""
    own = dialect or (dialect_of(schema) if isinstance(schema, Mapping) else "any")
    return Reading(schema, own).read(schema)


def pointed_at(document: Any, ref: str) -> Any:
    """What the reference names inside the document. Raises UnusableError."""
    if not ref.startswith("#"):
        raise _elsewhere(ref)
    if len(ref) > 1 and not ref.startswith("#/"):
        raise UnusableError("broken_reference", ref[:100], "is an anchor")
    node = document
    for step in ref[1:].split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            raise UnusableError("broken_reference", ref[:100], "points at nothing")
    return node


def _elsewhere(ref: str) -> UnusableError:
    """Why a reference to another file or address is not followed."""
    try:
        parts = urlsplit(ref)
    except ValueError:
        return UnusableError("broken_reference", ref[:100], "is no address")
    if parts.scheme or parts.netloc:
        return UnusableError("remote_reference", ref[:100], "would have to be fetched")
    if parts.path.startswith(("/", "../")):
        return UnusableError("outside_reference", ref[:100], "leaves the folder of the document")
    return UnusableError("broken_reference", ref[:100], "is no JSON or YAML file that can be read")


class _Found(NamedTuple):
    target: Any
    ref: str


class Reading:
    """Schemas that stand in one document, read within one bound of nodes."""

    def __init__(self, document: Any, dialect: Dialect) -> None:
        self._document = document
        self._draft = _ORDER.index(dialect) if dialect in _ORDER else 0
        self._nullable = dialect in ("openapi-3.0", "any")
        if dialect == "any":
            self._draft = len(_ORDER) - 1
        self._is_openapi = dialect == "openapi-3.0"
        self._nodes = 0
        top = document if isinstance(document, Mapping) else {}
        base = top.get("id" if self._draft == 0 else "$id")
        self._base = base.rstrip("#") if isinstance(base, str) else ""

    def read(self, node: Any) -> dict[str, Any] | bool:
        """The schema `node` of the document, normalised. Raises UnusableError."""
        try:
            return self._schema(node, ())
        except RecursionError:
            raise UnusableError("deep_schema", "nested deeper than can be read") from None

    def _schema(self, node: Any, open_refs: tuple[str, ...]) -> dict[str, Any] | bool:
        self._count()
        if isinstance(node, bool):
            return node
        if not isinstance(node, Mapping):
            raise UnusableError("invalid_schema", f"a schema is an object, got {str(node)[:40]!r}")
        if node is not self._document and isinstance(self._own_id(node), str):
            raise UnusableError(
                "rebased_schema", "an id below the top changes what references mean"
            )
        if "$ref" in node:
            return self._reference(node, open_refs)
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if isinstance(node.get(keyword), str):
                raise UnusableError("recursive_schema", keyword)
        return self._members(node, open_refs)

    def _count(self, nodes: int = 1) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise UnusableError(
                "huge_schema", f"over {MAX_NODES} nodes once references are expanded"
            )

    def _reference(self, node: Mapping[str, Any], open_refs: tuple[str, ...]) -> Any:
        target, ref = self._resolve(node["$ref"])
        if ref in open_refs or len(open_refs) >= MAX_REFS:
            raise UnusableError("recursive_schema", ref)
        named = self._schema(target, (*open_refs, ref))
        if self._draft < 3:  # what stands beside a reference is ignored; its words do no harm
            rest = {k: v for k, v in node.items() if k in ("title", "description", "default")}
        else:
            rest = {k: v for k, v in node.items() if k != "$ref"}
        beside = self._members(rest, open_refs)
        return _both(named, beside)

    def _resolve(self, ref: Any) -> _Found:
        if not isinstance(ref, str):
            raise UnusableError("invalid_schema", "$ref is no text")
        if self._base and ref.startswith(f"{self._base}#"):
            ref = ref.removeprefix(self._base)
        return _Found(pointed_at(self._document, ref), ref)

    def _members(self, node: Mapping[str, Any], open_refs: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.items():
            if _NEW_IN.get(key, 0) > self._draft:
                continue
            if key in ONE_SCHEMA:
                found[key] = self._schema(value, open_refs)
            elif key in SCHEMA_LISTS:
                found[key] = [self._schema(one, open_refs) for one in _listed(value, key)]
            elif key in SCHEMA_MAPS:
                members = _mapped(value, key)
                self._count(_nodes_in(list(members), MAX_NODES))
                found[key] = {k: self._schema(v, open_refs) for k, v in members.items()}
            elif key in _PLAIN or key in WORDS:
                self._count(_nodes_in(value, MAX_NODES))
                found[key] = value
        self._items(node, found, open_refs)
        self._dependencies(node, found, open_refs)
        _bounds(node, found)
        self._types(node, found)
        if "example" in node and "examples" not in node:
            self._count(_nodes_in(node["example"], MAX_NODES))
            found["examples"] = [node["example"]]
        return found

    def _own_id(self, node: Mapping[str, Any]) -> Any:
        ident = node.get("id" if self._draft == 0 and not self._is_openapi else "$id")
        return None if isinstance(ident, str) and ident.startswith("#") else ident

    def _items(
        self, node: Mapping[str, Any], found: dict[str, Any], open_refs: tuple[str, ...]
    ) -> None:
        items = node.get("items")
        if isinstance(items, list):
            found["prefixItems"] = [self._schema(one, open_refs) for one in items]
            if not items:
                del found["prefixItems"]  # 2020-12 wants at least one
            if "additionalItems" in node:
                found["items"] = self._schema(node["additionalItems"], open_refs)
        elif "items" in node:
            found["items"] = self._schema(items, open_refs)

    def _dependencies(
        self, node: Mapping[str, Any], found: dict[str, Any], open_refs: tuple[str, ...]
    ) -> None:
        """`dependencies` of the drafts up to 7, which later ones split in two."""
        if "dependencies" not in node or self._draft > 2:
            return
        for name, wanted in _mapped(node["dependencies"], "dependencies").items():
            if isinstance(wanted, list):
                found.setdefault("dependentRequired", {})[name] = wanted
            else:
                found.setdefault("dependentSchemas", {})[name] = self._schema(wanted, open_refs)

    def _types(self, node: Mapping[str, Any], found: dict[str, Any]) -> None:
        kinds = found.get("type")
        if kinds is None:
            return
        listed = list(dict.fromkeys(kinds)) if _all_text(kinds) else [kinds]
        if "any" in listed:  # draft-03's word for no restriction, still written
            del found["type"]
            return
        if self._nullable and node.get("nullable") is True and "null" not in listed:
            listed.append("null")
        found["type"] = listed[0] if len(listed) == 1 else listed


def _bounds(node: Mapping[str, Any], found: dict[str, Any]) -> None:
    """Draft-04's boolean exclusiveMinimum and exclusiveMaximum as the numbers of later drafts."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(exclusive), bool):
            del found[exclusive]
            if node[exclusive] and bound in found:
                found[exclusive] = found.pop(bound)


def _both(named: dict[str, Any] | bool, beside: dict[str, Any]) -> dict[str, Any] | bool:
    """What satisfies the referred schema and what stands beside the reference."""
    words = {key: value for key, value in beside.items() if key in WORDS}
    rules = beside.keys() - words.keys()
    if isinstance(named, bool):
        return {**beside, "allOf": [named, *beside.get("allOf", [])]} if rules else named
    if not rules:
        return {**named, **words}
    related = any(rules & group and named.keys() & group for group in _RELATED)
    uneven = any(key.startswith("unevaluated") for key in (*named, *beside))
    if related or uneven or rules & named.keys():
        return {**beside, "allOf": [named, *beside.get("allOf", [])]}
    return {**named, **beside}


def _all_text(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _listed(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise UnusableError("invalid_schema", f"{key} is no list")
    return value


def _mapped(value: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UnusableError("invalid_schema", f"{key} is no object")
    return value


def _nodes_in(value: Any, limit: int) -> int:
    """Values inside a JSON value, long text as several; counted to a little over the limit."""
    nodes, stack = 0, [value]
    while stack and nodes <= limit:
        node = stack.pop()
        nodes += 1
        if isinstance(node, str):
            nodes += len(node) // TEXT_NODE
        elif isinstance(node, Mapping):
            stack.extend(node.values())
            stack.extend(node)
        elif isinstance(node, list):
            stack.extend(node)
    return nodes
