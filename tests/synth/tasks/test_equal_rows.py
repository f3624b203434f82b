"""Rows that nothing tells apart: a call on either is right, and a row that differs is another."""

import json
from functools import cache
from random import Random
from typing import Any, NamedTuple

import pytest

from synth.rubrics.criteria import EqualRows, ExpectedChange, StateCheck
from synth.rubrics.state import check_state, is_part
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.equal_rows import equals_of
from synth.tasks.goals.goals import Draft, Step
from synth.tasks.goals.knowledge import leaves, meant_by_words, singles_out
from synth.tasks.proof.proving import UnprovedError, prove
from tests.synth.task_cases import Case, domains
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment

COPIED = "X-9001"
"""The key of a row's copy."""


class Copied(NamedTuple):
    """A task about a row that has a copy."""

    case: Case
    entity: str
    key: str


def with_copy(domain: Domain, entity: str, key: str, **other: Any) -> dict[str, dict[str, Any]]:
    """The state that has the row a second time, with `other` values in fields of the copy."""
    row = DomainEnvironment.of(domain, {}).get(entity, key) or {}
    return {entity: {COPIED: dict(row) | {domain.entities[entity].key: COPIED} | other}}


@cache
def copied() -> tuple[Copied, ...]:
    """Proved tasks of one goal that changes a row with a copy, over the built-in domains."""
    found = []
    for domain in domains():
        tools = dict(tools_of(domain))
        seed = DomainEnvironment.of(domain, {})
        for entity, spec in domain.entities.items():
            for row in list(seed.rows(entity))[:4]:
                key = row[spec.key]
                state = with_copy(domain, entity, key)
                environment = DomainEnvironment.of(domain, state)
                if equals_of(environment, domain, entity, key) == {key}:
                    continue
                task = _about(domain, tools, state, (entity, key))
                if task is not None:
                    found.append(Copied(task, entity, key))
    return tuple(found)


def _about(
    domain: Domain, tools: dict[str, Any], state: dict[str, Any], row: tuple[str, str]
) -> Case | None:
    rng = Random(row[1])
    for tool in tools.values():
        places = [n for n, p in tool.spec.params.items() if p.ref == row[0]]
        if tool.read_only or not places:
            continue
        builder = Builder(domain, DomainEnvironment.of(domain, state), tools, rng=rng)
        for _ in range(10):
            if not builder.add(tool, tries=4):
                continue
            draft = Draft(variant="normal", goals=tuple(builder.goals), initial_state=state)
            told = {fact.value for fact in draft.goals[0].known}
            named = [draft.goals[0].arguments.get(name) for name in places]
            if row[1] in named and row[1] not in told:
                try:
                    rubric = prove(domain, draft, tools).rubric
                except UnprovedError:
                    break
                return Case(domain, tools, "simple", draft, rubric)
            builder = Builder(domain, DomainEnvironment.of(domain, state), tools, rng=rng)
    return None


def exchanged(plan: tuple[Step, ...], one: str, other: str) -> list[Step]:
    def other_of(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: other_of(v) for k, v in value.items()}
        if isinstance(value, list):
            return [other_of(v) for v in value]
        return {one: other, other: one}.get(value, value) if isinstance(value, str) else value

    return [s.model_copy(update={"arguments": other_of(s.arguments)}) for s in plan]


def test_a_call_on_either_of_two_equal_rows_passes() -> None:
    assert len(copied()) >= 5
    for case, _, key in copied():
        assert case.failed(case.play()) == set()
        plan = exchanged(case.draft.plan, key, COPIED)
        assert plan != list(case.draft.plan)
        assert case.failed(case.play(plan)) == set()


def test_neither_row_is_demanded_and_both_are_too_many() -> None:
    tried = 0
    for case, entity, key in copied():
        state = next(c for c in case.rubric.criteria if c.id == "state")
        assert (state.check or {})["equal"] == [{"entity": entity, "ids": sorted([COPIED, key])}]
        both = [*case.draft.plan, exchanged(case.draft.plan, key, COPIED)[-1]]
        episode = case.play(both)
        if len(episode.changes) > len(case.play().changes):  # else the last call counts alone
            tried += 1
            assert "state" in case.failed(episode)
    assert tried >= 3


