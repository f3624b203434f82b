"""An order that only the user's words ask for: the tools would do both things in either."""

from typing import Any

from synth.rubrics.built_in import net_changes
from synth.rubrics.criteria import StateCheck
from synth.rubrics.state import check_state
from synth.tasks.goals.goals import Draft, Goal
from synth.tasks.goals.rubrics import expected_changes
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment


def in_order(domain: Domain, draft: Draft) -> Draft:
    """The draft with its second user goal to be granted after the first, where they can be granted
    in either order, to the same effect and with the same answers; else the draft as it is."""
    if len(draft.goals) < 2:
        return draft
    first, second, *rest = draft.goals
    tools = [goal.tool for goal in draft.goals]
    once = tools.count(first.tool) == tools.count(second.tool) == 1
    if not (once and first.writes and second.writes and _either_way(domain, draft, first, second)):
        return draft
    goals = (first, second.model_copy(update={"after": True}), *rest)
    return draft.model_copy(update={"goals": goals})


def _either_way(domain: Domain, draft: Draft, first: Goal, second: Goal) -> bool:
    right = _played(domain, draft, (first, second))
    swapped = _played(domain, draft, (second, first))
    if right is None or swapped is None:
        return False
    changes, made = right[0], {c["id"] for c in right[0] if c["op"] == "create"}
    expected = StateCheck(changes=expected_changes(changes, frozenset(made)))
    if not check_state(expected, swapped[0]).passed:
        return False
    asks = [(goal, place) for place, goal in enumerate((first, second)) if goal.asks]
    return all(right[1][place] == swapped[1][1 - place] for _, place in asks)


def _played(
    domain: Domain, draft: Draft, goals: tuple[Goal, Goal]
) -> tuple[list[dict[str, Any]], list[Any]] | None:
    """(net changes, answers) of the two calls; None where one fails."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    results = [environment.call(goal.tool, goal.arguments) for goal in goals]
    if any(result.is_error for result in results):
        return None
    diffs = [change for result in results for change in result.diff]
    return net_changes(diffs), [result.observation for result in results]
