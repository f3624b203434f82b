"""Servers over HTTP for tests: MCP in either era, on loopback and a free port, in this process."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from aiohttp import web
from mcp.server.mcpserver import MCPServer

TOOLS = [
    {
        "name": f"tool-{i}",
        "description": f"Does the thing of number {i} to the item with this id.",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}},
    }
    for i in range(7)
]


@asynccontextmanager
async def official_server() -> AsyncIterator[str]:
    """A server written with the official package; its address."""
    server = MCPServer("orders")

    @server.tool()
    def find_order(number: int, with_items: bool = False) -> dict[str, str]:
        """Find an order by its number. Returns its status."""
        return {"status": f"{number} {with_items}"}

    @server.tool()
    def cancel_order(number: int) -> str:
        """Cancel an order."""
        return f"{number} is cancelled"

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(server.streamable_http_app(), port=port, log_level="error")
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve())
    while not running.started:  # noqa: ASYNC110  uvicorn has no event for it
        await asyncio.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.should_exit = True
        await task


class OldServer:
    """The handshake era by hand: initialize, a session id, answers as server-sent events, pages."""

    def __init__(self, *, manners: str = "", token: str | None = None, page: int = 3) -> None:
        self.manners, self.token, self.page = manners, token, page
        self.methods: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        self.methods.append(message["method"])
        if self.manners == "redirect":
            raise web.HTTPTemporaryRedirect("http://127.0.0.2:1/mcp")
        if self.manners == "hang":
            await asyncio.sleep(60)
        if self.manners == "flood" and message["method"] == "tools/list":
            return web.Response(body=b" " * (40 << 20), content_type="application/json")
        if self.manners == "packed" and message["method"] == "tools/list":
            headers = {"content-encoding": "gzip"}
            return web.Response(body=b"x", headers=headers, content_type="application/json")
        if self.manners == "prose":
            return web.Response(text="<html>Welcome</html>", content_type="text/html")
        if "id" not in message:
            return web.Response(status=202)
        if message["method"] != "initialize" and request.headers.get("mcp-session-id") != "s1":
            return web.Response(status=400, text="no session")
        body = {"jsonrpc": "2.0", "id": message["id"], **self.result(message)}
        text = f"event: message\ndata: {json.dumps(body)}\n\n"
        headers = {"mcp-session-id": "s1"}
        return web.Response(text=text, headers=headers, content_type="text/event-stream")

    def result(self, message: Mapping[str, Any]) -> dict[str, Any]:
        params = message.get("params") or {}
        if message["method"] == "initialize":
            about = {"name": "old", "version": "1"}
            return {
                "result": {
                    "protocolVersion": "2025-03-26",
                    "capabilities": {"tools": {}},
                    "serverInfo": about,
                }
            }
        if message["method"] == "tools/list":
            if self.manners == "endless":
                return {"result": {"tools": TOOLS[:1], "nextCursor": "again"}}
            if self.manners == "empty":
                return {"result": {"tools": [], "nextCursor": f"{params.get('cursor', '')}x"}}
            if self.manners == "wrong":
                return {"result": {"tools": [{"title": "no name"}]}}
            start = int(params.get("cursor", 0))
            page: dict[str, Any] = {"tools": TOOLS[start : start + self.page]}
            if start + self.page < len(TOOLS):
                page["nextCursor"] = str(start + self.page)
            return {"result": page}
        return {"error": {"code": -32601, "message": f"no {message['method']}"}}


@asynccontextmanager
async def serving(routes: list[web.RouteDef]) -> AsyncIterator[str]:
    """An aiohttp application; its address, without a path."""
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


class Registry:
    """A registry that speaks the API: pages, cursors, versions, deleted entries, and bad days."""

    def __init__(self, entries: list[Any], *, page: int = 2, faults: Sequence[int] = ()) -> None:
        self.entries, self.page = entries, page
        self.faults = [*faults]
        """Status codes of the next answers, 200 for a good one; then all are good."""
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        assert request.query["limit"] == "100"
        assert request.query["version"] == "latest"
        cursor = request.query.get("cursor", "")
        self.asked.append(cursor)
        status = self.faults.pop(0) if self.faults else 200
        if status != 200:
            return web.Response(status=status, headers={"retry-after": "0"})
        start = int(cursor.partition(":")[2] or 0)
        page = self.entries[start : start + self.page]
        about: dict[str, Any] = {"count": len(page)}
        if start + self.page < len(self.entries):
            about["nextCursor"] = f"after:{start + self.page}"
        return web.json_response({"servers": page, "metadata": about})

    @property
    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v0.1/servers", self.answer)]


def registry_entry(name: str, *urls: str, status: str = "active", **server: Any) -> dict[str, Any]:
    """An entry as today's API gives it."""
    remotes = [{"type": "streamable-http", "url": url} for url in urls]
    official = {"status": status, "isLatest": True, "publishedAt": "2026-01-01T00:00:00Z"}
    about = {"name": name, "description": "A server.", "version": "1.0.0", "remotes": remotes}
    meta = {"io.modelcontextprotocol.registry/official": official}
    return {"server": about | server, "_meta": meta}


@asynccontextmanager
async def old_server(server: OldServer) -> AsyncIterator[str]:
    async with serving([web.route("*", "/mcp", server.answer)]) as url:
        yield f"{url}/mcp"
