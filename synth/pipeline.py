"""The stages of a run in order: what each plans from the committed rows, and who makes an item.

A stage here is an adapter of a few lines. The work is in the module that it calls.
"""

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from records.digest import digest
from records.errors import ConfigError
from records.lookup import RowBy
from records.schemas import Row
from records.store import Dataset
from sandboxes.importing import import_server, source_of
from sandboxes.launch import launch_of
from sandboxes.local import Lease, available, lease
from sandboxes.mcp import open_server
from sandboxes.secret_values import secret_values
from sandboxes.servers import ServerConfig, builtin_servers, load_server
from synth.agents import AgentPlan, make_agent, plan_agents, sources_of
from synth.cassette import cassette_at, opening
from synth.coding import worlds as coding
from synth.coding.tasks import CodeTasks
from synth.coding.worlds import code_worlds
from synth.config import RunConfig
from synth.evolved_domains import Domains, EvolvedDomains, evolved_domains, is_evolved
from synth.executors import Catalogue, OpenServer
from synth.extensions import load_extensions
from synth.grading_stages import CalibrationStage, CurationStage, GradingStage
from synth.personas import make_persona, plan_personas
from synth.played_sources import (
    PlayedSource,
    played_domains,
    sources_to_play,
    write_world,
)
from synth.rollout import plan_rollouts, run_rollout
from synth.run import Run, Shard
from synth.screening import SCREEN_VERSION, near_repeats
from synth.simulator import SimulateConfig, simulation_identity
from synth.stages import Item, ItemResult, dropped
from synth.tasks.stage import (
    Dropped,
    TaskPlan,
    TaskSources,
    make_task,
    num_agents,
    num_personas,
    plan_tasks,
)
from tool_specs.catalogue import domain_id, domain_row, tool_ids, tool_rows
from tool_specs.domain import Domain, builtin_names, load_domains
from tool_specs.importing import is_of

CATALOGUE_VERSION = 2
"""Raised when the same domain or server would give other rows."""


def domains_of(config: RunConfig) -> list[Domain]:
    """The domains of files that a run is told to use; ConfigError for one that cannot be read."""
    names = [name for name in config.domains if name != "all" and not is_evolved(name)]
    return load_domains([*builtin_names(), *names] if "all" in config.domains else names)


def servers_of(config: RunConfig) -> list[ServerConfig]:
    """The MCP servers that a run is told to use, whether or not they can run here."""
    builtin = builtin_servers()
    found: dict[str, ServerConfig] = {}
    for name in config.servers:
        if name == "all":
            found |= builtin
        elif name in builtin:
            found[name] = builtin[name]
        elif name.endswith((".yaml", ".yml")):
            server = load_server(Path(name))
            found[server.name] = server
        else:
            raise ConfigError(
                f"servers names {name!r}; allowed: all, {', '.join(builtin)}, or the path of a "
                "server definition (.yaml)"
            )
    return list(found.values())


def check_sources(config: RunConfig) -> None:
    """ConfigError for a domain or server that this run names and that cannot be used here."""
    evolved = any(map(is_evolved, config.domains))
    named = evolved or config.servers or config.code or config.simulate.sources
    if not domains_of(config) and not named:
        raise ConfigError("domains, servers and code are all empty; name at least one, or all")
    _check_played(config, named=any(map(is_evolved, config.domains)))
    recorded = recorded_servers(config)
    for server in servers_of(config):
        if server.name not in recorded:
            why_left_out(server)
    load_extensions(config.extensions)
    code_worlds(config.code)


def _check_played(config: RunConfig, *, named: bool) -> None:
    """ConfigError for a tool that a model is to play and that no domain of the run has. Those of a
    dataset (`named`) are not looked at here."""
    names = config.simulate.tools
    if isinstance(names, str) or named or config.simulate.sources:
        return
    known = {tool.name for domain in domains_of(config) for tool in domain.tools}
    if unknown := sorted(set(names) - known):
        raise ConfigError(
            f"simulate.tools names {', '.join(unknown)}, which no domain of the run has; allowed: "
            f"without_semantics, all, or names of tools ({', '.join(sorted(known)[:8])}, ...)"
        )


