"""Agents: a system prompt with a toolset, varied in capability, expertise, behaviour and form.

The plan draws everything but the words: which domain or server, which of its tools (of a large one
a set that hangs together: one's answers feed another), whether some tools of another domain stand
beside them as distractors, and in which form the prompt is. The generator then writes the prompt;
of the distractors it is told nothing, for they are no part of the assistant's work.
Agents with held-out tools are set apart: all others never see one, so that few rows are held out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.seeds import rng_of
from records.tables.schemas import Row
from records.tables.splits import split_of
from sandboxes.mcp.servers import ServerConfig
from synth.episode.tools.code_environments import CodeEnvironment, is_code
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import render, version_of
from synth.tasks.agents.forms import PromptForm, draw_form, with_working
from synth.tasks.agents.weights import LANGUAGES, PhraseWeights
from tool_specs.domains.catalogue import is_users
from tool_specs.toolsets.dependencies import Graph
from tool_specs.toolsets.toolsets import ToolsetSampler

STAGE_VERSION = 8
PROMPT = "gen_agent"

CAPABILITIES = (
    "handles several wishes in one conversation and keeps track of them",
    "finds the right record from whatever the user remembers of it",
    "explains figures and states in plain words",
    "works through steps that depend on each other",
    "notices what is missing in a request and asks for it",
    "is careful with changes that are hard to undo",
    "recovers calmly when a system refuses or fails",
    "gives exact references, amounts and dates",
)
EXPERTISE = (
    "new in the job, going by the book",
    "two years of daily routine",
    "a senior specialist of the field",
    "a generalist who has worked at many desks",
    "trained on the rules and strict about them",
    "formerly on the technical side, precise about data",
)
FIRST_ON_CODE = 2
"""Index of the first agent that works on code, unless the share asks for one earlier: a run of few
agents, a dry run among them, has one too."""

BEHAVIOURS = (
    "brief and factual",
    "warm and patient",
    "formal and courteous",
    "cheerful, with short sentences",
    "calm, one thing at a time",
    "sums up at the end what was done",
    "checks the facts before acting",
    "says at once when something is not possible",
    "plain words, no jargon",
    "direct, without small talk",
)


class AgentConfig(Config):
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"prompt_languages": LANGUAGES, "plan_share": 0.0, "together_share": 0.0}
    )

    server_share: float = Field(default=0.25, ge=0.0, le=1.0)
    """Share of agents that serve a real MCP server; the others serve a synthetic domain."""

    code_share: float = Field(default=0.04, ge=0.0, le=1.0)
    """Share of agents that work on code, taken off both."""

    max_tools: int = Field(default=16, ge=1, le=64)
    """Tools of its own domain or server that an agent has at most."""

    fewer_tools_share: float = Field(default=0.35, ge=0.0, le=1.0)
    """Share of agents that lack one or two tools of their domain."""

    max_distractors: int = Field(default=3, ge=0, le=20)
    """Tools of another domain that an agent has at most beside its own."""

    heldout_share: float = Field(default=0.15, ge=0.0, le=1.0)
    """Share of agents that keep the held-out tools of their domain."""

    prompt_languages: PhraseWeights = LANGUAGES
    """English name of the language of the system prompt -> weight."""

    plan_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of agents whose prompt asks for a short plan in words before calls."""

    together_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of agents whose prompt asks for calls that do not need each other to be made in one
    turn."""


@dataclass(frozen=True, slots=True)
class AgentSource:
    """A synthetic domain or an MCP server that agents are made for."""

    domain_id: str | None
    server: str | None
    title: str
    description: str
    policy: tuple[str, ...]
    split: str
    tools: tuple[Row, ...]
    """Rows of the table `tools`, sorted by id, dropped ones left out."""
    entities: Mapping[str, Any] | None = None
    """Of a domain: what its tools' references point at."""
    environments: str | None = None
    """Of the workspace: digest of the repositories and problems that its tasks are about."""
    goals: tuple[frozenset[str], ...] = ()
    """Of a server: names of the tools that each goal takes which was found on it."""

    @property
    def key(self) -> str:
        if self.environments is not None:
            return f"code:{self.environments}"
        return self.domain_id or f"server:{self.server}"


@dataclass(frozen=True, slots=True)
class AgentPlan:
    item_id: str
    """Becomes the agent's id."""

    source: AgentSource
    tools: tuple[Row, ...]
    capability: str
    expertise: str
    behaviour: str
    form: PromptForm

    @property
    def own_tools(self) -> list[Row]:
        """Those of its domain or server, without distractors."""
        own = {tool["tool_id"] for tool in self.source.tools}
        return [tool for tool in self.tools if tool["tool_id"] in own]


