"""Operators on tasks: what they change and what stays, each proved, and a child fails exactly where
it differs from its parent."""

import asyncio
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args

import pytest

from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.rubrics.built_in import BUILT_IN
from synth.tasks.difficulty import DerivedTask, DifficultyConfig, Operator
from synth.tasks.goals.goals import Draft, Fact
from synth.tasks.goals.rules_seen import followable
from synth.tasks.operators import Deriving, can_have, changed_draft, reference_fault
from synth.tasks.proof.proving import UnprovedError, prove
from synth.tasks.sources import TaskSources
from synth.tasks.stage import Dropped
from tests.synth.authors import GENERATOR
from tests.synth.task_cases import Case, cases, domains
from tests.synth.tasks.test_task_stage import (
    PLAIN,
    BriefWriter,
    agent,
    bakery,
    made,
    persona,
    plans,
)
from tool_specs.domains.catalogue import domain_id, tool_rows

SAYING = ("less_said", "more_said")


@dataclass(frozen=True)
class Pair:
    parent: Case
    child: Case


@cache
def pairs(operator: Operator) -> tuple[Pair, ...]:
    """Parents of normal tasks with what the operator makes of them, proved."""
    found = []
    for c in (c for c in cases(4) if c.draft.variant == "normal"):
        try:
            draft = changed_draft(operator, c.draft, c.domain, c.tools, "child")
            proof = prove(c.domain, draft, c.tools)
        except UnprovedError:
            continue
        found.append(Pair(c, replace(c, draft=draft, rubric=proof.rubric)))
    assert len(found) >= 5, f"too few children by {operator} to say anything"
    return tuple(found)


def facts(draft: Draft) -> list[Fact]:
    return [fact for goal in draft.goals for fact in goal.known]


@pytest.mark.parametrize("operator", ["less_said", "more_said", "longer", "shorter"])
def test_the_reference_of_a_child_passes_and_its_state_is_the_parents(operator: Operator) -> None:
    for pair in pairs(operator):
        assert pair.child.draft.initial_state == pair.parent.draft.initial_state
        assert pair.child.failed(pair.child.play()) == set()


@pytest.mark.parametrize("operator", SAYING)
def test_what_is_said_when_changes_no_value_and_no_plan(operator: Operator) -> None:
    for pair in pairs(operator):
        assert pair.child.draft.plan == pair.parent.draft.plan
        assert pair.child.rubric == pair.parent.rubric
        before, after = facts(pair.parent.draft), facts(pair.child.draft)
        assert [f.value for f in before] == [f.value for f in after]
        moved = [(a.when, b.when) for a, b in zip(before, after, strict=True) if a != b]
        wanted = ("opening", "asked") if operator == "less_said" else ("asked", "opening")
        assert set(moved) == {wanted}


def test_the_opening_still_tells_something_when_less_is_said() -> None:
    for pair in pairs("less_said"):
        for goal in (goal for goal in pair.child.draft.goals if goal.known):
            assert goal.known[0].when == "opening"


def test_a_longer_task_holds_the_parents_goals_and_is_about_their_rows() -> None:
    changed = 0
    for pair in pairs("longer"):
        goals, more = pair.child.draft.goals[:-1], pair.child.draft.goals[-1]
        assert goals == pair.parent.draft.goals
        assert more.tool in followable(pair.child.domain, pair.child.tools)
        if more.writes:
            changed += 1
            assert more.steps[-1].tool == more.tool
            played = pair.child.play().calls
            rows = [{(c["entity"], c["id"]) for c in call.diff} for call in played]
            assert rows[-1].isdisjoint(set().union(*rows[:-1])), "changed again"
            assert pair.child.failed(pair.child.play(pair.parent.draft.plan))
    assert changed >= 3


def test_a_parents_whole_plan_goes_too_far_for_a_shorter_task() -> None:
    tried = 0
    for pair in pairs("shorter"):
        assert pair.child.draft.goals == pair.parent.draft.goals[:-1]
        if pair.parent.draft.goals[-1].writes:
            tried += 1
            assert pair.child.failed(pair.child.play(pair.parent.draft.plan))
    assert tried >= 3


def test_the_same_item_gives_the_same_child() -> None:
    for pair in pairs("longer")[:5]:
        c = pair.parent
        again = changed_draft("longer", c.draft, c.domain, c.tools, "child")
        assert again == pair.child.draft


@cache
def sources() -> TaskSources:
    """The bakery beside the built-in domains."""
    known = {domain_id(domain): domain for domain in (bakery(), *domains()[:3])}
    tools = {row["tool_id"]: row for domain in known.values() for row in tool_rows(domain)}
    return TaskSources(tools=tools, domains=known, servers={})


