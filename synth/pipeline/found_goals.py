"""What later stages take from the search for goals on servers."""

from collections.abc import Mapping, Sequence

from sandboxes.mcp.servers import ServerConfig, ServerGoal
from synth.engine.context import RunContext
from synth.pipeline.config import RunConfig
from synth.pipeline.filled_servers import from_starts

NAME = "server-goals"
"""Of the stage."""


def goals_found(run: RunContext[RunConfig]) -> dict[str, tuple[ServerGoal, ...]]:
    """Server -> goals that the run's own search has kept."""
    items = set(run.ids_of(NAME))
    found: dict[str, list[ServerGoal]] = {}
    columns = ("item_id", "number", "server", "goal")
    rows = run.dataset.rows("server_goals", columns) if items else ()
    for row in sorted(rows, key=lambda row: (row["item_id"], row["number"])):
        if row["item_id"] in items and row["goal"] is not None:
            found.setdefault(row["server"], []).append(ServerGoal.model_validate(row["goal"]))
    return {server: tuple(goals) for server, goals in found.items()}


def with_goals(
    servers: Mapping[str, ServerConfig],
    found: Mapping[str, Sequence[ServerGoal]],
    starts: Mapping[str, str],
) -> dict[str, ServerConfig]:
    """The servers with the goals of their definitions and those that were found, each starting from
    what it was filled with."""
    return {
        name: config.model_copy(update={"goals": (*config.goals, *found.get(name, ()))})
        for name, config in from_starts(servers, starts).items()
    }
