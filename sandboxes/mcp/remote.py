"""Tool lists of MCP servers that run elsewhere, over streamable HTTP and in either protocol era.

Nothing is started and no tool is called: asking for the list is all that import needs.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError

from records.errors import ConfigError, ItemError, TransientError
from sandboxes.mcp.http import bounded_client
from sandboxes.mcp.protocol.pages import all_pages

ASKED_S = 30.0
"""Wall clock for one server, all pages of its list included."""


class RemoteList(NamedTuple):
    tools: list[dict[str, Any]]
    protocol: str
    """Version that was negotiated: 2026-07-28 and later are stateless, earlier ones shake hands."""


def checked_url(url: str) -> str:
    """The URL itself. ConfigError for one that no server of ours could have."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"{url!r} is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{url!r} is no URL of a server; one starts with https:// and names a host"
        )
    if "@" in parts.netloc:
        raise ConfigError("a URL must not hold a password; name a variable with --token-env")
    return url


async def list_remote(
    url: str, *, token: str | None = None, within_s: float = ASKED_S
) -> RemoteList:
    """What the server at `url` lists. TransientError if it cannot be reached or does not answer in
    time, ItemError for an answer that is none."""
    host = urlsplit(url).hostname or url
    try:
        async with (
            asyncio.timeout(within_s),
            bounded_client(read_timeout_s=within_s, token=token) as http,
            Client(streamable_http_client(url, http_client=http), cache=None) as client,
        ):
            tools = await all_pages(client, "tools", host, _unbounded)
            return RemoteList(tools, client.protocol_version)
    except TimeoutError as error:
        raise TransientError(f"{host} did not answer within {within_s:g} s") from error
    except BaseException as raised:
        raise _told(host, raised) from raised


@asynccontextmanager
async def _unbounded() -> AsyncIterator[None]:
    """The whole conversation is bounded already."""
    yield


def _told(host: str, raised: BaseException) -> BaseException:
    """The first cause in a group of errors, as one of ours where the server is to blame."""
    error = raised
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, httpx2.TransportError | OSError | anyio.ClosedResourceError):
        return TransientError(f"{host} cannot be reached: {error or type(error).__name__}")
    if isinstance(error, MCPError | ValidationError | RuntimeError):
        said = " ".join(str(error).split())
        return ItemError("bad_server_answer", f"{host}: {said[:300]}")
    return error
