"""The API of an MCP registry: its servers, page by page, remembered in a journal."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from records.digest import digest
from records.errors import ConfigError, TransientError
from records.store.journal import ShardJournal
from sandboxes.mcp.http import bounded_client
from tool_specs.importing.registry_entries import RegistryPage, read_page

OFFICIAL_URL = "https://registry.modelcontextprotocol.io"
PAGE_SIZE = 100
"""The most that the API gives."""

MAX_PAGES = 10_000
MAX_BYTES = 512 << 20
"""Of all pages as JSON: an import holds them all at once."""

TRIES = 4
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
"""Of what a registry may ask for by Retry-After."""

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


async def pages(url: str, journal: ShardJournal) -> AsyncIterator[RegistryPage]:
    """The registry's pages in order. What the journal holds is not asked for again.

    TransientError where the registry stays unreachable: the pages so far are in the journal, and
    the next call goes on after them. ConfigError where there is no registry at this address, or one
    of over MAX_BYTES.
    """
    cursor: str | None = None
    size = 0
    seen: set[str] = set()
    async with bounded_client(read_timeout_s=30.0) as http:
        for _ in range(MAX_PAGES):
            key = digest("registry", "page", url, cursor)
            answer = journal.cached(key)
            if answer is None:
                answer = await _asked(http, url, cursor)
            size += len(json.dumps(answer))
            if size > MAX_BYTES:
                raise ConfigError(f"the registry at {url} gives over {MAX_BYTES} bytes of servers")
            page = read_page(answer)
            if page is None:
                raise ConfigError(
                    f"{url} is no MCP registry: /v0.1/servers gave no list of servers"
                )
            journal.remember(key, answer)
            yield page
            cursor = page.cursor
            if cursor is None:
                return
            if cursor in seen:
                raise TransientError(f"the registry at {url} gives page {cursor!r} twice")
            seen.add(cursor)
    raise TransientError(f"the registry at {url} has over {MAX_PAGES} pages")


async def _asked(http: httpx2.AsyncClient, url: str, cursor: str | None) -> dict[str, Any]:
    """One page, asked for again while the registry says that it may pass."""
    asked = {"limit": str(PAGE_SIZE), "version": "latest"} | ({"cursor": cursor} if cursor else {})
    problem = ""
    for attempt in range(TRIES):
        wait_s = FIRST_WAIT_S * 2**attempt
        try:
            response = await http.get(f"{url.rstrip('/')}/v0.1/servers", params=asked)
        except httpx2.TransportError as error:
            problem = str(error) or type(error).__name__
        else:
            if response.status_code == 200:
                return _json_object(url, response)
            problem = f"status {response.status_code}"
            if response.status_code not in _AGAIN:
                raise ConfigError(f"{url} is no MCP registry: /v0.1/servers gave {problem}")
            wait_s = max(wait_s, _seconds(response.headers.get("retry-after")))
        if attempt < TRIES - 1:
            await asyncio.sleep(min(wait_s, LONGEST_WAIT_S))
    raise TransientError(
        f"the registry at {url} cannot be read: {problem}; the same command goes on from here"
    )


def _json_object(url: str, response: httpx2.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{url} is no MCP registry: /v0.1/servers gave no JSON") from error
    return answer if isinstance(answer, dict) else {}


def _seconds(text: str | None) -> float:
    """Retry-After in seconds; 0 for a date, which nobody sends to programs."""
    return float(text) if text is not None and text.isdecimal() else 0.0
