"""Every page of what a server lists, within bounds."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from mcp import Client
from pydantic import ValidationError

from records.errors import ItemError

MAX_LISTED = 2000
MAX_PAGES = 500
"""Empty ones with ever new cursors never come to MAX_LISTED."""

Listed = Literal["tools", "resources", "resource_templates", "prompts"]

BoundRequest = Callable[[], AbstractAsyncContextManager[object]]

_WIRE = {"mode": "json", "by_alias": True, "exclude_none": True}


async def all_pages(
    client: Client, what: Listed, name: str, asking: BoundRequest
) -> list[dict[str, Any]]:
    """All that the server `name` lists of it, as on the wire. Each request is made inside
    `asking()`, which bounds it.

    ItemError for a list without end and for an answer that is none; MCPError where the server
    refuses.
    """
    listed = getattr(client, f"list_{what}")
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            async with asking():
                page = await listed(cursor=cursor, cache_mode="bypass")
        except (RuntimeError, ValidationError) as error:
            raise ItemError("bad_server_answer", f"{name}: {error}") from error
        found += [one.model_dump(**_WIRE) for one in getattr(page, what)]
        cursor = page.next_cursor
        if not cursor:
            return found
        if cursor in seen or len(found) > MAX_LISTED:
            break
        seen.add(cursor)
    raise ItemError("bad_server_answer", f"{name}: endless list of {what}")
