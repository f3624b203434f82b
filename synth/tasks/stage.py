"""The task stage: which tasks there are, and how one is made, proved and put into words.

Task i belongs to agent i // tasks_per_agent and to a persona drawn from its block of tasks, so
more tasks change none of those that exist.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from records.digest import digest
from records.seeds import rng_of, seed_of, share_of
from records.tables.schemas import Row
from records.tables.splits import Split, own_split, split_of
from synth.episode.tools.code_environments import is_code
from synth.episode.tools.simulator import ModelAnswers
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import version_of
from synth.tasks.code_issues import PROMPT as ISSUE_PROMPT
from synth.tasks.code_issues import write_issue
from synth.tasks.code_tasks import CODE_VERSION, CodeTasks
from synth.tasks.composing import DomainTasks
from synth.tasks.config import BLOCK, TaskConfig
from synth.tasks.goals.goals import Draft
from synth.tasks.on_server import on_server
from synth.tasks.played import make_played
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.sources import MadeTask, TaskSources, other_domains, own_tools
from synth.tasks.words.brief import PROMPT, write_brief
from synth.tasks.words.named_rows import named_rows
from synth.tasks.words.readings import PROMPT as READING_PROMPT
from tool_specs.domains.catalogue import is_users
from tool_specs.domains.domain import Domain
from tool_specs.growth.grown_seed import grown_seed_of

STAGE_VERSION = 17

FIRST_ROUND: dict[str, None] = dict.fromkeys(("parent_task_id", "operator", "round"))
"""Of a task that is derived from no other."""

SERVER_VERSION = 2
"""Raised when the same task on a real server would be made otherwise."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    item_id: str
    """Becomes the task's id."""

    agent: Row | None
    """None where the agent's own stage gave no row: the task is dropped for it."""

    persona: Row | None


class Dropped(NamedTuple):
    """An item that was made and found unfit, with a reason to count by."""

    reason: str


