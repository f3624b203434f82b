"""Whether other ways to the goal of a task pass: what a rubric must not depend on.

    python -m benchmarks.other_ways [--tasks 200]

Makes tasks over all worlds by turns, with the default shares of variants and forms, and plays each
in other ways than its reference plan:

- `more_reads`: with every look-up that works of the rows that the plan is about, before it and
  after it;
- `other_look_up`: with one other look-up, which shows the same row, in place of one of the plan's;
- `other_order`: with two goals exchanged that the words do not order, where no call fails and
  every goal's calls answer and change the same as before (new ids apart);
- `reads_first`: with every look-up of the plan before the first call that changes something, where
  it answers the same there.

A plan in which a call fails, or uses what nobody said and no answer showed, is no way. No model is
asked. Prints how many ways of each kind were played and how many failed, and at which
criteria.
"""

import argparse
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from records.digest import digest
from synth.rubrics.built_in import BUILT_IN, episode_of
from synth.rubrics.criteria import Rubric
from synth.tasks.composing import DomainTasks
from synth.tasks.config import TaskConfig
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Draft, Goal, Step
from synth.tasks.goals.lookup import Views
from synth.tasks.goals.parts import parts_of
from synth.tasks.proof.pace import PlayedPlan, played
from synth.tasks.proof.proving import UnprovedError, check_derivable, reference_messages
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.domains.taxonomy import taxonomy_files


class ProvedTask(NamedTuple):
    domain: Domain
    tools: dict[str, DomainTool]
    draft: Draft
    rubric: Rubric

    @property
    def start(self) -> DomainEnvironment:
        return DomainEnvironment.of(self.domain, self.draft.initial_state)


def proved_tasks(count: int) -> Iterator[ProvedTask]:
    config = TaskConfig()
    files = list(taxonomy_files().values())
    made = 0
    for number in itertools.count():
        domain = load_domain(files[number % len(files)])
        if not domain.tools:
            continue
        users = set(domain.file.user_tools)
        names = {tool.name for tool in domain.tools} - users
        tasks = DomainTasks(domain, names, own=users, mix=config.goals, forms=config.forms)
        try:
            _, draft, proof = tasks.make(
                digest("other_ways", number), shares=config.shares, disclosure="mixed"
            )
        except UnprovedError:
            continue
        yield ProvedTask(domain, tasks.tools, draft, proof.rubric)
        made += 1
        if made == count:
            return


def other_ways(task: ProvedTask) -> Iterator[tuple[str, list[Step]]]:
    """(kind, plan)."""
    plan = list(task.draft.plan)
    looked_up = _look_ups(task)
    everything = [step for steps in looked_up.values() for step in steps]
    more = [step for step in everything if step not in plan]
    if more:
        yield "more_reads", [*more, *plan, *more]
    for steps in looked_up.values():
        for old, new in itertools.permutations(steps, 2):
            if old in plan and new not in plan:
                yield "other_look_up", [new if step == old else step for step in plan]
    goals = task.draft.goals
    for place in range(len(goals) - 1):
        swapped = (*goals[:place], goals[place + 1], goals[place], *goals[place + 2 :])
        ordered = goals[place + 1].after or goals[place + 1].awaited is not None
        if not ordered and _does_the_same(task, goals, swapped):
            yield "other_order", [step for goal in swapped for step in goal.steps]
    reads = [step for step in plan if _is_read(task, step)]
    first = [*reads, *(step for step in plan if step not in reads)]
    if first != plan and _answers(task, first) == _answers(task, plan):
        yield "reads_first", first


def _is_read(task: ProvedTask, step: Step) -> bool:
    return step.tool in task.tools and task.tools[step.tool].read_only and step.actor == "agent"


