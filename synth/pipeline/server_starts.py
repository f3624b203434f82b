"""The stage in which servers that begin empty are filled by their own tools, once a run."""

from records.digest import digest
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.servers import ServerConfig
from synth.engine.stages import Item, ItemResult, ShardContext
from synth.pipeline.filled_servers import NAME
from synth.pipeline.over_catalogue import OverCatalogue
from synth.prompts.templates import version_of
from synth.tasks.servers.filling import PROMPT, STAGE_VERSION, make_start, wants_start


class ServerStartsStage(OverCatalogue):
    """The start of servers whose fixture is described in words, or that begin empty; one item a
    server."""

    name = NAME

    def plan(self) -> list[Item]:
        config = self.run.config
        if config.server_goals.servers == "none":
            return []
        catalogue = self.catalogue
        live = [s for name, s in catalogue.servers.items() if name not in catalogue.recorded]
        return [
            Item(
                digest(
                    "server_starts",
                    STAGE_VERSION,
                    config.seed,
                    source_of(server).definition,
                    sorted(row["tool_id"] for row in self.tools_of(server).values()),
                    config.roles["generator"].identity(),
                    config.server_goals.fill_bare,
                    version_of(PROMPT),
                ),
                {"server": server},
            )
            for server in live
            if self.tools_of(server) and wants_start(server, bare=config.server_goals.fill_bare)
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        server: ServerConfig = item.data["server"]
        rows = await make_start(
            server,
            self.tools_of(server),
            shard.llm,
            item_id=item.item_id,
            definition=source_of(server).definition,
            model=self.run.config.roles["generator"].model_of(item.item_id, "generator"),
            bare=self.run.config.server_goals.fill_bare,
        )
        return ItemResult({"server_starts": rows})