def test_a_row_that_differs_in_a_told_field_fails() -> None:
    tried = 0
    for case, entity, key in copied():
        domain = case.domain
        row = DomainEnvironment.of(domain, {}).get(entity, key) or {}
        told = [
            leaf.path[0]
            for leaf in leaves(DomainEnvironment.of(domain, {}), domain, entity, key)
            if len(leaf.path) == 1 and domain.entities[entity].fields[leaf.path[0]].type == "string"
        ]
        for field in told:
            state = with_copy(domain, entity, key, **{field: f"{row[field]} b"})
            assert singles_out(DomainEnvironment.of(domain, state), domain, entity, key)
            draft = case.draft.model_copy(update={"initial_state": state})
            try:
                rubric = prove(domain, draft, case.tools).rubric
            except UnprovedError:
                continue  # the look-up shows both
            other = Case(domain, case.tools, "simple", draft, rubric)
            assert other.failed(other.play()) == set()
            wrong = other.play(exchanged(draft.plan, key, COPIED))
            if wrong.changes:
                tried += 1
                assert "state" in other.failed(wrong)
    assert tried >= 3


def test_who_says_the_id_of_one_means_that_one() -> None:
    """The id of an equal row in the words of another goal: the words mean two things."""
    case, _, key = copied()[0]
    goal = case.draft.goals[0]
    for id_ in (key, COPIED):
        fact = goal.known[0].model_copy(update={"value": id_})
        told = case.draft.model_copy(
            update={"goals": (goal.model_copy(update={"known": (*goal.known, fact)}),)}
        )
        if id_ == key:
            rubric = prove(case.domain, told, case.tools).rubric
            only = Case(case.domain, case.tools, "simple", told, rubric)
            assert "state" in only.failed(only.play(exchanged(told.plan, key, COPIED)))
        else:
            with pytest.raises(UnprovedError, match="ambiguous_row"):
                prove(case.domain, told, case.tools)


def test_a_row_that_another_refers_to_has_no_equal() -> None:
    tried = 0
    for domain in domains():
        seed = DomainEnvironment.of(domain, {})
        for entity, spec in domain.entities.items():
            for field, kind in spec.fields.items():
                rows = [row for row in seed.rows(entity) if row.get(field)]
                if kind.type != "ref" or kind.to is None or not rows:
                    continue
                key = rows[0][field]
                state = with_copy(domain, kind.to, key)
                tried += 1
                environment = DomainEnvironment.of(domain, state)
                assert equals_of(environment, domain, kind.to, key) == {key}
    assert tried >= 5


def test_words_that_fit_a_row_with_more_to_it_mean_two_rows() -> None:
    tried = 0
    for domain in domains():
        seed = DomainEnvironment.of(domain, {})
        for entity, spec in domain.entities.items():
            for row in list(seed.rows(entity))[:3]:
                key = row[spec.key]
                for field in (f for f in spec.natural if row.get(f) is not None):
                    environment = seed.snapshot()
                    copy = {**row, spec.key: COPIED, field: None}
                    environment.state.put(entity, COPIED, copy)
                    environment.state.commit()
                    if not leaves(environment, domain, entity, COPIED):
                        continue
                    tried += 1
                    assert meant_by_words(environment, domain, entity, COPIED) >= {key, COPIED}
                    assert singles_out(environment, domain, entity, key)
    assert tried


def update(key: str, **after: Any) -> dict[str, Any]:
    before = dict.fromkeys(after)
    return {"op": "update", "entity": "slot", "id": key, "before": before, "after": after}


def made(**row: Any) -> dict[str, Any]:
    return {"op": "create", "entity": "visit", "id": row["visit_id"], "before": None, "after": row}


CHECK = StateCheck(
    changes=(
        ExpectedChange(op="update", entity="slot", id="s1", match={"free": False}),
        ExpectedChange(op="create", entity="visit", match={"slot_id": "s1", "notes": ["s3"]}),
    ),
    equal=(EqualRows(entity="slot", ids=("s1", "s2", "s3")),),
)


@pytest.mark.parametrize(
    ("slot", "of_visit", "note", "right"),
    [
        ("s1", "s1", "s3", True),
        ("s2", "s2", "s1", True),
        ("s3", "s3", "s2", True),
        ("s2", "s1", "s3", False),  # one row is changed and another one named
        ("s1", "s1", "s1", False),  # one row in place of two
        ("s4", "s4", "s3", False),  # equals none of them
    ],
)
def test_an_exchanged_row_is_exchanged_everywhere(
    slot: str, of_visit: str, note: str, right: bool
) -> None:
    visit = made(visit_id="v1", slot_id=of_visit, notes=[note])
    changes = [update(slot, free=False), visit]
    assert check_state(CHECK, changes).passed == right
    assert is_part(CHECK, changes) == right


def test_a_check_without_equal_rows_is_stored_as_before() -> None:
    plain = StateCheck(changes=CHECK.changes)
    assert set(plain.model_dump(mode="json")) == {"changes", "incidental"}
    again = StateCheck.model_validate(json.loads(CHECK.model_dump_json()))
    assert again == CHECK
    assert StateCheck.model_validate(plain.model_dump(mode="json")) == plain
