"""A task derived from another: the same state, seed and persona, made harder or easier by one
operator, and proved like every task.

The draft of a task is no row. It is made again from the task that was planned first, and from one
operator after another, and must come to the parent's plan and rubric as they are stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from records.digest import digest
from records.seeds import rng_of
from records.tables.schemas import Row
from records.tables.splits import Split
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import Kinds
from synth.rubrics.criteria import CommunicateCheck
from synth.rubrics.reward import rubric_of
from synth.tasks.config import TaskConfig
from synth.tasks.difficulty import DerivedTask, DifficultyConfig, Operator
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool, tools_of
from synth.tasks.goals.goals import Asked, Draft, Goal, Step
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.goals.rules_seen import followable
from synth.tasks.goals.waiting import rows_near
from synth.tasks.lengths import complexity_with
from synth.tasks.on_server import changed_on_server, on_server
from synth.tasks.proof.pace import played
from synth.tasks.proof.proving import UnprovedError, check_passes, prove
from synth.tasks.sources import MadeTask, TaskSources
from synth.tasks.stage import Dropped, TaskPlan, about_words, in_domain, task_row
from synth.tasks.telling import all_when_asked, at_once
from synth.tasks.words.brief import write_brief
from tool_specs.domains.catalogue import is_users
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment

MOST_GOALS_BEFORE = 6
"""A task of so many user goals is made no longer."""

LONGER_TRIES = 12
"""Tools that are tried for one more user goal."""

MOST_OTHER_DOMAINS = 8
"""Domains that are looked at for tools to put beside the agent's."""

TOOLS_ALONE: frozenset[Operator] = frozenset({"more_tools", "fewer_tools"})
"""Operators that change nothing but which tools lie beside: the words stay."""

ABOUT_GOALS: frozenset[Operator] = frozenset({"longer", "shorter"})


def can_have(operator: Operator, task: Row, agent: Row, tools: Mapping[str, Row]) -> bool:
    """Whether the operator can change the task, as far as its row tells. Tasks on code and on tools
    without programs have no operator: their proof is another one. What is said when in several
    conversations stays."""
    if any(t not in tools for t in agent["tool_ids"]):
        return False
    brief = task["user_brief"]
    if operator not in TOOLS_ALONE and brief.get("sessions"):
        return False
    match operator:
        case "more_tools":
            # a tool of another domain could grant what no tool at hand can
            return task["variant"] != "irrelevant_tool"
        case "fewer_tools":
            return not all(_is_own(tools[t], task) for t in agent["tool_ids"])
        case "less_said":
            told = [fact["goal"] for fact in brief["facts"] if fact["when"] == "opening"]
            return task["variant"] == "normal" and len(told) > len(set(told))
        case "more_said":
            return task["variant"] == "normal" and bool(task["num_hidden"])
        case "longer":
            return task["variant"] == "normal" and len(brief["wishes"]) < MOST_GOALS_BEFORE
        case "shorter":
            return task["variant"] == "normal" and task["complexity"] != "simple"


