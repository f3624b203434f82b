"""An MCP server written with the official package that has all that a server may have beside tools.

Its arguments: `handshake` to speak the era with one request at a time from each side, `modern` for
the stateless one; `empty` to have neither resources nor prompts. It never does what the protocol
forbids, and much that is of no use.
"""

import sys
import warnings
from typing import Annotated, Any, Literal

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from pydantic import BaseModel, Field

warnings.simplefilter("ignore")  # of the package, about the older era

server = MCPServer("desk")
READS = types.ToolAnnotations(read_only_hint=True)


class Booking(BaseModel):
    """The form for a room."""

    guest: str = Field(description="Name of the guest", min_length=2)
    nights: int = Field(description="Number of nights", ge=1, le=9)
    board: Literal["none", "breakfast"] = "none"


def ask_for_booking(room: str) -> Elicit[Booking]:
    return Elicit(f"Who stays in room {room}?", Booking)


def ask_for_words(text: str) -> Sample:
    said = types.SamplingMessage(role="user", content=types.TextContent(text=f"Shorten: {text}"))
    return Sample([said], max_tokens=3, system_prompt="You shorten texts.")


@server.tool(annotations=READS)
async def book(
    room: str, booking: Annotated[ElicitationResult[Booking], Resolve(ask_for_booking)]
) -> str:
    """Book a room. Returns who stays there."""
    if not isinstance(booking, AcceptedElicitation):
        return f"Room {room} stays free: {booking.action}"
    return f"Room {room}: {booking.data.model_dump_json()}"


@server.tool(annotations=READS)
async def shorten(
    text: str, words: Annotated[types.CreateMessageResult, Resolve(ask_for_words)]
) -> str:
    """Shorten a text. Returns the text and who shortened it."""
    return words.model_dump_json(include={"content", "model", "stop_reason"}, exclude_none=True)


@server.tool(annotations=READS)
async def noisy(order: list[str], context: Context[Any, Any]) -> str:
    """Do everything that a server may do beside answering, in the order given. Returns it."""
    for what in order:
        await NOISE[what](context)
    return " ".join(order)


async def progress(context: Context[Any, Any]) -> None:
    await context.report_progress(1, 2, "half")
    await context.session.send_progress_notification(f"none {len(NOISE)}", 3, 1, "more than all")


async def log(context: Context[Any, Any]) -> None:
    for level in ("debug", "emergency"):
        await context.session.send_log_message(level, {"words": ["x"] * 50}, "desk")


async def changed(context: Context[Any, Any]) -> None:
    session = context.session
    await session.send_tool_list_changed()
    await session.send_prompt_list_changed()
    await session.send_resource_list_changed()
    await session.send_resource_updated("note://none")


async def cancelled(context: Context[Any, Any]) -> None:
    """Takes back requests that it never made, and one that it did."""
    for request_id in (context.request_id, "none", 10**9):
        params = types.CancelledNotificationParams(request_id=request_id, reason="why not")
        await context.session.send_notification(types.CancelledNotification(params=params))
    with anyio.move_on_after(0):
        await context.session.send_ping()


async def completed(context: Context[Any, Any]) -> None:
    await context.session.send_elicit_complete("none")


async def roots(context: Context[Any, Any]) -> None:
    with_error = False
    try:
        await context.session.list_roots()
    except MCPError:
        with_error = True
    assert with_error or context.protocol_version


async def ping(context: Context[Any, Any]) -> None:
    await context.session.send_ping()


async def form(context: Context[Any, Any]) -> None:
    """Asks, and goes on whatever is said."""
    await context.elicit("Anything?", Booking)


async def taken_back(context: Context[Any, Any]) -> None:
    """Asks and does not wait."""
    with anyio.move_on_after(0.01):
        await context.elicit("Quickly?", Booking)


NOISE = {
    made.__name__: made
    for made in (progress, log, changed, cancelled, completed, roots, ping, form, taken_back)
}

if "empty" not in sys.argv:

    @server.resource("note://hello", mime_type="text/plain")
    def hello() -> str:
        """Words of welcome."""
        return "Welcome to the desk."

    @server.resource("note://logo", mime_type="image/png")
    def logo() -> bytes:
        return b"\x89PNG"

    @server.resource("note://rooms/{room}")
    def room_note(room: str) -> str:
        """What is noted of a room."""
        return f"Room {room} has a view."

    @server.prompt()
    def greeting(guest: str, warmly: str = "no") -> str:
        """Words to greet a guest with."""
        return f"Greet {guest}, warmly: {warmly}."

    @server.tool(annotations=READS)
    def list_prompts() -> str:
        """A tool of the server's own, by a name that clients use."""
        return "mine"


async def serve_handshake() -> None:
    inner = server._lowlevel_server  # the package offers one era alone only so
    async with stdio_server() as (reading, writing), inner.lifespan(inner) as state:
        await serve_loop(inner, reading, writing, lifespan_state=state)


if __name__ == "__main__":
    if "handshake" in sys.argv:
        anyio.run(serve_handshake)
    else:
        server.run("stdio")