def num_agents(tasks: int, config: TaskConfig) -> int:
    """Agents that so many tasks need."""
    return -(-tasks // config.tasks_per_agent)


def num_personas(tasks: int, config: TaskConfig) -> int:
    """Personas that so many tasks need."""
    return -(-tasks // BLOCK) * config.personas_per_block


def persona_number(task: int, seed: int, config: TaskConfig) -> int:
    """Which persona a task is for, by its number in the plan."""
    draw = rng_of(str(seed), "persona_of_task", task).randrange(config.personas_per_block)
    return task // BLOCK * config.personas_per_block + draw


def plan_tasks(
    config: TaskConfig,
    agents: Sequence[Row | None],
    personas: Sequence[Row | None],
    *,
    seed: int,
    count: int,
    generator: RoleConfig,
    extensions: Extensions = NO_EXTENSIONS,
    further: Callable[[Row], Sequence[Any]] = lambda agent: (),
) -> list[TaskPlan]:
    """Tasks 0 to count - 1. Task i is the same whatever the count.

    `agents` and `personas` stand in the order of their plans, None where there is no row.
    `further`: what else decides the tasks of an agent, such as how its tools are played.
    """
    base = digest(
        "task",
        STAGE_VERSION,
        seed,
        config.identity(),
        generator.identity(),
        version_of(PROMPT),
        version_of(READING_PROMPT),
        *extensions.digests,
    )
    plans = []
    for i in range(count):
        agent = agents[i // config.tasks_per_agent]
        persona = personas[persona_number(i, seed, config)]
        parents = [
            row[key] if row else None for row, key in ((agent, "agent_id"), (persona, "persona_id"))
        ]
        own: list[Any] = []
        if agent and is_code(agent):
            own += [version_of(ISSUE_PROMPT), CODE_VERSION]
        own += further(agent) if agent else ()
        item_id = digest(base, i, parents, *own)
        plans.append(TaskPlan(item_id=item_id, agent=agent, persona=persona))
    return plans


async def make_task(
    plan: TaskPlan, llm: LLM, *, config: TaskConfig, sources: TaskSources, generator: RoleConfig
) -> Row | Dropped:
    """The row of one task, or why there is none.

    Raises ItemError when the generator's words stay incomplete, TransientError when a server of
    ours fails.
    """
    agent, persona = plan.agent, plan.persona
    if agent is None or persona is None:
        return Dropped("no_agent" if agent is None else "no_persona")
    try:
        if is_code(agent):
            return await _on_code(plan, agent, persona, llm, sources.code, config, generator)
        if agent["server"]:
            made = await on_server(plan.item_id, agent, persona, config, sources)
        elif not sources.domains[agent["domain_id"]].programs:
            made = await _played(plan.item_id, agent, config, sources, llm)
        else:
            made = in_domain(plan.item_id, agent, persona, config, sources)
        brief = await write_brief(
            made.draft,
            llm,
            item_id=plan.item_id,
            domain=made.about,
            persona=persona,
            descriptions=[tool["description"] for tool in own_tools(agent, sources)],
        )
    except UnprovedError as error:
        return Dropped(error.reason)
    users = _user_tools(agent, sources) if made.draft.user_steps else []
    ids = [tool["tool_id"] for tool in users]
    return task_row(plan, agent, persona, made, brief, config, generator, ids)


def in_domain(
    item_id: str, agent: Row, persona: Row, config: TaskConfig, sources: TaskSources
) -> MadeTask:
    domain = sources.domains[agent["domain_id"]]
    names = {t["name"] for t in own_tools(agent, sources) if t["domain_id"] == agent["domain_id"]}
    users = {t["name"] for t in _user_tools(agent, sources)}
    # a held-out tool is not even a goal where it is not at hand
    there = sources.of_domain.get(agent["domain_id"], [])
    lacking = {t["name"] for t in there if t["split"] != "heldout_tool"}
    grows = config.growth.grown_seed_of(item_id, "train") is not None
    split = _split(item_id, item_id, agent, persona, config, grows=grows)
    grown = config.growth.grown_seed_of(item_id, split)
    tasks = DomainTasks(
        domain,
        names,
        lacking=lacking - names - users,
        others=other_domains(item_id, agent, sources),
        own=users,
        extensions=sources.extensions,
        variants=config.variants,
        mix=config.goals,
        forms=config.forms,
        grown=grown,
        lengths=config.lengths,
    )

    def split_of_draft(draft: Draft) -> Split:
        return _split(_combination(draft, item_id), item_id, agent, persona, config, grows=grows)

    def is_of_its_split(draft: Draft) -> bool:
        """What grew for one split stays in it."""
        return grown is None or split_of_draft(draft) == split

    made = tasks.make(
        item_id,
        shares=config.shares,
        disclosure=persona["disclosure"],
        dual_control=config.dual_control,
        fits=is_of_its_split,
        split=split,
        split_of=split_of_draft,
    )
    return MadeTask(*made, about_words(domain, made[1]))


def about_words(domain: Domain, draft: Draft) -> dict[str, Any]:
    """What the generator is told of the domain for the words of the draft."""
    about = {"title": domain.title, "description": domain.description}
    records = named_rows(domain, draft)
    return about | ({"records": records} if records else {})


async def _played(
    item_id: str, agent: Row, config: TaskConfig, sources: TaskSources, llm: LLM
) -> MadeTask:
    """In an environment whose tools no program defines."""
    domain = sources.domains[agent["domain_id"]]
    own = [t for t in own_tools(agent, sources) if t["domain_id"] == agent["domain_id"]]
    made = await make_played(
        item_id,
        domain,
        sorted(own, key=lambda tool: tool["tool_id"]),
        ModelAnswers(llm, item=item_id, config=sources.simulate, step="reference"),
        shares=config.shares,
        extensions=sources.extensions,
    )
    return MadeTask(*made, {"title": domain.title, "description": domain.description})


async def _on_code(
    plan: TaskPlan,
    agent: Row,
    persona: Row,
    llm: LLM,
    code: CodeTasks,
    config: TaskConfig,
    generator: RoleConfig,
) -> Row:
    environment = code.environment_for(plan.item_id)
    task = await code.make(plan.item_id)
    brief = await write_issue(
        llm,
        item_id=plan.item_id,
        project=environment.project,
        persona=persona,
        failing=task.failing,
        secret=task.secret,
    )
    made = MadeTask(task.complexity, task.draft, task.proof, {})
    row = task_row(plan, agent, persona, made, brief, config, generator)
    # a bug that another task is about, too, must not be trained on here and scored on there
    own = own_split("task", task.bug_id, heldout_share=config.heldout_share)
    return row | {
        "token_budget": config.token_budget.on_code,
        "max_turns": config.max_turns.on_code,
        "prompt_version": version_of(ISSUE_PROMPT),
        "split": split_of(own, [agent["split"], persona["split"], environment.project.split]),
    }


def _combination(draft: Draft, item_id: str) -> str:
    """The tools that the plan takes, each as often as it takes it: what is held out is a
    combination of tools and never just other values. A task without calls stands for itself."""
    tools = sorted(step.tool for step in draft.plan)
    return digest("combination", tools) if tools else item_id


def _split(
    combination: str, item_id: str, agent: Row, persona: Row, config: TaskConfig, *, grows: bool
) -> Split:
    """`grows`: whether the task's state does. The rows of another are those of all splits, so there
    are no values to hold out."""
    own = own_split("task", combination, heldout_share=config.heldout_share)
    drawn = share_of(item_id, "heldout_values") < config.heldout_values_share
    if own == "train" and drawn and grows:
        own = "heldout_values"
    return split_of(own, [agent["split"], persona["split"]])


def _user_tools(agent: Row, sources: TaskSources) -> list[Row]:
    """Tools of the agent's domain that its users own, sorted by id; none that is held out."""
    own = (
        t
        for t in sources.of_domain.get(agent["domain_id"], ())
        if is_users(t) and t["split"] != "heldout_tool"
    )
    return sorted(own, key=lambda tool: tool["tool_id"])


def task_row(
    plan: TaskPlan,
    agent: Row,
    persona: Row,
    made: MadeTask,
    brief: dict[str, Any],
    config: TaskConfig,
    generator: RoleConfig,
    users: Sequence[str] = (),
) -> Row:
    draft, proof = made.draft, made.proof
    steps = len(draft.plan)
    # every criterion that code checks passes on the reference plan: no threshold undoes the proof
    rubric = proof.rubric.model_copy(update={"pass_threshold": config.pass_threshold})
    used = {step.tool for step in draft.plan if step.actor == "agent"}
    combination, grows = _combination(draft, plan.item_id), grown_seed_of(draft.initial_state)
    split = _split(combination, plan.item_id, agent, persona, config, grows=grows is not None)
    return {
        "task_id": plan.item_id,
        "agent_id": agent["agent_id"],
        "persona_id": persona["persona_id"],
        "domain_id": agent["domain_id"],
        "server": agent["server"],
        "complexity": made.complexity,
        "num_steps": steps,
        "variant": draft.variant,
        "user_brief": brief,
        "rubric": rubric.model_dump(mode="json"),
        "reference_plan": [step.model_dump(mode="json") for step in draft.plan],
        "initial_state": draft.initial_state,
        "solvable": draft.solvable,
        "token_budget": config.token_budget.of(steps=steps, shown_chars=proof.observed_chars),
        "max_turns": config.max_turns.of(steps=steps, goals=len(draft.goals)),
        "seed": seed_of(plan.item_id, "episode"),
        "model": generator.model_of(plan.item_id, "generator"),
        "prompt_version": version_of(PROMPT),
        "split": split,
        "user_tool_ids": list(users),
        **proof.measured,
        "num_hidden": sum(fact["when"] == "asked" for fact in brief["facts"]),
        "num_distractors": len(agent["tool_ids"]) - len(used),
        "proof": draft.proved or {"plan": "executed", "nodes": 0, "depth": steps},
        **FIRST_ROUND,
    }