class Deriving:
    """Derives tasks of one run."""

    def __init__(
        self,
        tasks: Mapping[str, Row],
        agents: Mapping[str, Row],
        personas: Mapping[str, Row],
        *,
        config: TaskConfig,
        difficulty: DifficultyConfig,
        sources: TaskSources,
        generator: RoleConfig,
    ) -> None:
        self._tasks, self._agents, self._personas = tasks, agents, personas
        self._config, self._difficulty = config, difficulty
        self._sources, self._generator = sources, generator

    async def make(self, derivation: DerivedTask, llm: LLM) -> dict[str, list[Row]] | Dropped:
        """Rows of `tasks`, and of `agents` where the tools beside the agent's change; or why there
        is none. Raises ItemError when the generator's words stay incomplete."""
        parent = self._tasks[derivation.parent]
        operator, item_id = derivation.operator, derivation.item_id
        origin = {
            "parent_task_id": derivation.parent,
            "operator": operator,
            "round": derivation.round,
        }
        try:
            made = await self._again(parent)
            if operator in TOOLS_ALONE:
                agent = self._with_other_tools(derivation, parent)
                further = len(agent["tool_ids"]) - len(self._agent(parent)["tool_ids"])
                same = parent | {
                    "task_id": item_id,
                    "agent_id": agent["agent_id"],
                    "num_distractors": parent["num_distractors"] + further,
                }
                return {"tasks": [same | origin], "agents": [agent]}
            made = await self._changed(made, operator, item_id, parent)
            persona = self._personas[parent["persona_id"]]
            brief = await write_brief(
                made.draft,
                llm,
                item_id=item_id,
                domain=made.about,
                persona=persona,
                descriptions=[t["description"] for t in self._tools(parent)],
            )
        except UnprovedError as error:
            return Dropped(error.reason)
        agent = self._agent(parent)
        plan = TaskPlan(item_id, agent, persona)
        users = parent["user_tool_ids"] if made.draft.user_steps else []
        row = task_row(plan, agent, persona, made, brief, self._config, self._generator, users)
        if {row["split"], parent["split"]} == {"train", "heldout_values"}:
            row["split"] = parent["split"]  # whose values it has
        if row["split"] != parent["split"]:
            # its combination of tools is held out and the parent's is not, or the other way round
            return Dropped("of_another_split")
        return {"tasks": [row | origin | {"seed": parent["seed"]}]}

    async def _again(self, task: Row) -> MadeTask:
        """The task's draft and proof, made again. UnprovedError where they are not what is stored,
        as after a change of the program."""
        if task["operator"] is None:
            persona, agent = self._personas[task["persona_id"]], self._agent(task)
            given = (task["task_id"], agent, persona, self._config, self._sources)
            made = await on_server(*given) if task["server"] else in_domain(*given)
        else:
            parent = self._tasks[task["parent_task_id"]]
            made = await self._changed(
                await self._again(parent), task["operator"], task["task_id"], parent
            )
        plan = [step.model_dump(mode="json") for step in made.draft.plan]
        criteria = made.proof.rubric.model_dump(mode="json")["criteria"]
        if plan != task["reference_plan"] or criteria != task["rubric"]["criteria"]:
            raise UnprovedError("parent_not_reproduced")
        return made

    async def _changed(
        self, made: MadeTask, operator: Operator, item_id: str, parent: Row
    ) -> MadeTask:
        """What the operator makes of a draft, with its proof."""
        if operator in TOOLS_ALONE:
            return made
        if parent["server"]:
            agent = self._agent(parent)
            return await changed_on_server(operator, made, agent, item_id, self._sources)
        domain = self._sources.domains[parent["domain_id"]]
        own = [t for t in self._tools(parent) if t["domain_id"] == parent["domain_id"]]
        tools = {name: tools_of(domain)[name] for name in sorted(t["name"] for t in own)}
        users = [self._sources.tools[i]["name"] for i in parent["user_tool_ids"]]
        draft = changed_draft(operator, made.draft, domain, tools, item_id, parent["split"])
        proof = prove(
            domain,
            draft,
            tools,
            self._sources.extensions,
            own=[tools_of(domain)[name] for name in users],
        )
        changes_goals = operator in ABOUT_GOALS
        complexity = complexity_with(len(draft.goals)) if changes_goals else made.complexity
        return made._replace(
            complexity=complexity, draft=draft, proof=proof, about=about_words(domain, draft)
        )

    def _with_other_tools(self, derivation: DerivedTask, parent: Row) -> Row:
        """The parent's agent with the same prompt and other tools beside its own."""
        agent = self._agent(parent)
        rng = rng_of(derivation.item_id, "tools")
        if derivation.operator == "fewer_tools":
            own = [t["tool_id"] for t in self._tools(parent) if _is_own(t, parent)]
        else:
            wanted = self._difficulty.added_tools
            own = [*agent["tool_ids"], *self._tools_beside(parent, wanted, rng)]
            rng.shuffle(own)
        agent_id = digest("agent of a derived task", derivation.item_id)
        return agent | {"agent_id": agent_id, "tool_ids": own}

    def _tools_beside(self, parent: Row, wanted: int, rng: Random) -> list[str]:
        """Ids of tools of other domains than the task's, none held out, no name twice."""
        names = {tool["name"] for tool in self._tools(parent)}
        others = [i for i in sorted(self._sources.domains) if i != parent["domain_id"]]
        found: list[str] = []
        for key in rng.sample(others, min(MOST_OTHER_DOMAINS, len(others))):
            domain = self._sources.domains[key]
            if domain.split != "train" or not domain.programs:
                continue
            pool = [t for t in self._sources.of_domain.get(key, ()) if _may_lie_beside(t, names)]
            drawn = rng.sample(pool, min(wanted - len(found), len(pool)))
            names |= {tool["name"] for tool in drawn}
            found += [tool["tool_id"] for tool in drawn]
        if not found:
            raise UnprovedError("no_other_tools")
        return found

    def _agent(self, task: Row) -> Row:
        return self._agents[task["agent_id"]]

    def _tools(self, task: Row) -> list[Row]:
        return [self._sources.tools[i] for i in self._agent(task)["tool_ids"]]


def _is_own(tool: Row, task: Row) -> bool:
    return (tool["domain_id"], tool["server"]) == (task["domain_id"], task["server"])


def _may_lie_beside(tool: Row, names: set[str]) -> bool:
    return (
        tool["split"] == "train"
        and not tool["drop_reason"]
        and not is_users(tool)
        and tool["name"] not in names
    )


