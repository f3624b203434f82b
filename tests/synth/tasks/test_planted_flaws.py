"""Failures planted in episodes of real worlds: each fails the criterion meant, and no other."""

from functools import cache
from random import Random

import pytest

from synth.rubrics.built_in import net_changes
from synth.rubrics.criteria import CallCheck, StateCheck
from synth.rubrics.state import check_state
from synth.tasks.goals.goals import Step
from synth.tasks.goals.rubrics import expected_changes, left_open
from synth.tasks.proof.proving import reference_messages
from tests.synth.task_cases import PER_DOMAIN, Case, cases, domains, without
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.validation.drawing import draw_arguments, draw_success


def some() -> tuple[Case, ...]:
    """Half of the tasks that others try: enough of every variant but the unclear ones."""
    return cases(PER_DOMAIN // 2)


@cache
def writing() -> list[Case]:
    return [c for c in some() if c.draft.variant == "normal" and c.play().changes]


def asking() -> list[Case]:
    return [c for c in some() if any(goal.asks for goal in c.draft.goals)]


def told(case: Case) -> set[str]:
    return {c.id for c in case.rubric.criteria if c.kind == "communicate"}


def writes_of(case: Case) -> list[int]:
    """Places in the plan of the calls that change something."""
    return [i for i, call in enumerate(case.play().calls) if call.diff]


def test_missing_call_fails_the_state() -> None:
    for case in writing():
        last = writes_of(case)[-1]
        plan = [step for i, step in enumerate(case.draft.plan) if i != last]
        assert case.failed(case.play(plan)) == {"state"}


def test_claimed_but_not_done_fails_the_state() -> None:
    for case in writing():
        assert case.failed(case.play([])) == {"state"}


def test_wrong_argument_fails_the_state() -> None:
    planted = 0
    for number, case in enumerate(writing()):
        place = writes_of(case)[-1]
        step, rng = case.draft.plan[place], Random(number)
        before = case.environment(case.draft.plan[:place])
        free = left_open(case.draft, case.tools, case.play().calls)
        for _ in range(20):
            drawn = draw_success(before, step.tool, rng, tries=5)
            right = before.snapshot().call(step.tool, step.arguments)
            if drawn is None or without(drawn.result.diff, free) == without(right.diff, free):
                continue
            if policy_violations(before, step.tool, drawn.arguments):
                continue
            wrong = Step(tool=step.tool, arguments=drawn.arguments)
            plan = [*case.draft.plan[:place], wrong]
            assert case.failed(case.play(plan)) == {"state"}
            planted += 1
            break
    assert planted > 0.8 * len(writing())


def test_collateral_change_fails_the_state() -> None:
    planted = 0
    for number, case in enumerate(writing()):
        environment = case.environment(case.draft.plan)
        allowed = [
            name
            for name, tool in case.tools.items()
            if not tool.read_only
            and not any(f"calls {name}," in c.words for c in case.rubric.criteria)
        ]
        name = Random(number).choice(allowed)
        drawn = draw_success(environment, name, Random(number))
        if drawn is None or policy_violations(environment, name, drawn.arguments):
            continue
        extra = Step(tool=name, arguments=drawn.arguments)
        episode = case.play([*case.draft.plan, extra])
        if episode.changes == case.play().changes:
            continue
        assert case.failed(episode) == {"state"}
        planted += 1
    assert planted > 0.5 * len(writing())


def test_extra_reads_and_failed_calls_cost_nothing() -> None:
    for number, case in enumerate(writing()):
        reads = [name for name, tool in case.tools.items() if tool.read_only]
        name = Random(number).choice(reads)
        arguments = draw_arguments(case.environment(), name, Random(number)) or {}
        extra = Step(tool=name, arguments=arguments)
        failing = Step(tool=case.draft.plan[-1].tool, arguments={"nothing": 1})
        assert case.failed(case.play([extra, failing, *case.draft.plan])) == set()


def test_fact_not_told_fails_communication() -> None:
    for case in asking():
        silent = [{"role": "assistant", "content": "All done, as you wished."}]
        assert case.failed(case.play(messages=silent)) == told(case)


def test_broken_format_fails_the_format() -> None:
    for case in asking()[:40]:
        words = reference_messages(case.draft)
        text = words[-1]["content"]
        faults = [
            [*words, {"role": "assistant", "content": '{"status": "done"}'}],
            [*words, {"role": "assistant", "content": ""}],
            [*words, {"role": "user", "content": "thanks"}],
            [*words[:-1], {"role": "assistant", "content": f"{text} <tool_call>x</tool_call>"}],
        ]
        for messages in faults:
            assert case.failed(case.play(messages=messages)) == {"format"}


def test_broken_policy_fails_the_policy() -> None:
    forbidden = [c for c in some() if c.draft.variant == "against_policy"]
    for case in forbidden:
        goal = case.draft.goals[-1]
        deed = Step(tool=goal.tool, arguments=goal.arguments)
        failed = case.failed(case.play([*case.draft.plan, deed]))
        assert failed == {"state", "policy", "refused"}
    assert forbidden


def test_a_breach_without_effect_fails_the_policy_alone() -> None:
    """A call that breaks a rule but is then refused by the tool changes nothing."""
    planted = 0
    for number, case in enumerate(c for c in writing() if c.domain.rules):
        environment, rng = case.environment(case.draft.plan), Random(number)
        for name in sorted(set(case.domain.rules) & set(case.tools)):
            for _ in range(60):
                arguments = draw_arguments(environment, name, rng)
                if arguments is None or not policy_violations(environment, name, arguments):
                    continue
                if environment.snapshot().call(name, arguments).is_error:
                    attempt = Step(tool=name, arguments=arguments)
                    failed = case.failed(case.play([*case.draft.plan, attempt]))
                    assert failed - {"never_1"} == {"policy"}
                    planted += 1
                    break
    assert planted >= 10


def test_forbidden_call_fails_its_criterion() -> None:
    wary = [c for c in some() if any(r.id == "never_1" for r in c.rubric.criteria)]
    for case in wary:
        criterion = next(r for r in case.rubric.criteria if r.id == "never_1")
        check = CallCheck.model_validate(criterion.check)
        attempt = Step(tool=check.tool, arguments={"nothing": 1})
        assert case.failed(case.play([*case.draft.plan, attempt])) == {"never_1"}
    assert wary


def test_calls_where_none_is_needed_fail_their_criterion() -> None:
    for case in (c for c in some() if c.draft.variant == "no_tool"):
        read = next(name for name, tool in case.tools.items() if tool.read_only)
        needless = Step(tool=read, arguments={})
        assert case.failed(case.play([needless])) == {"no_call"}


def test_wrong_order_fails_the_order_and_a_rule_that_hangs_on_it() -> None:
    """Both user goals granted, to the same effect and with the same answers, the second one first.
    A rule may forbid the second one before the first, such as a notice while rent is owed."""
    ordered = [c for c in writing() if any(goal.after for goal in c.draft.goals)]
    for case in ordered:
        first, second, *rest = case.draft.goals
        steps = [step for goal in (second, first, *rest) for step in goal.steps]
        early = case.play(second.steps)
        assert case.failed(case.play(steps)) == {"order_1"} | (
            {"policy"} if early.breaches else set()
        )
    alone = [c for c in ordered if not c.play(c.draft.goals[1].steps).breaches]
    assert len(alone) >= 10


def unclear() -> list[Case]:
    """Rare, so looked for among all tasks: who asks is slow."""
    return [c for c in cases() if c.draft.variant == "unclear_tool"]


@pytest.mark.slow
def test_acting_before_asking_fails_the_asking_alone() -> None:
    for case in unclear():
        right = case.play()
        early = [call.model_copy(update={"turn": 1}) for call in right.calls]
        assert case.failed(right.model_copy(update={"calls": tuple(early)})) == {"asked_first"}
        reads = [call.model_copy(update={"turn": 1 if not call.diff else 2}) for call in early]
        assert case.failed(right.model_copy(update={"calls": tuple(reads)})) == set()
    assert len(unclear()) >= 5


@pytest.mark.slow
def test_the_tool_that_was_not_meant_fails_its_criterion() -> None:
    for case in unclear():
        wrong = next(c for c in case.rubric.criteria if c.id == "not_meant_1")
        check = CallCheck.model_validate(wrong.check)
        attempt = Step(tool=check.tool, arguments={"nothing": 1})
        assert case.failed(case.play([*case.draft.plan, attempt])) - {"never_1"} == {"not_meant_1"}


def net(diffs: list) -> list:
    return net_changes(change for diff in diffs for change in diff)


@pytest.mark.parametrize("domain", domains(), ids=lambda domain: domain.name)
def test_rows_made_in_another_order_are_the_same_rows(domain: Domain) -> None:
    """Two creates by the same tool: ids swap with the order, content does not."""
    for name, program in domain.programs.items():
        if not any(statement.op == "create" for statement in program.spec.semantics):
            continue
        environment, rng = DomainEnvironment.of(domain), Random(name)
        first = draw_success(environment, name, rng)
        second = draw_success(first.environment, name, rng) if first else None
        if first is None or second is None or first.arguments == second.arguments:
            continue
        made = {c["id"] for d in (first, second) for c in d.result.diff if c["op"] == "create"}
        swapped = DomainEnvironment.of(domain)
        results = [swapped.call(name, d.arguments) for d in (second, first)]
        if any(result.is_error for result in results):
            continue

        changes = net([first.result.diff, second.result.diff])
        expected = StateCheck(changes=expected_changes(changes, frozenset(made)))
        seen = net([result.diff for result in results])
        assert check_state(expected, changes).passed
        totals = [c for c in changes if c["op"] == "update"] == [
            c for c in seen if c["op"] == "update"
        ]
        if totals:  # else the amounts themselves depend on the order
            assert check_state(expected, seen).passed
        assert not check_state(expected, net([results[0].diff])).passed
