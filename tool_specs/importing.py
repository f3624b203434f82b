"""Tools of MCP servers as rows of the table `tools`, from what `tools/list` answered.

Pure: starts nothing, fetches nothing. Every text in an answer is untrusted. A tool that cannot be
used is a row with its `drop_reason`, never a missing row.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonschema_rs
from pydantic import Field

from records.config import Config
from records.digest import canonical_json, digest
from records.schemas import Row
from records.splits import own_split, split_of

MAX_SCHEMA_BYTES = 16_000
"""Canonical JSON of one input schema; prompts hold a dozen tools."""

MAX_DEPTH = 24
"""Of nested JSON; a nested object costs two."""
MAX_DESCRIPTION = 4_000
"""Characters; a longer description is no description of one tool."""

API_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names that the OpenAI API takes."""

HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

INSTRUCTING = re.compile(
    r"<(important|system|instructions?|secret)>|\b("
    r"(ignore|disregard|forget|override)\s+(all\s+|any\s+|every\s+)?(other\s+|the\s+|your\s+)?"
    r"(previous|prior|above|earlier|preceding|other|system)\s+(instructions?|prompts?|rules|tools?)"
    r"|(do\s+not|don't|never|without)\s+(tell|telling|inform\w*|mention\w*|notify\w*|reveal\w*)\s+"
    r"(\w+\s+){0,6}(the\s+)?user"
    r"|you\s+are\s+now\s+(a|an|in)\b"
    r"|(system|developer)\s+prompt"
    r"|\.ssh/|id_rsa|\.aws/credentials"
    r")",
    re.IGNORECASE,
)
"""Texts that speak to the model about its own conduct and not about the tool."""

HIDDEN = frozenset({"Cf", "Co", "Cn", "Cs"})
"""Unicode categories that a reader does not see: format characters, private use, unassigned."""

VISIBLE_FORMATS = frozenset("\u200d\ufe0f\u00ad")
"""Of these, parts of emoji, and the soft hyphen."""


class Source(Config):
    """What is known of a server beside its answer."""

    server: str
    definition: str = ""
    """Digest of how the server is run and what it holds. Part of its tools' ids: the same tool over
    another fixture is another tool."""

    category: str
    license: str = "unknown"
    split: str = "train"
    read_only_tools: tuple[str, ...] = Field(default=())
    """Tools that only read, though their annotations do not say so."""

    may_write: bool = False
    """Whether tools that are not read-only are usable at all."""


def api_name(name: str) -> str | None:
    """The name under which models call the tool, None if nothing readable is left of it.

    Characters that the API refuses become '_'. The way back is by the server's own list: the one
    tool there whose api_name this is.
    """
    mapped = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    letters = len(re.sub(r"[^a-zA-Z0-9]", "", mapped))
    readable = letters > 0 and 2 * letters >= len(name.replace("_", ""))
    return mapped if readable and API_NAME.fullmatch(mapped) else None


def rows_of_answer(tools: Sequence[Any], source: Source) -> list[Row]:
    """One row per listed tool, in the order of the list."""
    taken: set[str] = set()
    return [_row(tool if isinstance(tool, Mapping) else {}, source, taken) for tool in tools]


def _row(tool: Mapping[str, Any], source: Source, taken: set[str]) -> Row:
    original = tool["name"] if isinstance(tool.get("name"), str) else ""
    description = tool["description"] if isinstance(tool.get("description"), str) else ""
    listed = tool.get("annotations")
    hints = listed if isinstance(listed, Mapping) else {}
    annotations = {hint: hints[hint] for hint in HINTS if hint in hints}
    if original in source.read_only_tools:
        annotations["readOnlyHint"] = True
    schema, fault = usable_schema(tool.get("inputSchema"))
    name = api_name(original)
    if name != original:
        annotations["originalName"] = original
    reason = (
        _name_fault(name, original, taken) or fault or text_fault(original, description, schema)
    )
    if reason is None and not (source.may_write or annotations.get("readOnlyHint") is True):
        reason = "not_read_only"
    spec = {
        "name": original,
        "description": description,
        "input_schema": schema,
        "output_schema": tool.get("outputSchema"),
        "annotations": annotations,
    }
    return {
        "tool_id": _tool_id(spec, source),
        "name": name or original,
        "source": "mcp",
        "category": source.category,
        "domain_id": None,
        "server": source.server,
        "description": description,
        "input_schema": schema,
        "output_schema": tool.get("outputSchema"),
        "annotations": annotations,
        "semantics_json": None,
        "evolve_op": "imported",
        "generation": 0,
        "parent_id": None,
        "spec_hash": digest("tool", spec),
        "license": source.license,
        "drop_reason": reason,
        "split": split_of(
            own_split("tool", digest("tool", "mcp", source.server, spec)), [source.split]
        ),
    }


