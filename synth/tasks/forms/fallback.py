"""A goal with a first choice that the world refuses and a second one that is then taken."""

from synth.tasks.forms.listings import is_person
from synth.tasks.forms.trying import told_of, tried
from synth.tasks.forms.twins import twin_that_grants
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Fact, Goal, Step
from synth.tasks.goals.knowledge import singles_out
from synth.tasks.goals.lookup import unique_steps
from synth.tasks.goals.waiting import NOT_DECLARED
from synth.tasks.proof.unsolvable import action_of
from tool_specs.domains.interpreter import policy_violations

TRIES = 12
"""Draws of a first choice for one tool."""


def add_fallback(builder: Builder) -> bool:
    """Append such a goal; False where the state and the tools at hand give none."""
    places = [
        (tool, name)
        for tool in builder.tools.values()
        if not tool.read_only and not tool.waits
        for name, param in tool.spec.params.items()
        if param.ref and not param.optional and _is_choice(builder, tool, param.ref)
    ]
    builder.rng.shuffle(places)
    return any(_added(builder, tool, param) for tool, param in places)


def _added(builder: Builder, tool: DomainTool, param: str) -> bool:
    for _ in range(TRIES):
        arguments = builder.drawn(tool)
        second = tried(builder, tool, arguments)
        if second is None:
            continue
        other = builder.drawn(tool).get(param)
        if other is None or other == arguments[param] or not _is_named(builder, tool, param, other):
            continue
        first = arguments | {param: other}
        if policy_violations(builder.environment, tool.name, first):
            continue  # an honest agent does not even try it
        refused = builder.environment.snapshot().call(tool.name, first)
        if refused.is_error and refused.error_code not in NOT_DECLARED:
            grounded = builder.ground(tool, {param: other})
            if not grounded.lookups:
                continue  # people have no name for it
            own = grounded.facts
            grounding = builder.ground(tool, arguments)
            theirs = [fact for fact in grounding.facts if fact.param == param]
            rest = [fact for fact in grounding.facts if fact.param != param]
            facts = [*_called("first choice", own), *_called("second choice", theirs), *rest]
            refused_call = Step(tool=tool.name, arguments=first)
            twin = twin_that_grants(
                builder, refused_call, second, param, tool.spec.params[param].ref or ""
            )
            if twin is None:
                continue
            a, b = (", ".join(str(fact.value) for fact in part) for part in (own, theirs))
            if a == b:
                continue
            what = f"{action_of(tool)[:1].upper()}{action_of(tool)[1:]}{told_of(rest)}"
            goal = Goal(
                tool=tool.name,
                description=tool.spec.description,
                wish=f"{what}: with the first choice ({a}) if that can be done, and only otherwise "
                f"with the second choice ({b}).",
                misreadings=(
                    f"{what}: with {b} if that can be done, and only otherwise with {a}.",
                    f"{what}: both with {a} and with {b}.",
                    f"{what}: with {a} if that can be done, and otherwise not at all.",
                ),
                form="fallback",
                twin=twin,
                arguments=arguments,
                labels=grounding.labels,
                known=tuple(facts),
                asks=builder.asked_of(tool, second.result, facts),
                steps=tuple(
                    unique_steps(
                        [
                            *(s for s in grounding.lookups if s not in builder.plan),
                            second.step,
                        ]
                    )
                ),
                writes=True,
            )
            builder.goals.append(goal)
            builder.keep(goal, second.result, second.after)
            return True
    return False


def _is_choice(builder: Builder, tool: DomainTool, entity: str) -> bool:
    """Whether people have a first and a second choice of it: of what is booked or ordered, by a
    call that makes a row. Whose account it is, or what is to be deleted, is no choice."""
    return any(write.op == "create" for write in tool.writes) and not is_person(builder, entity)


def _is_named(builder: Builder, tool: DomainTool, param: str, key: str) -> bool:
    """Whether people can tell the row from every other without its id."""
    entity = tool.spec.params[param].ref
    return bool(entity) and singles_out(builder.environment, builder.domain, str(entity), key)


def _called(choice: str, facts: list[Fact]) -> list[Fact]:
    return [fact.model_copy(update={"label": f"{choice}, {fact.label}"}) for fact in facts]
