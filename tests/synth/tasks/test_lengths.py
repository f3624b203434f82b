"""Tasks by bands of calls: long plans that hang together, and no step too many."""

from functools import cache
from random import Random
from typing import NamedTuple

import pytest

from records.digest import digest
from synth.tasks.composing import DomainTasks
from synth.tasks.config import TaskConfig
from synth.tasks.forms.forms import FormShares
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.goals import Draft, Goal, Proof, Step
from synth.tasks.goals.knowledge import plain_values
from synth.tasks.goals.variants import VariantShares
from synth.tasks.lengthening import GOALS_OF_ONE_TOOL, MOST_GOALS
from synth.tasks.lengths import (
    LEAST_CHAIN,
    LEAST_TOOLS,
    LONG,
    Band,
    band_of,
    bands_of,
    check_length,
)
from synth.tasks.proof.chains import dependencies, longest_chain
from synth.tasks.proof.proving import UnprovedError, check_derivable, prove, reference_messages
from synth.tasks.proof.shortening import unknown_rows
from tests.synth.task_cases import SHARES, Case, domains
from tool_specs.domains.interpreter import DomainEnvironment

BANDS = ("1-3", "4-8", "9-15", "16-40")
NORMAL = VariantShares.model_validate(dict.fromkeys(VariantShares.model_fields, 0.0))
WORLDS = ("box_office", "brokerage_desk", "parcel_depot")


class LongCase(NamedTuple):
    band: Band
    case: Case
    proof: Proof


@cache
def made() -> tuple[LongCase, ...]:
    found = []
    for domain in (domain for domain in domains() if domain.name in WORLDS):
        tools = dict(tools_of(domain))
        for name in BANDS:
            tasks = DomainTasks(
                domain, list(tools), variants=NORMAL, forms=FormShares(), lengths={name: 1.0}
            )
            item = digest("length", domain.name, name, 1)
            try:
                complexity, draft, proof = tasks.make(item, shares=SHARES, disclosure="mixed")
            except UnprovedError:
                continue
            [band] = bands_of({name: 1.0})
            case = Case(domain, tools, complexity, draft, proof.rubric)
            found.append(LongCase(band, case, proof))
    return tuple(found)


def long_ones() -> list[LongCase]:
    found = [one for one in made() if one.band.least >= LONG]
    assert len(found) >= 4, "too few long tasks to say anything"
    return found


def test_a_plan_is_as_long_as_its_band_wants() -> None:
    assert {str(one.band) for one in made()} == set(BANDS)
    for band, case, _ in made():
        assert band.holds(len(case.draft.plan))
        assert len(case.draft.goals) <= MOST_GOALS
        assert case.complexity == {1: "simple", 2: "moderate"}.get(len(case.draft.goals), "complex")


def test_references_pass_and_use_nothing_unsaid() -> None:
    for _, case, _ in made():
        assert case.failed(case.play()) == set()
        check_derivable(case.draft, case.play().calls)


def test_long_plans_are_varied_and_hang_together() -> None:
    for _, case, proof in long_ones():
        tools = [step.tool for step in case.draft.plan]
        assert proof.num_distinct_tools == len(set(tools)) >= LEAST_TOOLS
        assert proof.longest_chain >= LEAST_CHAIN
        goals = [goal.tool for goal in case.draft.goals]
        assert max(map(goals.count, goals)) <= GOALS_OF_ONE_TOOL


def test_no_call_is_made_twice_for_the_same_goal() -> None:
    for _, case, _ in long_ones():
        for goal in case.draft.goals:
            assert len(set(map(Step.model_dump_json, goal.steps))) == len(goal.steps)


def _asked_and_unshown(case: Case, plan: list[Step]) -> bool:
    """Whether a goal asks for what no call of the plan up to its own shows."""
    for number, goal in enumerate(case.draft.goals, 1):
        later = [step for other in case.draft.goals[number:] for step in other.steps]
        calls = case.play(plan).calls[: len(plan) - len(later)]
        shown = [value for call in calls for value in plain_values(call.observation)]
        if any(value not in shown for asked in goal.asks for value in asked.values):
            return True
    return False


def _underivable(case: Case, plan: list[Step]) -> bool:
    """Whether a call of the plan takes what nobody can know when it is made."""
    try:
        check_derivable(case.draft, case.play(plan).calls)
    except UnprovedError:
        return True
    before = unknown_rows(case.domain, case.draft, case.draft.plan)
    after = unknown_rows(case.domain, case.draft, plan)
    return after is None or not after <= (before or frozenset())


def _may_go(case: Case, goal: Goal, step: Step) -> bool:
    """Whether no plan can tell by itself that the step is needed: a goal with structure hangs on
    what it reads, and what the user has second thoughts about later was wanted before."""
    again = {other.tool for other in case.draft.goals if other.form == "corrected"}
    reads = case.tools[step.tool].read_only
    return (reads and goal.form != "plain") or (not reads and step.tool in again)


def test_no_step_of_a_built_plan_can_be_left_out() -> None:
    tried = 0
    for _, case, _ in long_ones():
        steps = [(goal, step) for goal in case.draft.goals for step in goal.steps]
        for at, (goal, step) in enumerate(steps):
            plan = [other for place, (_, other) in enumerate(steps) if place != at]
            if _may_go(case, goal, step):
                continue
            tried += 1
            assert (
                case.failed(case.play(plan))
                or _asked_and_unshown(case, plan)
                or _underivable(case, plan)
            ), (case.domain.name, step)
    assert tried >= 40


