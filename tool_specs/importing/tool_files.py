"""Files of tools: which kind one is, and what it lists.

Kinds: answers of MCP's `tools/list` (one, several pages, or one a line for many servers), lists of
tools in the forms of `tool_forms` and requests that hold them, OpenAPI 3 documents of one file or
several. A file of another kind is refused with a word on what it is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from records.errors import ConfigError
from tool_specs.importing import openapi
from tool_specs.importing.documents import document_of
from tool_specs.importing.openapi_files import with_files
from tool_specs.importing.tool_forms import as_mcp, tools_in
from tool_specs.importing.tool_lists import Listing, ToolListSource

CATEGORY = "software_apps"
"""Of tools whose file names none."""


def read_listings(path: Path) -> list[Listing]:
    """What the file lists, server by server. ConfigError for what cannot be read or is none."""
    try:
        return list(_listings(document_of(path), path))
    except ConfigError as error:
        raise ConfigError(f"{path} cannot be imported: it is {error}") from error.__cause__


def _listings(document: Any, path: Path) -> Iterator[Listing]:
    if isinstance(document, Mapping) and ("openapi" in document or "swagger" in document):
        source = _openapi_source(document, _name_of(path))
        yield openapi.listing_of(with_files(document, path), source)
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
            ToolListSource(server=_name_of(path), category=CATEGORY, may_write=True),
            [*map(as_mcp, loose)],
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