def _tool_id(spec: Mapping[str, Any], source: Source) -> str:
    return digest("tool", "mcp", source.server, source.definition, spec)


def is_of(row: Row, source: Source) -> bool:
    """Whether the row was imported from this very source, and not from another of its name."""
    annotations = row["annotations"] or {}
    kept = ("description", "input_schema", "output_schema", "annotations")
    spec = {"name": annotations.get("originalName", row["name"])} | {k: row[k] for k in kept}
    return row["server"] == source.server and row["tool_id"] == _tool_id(spec, source)


def _name_fault(name: str | None, original: str, taken: set[str]) -> str | None:
    if not original:
        return "missing_name"
    if name is None:
        return "unusable_name"
    if name in taken:
        return "duplicate_name"
    taken.add(name)
    return None


def usable_schema(schema: Any) -> tuple[Any, str | None]:
    """The input schema with its local references written out, and what is wrong with it."""
    if not isinstance(schema, Mapping):
        return None, "missing_schema"
    try:
        if len(canonical_json(schema)) > MAX_SCHEMA_BYTES:
            return None, "huge_schema"
        plain = without_references(schema)
        if len(canonical_json(plain)) > MAX_SCHEMA_BYTES:
            return None, "huge_schema"
        if depth(plain) > MAX_DEPTH:
            return None, "deep_schema"
        if plain.get("type", "object") != "object":
            return plain, "invalid_schema"
        jsonschema_rs.validator_for(plain)
    except RecursionError:
        return None, "recursive_schema"
    except LookupError:
        return None, "foreign_reference"
    except ValueError:  # not JSON (NaN), or not a schema
        return None, "invalid_schema"
    return plain | {"type": "object"}, None


def without_references(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Every local `$ref` replaced by what it names. RecursionError for one that contains itself,
    LookupError for one that leads out of the schema; nothing is ever fetched."""

    def expand(node: Any, open_refs: tuple[str, ...], size: list[int]) -> Any:
        size[0] += 1
        if size[0] > MAX_SCHEMA_BYTES:
            raise RecursionError("the references multiply")
        if isinstance(node, list):
            return [expand(item, open_refs, size) for item in node]
        if not isinstance(node, Mapping):
            return node
        rest = {key: value for key, value in node.items() if key not in ("$ref", *DEFINITIONS)}
        if isinstance(ref := node.get("$ref"), str):
            if ref in open_refs:
                raise RecursionError(ref)
            named = expand(resolve(schema, ref), (*open_refs, ref), size)
            rest = {**named, **rest} if isinstance(named, dict) else rest
        return {
            key: value if key in LITERAL else expand(value, open_refs, size)
            for key, value in rest.items()
        }

    return expand(schema, (), [0])


DEFINITIONS = ("$defs", "definitions")
LITERAL = ("const", "enum", "default", "examples", "required")
"""Keywords whose values are data, in which `$ref` would be just a key."""


def resolve(schema: Mapping[str, Any], ref: str) -> Any:
    """What a JSON pointer into this schema names. LookupError where it leads elsewhere."""
    if not ref.startswith("#"):
        raise LookupError(ref)
    node: Any = schema
    for part in ref[1:].strip("/").split("/") if len(ref) > 1 else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, Mapping) and key in node:
            node = node[key]
        else:
            raise LookupError(ref)
    return node


def depth(node: Any) -> int:
    children = (
        node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    )
    return 1 + max(map(depth, children), default=0)


def text_fault(name: str, description: str, schema: Any) -> str | None:
    """Why the texts must not be shown to a model, None if they may."""
    if not description.strip():
        return "missing_description"
    if len(description) > MAX_DESCRIPTION:
        return "huge_description"
    for text in (name, description, *texts_in(schema)):
        if any(hidden(character) for character in text):
            return "hidden_text"
        if INSTRUCTING.search(text):
            return "instructing_description"
    return None


def hidden(character: str) -> bool:
    return unicodedata.category(character) in HIDDEN and character not in VISIBLE_FORMATS


def texts_in(node: Any) -> Iterator[str]:
    """Every string of a schema, keys too."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield key
            yield from texts_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from texts_in(item)
