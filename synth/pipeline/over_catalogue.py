"""What the stages of a run share that look at the catalogue: the run's own sources, and the
committed rows about them."""

from collections.abc import Callable, Sequence

from records.tables.schemas import Row
from sandboxes.mcp.servers import ServerConfig
from synth.engine.context import RunContext
from synth.episode.tools import code_environments as coding
from synth.pipeline.config import RunConfig
from synth.pipeline.found_goals import goals_found
from synth.pipeline.sources import catalogue_of
from synth.tasks.agents.agents import AgentPlan, AgentSource, plan_agents, sources_of
from synth.tasks.agents.personas import PersonaPlan, plan_personas
from synth.tasks.agents.screening import (
    near_personas,
    near_repeats,
    undecided,
    undecided_personas,
)
from synth.tasks.stage import num_agents, num_personas


class OverCatalogue:
    """What the later stages share: the run's own sources, and the committed rows about them."""

    def __init__(self, run: RunContext[RunConfig]) -> None:
        self.run = run
        self.catalogue = catalogue_of(
            run.dataset, run.config, run.servers.open, run.servers.pool.lease
        )

    def tools_of(self, server: ServerConfig) -> dict[str, Row]:
        """Usable tools of a server by name, in the order of their names."""
        own = (
            row
            for row in self.catalogue.tools.values()
            if row["server"] == server.name and not row["drop_reason"]
        )
        return {row["name"]: row for row in sorted(own, key=lambda row: row["name"])}

    def sources_for_agents(self) -> list[AgentSource]:
        """The domains and servers that agents are made for."""
        catalogue = self.catalogue
        domains = [
            row
            for row in self.run.dataset.rows("domains")
            if row["domain_id"] in catalogue.domains or coding.is_code(row)
        ]
        searched = goals_found(self.run) if catalogue.servers else {}
        found = {
            server: tuple(frozenset(call.tool for call in goal.calls) for goal in goals)
            for server, goals in searched.items()
        }
        tools = catalogue.tools.values()
        return sources_of(domains, tools, catalogue.servers, catalogue.code, found)

    def repeated_agents(self) -> dict[str, str]:
        """agent_id -> the agent that it repeats, among the committed ones of the run. Compared anew
        when other agents are planned, or agents were committed since."""

        def compare(planned: Sequence[str]) -> dict[str, str]:
            columns = ("agent_id", "system_prompt", "domain_id", "server")
            agents = filter(None, self.rows_of("agents", columns, planned))
            return near_repeats(agents, self.sources_for_agents())

        return self._compared("agents", compare)

    def repeated_personas(self) -> dict[str, str]:
        """persona_id -> the persona that it repeats, in the same way."""

        def compare(planned: Sequence[str]) -> dict[str, str]:
            columns = ("persona_id", "communication_style", "occupation", "language")
            texts = ("background", "sample")
            return near_personas(
                filter(None, self.rows_of("personas", (*columns, *texts), planned))
            )

        return self._compared("personas", compare)

    def _compared(
        self, stage: str, compare: Callable[[Sequence[str]], dict[str, str]]
    ) -> dict[str, str]:
        """What `compare` says of the planned rows, said once as long as they are the same."""
        planned = tuple(self.run.ids_of(stage))
        parts = (part for commit in self.run.dataset.commits() for part in commit.parts)
        committed = tuple(part.name for part in parts if part.table == stage)
        key = f"repeated {stage}"
        return self.run.once(key, (planned, committed), lambda: compare(planned))

    def agent_plans(self) -> list[AgentPlan]:
        config = self.run.config
        return plan_agents(
            config.agents,
            self.sources_for_agents(),
            seed=config.seed,
            count=num_agents(config.num_tasks, config.tasks),
            generator=config.roles["generator"],
        )

    def undecided_agents(self) -> set[str]:
        """Ids of agents that were left pending, and of those that may repeat one of them."""
        pending = self.run.left_pending("agents")
        if not pending:
            return set()
        return undecided(self.agent_plans(), pending, self.repeated_agents())

    def persona_plans(self) -> list[PersonaPlan]:
        config = self.run.config
        return plan_personas(
            config.personas,
            seed=config.seed,
            count=num_personas(config.num_tasks, config.tasks),
            generator=config.roles["generator"],
        )

    def undecided_personas(self) -> set[str]:
        """Ids of personas that were left pending, and of those that may repeat one of them."""
        pending = self.run.left_pending("personas")
        if not pending:
            return set()
        return undecided_personas(self.persona_plans(), pending, self.repeated_personas())

    def rows_of(self, table: str, columns: Sequence[str], ids: Sequence[str]) -> list[Row | None]:
        """Some columns of the table's row for each id, in their order; None where the item gave
        none. The first column is the key."""
        rows = {row[columns[0]]: row for row in self.run.dataset.rows(table, columns)}
        return [rows.get(item_id) for item_id in ids]
