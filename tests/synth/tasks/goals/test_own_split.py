"""New values of a goal belong to the split of its task, and to no other."""

from typing import Any

import pytest

from records.digest import digest
from records.tables.splits import Split
from synth.tasks.composing import DomainTasks
from synth.tasks.config import TaskConfig
from synth.tasks.forms.forms import ALL_PLAIN
from synth.tasks.goals.arguments import MANY_STEPS, PHRASES
from synth.tasks.goals.goals import Draft, Goal
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import UnprovedError
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.growth.partition import split_of_value
from tool_specs.validation.drawing import examples_in

SPLITS: tuple[Split, ...] = ("train", "heldout_task", "heldout_domain")
SHARES = Complexity(0.3, 0.4, 0.3)


def drafts(domain: Domain, split: Split, count: int) -> list[Draft]:
    tasks, found = DomainTasks(domain, set(domain.programs), forms=ALL_PLAIN), []
    for number in range(count):
        item = digest("own split", domain.name, number)
        try:
            found.append(tasks.make(item, shares=SHARES, disclosure="mixed", split=split)[1])
        except UnprovedError:
            continue
    return found


def stand(domain: Domain, environment: DomainEnvironment) -> set[str]:
    """What the rows hold now."""
    return {
        str(part)
        for entity in domain.entities
        for row in environment.rows(entity)
        for value in row.values()
        for part in (value if isinstance(value, list) else [value])
    }


def stood_before(domain: Domain, draft: Draft, goal: Goal) -> set[str]:
    """What rows hold in any state up to the goal's own call, which may write its own values."""
    environment = DomainEnvironment.of(domain, draft.initial_state)
    found = stand(domain, environment)
    for step in draft.plan:
        if step.tool == goal.tool and step.arguments == goal.arguments:
            break
        environment.call(step.tool, step.arguments)
        found |= stand(domain, environment)
    return found


def new_values(domain: Domain, draft: Draft) -> set[Any]:
    """Free values of the calls that stand neither in the state before the call nor in a
    description, and are one of many."""
    found = set()
    for goal in draft.goals:
        if goal.tool not in domain.programs:
            continue
        before = stood_before(domain, draft, goal)
        for name, value in goal.arguments.items():
            param = domain.programs[goal.tool].spec.params[name]
            if param.ref or param.type not in ("integer", "number", "string"):
                continue
            few = None not in (param.min, param.max) and param.type != "string"
            if few and param.max - param.min < 2 * MANY_STEPS:  # type: ignore[operator]
                continue
            told = (*examples_in(param.description or "").texts, *PHRASES)
            if str(value) not in before and value not in told:
                found.add(value)
    return found


@pytest.mark.parametrize("name", ["clinic_desk", "web_shop", "brokerage_desk", "letting_office"])
def test_no_new_value_is_of_another_split(name: str) -> None:
    [domain] = load_domains([name])
    by_split = {
        split: {v for draft in drafts(domain, split, 40) for v in new_values(domain, draft)}
        for split in SPLITS
    }
    for split, values in by_split.items():
        assert {split_of_value(value) for value in values} <= {split}, values
    assert sum(map(len, by_split.values())) >= 5


def test_a_draft_of_another_split_is_drawn_with_that_ones_values() -> None:
    [domain] = load_domains(["brokerage_desk"])
    tasks = DomainTasks(domain, set(domain.programs), forms=TaskConfig().forms)
    new: dict[Split, set[Any]] = {"train": set(), "heldout_task": set()}

    def split_of(draft: Draft) -> Split:
        tools = sorted(step.tool for step in draft.plan)
        return "heldout_task" if int(digest("combination", tools), 16) % 3 == 0 else "train"

    for number in range(40):
        item = digest("of another", number)
        shares = {"shares": SHARES, "disclosure": "mixed"}
        draft = tasks.make(item, **shares, split="train", split_of=split_of)[1]  # type: ignore[arg-type]
        new[split_of(draft)] |= new_values(domain, draft)
    for split, values in new.items():
        assert {split_of_value(value) for value in values} == {split}, values


def test_without_a_split_nothing_is_drawn_otherwise() -> None:
    [domain] = load_domains(["clinic_desk"])
    tasks = DomainTasks(domain, set(domain.programs), forms=ALL_PLAIN)
    item = digest("the same")
    assert tasks.make(item, shares=SHARES, disclosure="mixed") == tasks.make(
        item, shares=SHARES, disclosure="mixed", split=None, split_of=None
    )
