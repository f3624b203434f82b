"""What tasks are made from, besides agents and personas, and what a task is before its words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from records.seeds import rng_of
from records.tables.schemas import Row
from sandboxes.mcp.joined import open_live
from sandboxes.mcp.servers import ServerConfig, ServerGoal
from synth.episode.tools.cassette import OpenForProof
from synth.episode.tools.simulator import SimulateConfig
from synth.tasks.code_tasks import CodeTasks
from synth.tasks.goals.goals import Draft, Proof
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.unsolvable import Others
from tool_specs.domains.domain import Domain

OTHER_DOMAINS_TRIED = 6
"""Domains from which a user goal that no tool of the agent grants is drawn."""


@dataclass(frozen=True)
class TaskSources:
    """What tasks are made from, besides agents and personas."""

    tools: Mapping[str, Row]
    """By tool_id."""

    domains: Mapping[str, Domain]
    """By domain_id."""

    servers: Mapping[str, ServerConfig]
    """By name; empty where no sandbox can run them."""

    open_server: OpenForProof = open_live
    """How a plan gets a fresh server. `WarmServers.open` spares most of the starts."""

    extensions: Extensions = NO_EXTENSIONS

    simulate: SimulateConfig = field(default_factory=SimulateConfig)

    code: CodeTasks = field(default_factory=lambda: CodeTasks({}))
    """Makes the tasks on repositories and problems."""

    @cached_property
    def of_domain(self) -> Mapping[str, list[Row]]:
        """Tools by domain_id."""
        found: dict[str, list[Row]] = {}
        for tool in self.tools.values():
            found.setdefault(tool["domain_id"] or "", []).append(tool)
        return found


class MadeTask(NamedTuple):
    complexity: str
    draft: Draft
    proof: Proof
    about: dict[str, Any]
    """Title and description of the domain or server, and who belongs to the rows that the task
    names: for the words."""

    user_goals: tuple[ServerGoal, ...] = ()
    """Of a task on a server, the definitions behind its goals."""


def own_tools(agent: Row, sources: TaskSources) -> list[Row]:
    return [sources.tools[tool_id] for tool_id in agent["tool_ids"]]


def other_domains(item_id: str, agent: Row, sources: TaskSources) -> Others | None:
    """A few domains of which the agent has no tool; None where there are none."""
    at_hand = {tool["domain_id"] for tool in own_tools(agent, sources)}
    ids = [i for i in sorted(sources.domains) if i not in at_hand]
    drawn = rng_of(item_id, "other_worlds").sample(ids, min(OTHER_DOMAINS_TRIED, len(ids)))

    def load() -> list[Domain]:
        domains = [sources.domains[i] for i in drawn]
        return [domain for domain in domains if domain.split == "train"]

    return load if drawn else None
