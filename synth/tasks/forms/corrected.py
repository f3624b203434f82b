"""A goal that sets anew, moves or takes back what an earlier one has done: the user has had second
thoughts. Money that is put in twice is no change of mind, so what is set anew must come to the same
as if it had been asked for from the start.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from synth.tasks.goals.arguments import with_fitting_days
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Goal, Step
from synth.tasks.goals.knowledge import words_of
from synth.tasks.goals.lookup import unique_steps
from synth.tasks.proof.unsolvable import action_of
from tool_specs.domains.interpreter import CallResult, DomainEnvironment, policy_violations

TRIES = 8
"""Draws of another value, or of a call that goes back on an earlier one."""

Place = tuple[str, str, str]
"""(entity, key, field); of a row made or gone, its operation stands for the field."""


def add_corrected(builder: Builder) -> bool:
    """Append such a goal; False where no earlier goal did what can be done otherwise."""
    plain = [goal for goal in builder.goals if goal.writes and goal.form == "plain"]
    for before in builder.rng.sample(plain, len(plain)):
        tool = builder.tools.get(before.tool)
        if tool is None or before.after or before.awaited is not None:
            continue
        if any(_set_anew(builder, tool, before, name) for name in _settable(tool, before)):
            return True
        if any(_gone_back_on(builder, tool, before, *way) for way in _ways_back(builder, before)):
            return True
    return False


def _settable(tool: DomainTool, goal: Goal) -> list[str]:
    return sorted(name for name in goal.arguments if not tool.spec.params[name].ref)


def _places(diff: Iterable[Mapping[str, Any]]) -> set[Place]:
    return {
        (change["entity"], change["id"], field)
        for change in diff
        for field in (change["after"] or {} if change["op"] == "update" else (change["op"],))
    }


def _set_anew(builder: Builder, tool: DomainTool, before: Goal, name: str) -> bool:
    """Append the earlier call once more, with another value for one argument."""
    old = before.arguments[name]
    for _ in range(TRIES):
        new = builder.drawn(tool).get(name)
        if new is None or new == old:
            continue
        arguments = before.arguments | {name: new}
        if with_fitting_days(tool.spec.params, arguments) != arguments:
            continue  # the other argument would have to change, too
        step = Step(tool=tool.name, arguments=arguments)
        made = _called(builder, step)
        if made is None or not _replaces(builder, before, step, made[1]):
            continue
        facts = builder.ground(tool, step.arguments).facts
        fact = next((fact for fact in facts if fact.param == name), None)
        if fact is None:
            return False
        what, label = action_of(tool), fact.label
        goal = Goal(
            tool=tool.name,
            description=tool.spec.description,
            wish=f"Second thoughts about what was asked before ({what}): the {label} is to be "
            f"{new} after all, in place of {old}; all else as it was asked.",
            misreadings=(
                f"What was asked before ({what}) is wanted a second time, for something else, with "
                f"the {label} {new}.",
                f"What was asked before ({what}) is to be undone, and nothing put in its place.",
            ),
            form="corrected",
            arguments=step.arguments,
            labels=before.labels,
            known=(fact.model_copy(update={"label": f"{label}, on second thoughts"}),),
            asks=builder.asked_of(tool, made[0], [fact]),
            steps=(step,),
            writes=True,
        )
        builder.goals.append(goal)
        builder.keep(goal, *made)
        return True
    return False


def _called(builder: Builder, step: Step) -> tuple[CallResult, DomainEnvironment] | None:
    """What the call comes to, if the policy and the world let it."""
    if policy_violations(builder.environment, step.tool, step.arguments):
        return None
    after = builder.environment.snapshot()
    result = after.call(step.tool, step.arguments)
    return None if result.is_error or not result.diff else (result, after)


def _replaces(builder: Builder, before: Goal, step: Step, after: DomainEnvironment) -> bool:
    """Whether the state is as if the earlier call had never been made."""
    never = builder.start.snapshot()
    for made in [*(s for s in builder.plan if s != before.steps[-1]), step]:
        if never.call(made.tool, made.arguments).is_error:
            return False
    return never.state_hash == after.state_hash


def _effect(builder: Builder, before: Goal) -> list[dict[str, Any]]:
    """What the call of the earlier goal changed."""
    environment = builder.start.snapshot()
    for step in builder.plan:
        result = environment.call(step.tool, step.arguments)
        if step == before.steps[-1]:
            return list(result.diff)
    return []


def _ways_back(builder: Builder, before: Goal) -> Iterator[tuple[DomainTool, Step, str]]:
    """(tool, call, entity) of other tools on a row that the earlier call made or changed, which
    change nothing but what that call has set."""
    effect = _effect(builder, before)
    rows = {(change["entity"], change["id"]) for change in effect if change["op"] != "delete"}
    created = {(change["entity"], change["id"]) for change in effect if change["op"] == "create"}
    places = _places(effect)
    used = {goal.tool for goal in builder.goals}
    others = [t for t in builder.tools.values() if t.writes and not t.waits and t.name not in used]
    for tool in builder.rng.sample(others, len(others)):
        for name, param in tool.spec.params.items():
            for key in sorted(key for entity, key in rows if entity == param.ref):
                for _ in range(TRIES):
                    step = Step(tool=tool.name, arguments=builder.drawn(tool) | {name: key})
                    made = _called(builder, step)
                    if made is not None and _is_second_thought(made[0].diff, places, created):
                        yield tool, step, str(param.ref)


def _is_second_thought(
    diff: Iterable[Mapping[str, Any]], places: set[Place], created: set[tuple[str, str]]
) -> bool:
    """Whether nothing changes but what the earlier call has set, and more of it than figures: these
    may run on, as a balance does, without anybody thinking again."""
    within = all(place in places or place[:2] in created for place in _places(diff))
    values = [v for c in diff if c["op"] == "update" for v in (c["after"] or {}).values()]
    return within and any(isinstance(value, str | bool) for value in values)


def _gone_back_on(
    builder: Builder, earlier: DomainTool, before: Goal, tool: DomainTool, step: Step, entity: str
) -> bool:
    """Append a call of another tool that changes what the earlier call has set."""
    made = _called(builder, step)
    if made is None:
        return False
    grounding = builder.ground(tool, step.arguments)
    known = [fact.value for fact in before.known]
    told = [fact for fact in grounding.facts if fact.value not in known]
    old, what = action_of(earlier), action_of(tool)
    said = ", ".join(f"{fact.label} {fact.value}" for fact in told)
    what = f"{what} ({said})" if said else what
    same = words_of(entity)
    goal = Goal(
        tool=tool.name,
        description=tool.spec.description,
        wish=f"Second thoughts about what was asked before ({old}): for that same {same}, and "
        f"after it was done, this is wanted: {what}.",
        misreadings=(
            f"What was asked before ({old}) is to stay as it is; for another {same}, this is "
            f"wanted: {what}.",
            f"What was asked before ({old}) is not to be done at all, nor anything else for that "
            f"{same}.",
        ),
        form="corrected",
        arguments=step.arguments,
        labels=grounding.labels,
        known=tuple(grounding.facts),
        asks=builder.asked_of(tool, made[0], grounding.facts),
        steps=tuple(unique_steps([*(s for s in grounding.lookups if s not in builder.plan), step])),
        writes=True,
    )
    builder.goals.append(goal)
    builder.keep(goal, *made)
    return True