@cache
def parents() -> tuple[Row, ...]:
    rows = [made(plan) for plan in plans(40)]
    return tuple(row for row in rows if not isinstance(row, Dropped))


def derive(parent: Row, operator: Operator, *, known: dict[str, Row] | None = None) -> Any:
    """Rows, or why there are none; `known`: further tasks."""
    deriving = Deriving(
        {parent["task_id"]: parent} | (known or {}),
        {f"agent-{i}": agent(i) for i in range(6)},
        {f"persona-{i}": persona(i) for i in range(64)},
        config=PLAIN,
        difficulty=DifficultyConfig(added_tools=3),
        sources=sources(),
        generator=GENERATOR,
    )
    work = deriving.make(
        DerivedTask(f"child-{operator}", parent["task_id"], operator, 1), BriefWriter().llm
    )
    return asyncio.run(work)


@pytest.mark.parametrize("operator", get_args(Operator))
def test_a_child_keeps_state_seed_and_persona_and_names_its_parent(operator: Operator) -> None:
    able = [p for p in parents() if can_have(operator, p, agent(), sources().tools)]
    if operator == "fewer_tools":  # no agent of the bakery has tools of another domain
        assert able == []
        return
    kept = [(p, made) for p in able if not isinstance(made := derive(p, operator), Dropped)]
    assert kept, f"{len(able)} parents, and no child by {operator}"
    for parent, tables in kept:
        [row] = tables["tasks"]
        assert set(row) == set(TABLES["tasks"].schema.names) - {"run_id", "schema_version"}
        assert row["parent_task_id"] == parent["task_id"]
        assert (row["operator"], row["round"]) == (operator, 1)
        same = ("initial_state", "seed", "persona_id", "domain_id", "variant", "split")
        assert [row[c] for c in same] == [parent[c] for c in same]
        assert reference_fault(row, bakery(), BUILT_IN) is None


def test_more_tools_lie_beside_and_nothing_else_changes() -> None:
    parent = parents()[0]
    tables = derive(parent, "more_tools")
    [row], [new] = tables["tasks"], tables["agents"]
    own = next(a for a in map(agent, range(6)) if a["agent_id"] == parent["agent_id"])
    assert set(own["tool_ids"]) < set(new["tool_ids"])
    added = [sources().tools[t] for t in set(new["tool_ids"]) - set(own["tool_ids"])]
    assert len(added) == 3
    assert row["num_distractors"] == parent["num_distractors"] + 3
    assert {t["split"] for t in added} == {"train"}
    assert parent["domain_id"] not in {t["domain_id"] for t in added}
    names = [sources().tools[t]["name"] for t in new["tool_ids"]]
    assert len(names) == len(set(names))
    assert row["agent_id"] == new["agent_id"] != parent["agent_id"]
    assert row["user_brief"] == parent["user_brief"]


def test_a_child_has_children_of_its_own() -> None:
    able = [p for p in parents() if can_have("longer", p, agent(), sources().tools)]
    children = [(p, made) for p in able if not isinstance(made := derive(p, "longer"), Dropped)]
    grandchildren = 0
    for parent, child in children:
        again = derive(child["tasks"][0], "shorter", known={parent["task_id"]: parent})
        if not isinstance(again, Dropped):
            grandchildren += 1
            assert again["tasks"][0]["reference_plan"] == parent["reference_plan"]
    assert grandchildren


def test_a_parent_that_is_not_what_it_was_gets_no_child() -> None:
    parent = next(p for p in parents() if len(p["reference_plan"]) > 1)
    other = parent | {"reference_plan": parent["reference_plan"][:-1]}
    assert derive(other, "more_tools") == Dropped("parent_not_reproduced")


def as_row(c: Case) -> Row:
    return {
        "variant": c.draft.variant,
        "rubric": c.rubric.model_dump(mode="json"),
        "reference_plan": [step.model_dump(mode="json") for step in c.draft.plan],
        "initial_state": c.draft.initial_state,
        "solvable": c.draft.solvable,
    }


def test_no_reference_of_any_variant_is_taken_for_a_fault() -> None:
    assert len({c.draft.variant for c in cases(4)}) > 4
    for c in cases(4):
        assert reference_fault(as_row(c), c.domain, BUILT_IN) is None


def test_a_reference_that_fails_its_rubric_is_found() -> None:
    granted = [c for c in cases(4) if c.draft.variant == "normal" and c.draft.goals[-1].writes]
    for c in granted:
        row = as_row(c) | {"reference_plan": as_row(c)["reference_plan"][:-1]}
        assert "fails_own_rubric" in (reference_fault(row, c.domain, BUILT_IN) or "")
    assert len(granted) > 5