def test_a_goal_left_out_fails_its_own_criteria() -> None:
    tried = 0
    for _, case, _ in long_ones():
        goals = case.draft.goals
        number, goal = len(goals), goals[-1]
        if goal.form != "plain":
            continue
        rest = case.draft.model_copy(update={"goals": goals[:-1]})
        failed = case.failed(case.play(list(rest.plan), reference_messages(rest)))
        told = [value for other in rest.goals for asked in other.asks for value in asked.values]
        missing = [value for asked in goal.asks for value in asked.values if value not in told]
        own = ({"state"} if goal.writes else set()) | ({f"told_{number}"} if missing else set())
        assert failed == own
        tried += 1
    assert tried >= 3


def test_goals_swapped_where_no_order_counts_pass() -> None:
    tried = 0
    for _, case, _ in long_ones():
        goals = list(case.draft.goals)
        for at in range(len(goals) - 1):
            if {goals[at].form, goals[at + 1].form} != {"plain"} or goals[at + 1].after:
                continue
            swapped = [*goals[:at], goals[at + 1], goals[at], *goals[at + 2 :]]
            draft = case.draft.model_copy(update={"goals": tuple(swapped)})
            episode = case.play(list(draft.plan))
            if any(call.is_error for call in episode.calls) or not _same_answers(case, draft):
                continue  # the later goal takes what the earlier one made or found
            assert case.failed(episode) == set(), (case.domain.name, at)
            tried += 1
    assert tried >= 4


def _same_answers(case: Case, draft: Draft) -> bool:
    """Whether every call answers as before, and so sees nothing of the order."""
    answers = [
        sorted(
            (call.model_dump_json(include={"tool", "arguments", "observation"}))
            for call in case.play(list(plan)).calls
        )
        for plan in (draft.plan, case.draft.plan)
    ]
    return answers[0] == answers[1]


def test_the_same_item_is_the_same_task() -> None:
    one = next(one for one in made() if str(one.band) == "4-8")
    domain = one.case.domain
    tasks = DomainTasks(
        domain, list(one.case.tools), variants=NORMAL, forms=FormShares(), lengths={"4-8": 1.0}
    )
    item = digest("length", domain.name, "4-8", 1)
    drafts = [tasks.make(item, shares=SHARES, disclosure="mixed")[1] for _ in range(2)]
    assert drafts[0] == drafts[1]


def test_what_does_not_come_to_a_band_has_a_reason() -> None:
    domain = next(domain for domain in domains() if domain.name == "picking_robots")
    few = list(domain.programs)[: LEAST_TOOLS - 1]
    tasks = DomainTasks(domain, few, lengths={"16-40": 1.0})
    with pytest.raises(UnprovedError) as caught:
        tasks.make("any", shares=SHARES, disclosure="mixed")
    assert caught.value.reason == "too_few_tools"


def test_a_long_plan_of_few_tools_or_short_chains_does_not_count() -> None:
    one = long_ones()[0]
    for changes, reason in (
        ({"num_distinct_tools": LEAST_TOOLS - 1}, "too_few_tools"),
        ({"longest_chain": LEAST_CHAIN - 1}, "chain_too_short"),
    ):
        with pytest.raises(UnprovedError) as caught:
            check_length(one.band, one.case.draft, one.proof.model_copy(update=changes))
        assert caught.value.reason == reason
    with pytest.raises(UnprovedError) as caught:
        check_length(Band(1, 3), one.case.draft, one.proof)
    assert caught.value.reason == "not_in_band"


def test_the_longest_chain_is_told_from_who_shows_what() -> None:
    assert longest_chain(set(), 0) == 0
    assert longest_chain(set(), 3) == 1
    assert longest_chain({(0, 1), (1, 4), (2, 3), (4, 5)}, 6) == 4
    for _, case, proof in made():
        pairs = dependencies(case.draft, case.play().calls)
        assert len(pairs) == proof.num_dependencies
        assert all(earlier < later for earlier, later in pairs)


def test_a_proof_of_a_longer_plan_than_needed_still_holds() -> None:
    """What was left out was a matter of length alone: the proof is by execution."""
    _, case, proof = long_ones()[0]
    assert prove(case.domain, case.draft, case.tools).rubric == proof.rubric


def test_a_fork_leaves_the_builder_as_it_was() -> None:
    domain = next(domain for domain in domains() if domain.name == "letting_office")
    builder = Builder(domain, DomainEnvironment.of(domain, {}), tools_of(domain), rng=Random(1))
    tools = list(tools_of(domain).values())
    assert any(builder.add(tool) for tool in tools)
    before = (list(builder.goals), list(builder.recent), builder.environment.state_hash)
    fork = builder.fork()
    assert any(fork.add(tool) for tool in reversed(tools))
    assert len(fork.goals) == len(builder.goals) + 1
    assert (builder.goals, builder.recent, builder.environment.state_hash) == before


def test_shares_of_bands() -> None:
    lengths = {"1-3": 0.25, "4-8": 0.75, "9-15": 0.0}
    drawn = [band_of(str(i), lengths) for i in range(2000)]
    assert 0.7 <= drawn.count(Band(4, 8)) / len(drawn) <= 0.8
    assert Band(9, 15) not in drawn
    assert band_of("any", {}) is None
    assert TaskConfig(lengths=lengths).lengths == lengths


@pytest.mark.parametrize(
    "lengths",
    [
        {"0-3": 1.0},
        {"8-4": 1.0},
        {"1-41": 1.0},
        {"many": 1.0},
        {"1-4": 0.5, "4-8": 0.5},
        {"1-3": 0.5},
        {"1-3": 1.5, "4-8": -0.5},
    ],
)
def test_bands_that_are_none(lengths: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"lengths|bands|share"):
        TaskConfig(lengths=lengths)