def _look_ups(task: ProvedTask) -> dict[tuple[str, str], list[Step]]:
    """Each row that the plan names -> look-ups that show it by what people know of it, and need no
    other id."""
    start = task.start
    lookups = Views(task.domain, task.tools.values()).of(start)
    told = {fact.value for goal in task.draft.goals for fact in goal.known}
    return {
        place: [
            answer.step
            for answer in lookups.answers(place)
            if not answer.needs
            and frozenset() in lookups.discloses(answer, place)
            and not policy_violations(start, answer.step.tool, answer.step.arguments)
        ]
        for step in task.draft.plan
        if step.tool in task.tools
        for part in parts_of(task.tools[step.tool].spec.params, step.arguments)
        if (place := part.row) is not None
        and place[1] not in told
        and start.get(*place) is not None
    }


def _played(task: ProvedTask, plan: Sequence[Step]) -> PlayedPlan:
    """The plan, whatever goal each of its steps is for."""
    first, *rest = task.draft.goals
    goals = (
        first.model_copy(update={"steps": tuple(plan)}),
        *(goal.model_copy(update={"steps": ()}) for goal in rest),
    )
    return played(task.domain, task.draft.model_copy(update={"goals": goals}), {})


def _answers(task: ProvedTask, plan: Sequence[Step]) -> dict[str, Any] | None:
    """What each call answers; None where one fails."""
    play = _played(task, plan)
    if play.failure is not None:
        return None
    return {_text(step): call.observation for step, call in zip(plan, play.calls, strict=True)}


def _does_the_same(task: ProvedTask, goals: Sequence[Goal], swapped: Sequence[Goal]) -> bool:
    plans = [[step for goal in order for step in goal.steps] for order in (goals, swapped)]
    answers = [_answers(task, plan) for plan in plans]
    if answers[0] is None or answers[0] != answers[1]:
        return False
    effects = [_effect(task, plan) for plan in plans]
    return effects[0] == effects[1]


def _effect(task: ProvedTask, plan: Sequence[Step]) -> list[str]:
    """The net changes, with no ids of new rows."""
    changes = _played(task, plan).changes
    new = {change["id"] for change in changes if change["op"] == "create"}
    shown = [_text([c["op"], c["entity"], c["id"], c["after"]]) for c in changes]
    for id_ in new:
        shown = [text.replace(json.dumps(id_), '"new"') for text in shown]
    return sorted(shown)


def _text(value: Any) -> str:
    plain = value.model_dump(mode="json") if isinstance(value, Step) else value
    return json.dumps(plain, sort_keys=True, default=str)


def is_a_way(task: ProvedTask, plan: Sequence[Step]) -> bool:
    """Whether no call fails, and each uses only what was said or an earlier answer showed."""
    play = _played(task, plan)
    try:
        check_derivable(task.draft, play.calls)
    except UnprovedError:
        return False
    return play.failure is None


def failed(task: ProvedTask, plan: Sequence[Step]) -> list[str]:
    """Criteria that code checks and the way fails."""
    play = _played(task, plan)
    episode = episode_of(reference_messages(task.draft), play.calls, policy_violations=play.broken)
    verdicts = BUILT_IN.check_all(task.rubric, episode)
    return [name for name, verdict in verdicts.items() if not verdict.passed]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200)
    args = parser.parse_args()
    ways, wrong, with_way = Counter[str](), Counter[tuple[str, str]](), 0
    not_passed = Counter[str]()
    domains: set[str] = set()
    for task in proved_tasks(args.tasks):
        domains.add(task.domain.name)
        found = [(kind, plan) for kind, plan in other_ways(task) if is_a_way(task, plan)]
        with_way += bool(found)
        for kind, plan in found:
            ways[kind] += 1
            criteria = failed(task, plan)
            not_passed[kind] += bool(criteria)
            for criterion in criteria:
                wrong[kind, criterion] += 1
                print(f"{task.domain.name}: {kind} fails at {criterion}")
    print(f"{args.tasks} tasks of {len(domains)} domains, {with_way} of them with another way")
    print("| way | played | failed | at |\n|---|---|---|---|")
    for kind, number in sorted(ways.items()):
        at = {criterion: n for (k, criterion), n in wrong.items() if k == kind}
        shown = ", ".join(f"{name} {n}" for name, n in at.items())
        print(f"| {kind} | {number} | {not_passed[kind]} | {shown} |")


if __name__ == "__main__":
    main()
