"""The stages of a run in order: what each plans from the committed rows, and who makes an item.

A stage here is an adapter of a few lines. The work is in the module that it calls.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from records.digest import digest
from records.errors import ConfigError
from records.reading.lookup import RowBy
from records.tables.schemas import Row
from sandboxes.lending.leases import available
from sandboxes.mcp.importing import look_twice, rows_of_looks
from sandboxes.mcp.servers import ServerConfig
from synth.catalogue.played_sources import write_environment
from synth.catalogue.tool_judging import judged_by, verdicts_on
from synth.curation.stages import CurationStage
from synth.engine.context import RunContext
from synth.engine.stages import Item, ItemResult, ShardContext, dropped
from synth.episode.rollout import plan_rollouts, run_rollout
from synth.episode.tools import code_environments as coding
from synth.episode.tools.cassette import opening
from synth.episode.tools.code_environments import code_environments
from synth.episode.tools.simulator import SimulateConfig, simulation_identity
from synth.episode.users.elicitation import PROMPT as FORM_PROMPT
from synth.judging.stages import CalibrationStage, GradingStage
from synth.pipeline.config import RunConfig
from synth.pipeline.filled_servers import starts_made
from synth.pipeline.found_goals import goals_found, with_goals
from synth.pipeline.over_catalogue import OverCatalogue
from synth.pipeline.server_goals import ServerGoalsStage
from synth.pipeline.server_starts import ServerStartsStage
from synth.pipeline.sources import (
    RELEASED,
    domains_of,
    evolved_of,
    played_of,
    recorded_servers,
    servers_of,
    why_left_out,
)
from synth.prompts.templates import version_of
from synth.tasks.agents.agents import make_agent
from synth.tasks.agents.personas import make_persona
from synth.tasks.agents.screening import (
    SCREEN_VERSION,
)
from synth.tasks.code_tasks import CodeTasks
from synth.tasks.difficulty import tasks_of
from synth.tasks.proof.extensions import load_extensions
from synth.tasks.sources import TaskSources
from synth.tasks.stage import (
    SERVER_VERSION,
    Dropped,
    TaskPlan,
    make_task,
    persona_number,
    plan_tasks,
)
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.importing.instructing.finding import check_releases, released_of

CATALOGUE_VERSION = 3
"""Raised when the same domain or server would give other rows."""


class CatalogueStage:
    """Domains and servers become rows of `domains` and `tools`; one item each."""

    name = "tools"
    reopens = False

    def __init__(self, run: RunContext[RunConfig]) -> None:
        self.run = run

    def plan(self) -> list[Item]:
        evolved_of(self.run.dataset, self.run.config)  # refuses what is not there before any work
        items = [
            Item(digest("domain", CATALOGUE_VERSION, list(known.tools.values())), {"domain": known})
            for known in domains_of(self.run.config)
        ]
        recorded = recorded_servers(self.run.config)
        for server in servers_of(self.run.config):
            if server.name in recorded:
                tools = recorded[server.name]
                item_id = digest("recorded", CATALOGUE_VERSION, [t["tool_id"] for t in tools])
                items.append(Item(item_id, {"recorded": tools}))
                continue
            why = why_left_out(server)
            # the reason is part of the item, which is open again once what was missing is there
            judged = judged_by(self.run.config.roles["judge"])
            released = sorted(released_of(server.name, self.run.config.released_tools))
            decided_by = [part for part in (judged, released) if part]
            item_id = digest("server", CATALOGUE_VERSION, server.identity(), why, *decided_by)
            items.append(Item(item_id, {"server": server, "why_left_out": why}))
        for source in played_of(self.run.dataset, self.run.config):
            item_id = source.item_id(self.run.config.roles["generator"])
            items.append(Item(item_id, {"played": source}))
        if code_environments(self.run.config.code):
            why = None if available() is None else "no_sandbox"
            item_id = digest("code", CATALOGUE_VERSION, coding.code_tool_ids(), why)
            items.append(Item(item_id, {"code": True, "why_left_out": why}))
        return items

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        if known := item.data.get("domain"):
            domain = await asyncio.to_thread(known.load)  # some 25 ms
            return self._new({"domains": [domain_row(domain)], "tools": tool_rows(domain)})
        if source := item.data.get("played"):
            generator = self.run.config.roles["generator"]
            made = await write_environment(
                source, shard.llm, item_id=item.item_id, generator=generator
            )
            return self._new(dict(made.tables))
        if tools := item.data.get("recorded"):
            return self._new({"tools": tools})
        if reason := item.data["why_left_out"]:
            return dropped(reason)
        if item.data.get("code"):
            return self._new({"domains": [coding.domain_row()], "tools": coding.tool_rows()})
        return self._new({"tools": await self._imported(item.data["server"], item, shard)})

    async def _imported(self, server: ServerConfig, item: Item, shard: ShardContext) -> list[Row]:
        """The server's tools, those in doubt as the run's judge and its settings have them."""
        config = self.run.config
        looks = await look_twice(server)
        released = released_of(server.name, config.released_tools)
        rows = rows_of_looks(server, looks, released)
        names = {server.name: [row["name"] for row in rows]}
        check_releases([f"{server.name}/{tool}" for tool in released], names, RELEASED)
        if config.roles["judge"].is_offline:
            return rows
        verdicts = await verdicts_on(rows, shard.llm, item=item.item_id)
        return rows_of_looks(server, looks, verdicts | released) if verdicts else rows

    def _new(self, tables: dict[str, Sequence[Row]]) -> ItemResult:
        """Without the rows that an import, or an earlier form of the same domain, has committed."""
        known = {table: self.run.dataset.ids(table) for table in tables}
        keys = {"domains": "domain_id", "tools": "tool_id"}
        return ItemResult(
            {
                table: [row for row in rows if row[keys[table]] not in known[table]]
                for table, rows in tables.items()
            }
        )


class AgentStage(OverCatalogue):
    name = "agents"
    needs_all = True

    def plan(self) -> list[Item]:
        config = self.run.config
        if not self.sources_for_agents():
            raise ConfigError(
                f"no tool can be used: domains = {list(config.domains)}, servers = "
                f"{list(config.servers)}; `synth tools list` says why a tool was left out, "
                "`synth sandbox doctor` what a server needs here"
            )
        plans = self.agent_plans()
        return [Item(plan.item_id, {"plan": plan}) for plan in plans]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        generator = self.run.config.roles["generator"]
        row = await make_agent(item.data["plan"], shard.llm, generator=generator)
        return ItemResult({"agents": [row]})


class PersonaStage(OverCatalogue):
    name = "personas"

    def plan(self) -> list[Item]:
        return [Item(plan.item_id, {"plan": plan}) for plan in self.persona_plans()]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        generator = self.run.config.roles["generator"]
        row = await make_persona(item.data["plan"], shard.llm, generator=generator)
        return ItemResult({"personas": [row]})


class ScreeningStage(OverCatalogue):
    """Says of every agent and every persona, all of them looked at together, whether it repeats one
    before it."""

    name = "screening"

    def plan(self) -> list[Item]:
        agents = self._items("agents", self.repeated_agents(), self.undecided_agents())
        personas = self._items("personas", self.repeated_personas(), self.undecided_personas())
        return agents + personas

    def _items(self, stage: str, repeats: Mapping[str, str], waiting: Set[str]) -> list[Item]:
        made = self.run.dataset.ids(stage)
        return [
            Item(
                digest("screening", SCREEN_VERSION, row_id),
                {"of": repeats.get(row_id)},
                stage if row_id in waiting else None,
            )
            for row_id in self.run.ids_of(stage)
            if row_id in made
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        return dropped("near_duplicate") if item.data["of"] else ItemResult({})


class TaskStage(OverCatalogue):
    name = "tasks"
    runs_in_workers = True

    def __init__(self, run: RunContext[RunConfig]) -> None:
        super().__init__(run)
        self.extensions = load_extensions(run.config.extensions)
        world, live = self.catalogue, run.servers.open
        self.found, self.starts = goals_found(run), starts_made(run)
        self.sources = TaskSources(
            tools=self.catalogue.tools,
            domains=self.catalogue.domains,
            servers=with_goals(self.catalogue.servers, self.found, self.starts),
            code=CodeTasks(self.catalogue.code, self.extensions, self.catalogue.lease),
            open_server=opening(world.cassette, world.recorded, live) if world.cassette else live,
            extensions=self.extensions,
            simulate=run.config.simulate,
        )

    def plan(self) -> list[Item]:
        config = self.run.config
        repeats, waiting = self.repeated_agents(), self.undecided_agents()
        alike, unclear = self.repeated_personas(), self.undecided_personas()
        # tasks of an agent or a persona that was dropped go to the one that it repeats
        agents = [repeats.get(agent, agent) for agent in self.run.ids_of("agents")]
        planned = self.run.ids_of("personas")
        personas = [alike.get(persona, persona) for persona in planned]
        decided = simulation_identity(config.simulate, config.roles["simulator"])
        played = self.catalogue.played

        def further(agent: Row) -> Sequence[Any]:
            """What decides the tasks of an agent beside its own row."""
            if agent["server"]:
                start = [self.starts[agent["server"]]] if agent["server"] in self.starts else []
                goals = [goal.id for goal in self.found.get(agent["server"], ())]
                return [SERVER_VERSION, *goals, *start]
            return decided if agent["domain_id"] in played else ()

        plans = plan_tasks(
            config.tasks,
            self.rows_of("agents", ("agent_id", "domain_id", "server"), agents),
            self.rows_of("personas", ("persona_id",), personas),
            seed=config.seed,
            count=config.num_tasks,
            generator=config.roles["generator"],
            extensions=self.extensions,
            further=further,
        )

        def waits_for(number: int) -> str | None:
            if self.run.ids_of("agents")[number // config.tasks.tasks_per_agent] in waiting:
                return "agents"
            persona = planned[persona_number(number, config.seed, config.tasks)]
            return "personas" if persona in unclear else None

        return [
            Item(plan.item_id, {"plan": plan}, waits_for(number))
            for number, plan in enumerate(plans)
        ]

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        config = self.run.config
        plan: TaskPlan = item.data["plan"]
        agent, persona = plan.agent, plan.persona
        made = await make_task(
            replace(
                plan,
                agent=agent and self.catalogue.agents[agent["agent_id"]],
                persona=persona and self.catalogue.personas[persona["persona_id"]],
            ),
            shard.llm,
            config=config.tasks,
            sources=self.sources,
            generator=config.roles["generator"],
        )
        return dropped(made.reason) if isinstance(made, Dropped) else ItemResult({"tasks": [made]})


class RolloutStage(OverCatalogue):
    name = "rollouts"
    runs_in_workers = True

    def __init__(self, run: RunContext[RunConfig]) -> None:
        super().__init__(run)
        self.tasks = RowBy(run.dataset, "tasks", "task_id")

    def plan(self) -> list[Item]:
        config = self.run.config
        return plan_rollouts(
            [{"task_id": i} for i in tasks_of(self.run) if i in self.tasks],
            config=config.rollouts,
            roles=config.roles,
            simulation=self._simulation(),
        )

    def _simulation(self) -> Callable[[str], Sequence[Any]]:
        """Task -> what decides the answers of its simulated or recorded tools, and to what its
        server asks the user."""
        world, config = self.catalogue, self.run.config
        simulates = config.simulate != SimulateConfig()
        if not simulates and not world.servers:
            return lambda task_id: ()
        agents = {
            row["agent_id"]
            for row in self.run.dataset.rows("agents", ["agent_id", "tool_ids"])
            if simulates
            and any(
                t in world.tools and world.is_simulated(world.tools[t]) for t in row["tool_ids"]
            )
        }
        decided = simulation_identity(config.simulate, config.roles["simulator"])

        def deciding(task: Row) -> Sequence[Any]:
            if task["server"] in world.recorded:
                return ["cassette"]
            if task["agent_id"] in agents:
                return decided
            return [version_of(FORM_PROMPT)] if task["server"] else ()

        tasks = {
            row["task_id"]: deciding(row)
            for row in self.run.dataset.rows("tasks", ["task_id", "agent_id", "server"])
        }
        return lambda task_id: tasks.get(task_id, ())

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        task = self.tasks[item.data["task"]["task_id"]]
        return await run_rollout(
            Item(item.item_id, {**item.data, "task": task}),
            shard.llm,
            shard.journal,
            catalogue=self.catalogue,
            config=self.run.config.rollouts,
            roles=self.run.config.roles,
        )


STAGES = (
    CatalogueStage,
    ServerStartsStage,
    ServerGoalsStage,
    AgentStage,
    PersonaStage,
    ScreeningStage,
    TaskStage,
    RolloutStage,
    GradingStage,
    CalibrationStage,
    CurationStage,
)
"""In the order of a run: each reads what those before it committed."""
