"""Import of a live server's tools: listed in a sandbox, and tried twice.

A read-only tool with arguments to try it with is called in two sandboxes a second apart. One that
answers differently would make two runs differ: it is marked `varies`.
"""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ConfigError, ItemError, TransientError
from records.tables.schemas import Row
from sandboxes.mcp.joined import META, LiveServer, open_live
from sandboxes.mcp.joining import JoinedServerConfig
from sandboxes.mcp.protocol.results import McpResult
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import only_reads
from tool_specs.importing.instructing.finding import ToolDecision
from tool_specs.importing.tool_lists import ToolListSource, rows_of_answer

APART_S = 1.1
"""More than the second to which most programs tell times."""


class Look(NamedTuple):
    """What one sandbox showed of a server."""

    tools: list[dict[str, Any]]
    answers: dict[str, McpResult]


class Looks(NamedTuple):
    """What two sandboxes showed of a server, one after the other."""

    first: Look
    second: Look


async def look_twice(config: ServerConfig) -> Looks:
    """ConfigError if the server does not work: this runs before anything is spent, so a server that
    hangs or prints rubbish is a wrong setting."""
    try:
        first = await look(config)
        await asyncio.sleep(APART_S)  # times of files in the fixture are then seconds apart too
        second = await look(config)
    except (TransientError, ItemError) as error:
        raise ConfigError(f"cannot import tools: {error}") from error
    return Looks(first, second)


def rows_of_looks(
    config: ServerConfig, looks: Looks, decided: Mapping[str, ToolDecision] = MappingProxyType({})
) -> list[Row]:
    """Rows of table `tools` for all that the server lists. `decided` as in `rows_of_answer`."""
    first, second = looks
    rows = _rows(config, first.tools, decided)
    again = {tool["name"]: tool for tool in second.tools}
    for row, tool in zip(rows, first.tools, strict=True):
        name = tool["name"]
        same = tool == again.get(name) and first.answers.get(name) == second.answers.get(name)
        if not same and row["drop_reason"] is None:
            row["drop_reason"] = "varies"
    return rows


async def import_server(
    config: ServerConfig, decided: Mapping[str, ToolDecision] = MappingProxyType({})
) -> list[Row]:
    """The rows of a server that is looked at now. Raises what `look_twice` raises."""
    return rows_of_looks(config, await look_twice(config), decided)


def _rows(
    config: ServerConfig, tools: list[dict[str, Any]], decided: Mapping[str, ToolDecision]
) -> list[Row]:
    """In the order of the list, in which those of a part stand together. Whether a tool may write
    its part says."""
    source = source_of(config)
    if not isinstance(config, JoinedServerConfig):
        return rows_of_answer(tools, source, decided=decided)
    rows: list[Row] = []
    for part in config.parts:
        own = [tool for tool in tools if tool[META]["part"] == part.name]
        of_part = source.model_copy(update={"may_write": part.may_write})
        made = rows_of_answer(own, of_part, decided=decided)
        rows += [row | {"annotations": row["annotations"] | {"part": part.name}} for row in made]
    return rows


def source_of(config: ServerConfig) -> ToolListSource:
    return ToolListSource(
        server=config.name,
        definition=digest("server", config.identity()),
        category=config.category,
        license=config.license,
        split=config.split,
        read_only_tools=config.read_only_tools,
        may_write=config.may_write,
    )


async def look(config: ServerConfig) -> Look:
    async with open_live(config) as server:
        tools = await server.list_tools()
        return Look(
            tools, {tool["name"]: await tried(server, tool) for tool in reads(config, tools)}
        )


def reads(config: ServerConfig, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The read-only tools for which there are arguments."""
    return [
        tool for tool in tools if only_reads(config, tool) if sample_for(config, tool) is not None
    ]


def sample_for(config: ServerConfig, tool: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments that the definition gives, or none at all where none are required."""
    name = tool["name"]
    if isinstance(config, JoinedServerConfig):
        config, name = config.part(tool[META]["part"]), tool[META]["tool"]
    if name in config.samples:
        return config.samples[name]
    return None if (tool.get("inputSchema") or {}).get("required") else {}


async def tried(server: LiveServer, tool: dict[str, Any]) -> McpResult:
    result = await server.call(tool["name"], sample_for(server.config, tool) or {})
    if result.error_code == "bad_answer":
        raise ItemError("bad_server_answer", f"{server.config.name}.{tool['name']}: {result.text}")
    return result
