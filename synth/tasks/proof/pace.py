"""Plans played at a pace: as fast as can be, and as slowly as the domain allows an agent to be.

The clock moves by what calls take, so an agent that looks at more than the reference does comes
later to everything. What a task expects must hold for both: a value that depends on the time taken
is expected between what it is at either pace, and where anything else depends on it, the task is
left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from synth.rubrics.built_in import EpisodeCall, PolicyViolation, net_changes
from synth.tasks.goals.goals import Draft
from synth.tasks.goals.knowledge import plain_values
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.language.jobs import seconds_in
from tool_specs.language.values import EvaluationError, is_date, is_datetime

Delays = Mapping[int, int]
"""Index of a step of the plan -> seconds that pass before it."""


class PlayedPlan(NamedTuple):
    calls: list[EpisodeCall]
    broken: list[PolicyViolation]
    failure: str | None
    """Why the plan came to an end before its end."""

    @property
    def changes(self) -> list[dict[str, Any]]:
        """What its calls came to."""
        return net_changes(change for call in self.calls for change in call.diff)


class DependsOnTimeError(Exception):
    """A fast and a slow agent come to different things."""


def played(domain: Domain, draft: Draft, delays: Delays) -> PlayedPlan:
    """The draft's plan, executed from its own state."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    plan = PlayedPlan([], [], None)
    turn = 2 if draft.goals[0].could_be else 1
    for index, step in enumerate(draft.plan):
        if delays.get(index):
            try:
                environment.pass_time(delays[index])
            except EvaluationError as error:
                return plan._replace(failure=str(error))
        plan.broken.extend(
            PolicyViolation(rule=rule, call_index=index)
            for rule in policy_violations(environment, step.tool, step.arguments)
        )
        result = environment.call(step.tool, step.arguments)
        if result.is_error:
            return plan._replace(failure=f"{step.tool}: {result.observation}")
        plan.calls.append(
            EpisodeCall(
                tool=step.tool,
                arguments=step.arguments,
                observation=result.observation,
                diff=tuple(result.all_changes),
                actor=step.actor,
                turn=turn,
            )
        )
    return plan


def slow_plays(domain: Domain, draft: Draft) -> list[PlayedPlan]:
    """The plan of the slowest agent allowed: with all the slack before one of its steps, for each
    of them, and with the slack spread over them. None where no time passes.

    Raises DependsOnTimeError where such an agent does not get to the end.
    """
    slack, steps = seconds_in(domain.file.slack) or 0, len(draft.plan)
    if not domain.has_time or not slack:
        return []
    ways: list[Delays] = [{index: slack} for index in range(steps)]
    if steps > 1:
        ways.append(dict.fromkeys(range(steps), slack // steps))
    plays = [played(domain, draft, delays) for delays in ways]
    for play in plays:
        if play.failure is not None:
            raise DependsOnTimeError(play.failure)
    return plays


def check_answers(draft: Draft, plays: Sequence[PlayedPlan]) -> None:
    """What the user wants to be told is the answer at every pace. Raises DependsOnTimeError."""
    for goal in draft.goals:
        wanted = [value for asked in goal.asks for value in asked.values]
        calls = [(call for call in play.calls if call.tool == goal.tool) for play in plays]
        for answers in calls:
            shown = [v for call in answers for v in plain_values(call.observation)]
            if missing := [value for value in wanted if value not in shown]:
                raise DependsOnTimeError(f"the answer {missing[0]!r} of {goal.tool}")


def at_any_pace(
    fast: Sequence[Mapping[str, Any]], slow: Sequence[Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """The net changes of the fast agent, whose values that depend on time are windows,
    `{"$from": ..., "$to": ...}`. Raises DependsOnTimeError where that is not all the difference."""
    for changes in slow:
        if list(map(_what, changes)) != list(map(_what, fast)):
            raise DependsOnTimeError("other rows or fields change")
    return [
        dict(change)
        | {"after": dict(_windows(change, [changes[place] for changes in slow])) or change["after"]}
        for place, change in enumerate(fast)
    ]


def _what(change: Mapping[str, Any]) -> tuple[Any, ...]:
    return change["op"], change["entity"], change["id"], tuple(change["after"] or ())


def _windows(
    change: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Any]]:
    for field, value in (change["after"] or {}).items():
        values = [value, *(other["after"][field] for other in others)]
        if all(other == value for other in values):
            yield field, value
        elif any(all(map(kind, values)) for kind in (is_datetime, is_date, _is_number)):
            yield field, {"$from": min(values), "$to": max(values)}
        else:
            raise DependsOnTimeError(f"{change['entity']}.{field}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
