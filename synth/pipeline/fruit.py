"""What a finished run has made of the sources that it was told to use: a run that makes nothing, or
nothing of a server that the user named, says so and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from records.store.dataset import Dataset
from synth.engine.stages import planned_before
from synth.llm.settings.config import OFFLINE
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import catalogue_of, servers_of
from synth.tasks.agents.agents import AgentSource, plan_agents, sources_of
from synth.tasks.stage import num_agents

LEAST_TRIED = 8
"""Tasks of a server that must have been tried before it counts as one that gives none."""

MOST_AGENTS = 4096
"""Agents that are looked at for the first one of a source that was not drawn."""


class ServerFruit(NamedTuple):
    """What became of a server's tasks."""

    tried: int
    kept: int
    reasons: Counter[str]


class RunFruit(NamedTuple):
    trajectories: int
    reasons: Counter[str]
    """Of tasks and episodes that gave none."""

    servers: Mapping[str, ServerFruit]
    """Of the servers that the settings name, not those that `all` stands for."""


def fruit_of(dataset: Dataset, config: RunConfig) -> RunFruit:
    """Counted over what the run itself planned."""
    tasks = planned_before(dataset.plan_path(config.run_id, "tasks"), "tasks")
    agents = planned_before(dataset.plan_path(config.run_id, "agents"), "agents")
    rollouts = planned_before(dataset.plan_path(config.run_id, "rollouts"), "rollouts")
    statuses = dataset.item_statuses("tasks")
    episodes = dataset.item_statuses("rollouts")
    made, done = dataset.ids("tasks"), dataset.ids("trajectories")
    server_of = {a["agent_id"]: a["server"] for a in dataset.rows("agents", ["agent_id", "server"])}
    named = {name: ServerFruit(0, 0, Counter()) for name in named_servers(config)}
    reasons: Counter[str] = Counter(
        status.reason
        for item, status in [*((i, statuses.get(i)) for i in tasks)]
        + [(i, episodes.get(i)) for i in rollouts]
        if status is not None and status.reason
    )
    for number, task in enumerate(tasks):
        server = server_of.get(agents[number // config.tasks.tasks_per_agent])
        if server not in named:
            continue
        known, status = named[server], statuses.get(task)
        if status is not None and status.reason:
            known.reasons[status.reason] += 1
        named[server] = known._replace(
            tried=known.tried + (status is not None), kept=known.kept + (task in made)
        )
    return RunFruit(sum(i in done for i in rollouts), reasons, named)


def named_servers(config: RunConfig) -> list[str]:
    """Names of the servers that the settings name one by one."""
    own = config.model_copy(update={"servers": tuple(s for s in config.servers if s != "all")})
    return [server.name for server in servers_of(own)]


def complaints(dataset: Dataset, config: RunConfig) -> list[str]:
    """Why the run counts as one that made nothing; empty where it made something of everything."""
    fruit = fruit_of(dataset, config)
    found = []
    if not fruit.trajectories:
        found.append(f"the run made no trajectory: {_counted(fruit.reasons)}")
    for name, one in fruit.servers.items():
        if one.tried >= LEAST_TRIED and not one.kept:
            found.append(
                f"server {name} gave no task of {one.tried} that were tried: "
                f"{_counted(one.reasons)}.{_hint(config)} "
                'Look at what was tried on it: synth sql "select '
                "proposed->>'goal' as goal, drop_reason, detail from server_goals where server = "
                f"'{name}'\" --dataset {dataset.root}"
            )
    return found


def warnings(dataset: Dataset, config: RunConfig) -> list[str]:
    """A line for each named server that no task was drawn for, with the count that reaches it."""
    fruit = fruit_of(dataset, config)
    missed = [name for name, one in fruit.servers.items() if not one.tried]
    if not missed:
        return []
    catalogue = catalogue_of(dataset, config)
    domains = [row for row in dataset.rows("domains") if row["domain_id"] in catalogue.domains]
    sources = sources_of(domains, catalogue.tools.values(), catalogue.servers, catalogue.code)
    return [_not_drawn(name, sources, config) for name in missed]


def _not_drawn(name: str, sources: Sequence[AgentSource], config: RunConfig) -> str:
    said = f"server {name} was drawn for none of the {config.num_tasks} tasks"
    if all(source.server != name for source in sources):
        return f"{said}: it has no usable tool here; `synth tools list --server {name}` says why"
    count = num_agents(config.num_tasks, config.tasks)
    while count < MOST_AGENTS:
        count *= 2
        plans = plan_agents(
            config.agents,
            sources,
            seed=config.seed,
            count=count,
            generator=config.roles["generator"],
        )
        for number, plan in enumerate(plans):
            if plan.source.server == name:
                needed = number * config.tasks.tasks_per_agent + 1
                return f"{said}; --set num_tasks={needed} reaches it"
    return f"{said}; raise num_tasks or agents.server_share"


def _hint(config: RunConfig) -> str:
    """What a user of the offline model has to know."""
    if config.roles["generator"].base_url != OFFLINE:
        return ""
    return " The offline model proposes simple goals alone: set roles.generator, or write `goals`."


def _counted(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(6)) or "nothing"
