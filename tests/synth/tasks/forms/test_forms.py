"""Goals with structure: proved, never dictated, and another reading of the words fails."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from records.digest import digest
from records.seeds import rng_of
from synth.rubrics.criteria import StateCheck
from synth.rubrics.state import check_state
from synth.tasks.composing import DomainTasks
from synth.tasks.forms.conditional import limit_for
from synth.tasks.forms.described import descriptions
from synth.tasks.forms.forms import ADDERS, ALL_PLAIN, FormShares
from synth.tasks.forms.listings import listings, promises_less
from synth.tasks.goals.arguments import with_fitting_days
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.goals import Goal, GoalForm, Step
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.goals.rubrics import expected_changes
from synth.tasks.goals.variants import VariantShares
from synth.tasks.proof.proving import UnprovedError, check_derivable
from tests.synth.task_cases import SHARES, Case, domains
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.taxonomy import load_taxonomy, taxonomy_files

PER_DOMAIN = 4
NORMAL = VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0))


def shares_of(form: GoalForm) -> FormShares:
    """Mostly of one form; second thoughts need something to think again about."""
    wanted = {form: 0.6 if form == "corrected" else 1.0}
    return FormShares.model_validate(ALL_PLAIN.model_dump() | wanted)


@cache
def made(form: GoalForm) -> tuple[Case, ...]:
    return tuple(made_in(domains(), form))


def made_in(worlds: Sequence[Domain], form: GoalForm) -> list[Case]:
    found = []
    for domain in worlds:
        tools = dict(tools_of(domain))
        tasks = DomainTasks(domain, list(tools), forms=shares_of(form), variants=NORMAL)
        for i in range(PER_DOMAIN):
            item = digest("form", form, domain.name, i)
            try:
                complexity, draft, proof = tasks.make(item, shares=SHARES, disclosure="mixed")
            except UnprovedError:
                continue
            if any(goal.form == form for goal in draft.goals):
                found.append(Case(domain, tools, complexity, draft, proof.rubric))
    return found


def goals(form: GoalForm) -> list[tuple[Case, Goal, int]]:
    """Each goal of the form that is the last one of its task, and where its steps begin: what
    follows a goal may need what it did."""
    found = []
    for case in made(form):
        goal = case.draft.goals[-1]
        if goal.form == form:
            found.append((case, goal, len(case.draft.plan) - len(goal.steps)))
    assert len(found) >= 4, f"too few {form} goals to say anything"
    return found


def passes(case: Case, plan: list[Step]) -> bool:
    return case.failed(case.play(plan)) == set()


def fails_in_state_alone(case: Case, plan: list[Step]) -> bool:
    """What is wrong is what was done; a call that is too much may break a rule or be harmful, too,
    and what the call left out would have shown cannot be told."""
    failed = case.failed(case.play(plan))
    others = {i for i in failed if not i.startswith(("told", "never", "policy"))}
    return others == {"state"}


def changed(case: Case, plan: list[Step]) -> list[Any]:
    return [(c["op"], c["entity"], c["before"], c["after"]) for c in case.play(plan).changes]


@pytest.mark.parametrize("form", sorted(ADDERS))
def test_the_reference_passes_and_uses_nothing_unsaid(form: GoalForm) -> None:
    assert len(made(form)) >= 6
    for case in made(form):
        assert passes(case, list(case.draft.plan))
        check_derivable(case.draft, case.play().calls)
        assert case.draft.proved["forms"] == [goal.form for goal in case.draft.goals]


@pytest.mark.scale
@pytest.mark.parametrize("form", sorted(ADDERS))
def test_references_pass_in_worlds_of_the_taxonomy(form: GoalForm) -> None:
    worlds = load_taxonomy(sorted(taxonomy_files())[::3])
    cases = made_in(worlds, form)
    assert len({case.domain.file.domain for case in cases}) >= 6
    for case in cases:
        assert passes(case, list(case.draft.plan))
        check_derivable(case.draft, case.play().calls)


@pytest.mark.parametrize("form", sorted(ADDERS))
def test_a_goal_says_exactly_what_is_meant_and_what_is_not(form: GoalForm) -> None:
    for case in made(form):
        for goal in (goal for goal in case.draft.goals if goal.form == form):
            assert len({goal.wish, *goal.misreadings}) == 1 + len(goal.misreadings) >= 3


@pytest.mark.parametrize("form", sorted(ADDERS))
def test_the_same_item_is_the_same_task(form: GoalForm) -> None:
    drafts = [case.draft for case in made(form)]
    made.cache_clear()
    assert [case.draft for case in made(form)] == drafts


@pytest.mark.parametrize("form", ["chosen", "described", "within"])
def test_another_candidate_than_the_chosen_one_fails(form: GoalForm) -> None:
    tried = 0
    for case, goal, begin in goals(form):
        told = {str(fact.value) for g in case.draft.goals for fact in g.known}
        *reads, call = goal.steps
        (param,) = call.arguments.keys() - goal.arguments.keys()
        entity = case.tools[call.tool].spec.params[param].ref or ""
        assert call.arguments[param] not in told
        plan = list(case.draft.plan)
        before = case.environment(plan[:begin])
        shown = [before.snapshot().call(s.tool, s.arguments).observation for s in reads]
        keys = {row[case.domain.entities[entity].key] for row in before.rows(entity)}
        others = {value for value in plain_values(shown) if isinstance(value, str)} & keys
        for other in sorted(others - {call.arguments[param]}):
            wrong = call.model_copy(update={"arguments": call.arguments | {param: other}})
            if goal.writes and changed(case, [*plan[:-1], wrong]) != changed(case, plan):
                tried += 1
                assert fails_in_state_alone(case, [*plan[:-1], wrong])
    assert tried >= 5


def test_a_description_fits_one_row_of_its_list_and_names_none() -> None:
    found = 0
    for domain in domains():
        tools = dict(tools_of(domain))
        for i in range(4):
            environment = DomainEnvironment.of(domain, {})
            builder = Builder(domain, environment, tools, rng=rng_of(domain.name, "described", i))
            for listing in listings(builder, 3):
                spec = domain.entities[listing.entity]
                for description in descriptions(builder, listing):
                    found += 1
                    names = {spec.key, *spec.natural}
                    assert names.isdisjoint(description.fields)
                    own = [description.row[name] for name in description.fields]
                    rows = [[row[name] for name in description.fields] for row in listing.rows]
                    assert rows.count(own) == 1
                    fewer = [[row[description.fields[0]]] for row in listing.rows]
                    assert len(own) == 1 or fewer.count(own[:1]) > 1
    assert found >= 50


@pytest.mark.parametrize("form", ["chosen", "described", "within", "for_each"])
def test_nothing_is_done_to_people_for_what_they_are_like(form: GoalForm) -> None:
    for case, goal, _ in goals(form):
        call = next(step for step in reversed(goal.steps) if step.tool == goal.tool)
        for param in call.arguments.keys() - goal.arguments.keys():
            entity = case.tools[goal.tool].spec.params[param].ref or ""
            fields = case.domain.entities[entity].fields
            assert not goal.writes or {"email", "phone", "birth_date"}.isdisjoint(fields)


def test_a_day_that_is_changed_stays_on_the_weekday_of_its_call() -> None:
    for case, goal, _ in goals("corrected"):
        params = case.tools[goal.tool].spec.params
        if goal.tool == case.draft.goals[-2].tool:
            assert with_fitting_days(params, goal.arguments) == goal.arguments


def test_one_of_a_set_too_few_or_too_many_fails() -> None:
    for case, goal, begin in goals("for_each"):
        plan = list(case.draft.plan)
        calls = [step for step in goal.steps if step.tool == goal.tool]
        assert len(calls) >= 2
        for left_out in calls:
            assert fails_in_state_alone(case, [step for step in plan if step != left_out])
        (param,) = calls[0].arguments.keys() - goal.arguments.keys()
        entity = case.tools[goal.tool].spec.params[param].ref or ""
        named = {step.arguments[param] for step in calls}
        after = case.environment(plan)
        for row in after.rows(entity):
            one = row[case.domain.entities[entity].key]
            extra = Step(tool=goal.tool, arguments=goal.arguments | {param: one})
            result = after.snapshot().call(extra.tool, extra.arguments)
            if one not in named and not result.is_error and result.diff:
                assert fails_in_state_alone(case, [*plan, extra])
        assert begin >= 0


def test_what_hangs_on_a_figure_is_done_or_left() -> None:
    seen = set()
    for case, goal, _ in goals("conditional"):
        plan = list(case.draft.plan)
        call = Step(tool=goal.tool, arguments=goal.arguments)
        seen.add(goal.writes)
        other = [step for step in plan if step != call] if goal.writes else [*plan, call]
        assert fails_in_state_alone(case, other)
        limit = next(fact.value for fact in goal.known if fact.label.startswith("limit of "))
        for asked in goal.asks:
            assert (asked.values[0] > limit) == goal.writes  # type: ignore[operator]
    assert seen == {True, False}


def test_a_figure_that_is_asked_for_is_the_same_before_and_after() -> None:
    asked = 0
    for case, goal, _ in goals("conditional"):
        after = case.environment(list(case.draft.plan))
        for value in (value for question in goal.asks for value in question.values):
            asked += 1
            reads = [step for step in goal.steps if case.tools[step.tool].read_only]
            shown = [after.snapshot().call(step.tool, step.arguments) for step in reads]
            assert any(value in plain_values(call.observation) for call in shown)
    assert asked >= 4


def test_a_twin_asks_for_the_other_branch() -> None:
    """With the figure on the other side, what passed fails and the other branch works."""
    patched = 0
    for case, goal, begin in goals("conditional"):
        plan = list(case.draft.plan)
        call = Step(tool=goal.tool, arguments=goal.arguments)
        limit = next(fact.value for fact in goal.known if fact.label.startswith("limit of "))
        assert goal.twin is not None
        assert goal.twin in case.draft.proved["twins"]
        assert (goal.twin["figure"] > limit) != goal.writes  # type: ignore[operator]
        if "patch" not in goal.twin:
            continue
        patched += 1
        state = {name: dict(rows) for name, rows in case.draft.initial_state.items()}
        for entity, rows in goal.twin["patch"].items():
            state.setdefault(entity, {}).update(rows)
        twin = DomainEnvironment.of(case.domain, state)
        for step in plan[:begin]:
            assert not twin.call(step.tool, step.arguments).is_error
        reads = [step for step in goal.steps if step != call]
        shown = [twin.snapshot().call(step.tool, step.arguments).observation for step in reads]
        figures = [v for a in shown if isinstance(a, dict) for v in a.values()]
        assert goal.twin["figure"] in figures
        assert goal.writes or not twin.call(call.tool, call.arguments).is_error
    assert patched


@pytest.mark.parametrize("value", [3, 4.5, 9, 41, 120.75, 5000])
def test_limits_are_below_or_above_the_figure(value: float) -> None:
    assert 0 <= limit_for(value, holds=True) < value < limit_for(value, holds=False)


def test_a_first_choice_that_is_refused_gives_way_to_the_second() -> None:
    for case, goal, begin in goals("fallback"):
        plan = list(case.draft.plan)
        call = goal.steps[-1]
        first = {f.param for f in goal.known if f.label.startswith("first choice")}
        assert first
        assert passes(case, plan)
        assert fails_in_state_alone(case, plan[: plan.index(call)])
        assert begin >= 0


def test_where_the_first_choice_can_be_had_the_second_fails() -> None:
    """In the twin the rubric of the first choice passes with it, and fails with the second."""
    patched = rows = 0
    for case, goal, begin in goals("fallback"):
        twin, call = goal.twin, goal.steps[-1]
        assert twin is not None
        assert twin in case.draft.proved["twins"]
        first = {fact.param for fact in goal.known if fact.label.startswith("first choice")}
        state = {name: dict(held) for name, held in case.draft.initial_state.items()}
        for entity, held in twin.get("patch", {}).items():
            state.setdefault(entity, {}).update(held)
            for key, row in held.items():
                own = case.environment().get(entity, key) or {}
                told = case.domain.entities[entity].natural
                assert {f: row[f] for f in told} == {f: own[f] for f in told}
        if "arguments" in twin:
            rows += 1
            arguments = twin["arguments"]
        else:
            patched += 1
            (key,) = next(iter(twin["patch"].values()))
            arguments = call.arguments | dict.fromkeys(first, key)
        assert {n for n in arguments if arguments[n] != call.arguments.get(n)} == first
        before = case.draft.plan[:begin]
        right = Step(tool=call.tool, arguments=arguments)
        granted = goal.model_copy(update={"steps": (right,), "asks": (), "twin": None})
        draft = case.draft.model_copy(
            update={"initial_state": state, "goals": (*case.draft.goals[:-1], granted)}
        )
        other = replace(case, draft=draft)
        made = other.play([*before, right])
        assert not made.calls[-1].is_error
        assert not made.breaches
        expected = StateCheck(changes=expected_changes(made.changes, made_ids(made.changes)))
        assert check_state(expected, made.changes).passed
        assert not check_state(expected, other.play([*before, call]).changes).passed
        both = other.play([*before, right, call])
        if not both.calls[-1].is_error:
            assert not check_state(expected, both.changes).passed
    assert patched + rows >= 4


def made_ids(changes: Sequence[Any]) -> frozenset[str]:
    return frozenset(change["id"] for change in changes if change["op"] == "create")


def test_second_thoughts_count() -> None:
    anew, back = 0, 0
    for case, goal, begin in goals("corrected"):
        plan = list(case.draft.plan)
        assert fails_in_state_alone(case, plan[:begin])
        if goal.known[0].label.endswith("on second thoughts"):
            once = [*(step for step in plan[:begin] if step.tool != goal.tool), plan[-1]]
            assert passes(case, once), "the second call adds to the first in place of replacing it"
            anew += 1
        else:
            before = {(c["entity"], c["id"]) for c in case.play(plan[:begin]).changes}
            both = {(c["entity"], c["id"]) for c in case.play(plan).changes}
            assert both <= before, "what goes back on a call touches nothing else"
            back += 1
    assert anew + back >= 4
    assert back


@cache
def trades() -> tuple[Case, ...]:
    found = []
    for domain in domains():
        names = [tool.name for tool in domain.tools]
        for i, variant in enumerate(("against_policy", "missing_tool") * 2):
            lacking = names[i::4][:3] if variant == "missing_tool" else []
            tasks = DomainTasks(
                domain,
                set(names) - set(lacking),
                lacking=lacking,
                forms=FormShares.model_validate(ALL_PLAIN.model_dump() | {"traded": 1.0}),
                variants=NORMAL.model_copy(update={variant: 1.0}),
            )
            item = digest("trade", domain.name, i)
            try:
                complexity, draft, proof = tasks.make(item, shares=SHARES, disclosure="mixed")
            except UnprovedError:
                continue
            if any(goal.form == "traded" for goal in draft.goals):
                found.append(Case(domain, tasks.tools, complexity, draft, proof.rubric))
    return tuple(found)


def test_what_is_out_of_reach_is_traded_and_not_granted() -> None:
    assert {case.draft.variant for case in trades()} == {"against_policy", "missing_tool"}
    for case in trades():
        plan = list(case.draft.plan)
        wanted, traded = case.draft.goals[-2:]
        assert (wanted.possible, traded.possible, traded.form) == (False, True, "traded")
        assert passes(case, plan)
        check_derivable(case.draft, case.play().calls)
        assert case.draft.proved["out_of_reach"]["why"]
        assert len({traded.wish, *traded.misreadings}) == 3
        assert "state" in case.failed(case.play([s for s in plan if s != traded.steps[-1]]))
        forced = Step(tool=wanted.tool, arguments=wanted.arguments)
        failed = case.failed(case.play([*plan, forced]))
        assert failed & ({"policy", "refused"} if wanted.tool in case.tools else {"state"})


def test_without_forms_tasks_are_as_if_there_were_none() -> None:
    domain = domains()[0]
    plain = DomainTasks(domain, list(tools_of(domain)))
    none = DomainTasks(domain, list(tools_of(domain)), forms=ALL_PLAIN)
    for i in range(3):
        item = digest("plain", i)
        drafts = [t.make(item, shares=SHARES, disclosure="mixed")[1] for t in (plain, none)]
        assert drafts[0] == drafts[1]
        assert {goal.form for goal in drafts[0].goals} == {"plain"}


def test_shares_of_forms_leave_room() -> None:
    with pytest.raises(ValueError, match=r"may add up to 1 at most, got 1\.34"):
        FormShares(
            chosen=0.9, for_each=0.0, conditional=0.3, fallback=0.0, corrected=0.0, traded=0.0
        )


def test_a_list_is_never_called_narrower_than_it_is() -> None:
    shop = next(domain for domain in domains() if domain.name == "web_shop")
    tool = tools_of(shop)["admin_list_orders"]
    assert "of a customer" in tool.spec.description
    assert promises_less(tool, {})
    assert not promises_less(tool, {"shopper_id": "S-1001", "customer_id": "S-1001"})
