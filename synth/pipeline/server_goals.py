"""The stage in which goals are found on real MCP servers."""

from records.digest import digest
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.servers import ServerConfig
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.pipeline.filled_servers import from_starts, starts_made
from synth.pipeline.found_goals import NAME
from synth.pipeline.over_catalogue import OverCatalogue
from synth.prompts.templates import version_of
from synth.tasks.servers.finding import PROMPTS, STAGE_VERSION, find_goals


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
