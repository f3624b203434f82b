"""A domain as an MCP server, used by the official client as any agent framework would."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters

from tool_specs.domains.taxonomy import load_taxonomy

COMMAND = ["-m", "flows.cli.main", "tools", "export-mcp", "home_hub"]


@asynccontextmanager
async def over_stdio() -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.executable, args=COMMAND)
    async with Client(parameters, read_timeout_seconds=60) as client:
        yield client


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def url():
    port = free_port()
    command = [sys.executable, *COMMAND, "--http", "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


async def assert_usable(client: Client) -> None:
    """Lists, calls, sees an effect persist, and gets errors as errors."""
    (domain,) = load_taxonomy(["home_hub"])
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == list(domain.programs)
    assert all(tool.description and tool.input_schema for tool in listed)
    timer = {"device_id": "DV-1007", "fires_at": "2027-01-21T07:15:00", "action": "turn_on"}
    before = await rows(client, "timer")
    timer["fires_at"] = f"2027-01-21T07:{len(before):02d}:00"
    done = await client.call_tool("timer_add", timer)
    assert not done.is_error
    assert done.structured_content == json.loads(text_of(done))
    after = await rows(client, "timer")
    assert [row for row in after if row not in before] != []
    refused = await client.call_tool("timer_add", timer | {"device_id": "DV-0"})
    assert refused.is_error
    assert json.loads(text_of(refused))["error"]["code"] == "not_found"
    assert await rows(client, "timer") == after
    unknown = await client.call_tool("no_such_tool", {})
    assert unknown.is_error


def text_of(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def rows(client: Client, entity: str) -> list[dict[str, Any]]:
    [content] = (await client.read_resource(f"world://home_hub/{entity}")).contents
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text)


@pytest.mark.slow
def test_over_stdio() -> None:
    async def check() -> None:
        async with over_stdio() as client:
            await assert_usable(client)

    asyncio.run(check())


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_http_in_both_eras_of_the_protocol(url: str, mode: str) -> None:
    async def check() -> None:
        async with Client(url, mode=mode, read_timeout_seconds=60) as client:
            await assert_usable(client)

    asyncio.run(check())


@pytest.mark.slow
def test_what_one_client_does_the_next_one_sees(url: str) -> None:
    async def look(scene: str | None) -> list[dict]:
        async with Client(url, read_timeout_seconds=60) as client:
            if scene is not None:
                assert not (await client.call_tool("scene_run", {"scene_id": scene})).is_error
            return await rows(client, "scene")

    first, done, seen = (asyncio.run(look(scene)) for scene in (None, "SC-1001", None))
    assert first != done == seen


@pytest.mark.slow
def test_an_unknown_resource_is_an_error_of_the_protocol(url: str) -> None:
    async def read() -> None:
        async with Client(url, read_timeout_seconds=60) as client:
            with pytest.raises(MCPError, match="no resource"):
                await client.read_resource("world://home_hub/nothing")

    asyncio.run(read())
