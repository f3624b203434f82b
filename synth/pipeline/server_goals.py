"""The stage in which goals are found on real MCP servers, and what the tasks take from it."""

from collections.abc import Mapping, Sequence

from records.digest import digest
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.servers import ServerConfig, ServerGoal
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.pipeline.config import RunConfig
from synth.pipeline.over_catalogue import OverCatalogue
from synth.pipeline.server_starts import from_starts, starts_made
from synth.prompts.templates import version_of
from synth.tasks.servers.finding import PROMPTS, STAGE_VERSION, find_goals

NAME = "server-goals"


class ServerGoalsStage(OverCatalogue):
    """Goals of servers whose definition lists none; one item a server."""

    name = NAME

    def plan(self) -> list[Item]:
        config = self.run.config
        if config.server_goals.servers == "none":
            return []
        catalogue = self.catalogue
        there = from_starts(catalogue.servers, starts_made(self.run))
        live = [server for name, server in there.items() if name not in catalogue.recorded]
        if config.server_goals.servers == "without_goals":
            live = [server for server in live if not server.goals]
        return [
            Item(
                digest(
                    "server_goals",
                    STAGE_VERSION,
                    config.seed,
                    source_of(server).definition,
                    sorted(row["tool_id"] for row in self.tools_of(server).values()),
                    config.server_goals.identity(),
                    config.roles["generator"].identity(),
                    *(version_of(name) for name in PROMPTS),
                    *([server.start] if server.start else []),
                ),
                {"server": server},
            )
            for server in live
            if self.tools_of(server)
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        server: ServerConfig = item.data["server"]
        config = self.run.config
        rows = await find_goals(
            server,
            self.tools_of(server),
            shard.llm,
            item_id=item.item_id,
            settings=config.server_goals,
            definition=source_of(server).definition,
            model=config.roles["generator"].model_of(item.item_id, "generator"),
            open_fresh=self.run.servers.open,
        )
        dropped = sum(row["drop_reason"] is not None for row in rows)
        return ItemResult({"server_goals": rows}, noted={"goals_not_kept": dropped})


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
