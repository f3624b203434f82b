"""Every page of a server's `tools/list`, within bounds."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp import Client
from pydantic import ValidationError

from records.errors import ItemError

MAX_TOOLS = 2000
MAX_PAGES = 500
"""Empty ones with ever new cursors never come to MAX_TOOLS."""

_WIRE = {"mode": "json", "by_alias": True, "exclude_none": True}


async def all_tools(
    client: Client, name: str, asking: Callable[[], AbstractAsyncContextManager[None]]
) -> list[dict[str, Any]]:
    """All tools as on the wire. Each request is made inside `asking()`, which bounds it.

    ItemError for a list without end and for an answer that is none.
    """
    tools: list[dict[str, Any]] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            async with asking():
                page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        except (RuntimeError, ValidationError) as error:
            raise ItemError("bad_server_answer", f"{name}: {error}") from error
        tools += [tool.model_dump(**_WIRE) for tool in page.tools]
        cursor = page.next_cursor
        if not cursor:
            return tools
        if cursor in seen or len(tools) > MAX_TOOLS:
            break
        seen.add(cursor)
    raise ItemError("bad_server_answer", f"{name}: endless tool list")