def sources_of(
    domains: Iterable[Row],
    tools: Iterable[Row],
    servers: Mapping[str, ServerConfig],
    code: Mapping[str, CodeEnvironment] | None = None,
    goals: Mapping[str, tuple[frozenset[str], ...]] = MappingProxyType({}),
) -> list[AgentSource]:
    """The committed catalogue by domain and server, sorted by key; servers that are not in
    `servers` cannot run here and are left out, and so is the workspace without `code`. `goals`:
    by server the tools of each goal that was found."""
    environments = digest(sorted(environment.definition for environment in (code or {}).values()))
    offered = (t for t in tools if not t["drop_reason"] and not is_users(t))
    usable = sorted(offered, key=lambda t: t["tool_id"])
    by_domain: dict[str, list[Row]] = {}
    by_server: dict[str, list[Row]] = {}
    for tool in usable:
        if tool["server"]:
            by_server.setdefault(tool["server"], []).append(tool)
        else:
            by_domain.setdefault(tool["domain_id"], []).append(tool)
    sources = [
        AgentSource(
            domain_id=domain["domain_id"],
            server=None,
            title=domain["title"],
            description=domain["description"],
            policy=tuple(rule["text"] for rule in domain["policy"] or ()),
            split=domain["split"],
            tools=tuple(by_domain[domain["domain_id"]]),
            entities=domain["entities"],
            environments=environments if is_code(domain) else None,
        )
        for domain in domains
        if domain["domain_id"] in by_domain and (code or not is_code(domain))
    ]
    sources += [
        AgentSource(
            domain_id=None,
            server=server,
            title=servers[server].title or server,
            description=servers[server].description,
            policy=(),
            split=servers[server].split,
            tools=tuple(own),
            goals=goals.get(server, ()),
        )
        for server, own in by_server.items()
        if server in servers
    ]
    return sorted(sources, key=lambda source: source.key)


def catalogue_digest(sources: Sequence[AgentSource]) -> str:
    """What toolset sampling depends on: part of every agent's id."""
    return digest(
        [
            [source.key, [t["tool_id"] for t in source.tools]]
            + ([[sorted(goal) for goal in source.goals]] if source.goals else [])
            for source in sources
        ]
    )


def plan_agents(
    config: AgentConfig,
    sources: Sequence[AgentSource],
    *,
    seed: int,
    count: int,
    generator: RoleConfig,
) -> list[AgentPlan]:
    """Agents 0 to count - 1. Agent i is the same whatever the count."""
    base = digest(
        "agent", STAGE_VERSION, seed, config.identity(), catalogue_digest(sources),
        generator.identity(), version_of(PROMPT),
    )  # fmt: skip
    domains = [s for s in sources if s.server is None and s.environments is None]
    code = [s for s in sources if s.environments is not None]
    servers = [s for s in sources if s.server is not None]
    return [
        _plan(digest(base, i), config, _source_of(i, seed, config, domains, servers, code), domains)
        for i in range(count if sources else 0)
    ]


def _source_of(
    i: int,
    seed: int,
    config: AgentConfig,
    domains: list[AgentSource],
    servers: list[AgentSource],
    code: list[AgentSource],
) -> AgentSource:
    """Code and servers evenly spread at their shares; within each kind, rounds in a seeded
    order."""
    share = config.code_share if domains or servers else 1.0
    begun = max(0.0, 1.0 - share * (FIRST_ON_CODE + 1)) + 1e-9
    if code and int(begun + (i + 1) * share) > int(begun + i * share):
        return code[0]
    share = config.server_share if domains and servers else float(not domains)
    servers_before, servers_after = int(i * share + 1e-9), int((i + 1) * share + 1e-9)
    is_server = servers_after > servers_before
    pool, position = (servers, servers_before) if is_server else (domains, i - servers_before)
    turn, place = divmod(position, len(pool))
    order = list(range(len(pool)))
    rng_of(str(seed), "server_order" if is_server else "domain_order", turn).shuffle(order)
    return pool[order[place]]


def _plan(
    item_id: str, config: AgentConfig, source: AgentSource, domains: list[AgentSource]
) -> AgentPlan:
    rng = rng_of(item_id, "agent")
    keeps_heldout = rng.random() < config.heldout_share
    own = [t for t in source.tools if keeps_heldout or t["split"] != "heldout_tool"]
    if source.environments is not None:  # its tools belong together, and no others to them
        return _planned(item_id, rng, config, source, list(source.tools))
    own = _coherent(item_id, source, own or list(source.tools), config.max_tools)
    if len(own) >= 6 and rng.random() < config.fewer_tools_share:
        for _ in range(rng.choice((1, 1, 2))):
            own = _with_one_fewer(own, source, rng)
    tools = own + _distractors(rng, config, own, [d for d in domains if d.key != source.key])
    return _planned(item_id, rng, config, source, tools)


