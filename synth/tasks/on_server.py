"""Tasks on real MCP servers: drafted, proved on a fresh one, and changed by operators."""

from random import Random
from typing import Any

from records.seeds import rng_of, seed_of
from records.tables.schemas import Row
from sandboxes.mcp.servers import ServerGoal, slots_in
from synth.episode.tools.cassette import NotRecordedError
from synth.tasks.config import TaskConfig
from synth.tasks.difficulty import Operator
from synth.tasks.goals.goals import Draft
from synth.tasks.goals.variants import ServerVariantShares
from synth.tasks.lengths import complexity_of, complexity_with
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.servers.drafting import ServerDraft, draft_for_server, goal_of
from synth.tasks.servers.proving import prove_on_server
from synth.tasks.sources import MadeTask, TaskSources, other_domains, own_tools
from synth.tasks.telling import all_when_asked, at_once

SERVER_ATTEMPTS = 6
"""Choices of user goals tried for one task on a real server before it is dropped."""

VARIANT_ATTEMPTS = 4
"""After so many of them a task whose variant could not be proved becomes a normal one."""

NO_VARIANTS = ServerVariantShares(missing_parameter=0.0, irrelevant_tool=0.0)


async def on_server(
    item_id: str, agent: Row, persona: Row, config: TaskConfig, sources: TaskSources
) -> MadeTask:
    server = sources.servers.get(agent["server"])
    if server is None:
        raise UnprovedError("server_unavailable", agent["server"])
    tools = {t["name"]: t for t in own_tools(agent, sources) if t["server"] == agent["server"]}
    about = {"title": server.title or server.name, "description": server.description}
    failure = UnprovedError("no_goal_found")
    complexity, count = complexity_of(config.shares, rng_of(item_id, "task"))
    for attempt in range(SERVER_ATTEMPTS):
        made = draft_for_server(
            server,
            tools,
            item_id,
            count=count,
            disclosure=persona["disclosure"],
            variants=config.server_variants if attempt < VARIANT_ATTEMPTS else NO_VARIANTS,
            together=config.forms.together,
            attempt=attempt,
            others=other_domains(item_id, agent, sources),
        )
        seed = seed_of(item_id, "server", attempt)
        begins = {**made.draft.initial_state, "seed": seed}
        async with sources.open_server(server, begins) as running:
            try:
                proved = await prove_on_server(made, running, sources.extensions)
                return MadeTask(complexity, *proved, about, made.user_goals)
            except UnprovedError as error:
                failure = error
            except NotRecordedError as error:
                # another choice would be another task under the same id
                raise UnprovedError("not_recorded", str(error)) from error
    raise failure


async def changed_on_server(
    operator: Operator, made: MadeTask, agent: Row, item_id: str, sources: TaskSources
) -> MadeTask:
    """What an operator on goals, or on what is said when, makes of a task on a server, proved on a
    fresh one. UnprovedError where it makes nothing of it."""
    server = sources.servers.get(agent["server"])
    if server is None:
        raise UnprovedError("server_unavailable", agent["server"])
    tools = {t["name"]: t for t in own_tools(agent, sources) if t["server"] == agent["server"]}
    draft, user_goals = made.draft, made.user_goals
    match operator:
        case "less_said":
            draft = all_when_asked(draft)
        case "more_said":
            draft = at_once(draft)
        case "shorter":
            if len(user_goals) < 2:
                raise UnprovedError("too_short")
            user_goals = user_goals[:-1]
            draft = _with_goals(draft, draft.goals[:-1])
        case _:
            further = _further_goal(server.goals, user_goals, tools, rng_of(item_id, "longer"))
            user_goals = (*user_goals, further)
            draft = _with_goals(draft, (*draft.goals, goal_of(further, {}, tools)))
    if draft.goals == made.draft.goals:
        raise UnprovedError("nothing_changed")
    begins = {**draft.initial_state, "seed": seed_of(item_id, "server")}
    async with sources.open_server(server, begins) as running:
        proved = await prove_on_server(ServerDraft(draft, user_goals), running, sources.extensions)
    changed = len(user_goals) != len(made.user_goals)
    complexity = complexity_with(len(user_goals)) if changed else made.complexity
    return MadeTask(complexity, *proved, made.about, user_goals)


def _with_goals(draft: Draft, goals: tuple[Any, ...]) -> Draft:
    """The draft with other goals, and nothing shown of them yet."""
    most = min(draft.opening_goals, len(goals))
    return draft.model_copy(update={"goals": goals, "opening_goals": most, "proved": {}})


def _further_goal(
    goals: tuple[ServerGoal, ...],
    used: tuple[ServerGoal, ...],
    tools: dict[str, Row],
    rng: Random,
) -> ServerGoal:
    """A goal that goes together with those that are there, and hangs on no other."""
    there = {goal.id for goal in used}
    fit = [
        goal
        for goal in goals
        if goal.id not in there
        and not there & {*goal.conflicts}
        and not any(goal.id in other.conflicts for other in used)
        and {*goal.requires} <= there
        and all(call.tool in tools for call in goal.calls)
        and not slots_in([goal.wish, *(call.arguments for call in goal.calls)])
    ]
    if not fit:
        raise UnprovedError("no_goal_found")
    return rng.choice(fit)