def why_left_out(server: ServerConfig) -> str | None:
    """Why this machine, as it is now, cannot run the server; None where it can. ConfigError for a
    command that does not exist and a secret that is not set, unless the server is optional."""
    if available() is not None:
        return "no_sandbox"
    reason = "not_installed"
    try:
        launch_of(server)
        reason = "no_secret"
        secret_values(server.name, server.secrets)
    except ConfigError:
        if server.optional:
            return reason
        raise
    return None


class CatalogueStage:
    """Domains and servers become rows of `domains` and `tools`; one item each."""

    name = "tools"

    def __init__(self, run: Run[RunConfig]) -> None:
        self.run = run

    def plan(self) -> list[Item]:
        evolved_of(self.run.dataset, self.run.config)  # refuses what is not there before any work
        items = [
            Item(digest("domain", CATALOGUE_VERSION, tool_ids(domain)), {"domain": domain})
            for domain in domains_of(self.run.config)
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
            item_id = digest("server", CATALOGUE_VERSION, server.identity(), why)
            items.append(Item(item_id, {"server": server, "why_left_out": why}))
        for source in played_of(self.run.dataset, self.run.config):
            item_id = source.item_id(self.run.config.roles["generator"])
            items.append(Item(item_id, {"played": source}))
        if code_worlds(self.run.config.code):
            why = None if available() is None else "no_sandbox"
            item_id = digest("code", CATALOGUE_VERSION, coding.code_tool_ids(), why)
            items.append(Item(item_id, {"code": True, "why_left_out": why}))
        return items

    async def make(self, item: Item, shard: Shard) -> ItemResult:
        if domain := item.data.get("domain"):
            return self._new({"domains": [domain_row(domain)], "tools": tool_rows(domain)})
        if source := item.data.get("played"):
            generator = self.run.config.roles["generator"]
            made = await write_world(source, shard.llm, item_id=item.item_id, generator=generator)
            return self._new(dict(made.tables))
        if tools := item.data.get("recorded"):
            return self._new({"tools": tools})
        if reason := item.data["why_left_out"]:
            return dropped(reason)
        if item.data.get("code"):
            return self._new({"domains": [coding.domain_row()], "tools": coding.tool_rows()})
        return self._new({"tools": await import_server(item.data["server"])})

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


def evolved_of(dataset: Dataset, config: RunConfig) -> EvolvedDomains:
    """The evolved domains that a run is told to use, with the tools they had when it began."""
    return evolved_domains(dataset, config.domains, run_id=config.run_id)


def played_of(dataset: Dataset, config: RunConfig) -> list[PlayedSource]:
    """The imported sources whose tools a run is told to have played."""
    served = [server.name for server in servers_of(config)]
    names = config.simulate.sources
    return sources_to_play(dataset, names, run_id=config.run_id, served=served)


def recorded_servers(config: RunConfig) -> dict[str, list[Row]]:
    """Servers that cannot run here and that the run's cassettes answer for: their tools."""
    if not config.simulate.cassettes:
        return {}
    cassette = cassette_at(config.simulate.cassettes)
    absent = (server for server in servers_of(config) if not _runs_here(server))
    return {s.name: tools for s in absent if (tools := cassette.tools_of(source_of(s)))}


def _runs_here(server: ServerConfig) -> bool:
    try:
        return why_left_out(server) is None
    except ConfigError:
        return False


def catalogue_of(
    dataset: Dataset,
    config: RunConfig,
    open_server: OpenServer = open_server,
    lease: Lease = lease,
) -> Catalogue:
    """Everything that the run's episodes are put together from, as the dataset holds it.

    Only tools of the run's own domains and servers, as they are defined now; what else was
    imported, and what an edited definition was before, changes nothing.
    """
    own = {domain_id(domain): domain for domain in domains_of(config)}
    evolved = evolved_of(dataset, config)
    can_run = available() is None
    servers = {server.name: server for server in servers_of(config) if can_run}
    of_domains = {tool for domain in own.values() for tool in tool_ids(domain)}
    of_domains |= evolved.tools.keys()
    code = code_worlds(config.code) if can_run else {}
    of_domains |= set(coding.code_tool_ids()) if code else set()
    recorded = recorded_servers(config)
    servers |= {s.name: s for s in servers_of(config) if s.name in recorded}
    sources = {name: source_of(server) for name, server in servers.items()}
    played = played_domains(dataset, played_of(dataset, config), config.roles["generator"])
    of_domains |= played.tools.keys()
    cassette = cassette_at(config.simulate.cassettes) if recorded else None
    return Catalogue(
        agents=RowBy(dataset, "agents", "agent_id"),
        personas=RowBy(dataset, "personas", "persona_id"),
        tools={
            row["tool_id"]: row
            for row in dataset.rows("tools")
            if row["tool_id"] in of_domains
            or (row["server"] in sources and is_of(row, sources[row["server"]]))
        },
        # an evolved domain has the tools of its file, too
        domains=Domains(evolved, ChainMap(own, cast(Any, played)) if played else own),
        servers=servers,
        code=code,
        lease=lease,
        open_server=open_server,
        kinds=load_extensions(config.extensions).kinds,
        simulate=config.simulate,
        cassette=cassette,
        recorded=frozenset(recorded),
        played=frozenset(played),
    )


class OverCatalogue:
    """What the later stages share: the run's own sources, and the committed rows about them."""

    def __init__(self, run: Run[RunConfig]) -> None:
        self.run = run
        self.catalogue = catalogue_of(
            run.dataset, run.config, run.servers.open, run.servers.pool.lease
        )

    def rows_of(self, table: str, columns: Sequence[str], ids: Sequence[str]) -> list[Row | None]:
        """Some columns of the table's row for each id, in their order; None where the item gave
        none. The first column is the key."""
        rows = {row[columns[0]]: row for row in self.run.dataset.rows(table, columns)}
        return [rows.get(item_id) for item_id in ids]


class AgentStage(OverCatalogue):
    name = "agents"

    def plan(self) -> list[Item]:
        config = self.run.config
        world = self.catalogue
        domains = [
            row
            for row in self.run.dataset.rows("domains")
            if row["domain_id"] in world.domains or coding.is_code(row)
        ]
        sources = sources_of(domains, world.tools.values(), world.servers, world.code)
        if not sources:
            raise ConfigError(
                f"no tool can be used: domains = {list(config.domains)}, servers = "
                f"{list(config.servers)}; `synth tools list` says why a tool was left out, "
                "`synth sandbox doctor` what a server needs here"
            )
        plans = plan_agents(
            config.agents,
            sources,
            seed=config.seed,
            count=num_agents(config.num_tasks, config.tasks),
            generator=config.roles["generator"],
        )
        return [Item(plan.item_id, {"plan": plan}) for plan in plans]

    async def make(self, item: Item, shard: Shard) -> ItemResult:
        generator = self.run.config.roles["generator"]
        row = await make_agent(item.data["plan"], shard.llm, generator=generator)
        return ItemResult({"agents": [row]})


class ScreeningStage:
    """Says of every agent, all of them looked at together, whether it repeats one before it."""

    name = "screening"

    def __init__(self, run: Run[RunConfig]) -> None:
        self.run = run

    def plan(self) -> list[Item]:
        plans = agent_plans(self.run)
        repeats = repeats_of(self.run, plans)
        made = self.run.dataset.ids("agents")
        return [
            Item(digest("screening", SCREEN_VERSION, agent), {"of": repeats.get(agent)})
            for agent in (plan.item_id for plan in plans)
            if agent in made
        ]

    async def make(self, item: Item, shard: Shard) -> ItemResult:
        return dropped("near_duplicate") if item.data["of"] else ItemResult({})


def agent_plans(run: Run[RunConfig]) -> list[AgentPlan]:
    return [item.data["plan"] for item in AgentStage(run).plan()]


def repeats_of(run: Run[RunConfig], plans: Sequence[AgentPlan]) -> dict[str, str]:
    """agent_id -> the agent that it repeats, among the committed ones of the run."""
    rows = run.dataset.rows("agents", ("agent_id", "system_prompt", "tool_ids"))
    return near_repeats(plans, {row["agent_id"]: row for row in rows})


class PersonaStage:
    name = "personas"

    def __init__(self, run: Run[RunConfig]) -> None:
        self.run = run

    def plan(self) -> list[Item]:
        config = self.run.config
        plans = plan_personas(
            config.personas,
            seed=config.seed,
            count=num_personas(config.num_tasks),
            generator=config.roles["generator"],
        )
        return [Item(plan.item_id, {"plan": plan}) for plan in plans]

    async def make(self, item: Item, shard: Shard) -> ItemResult:
        generator = self.run.config.roles["generator"]
        row = await make_persona(item.data["plan"], shard.llm, generator=generator)
        return ItemResult({"personas": [row]})


class TaskStage(OverCatalogue):
    name = "tasks"
    spread = True

    def __init__(self, run: Run[RunConfig]) -> None:
        super().__init__(run)
        self.extensions = load_extensions(run.config.extensions)
        world, live = self.catalogue, run.servers.open
        self.sources = TaskSources(
            tools=self.catalogue.tools,
            domains=self.catalogue.domains,
            servers=self.catalogue.servers,
            code=CodeTasks(self.catalogue.code, self.extensions, self.catalogue.lease),
            open_server=opening(world.cassette, world.recorded, live) if world.cassette else live,
            extensions=self.extensions,
            simulate=run.config.simulate,
        )

    def plan(self) -> list[Item]:
        config = self.run.config
        planned = agent_plans(self.run)
        repeats = repeats_of(self.run, planned)
        # tasks of an agent that was dropped go to the one that it repeats
        agents = [repeats.get(plan.item_id, plan.item_id) for plan in planned]
        personas = [item.item_id for item in PersonaStage(self.run).plan()]
        decided = simulation_identity(config.simulate, config.roles["simulator"])
        played = self.catalogue.played
        plans = plan_tasks(
            config.tasks,
            self.rows_of("agents", ("agent_id", "domain_id"), agents),
            self.rows_of("personas", ("persona_id",), personas),
            seed=config.seed,
            count=config.num_tasks,
            generator=config.roles["generator"],
            extensions=self.extensions,
            simulation=lambda agent: decided if agent["domain_id"] in played else (),
        )
        return [Item(plan.item_id, {"plan": plan}) for plan in plans]

    async def make(self, item: Item, shard: Shard) -> ItemResult:
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
    spread = True

    def __init__(self, run: Run[RunConfig]) -> None:
        super().__init__(run)
        self.tasks = RowBy(run.dataset, "tasks", "task_id")

    def plan(self) -> list[Item]:
        config = self.run.config
        planned = (item.item_id for item in TaskStage(self.run).plan())
        return plan_rollouts(
            [{"task_id": task_id} for task_id in planned if task_id in self.tasks],
            config=config.rollouts,
            roles=config.roles,
            simulation=self._simulation(),
        )

    def _simulation(self) -> Callable[[str], Sequence[Any]]:
        """Task -> what decides the answers of its simulated or recorded tools."""
        world, config = self.catalogue, self.run.config
        if config.simulate == SimulateConfig():
            return lambda task_id: ()
        decided = simulation_identity(config.simulate, config.roles["simulator"])
        agents = {
            row["agent_id"]
            for row in self.run.dataset.rows("agents", ["agent_id", "tool_ids"])
            if any(t in world.tools and world.is_simulated(world.tools[t]) for t in row["tool_ids"])
        }
        tasks = {
            row["task_id"]: ["cassette"] if row["server"] in world.recorded else decided
            for row in self.run.dataset.rows("tasks", ["task_id", "agent_id", "server"])
            if row["agent_id"] in agents or row["server"] in world.recorded
        }
        return lambda task_id: tasks.get(task_id, ())

    async def make(self, item: Item, shard: Shard) -> ItemResult:
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
    AgentStage,
    ScreeningStage,
    PersonaStage,
    TaskStage,
    RolloutStage,
    GradingStage,
    CalibrationStage,
    CurationStage,
)
"""In the order of a run: each reads what those before it committed."""