def changed_draft(
    operator: Operator,
    draft: Draft,
    domain: Domain,
    tools: Mapping[str, DomainTool],
    item_id: str,
    split: Split | None = None,
) -> Draft:
    """What an operator on goals, or on what is said when, makes of a draft; new values belong to
    `split`. Raises UnprovedError where it makes nothing of it."""
    ways: dict[str, Callable[[], Draft]] = {
        "less_said": lambda: all_when_asked(draft),
        "more_said": lambda: at_once(draft),
        "longer": lambda: longer(draft, domain, followable(domain, tools), item_id, split),
        "shorter": lambda: shorter(draft),
    }
    changed = ways[operator]()
    if changed.goals == draft.goals:
        raise UnprovedError("nothing_changed")
    return changed


def shorter(draft: Draft) -> Draft:
    """The last goal is left out."""
    if len(draft.goals) < 2:
        raise UnprovedError("too_short")
    return _with_goals(draft, draft.goals[:-1])


def longer(
    draft: Draft,
    domain: Domain,
    tools: Mapping[str, DomainTool],
    item_id: str,
    split: Split | None = None,
) -> Draft:
    """One more goal, about a row that the earlier ones are about, or that hangs together with one
    of these."""
    if len(draft.goals) >= MOST_GOALS_BEFORE:
        raise UnprovedError("long_enough")
    used = {step.tool for step in draft.plan} | {goal.tool for goal in draft.goals}
    left = [tool for name, tool in tools.items() if name not in used and not tool.waits]
    rng = rng_of(item_id, "longer")
    rng.shuffle(left)
    left.sort(key=lambda tool: tool.read_only)  # stable: rather one that changes something
    for tool in left[:LONGER_TRIES]:
        builder = _after(draft, domain, tools, rng, split)
        near = {key for _, key in rows_near(builder.environment, domain, set(builder.recent))}
        before = list(builder.diffs)
        if not builder.add(tool) or not near & _named(builder.goals[-1]):
            continue
        if not _undoes(builder.diffs[len(before) :], before):
            return _with_goals(draft, (*draft.goals, builder.goals[-1]))
    raise UnprovedError("no_goal_found")


def _undoes(changes: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> bool:
    """Whether a row changes again that an earlier goal made or changed: nobody corrects an order
    so that it can be cancelled."""
    changed = {(change["entity"], change["id"]) for change in before}
    return any((change["entity"], change["id"]) in changed for change in changes)


def _named(goal: Goal) -> set[str]:
    """The texts among the arguments of a goal's call, ids of rows among them."""
    return {value for value in plain_values(goal.arguments) if isinstance(value, str)}


def _after(
    draft: Draft,
    domain: Domain,
    tools: Mapping[str, DomainTool],
    rng: Random,
    split: Split | None,
) -> Builder:
    """A builder that has built the draft's goals."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    builder = Builder(domain, environment, tools, rng=rng, split=split)
    for goal in draft.goals:
        if goal.tool in tools:
            builder.ground(tools[goal.tool], goal.arguments)  # these rows are what it is about
        builder.goals.append(goal)
        for step in goal.steps:
            after = builder.environment.snapshot()
            builder.keep(goal, after.call(step.tool, step.arguments), after)
    return builder


def _with_goals(draft: Draft, goals: tuple[Goal, ...]) -> Draft:
    """The draft with other goals: what was shown of them stays, the plan is built."""
    kept = draft.model_copy(update={"goals": goals})
    proved: dict[str, Any] = {"plan": "built", "depth": len(kept.plan)}
    if any(goal.form != "plain" for goal in goals):
        proved["forms"] = [goal.form for goal in goals]
    if twins := [goal.twin for goal in goals if goal.twin is not None]:
        proved["twins"] = twins
    if any(goal.awaited for goal in goals):
        proved["wait"] = draft.proved["wait"]
    return kept.model_copy(update={"proved": proved})


def reference_fault(task: Row, domain: Domain, kinds: Kinds) -> str | None:
    """Why the stored reference plan, executed again, does not pass the stored rubric; None where it
    does. The closing word of the reference tells every value that the rubric wants told."""
    rubric = rubric_of(task)
    steps = tuple(Step.model_validate(step) for step in task["reference_plan"])
    goal = Goal(
        tool="",
        description="",
        arguments={},
        labels={},
        known=(),
        # each by itself: what stands among others says not which of them it is
        asks=tuple(Asked(label="the answer", values=(v,)) for v in _told(rubric.criteria)),
        steps=steps,
        writes=False,
        possible=task["solvable"],
        could_be=("unclear",) if task["variant"] == "unclear_tool" else (),
    )
    draft = Draft(variant=task["variant"], goals=(goal,), initial_state=task["initial_state"])
    calls, broken, failure = played(domain, draft, {})
    if failure is not None:
        return f"plan_fails: {failure}"
    try:
        check_passes(rubric, draft, calls, kinds, broken=broken)
    except UnprovedError as error:
        return str(error)
    return None


def _told(criteria: Sequence[Any]) -> Iterator[Any]:
    for criterion in criteria:
        if criterion.kind == "communicate":
            yield from CommunicateCheck.model_validate(criterion.check).values