def _planned(
    item_id: str, rng: Random, config: AgentConfig, source: AgentSource, tools: list[Row]
) -> AgentPlan:
    rng.shuffle(tools)
    own = {tool["tool_id"] for tool in source.tools}
    num_own = sum(tool["tool_id"] in own for tool in tools)
    working = rng_of(item_id, "working")  # draws of its own, so that a share changes nothing else
    shares = {"plan_share": config.plan_share, "together_share": config.together_share}
    return AgentPlan(
        item_id=item_id,
        source=source,
        tools=tuple(tools),
        capability=rng.choice(CAPABILITIES),
        expertise=rng.choice(EXPERTISE),
        behaviour=rng.choice(BEHAVIOURS),
        form=with_working(
            draw_form(rng, config.prompt_languages, num_tools=num_own), working, **shares
        ),
    )


def _coherent(item_id: str, source: AgentSource, tools: list[Row], size: int) -> list[Row]:
    """`size` of the tools that feed one another, as far as the source allows; all where there are
    no more than that."""
    if len(tools) <= size:
        return tools
    if source.goals:
        return _for_goals(source, tools, size, rng_of(item_id, "toolset"))
    graph = Graph(tools, [{"domain_id": source.domain_id, "entities": source.entities}])
    chosen = ToolsetSampler(graph).within(rng_of(item_id, "toolset"), graph.sources[0], size)
    ids = {graph.ids[tool] for tool in chosen}
    return [tool for tool in tools if tool["tool_id"] in ids]


def _for_goals(source: AgentSource, tools: list[Row], size: int, rng: Random) -> list[Row]:
    """`size` tools: those of as many goals as there is room for, in a drawn order, then others."""
    names = {tool["name"] for tool in tools}
    chosen: set[str] = set()
    for goal in rng.sample(source.goals, len(source.goals)):
        if goal <= names and len(chosen | goal) <= size:
            chosen |= goal
    others = sorted(names - chosen)
    chosen |= {*rng.sample(others, min(len(others), size - len(chosen)))}
    return [tool for tool in tools if tool["name"] in chosen]


def _with_one_fewer(tools: list[Row], source: AgentSource, rng: Random) -> list[Row]:
    """Without one tool; of those without which half of the goals that were found go on, if there
    are any."""
    names = {tool["name"] for tool in tools}
    granted = [goal for goal in source.goals if goal <= names]
    spared = [
        at
        for at, tool in enumerate(tools)
        if 2 * sum(tool["name"] in goal for goal in granted) <= len(granted)
    ]
    if not spared:
        return tools
    left_out = spared[rng.randrange(len(spared))]
    return tools[:left_out] + tools[left_out + 1 :]


def _distractors(
    rng: Random, config: AgentConfig, own: list[Row], others: list[AgentSource]
) -> list[Row]:
    """0 to `max_distractors` tools of one other domain, none held out, no name twice."""
    names = {tool["name"] for tool in own}
    wanted = rng.randint(0, config.max_distractors)
    open_domains = [d for d in others if d.split == "train"]
    if not open_domains or not wanted:
        return []
    other = rng.choice(open_domains)
    pool = [t for t in other.tools if t["split"] == "train" and t["name"] not in names]
    return rng.sample(pool, min(wanted, len(pool)))


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 80},
        "system_prompt": {"type": "string", "minLength": 40, "maxLength": 9000},
    },
    "required": ["name", "system_prompt"],
    "additionalProperties": False,
}


async def make_agent(plan: AgentPlan, llm: LLM, *, generator: RoleConfig) -> Row:
    """The row of one agent. Raises ItemError when the generator writes nothing usable."""
    source = plan.source
    prompt = render(
        PROMPT,
        domain={
            "title": source.title,
            "description": source.description,
            "policy": list(source.policy),
        },
        tools=[{"name": t["name"], "description": t["description"]} for t in plan.own_tools],
        wanted={
            "capability": plan.capability,
            "expertise": plan.expertise,
            "behaviour": plan.behaviour,
        },
        form=plan.form.columns(),
    )
    words = await llm.structured(
        "generator", prompt.messages, item=plan.item_id, step="agent", name="agent", schema=SCHEMA
    )
    return {
        "agent_id": plan.item_id,
        "name": words["name"].strip(),
        "domain_id": source.domain_id,
        "server": source.server,
        "tool_ids": [tool["tool_id"] for tool in plan.tools],
        "capability": plan.capability,
        "expertise": plan.expertise,
        "behaviour": plan.behaviour,
        "system_prompt": words["system_prompt"].strip(),
        "model": generator.model_of(plan.item_id, "generator"),
        "prompt_version": prompt.version,
        "split": split_of(source.split, [tool["split"] for tool in plan.tools]),
        "form": plan.form.columns(),
    }
