"""Takes out of a built plan what it does as well without.

A plan that is too long for the search for the shortest one may look up a row that an earlier answer
has singled out already. Each look-up is left out in turn; it stays out where the rest still makes
every call succeed, and every row that is named is told or singled out before. What is left is
proved by execution as every plan is. It need not be the shortest.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from synth.rubrics.built_in import net_changes
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.goals import Draft, Step
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.goals.lookup import LookupAnswer, Needs, RowKey, Views
from synth.tasks.goals.parts import parts_of
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment


class NamedRow(NamedTuple):
    """A row that a call names without anybody having told it or an answer having singled it out."""

    tool: str
    row: RowKey


class _Played(NamedTuple):
    changes: list[dict[str, Any]]
    unknown: frozenset[NamedRow]


def shortened(domain: Domain, draft: Draft, views: Views) -> Draft:
    """The draft without look-ups that its plan does not need; `views` may hold what was looked up
    already. Raises UnprovedError("call_without_effect") where a goal's call comes to nothing."""
    whole = _play(domain, draft, draft.plan, views)
    if whole is None:
        raise UnprovedError("plan_fails", "as it was built")
    built = len(draft.plan)
    for goal, step in reversed(_lookups(domain, draft)):
        shorter = _without(draft, goal, step)
        played = _play(domain, shorter, shorter.plan, views)
        # what only the form of a goal tells, such as which row is the cheapest, stays as it was
        if played is not None and played.unknown <= whole.unknown:
            draft = shorter
    _need_every_call(domain, draft, views)
    how = {"depth": len(draft.plan), "left_out": built - len(draft.plan)}
    return draft.model_copy(update={"proved": draft.proved | how})


def unknown_rows(domain: Domain, draft: Draft, plan: Sequence[Step]) -> frozenset[NamedRow] | None:
    """What calls of the plan name that nobody can know when the call is made; None where a call
    fails."""
    played = _play(domain, draft, plan, Views(domain, tools_of(domain).values()))
    return None if played is None else played.unknown


def _lookups(domain: Domain, draft: Draft) -> list[tuple[int, int]]:
    """(goal, step) of the agent's reads before the call of a plain goal; what a goal with structure
    hangs on is none of them."""
    tools = tools_of(domain)
    return [
        (g, s)
        for g, goal in enumerate(draft.goals)
        if goal.form == "plain"
        for s, step in enumerate(goal.steps[:-1] if goal.possible else goal.steps)
        if step.actor == "agent" and tools[step.tool].read_only and not tools[step.tool].waits
    ]


def _without(draft: Draft, number: int, place: int) -> Draft:
    goals = list(draft.goals)
    steps = goals[number].steps
    left = (*steps[:place], *steps[place + 1 :])
    goals[number] = goals[number].model_copy(update={"steps": left})
    return draft.model_copy(update={"goals": tuple(goals)})


def _need_every_call(domain: Domain, draft: Draft, views: Views) -> None:
    """A call that changes something must leave its mark, unless the user has second thoughts about
    it later on."""
    whole = _play(domain, draft, draft.plan, views)
    assert whole is not None
    again = {goal.tool for goal in draft.goals if goal.form == "corrected"}
    tools = tools_of(domain)
    for at, step in enumerate(draft.plan):
        if tools[step.tool].read_only or step.tool in again:
            continue
        rest = _calls(domain, draft, [*draft.plan[:at], *draft.plan[at + 1 :]])
        if rest is not None and net_changes(_diffs(rest)) == whole.changes:
            raise UnprovedError("call_without_effect", step.tool)


def _calls(domain: Domain, draft: Draft, plan: Sequence[Step]) -> list[CallResult] | None:
    environment = DomainEnvironment.of(domain, draft.initial_state)
    results = []
    for step in plan:
        results.append(environment.call(step.tool, step.arguments))
        if results[-1].is_error:
            return None
    return results


def _diffs(results: Sequence[CallResult]) -> list[dict[str, Any]]:
    return [change for result in results for change in result.diff]


def _play(domain: Domain, draft: Draft, plan: Sequence[Step], views: Views) -> _Played | None:
    """None where a call fails."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    told = {str(fact.value) for goal in draft.goals for fact in goal.known}
    named = [set(_rows(domain, step)) for step in plan]
    wanted = {row for rows in named for row in rows if row[1] not in told}
    known, unknown = set[RowKey](), set[NamedRow]()
    open_: list[tuple[Needs, RowKey]] = []
    diffs: list[dict[str, Any]] = []
    for step, rows in zip(plan, named, strict=True):
        unknown |= {NamedRow(step.tool, row) for row in (rows & wanted) - known}
        result = environment.call(step.tool, step.arguments)
        if result.is_error:
            return None
        diffs += result.diff
        if step.actor == "user":
            continue
        known |= wanted & _made(result)
        lookups = views.of(environment.snapshot())
        answer = LookupAnswer(step, frozenset(), result.observation)
        for row in sorted(wanted - known):
            open_ += ((extra, row) for extra in lookups.discloses(answer, row))
        while fresh := {row for extra, row in open_ if extra <= known} - known:
            known |= fresh
    return _Played(net_changes(diffs), frozenset(unknown))


def _rows(domain: Domain, step: Step) -> Iterator[RowKey]:
    for part in parts_of(tools_of(domain)[step.tool].spec.params, step.arguments):
        if part.row is not None:
            yield part.row


def _made(result: CallResult) -> set[RowKey]:
    """Rows that the call made and whose ids it showed."""
    shown = list(plain_values(result.observation))
    made = {(c["entity"], c["id"]) for c in result.diff if c["op"] == "create"}
    return {row for row in made if row[1] in shown}
