"""Files of tools: which kind one is, and what it lists.

Kinds: answers of MCP's `tools/list` (one, several pages, or one a line for many servers), lists of
tools in the forms of `tool_forms` and requests that hold them, OpenAPI 3 documents; JSON, JSON lines
or YAML, plain or gzipped. A file of another kind is refused with a word on what it is.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from records.errors import ConfigError
from tool_specs.importing import openapi
from tool_specs.importing.tool_forms import as_mcp, tools_in
from tool_specs.importing.tool_lists import Listing, ToolListSource

MAX_FILE_BYTES = 512 << 20
"""Unpacked."""

MAX_YAML_NODES = 2_000_000
"""With aliases written out: a few lines of YAML can stand for more values than memory holds."""

MAX_YAML_DEPTH = 200
MAX_YAML_MERGED = 200_000
"""Members that merge keys (`<<`) copy in a whole file."""

CATEGORY = "software_apps"
"""Of tools whose file names none."""


def read_listings(path: Path) -> list[Listing]:
    """What the file lists, server by server. ConfigError for what cannot be read or is none."""
    try:
        return list(_listings(_document(path), _name_of(path)))
    except ConfigError as error:
        raise ConfigError(f"{path} cannot be imported: it is {error}") from error.__cause__


def _document(path: Path) -> Any:
    """The file's JSON or YAML value; a list of the lines' values for JSON lines."""
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")
        if not text.strip():
            raise ConfigError("empty")
        if text.lstrip()[0] not in "[{":
            return _yaml(text)
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            lines = [line for line in text.split("\n") if line.strip()]
            if len(lines) > 1 and error.msg == "Extra data":
                return [_line(number, line) for number, line in enumerate(lines, 1)]
            if path.name.removesuffix(".gz").endswith((".yaml", ".yml")):
                return _yaml(text)
            raise ConfigError(f"no JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError("no text in UTF-8") from error
    except RecursionError as error:
        raise ConfigError("nested too deep to be read") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise ConfigError(f"no JSON that can be read: {error}") from error


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_packed else path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise ConfigError(f"no whole gzip file: {error}") from error
    except OSError as error:
        raise ConfigError(f"not readable: {error.strerror or error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"over {MAX_FILE_BYTES >> 20} MiB unpacked; split it")
    return data


def _line(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ConfigError(f"JSON lines of which line {number} is no JSON: {error}") from error


def _yaml(text: str) -> Any:
    try:
        _refuse_deep(text)
        found = yaml.load(text, _Loader)  # a SafeLoader: plain values only
    except (yaml.YAMLError, AttributeError, LookupError, TypeError) as error:  # `!!bool maybe`
        said = " ".join(str(error).split())
        raise ConfigError(f"neither JSON nor YAML: {said[:200]}") from error
    nodes, stack = 0, [found]
    while stack:
        node = stack.pop()
        nodes += 1
        if nodes > MAX_YAML_NODES:
            raise ConfigError(f"YAML of over {MAX_YAML_NODES} values once aliases are written out")
        if isinstance(node, dict | list):
            stack.extend(node.values() if isinstance(node, dict) else node)
        elif not isinstance(node, str | int | float | None):  # !!binary, !!set, !!timestamp
            raise ConfigError(f"YAML with a {type(node).__name__} in it, which JSON has not")
    return found


def _refuse_deep(text: str) -> None:
    """Before anything is made of it: the C loader is recursive, and would take Python with it."""
    levels = 0
    for event in yaml.parse(text, _Loader):
        levels += isinstance(event, yaml.CollectionStartEvent)
        levels -= isinstance(event, yaml.CollectionEndEvent)
        if levels > MAX_YAML_DEPTH:
            raise ConfigError("nested too deep to be read")


class _Loader(yaml.CSafeLoader):
    """Dates stay text, as in JSON; keys such as 200 become text."""

    yaml_implicit_resolvers: ClassVar = {
        first: [one for one in resolvers if one[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    merged = 0
    """Members that merge keys have copied so far."""

    def flatten_mapping(self, node: Any) -> None:
        """Merge keys multiply while they are read: counted before they are followed."""
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                continue
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(one, yaml.MappingNode):
                    self.flatten_mapping(one)
                    self.merged += len(one.value)
                if self.merged > MAX_YAML_MERGED:
                    raise yaml.YAMLError(f"merge keys that copy over {MAX_YAML_MERGED} members")
        super().flatten_mapping(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        found = super().construct_mapping(node, deep=deep)
        return {key if isinstance(key, str) else json.dumps(key): v for key, v in found.items()}


def _listings(document: Any, name: str) -> Iterator[Listing]:
    if isinstance(document, Mapping) and ("openapi" in document or "swagger" in document):
        yield openapi.listing_of(document, _openapi_source(document, name))
        return
    if isinstance(document, Mapping) and isinstance(document.get("requests"), list):
        document = document["requests"]  # a batch of Anthropic's
    entries = document if isinstance(document, list) else [document]
    servers: list[Listing] = []
    loose: list[Any] = []
    lists: set[str] = set()
    for entry in entries:
        tools = tools_in(entry)
        if tools is None:
            loose.append(entry)
        elif isinstance(entry.get("server", entry.get("slug")), str):
            servers.append(Listing(_entry_source(entry), [as_mcp(tool) for tool in tools]))
        elif (text := _text(tools)) not in lists:  # requests repeat their tools
            lists.add(text)
            loose += tools
    if not servers and not any(map(_is_tool, loose)) and (loose or not entries):
        raise ConfigError(_what_it_is(document))
    yield from servers
    if loose:  # what is no tool becomes a row that says so, and costs the others nothing
        yield Listing(
            ToolListSource(server=name, category=CATEGORY, may_write=True), [*map(as_mcp, loose)]
        )


def _text(tools: list[Any]) -> str:
    try:
        return json.dumps(tools, sort_keys=True)
    except RecursionError as error:
        raise ConfigError("nested too deep to be read") from error


def _is_tool(tool: Any) -> bool:
    mapped = as_mcp(tool)
    return isinstance(mapped, Mapping) and isinstance(mapped.get("name"), str)


def _entry_source(entry: Mapping[str, Any]) -> ToolListSource:
    """Of a line about a server. Its slug says more than its title, which several share."""
    slug, title = entry.get("slug"), entry.get("server")
    return ToolListSource(
        server=_plain(slug if isinstance(slug, str) and slug else title),
        category=_category(entry.get("category")),
        license=_plain(entry.get("license")),
        may_write=True,
    )


def _openapi_source(document: Mapping[str, Any], name: str) -> ToolListSource:
    info = document.get("info")
    info = info if isinstance(info, Mapping) else {}
    licence = info.get("license")
    licence = licence if isinstance(licence, Mapping) else {}
    return ToolListSource(
        server=_plain(info.get("title")) or name,
        category=CATEGORY,
        license=_plain(licence.get("identifier") or licence.get("name")),
        may_write=True,
    )


def _plain(text: Any) -> str:
    """One line of at most 200 characters that a file can hold; empty for what is no text."""
    printable = (
        "".join(c if c.isprintable() else " " for c in text) if isinstance(text, str) else ""
    )
    return " ".join(printable.split())[:200]


def _category(text: Any) -> str:
    return re.sub(r"[^a-z0-9]+", "_", _plain(text).lower()).strip("_") or CATEGORY


def _name_of(path: Path) -> str:
    stem = re.sub(r"(\.(gz|json|jsonl|ndjson|yaml|yml))+$", "", path.name.lower())
    return re.sub(r"[^a-z0-9]+", "_", stem).strip("_") or "file"


def _what_it_is(document: Any) -> str:
    """Words for a file that lists no tools."""
    keys = list(document)[:5] if isinstance(document, Mapping) else []
    if "mcpServers" in keys:
        return "a client's configuration of MCP servers; import each with --server or --url"
    if "servers" in keys:
        return "a registry's list of servers; import those with --registry"
    kinds = "tools/list answers, tool lists of model APIs or an OpenAPI 3 document are read"
    if isinstance(document, Mapping):
        return f"an object with {', '.join(map(str, keys)) or 'nothing'} in it; {kinds}"
    return f"{'a list' if isinstance(document, list) else 'a value'} without tools; {kinds}"
