"""The wait of a plan: as short as can be, and no shorter.

With its wait the plan gets to its end; without it, and with a minute less, the call that has to be
waited for fails with the error that its tool declares. So what was waited for is what makes the
call possible, and not the time that the look-ups before it take.
"""

from collections.abc import Sequence
from typing import NamedTuple

from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Awaited, Draft, Goal, Step
from synth.tasks.goals.waiting import waiting_tools
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment


class _Stop(NamedTuple):
    """The call of a plan that fails, and how."""

    at: int
    """Its index."""
    code: str | None


def shortest_wait(domain: Domain, draft: Draft, waits: DomainTool) -> Draft:
    """The draft with its wait as short as can be, and what was shown of it.

    `waits`: the tool of the wait. Raises UnprovedError("wait_not_proved") where it is not a job,
    or another one, that makes the call possible.
    """
    goal = next(goal for goal in draft.goals if goal.awaited is not None)
    awaited = goal.awaited
    assert awaited is not None
    at = draft.plan.index(awaited.wait)
    [waiting] = waiting_tools([waits])
    for moment in waiting.moments(_state_before(domain, draft, at)):
        done = _with_wait_of(draft, goal, awaited, moment.minutes)
        if _stop(domain, done, done.plan) is None:
            break
    else:
        raise UnprovedError("wait_not_proved", "no wait is long enough")
    if moment.job != awaited.job:
        raise UnprovedError("wait_not_proved", f"{moment.job} is earlier than {awaited.job}")
    shorter = _with_wait_of(draft, goal, awaited, moment.minutes - 1).plan
    for steps, call in ((shorter, at + 1), ((*shorter[:at], *shorter[at + 1 :]), at)):
        stop = _stop(domain, draft, steps)
        if stop != (call, awaited.error):
            how = "gets to the end" if stop is None else f"fails with {stop.code} at {stop.at}"
            raise UnprovedError("wait_not_proved", f"with a shorter wait the plan {how}")
    wait = {
        "tool": awaited.wait.tool,
        "minutes": moment.minutes,
        "job": awaited.job,
        "fails_before": {"tool": goal.tool, "error": awaited.error, "minutes": moment.minutes - 1},
    }
    return done.model_copy(update={"proved": done.proved | {"wait": wait}})


def _with_wait_of(draft: Draft, goal: Goal, awaited: Awaited, minutes: int) -> Draft:
    wait = Step(
        tool=awaited.wait.tool, arguments=awaited.wait.arguments | {awaited.minutes: minutes}
    )
    changed = goal.model_copy(
        update={
            "awaited": awaited.model_copy(update={"wait": wait}),
            "steps": tuple(wait if step == awaited.wait else step for step in goal.steps),
        }
    )
    goals = tuple(changed if other is goal else other for other in draft.goals)
    return draft.model_copy(update={"goals": goals})


def _state_before(domain: Domain, draft: Draft, at: int) -> DomainEnvironment:
    environment = DomainEnvironment.of(domain, draft.initial_state)
    for step in draft.plan[:at]:
        environment.call(step.tool, step.arguments)
    return environment


def _stop(domain: Domain, draft: Draft, steps: Sequence[Step]) -> _Stop | None:
    """Where the steps come to an end before their end, from the draft's own state."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    for index, step in enumerate(steps):
        result = environment.call(step.tool, step.arguments)
        if result.is_error:
            return _Stop(index, result.error_code)
    return None
