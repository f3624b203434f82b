"""What later stages take from the filling of servers."""

from collections.abc import Mapping

from sandboxes.mcp.servers import ServerConfig
from synth.engine.context import RunContext
from synth.pipeline.config import RunConfig

NAME = "server-starts"
"""Of the stage."""


def starts_made(run: RunContext[RunConfig]) -> dict[str, str]:
    """Server -> id of the start that the run's tasks start from."""
    items = set(run.ids_of(NAME))
    columns = ("item_id", "server", "drop_reason")
    rows = run.dataset.rows("server_starts", columns) if items else ()
    return {
        row["server"]: row["item_id"]
        for row in rows
        if row["item_id"] in items and row["drop_reason"] is None
    }


def from_starts(
    servers: Mapping[str, ServerConfig], made: Mapping[str, str]
) -> dict[str, ServerConfig]:
    """The servers, each with the start that was made for it."""
    return {
        name: server.model_copy(update={"start": made.get(name, "")})
        for name, server in servers.items()
    }
