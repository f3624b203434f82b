"""Tasks on the built-in domains: proved, knowable, diverse, and the same for the same item."""

import json
import statistics
from collections import Counter
from random import Random

import pytest

from synth.tasks.composing import DomainTasks
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.goals import Draft, Step
from synth.tasks.goals.lookup import rows_in
from synth.tasks.goals.rubrics import left_open
from synth.tasks.goals.variants import VariantShares, question
from synth.tasks.lengths import Complexity
from synth.tasks.proof.disclosure import disclosed
from synth.tasks.proof.proving import UnprovedError, check_derivable, prove
from synth.tasks.proof.reach import Reach
from synth.tasks.proof.search import shortest_plan
from synth.tasks.proof.unsolvable import ACTION, action_of
from synth.tasks.words.brief import steps_for_words
from tests.synth.task_cases import SHARES, Case, case, cases, domains, without
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations


def of_variant(variant: str) -> list[Case]:
    found = [c for c in cases() if c.draft.variant == variant]
    assert len(found) >= 5, f"too few {variant} tasks to say anything"
    return found


@pytest.mark.slow
def test_every_reference_plan_passes_its_own_rubric() -> None:
    assert {c.domain.name for c in cases()} == {d.name for d in domains()}
    assert [c.draft for c in cases() if c.failed(c.play())] == []


@pytest.mark.slow
def test_granted_wishes_change_the_state_and_all_else_stays() -> None:
    for c in cases():
        writes = any(goal.writes and goal.possible for goal in c.draft.goals)
        assert bool(c.play().changes) == writes


def test_users_know_or_agents_find_every_value_of_the_plan() -> None:
    for c in cases():
        check_derivable(c.draft, c.play().calls)  # raises UnprovedError otherwise


def test_users_rarely_know_ids() -> None:
    told = [f for c in cases() for goal in c.draft.goals for f in goal.known]
    ids = {row[e.key] for d in domains() for n, e in d.entities.items() for row in d.seed[n]}
    share = sum(f.value in ids for f in told) / len(told)
    assert share < 0.05, f"{share:.0%} of what users tell are ids"


def test_tasks_are_diverse() -> None:
    plans = Counter(tuple(step.tool for step in c.draft.plan) for c in cases() if c.draft.plan)
    lengths = [len(c.draft.plan) for c in cases()]
    several = sum(len(c.draft.goals) > 1 for c in cases()) / len(lengths)
    assert max(plans.values()) / len(lengths) <= 0.03, plans.most_common(3)
    assert statistics.median(lengths) >= 3
    assert several >= 1 / 3
    drafts = {c.draft.model_dump_json() for c in cases()}
    assert len(drafts) >= 0.98 * len(lengths)


def test_wishes_depend_on_what_earlier_wishes_made() -> None:
    dependent = [
        c
        for c in cases()
        if any("made just before" in label for g in c.draft.goals for label in g.labels.values())
    ]
    assert len(dependent) >= 5


def test_shares_of_the_variants() -> None:
    counts = Counter(c.draft.variant for c in cases())
    shares = {variant: n / len(cases()) for variant, n in counts.items()}
    assert 0.55 <= shares["normal"] <= 0.75
    assert shares.keys() == {"normal", *VariantShares.model_fields}


def test_declared_complexity_is_the_number_of_wishes() -> None:
    for c in cases():
        if c.draft.variant in ("normal", "missing_parameter"):
            wishes = len(c.draft.goals)
            assert c.complexity == {1: "simple", 2: "moderate"}.get(wishes, "complex")


def test_missing_parameter_keeps_back_one_needed_fact() -> None:
    for c in of_variant("missing_parameter"):
        kept = [f for goal in c.draft.goals for f in goal.known if f.when == "asked"]
        assert len(kept) == 1
        assert kept[0].needed
        assert c.draft.solvable


def test_forbidden_wishes_would_work_and_break_a_rule() -> None:
    for c in of_variant("against_policy"):
        goal = c.draft.goals[-1]
        environment = c.environment(c.draft.plan)
        assert policy_violations(environment, goal.tool, goal.arguments)
        assert not environment.call(goal.tool, goal.arguments).is_error
        assert not c.draft.solvable
        assert all(step.tool != goal.tool or step in c.draft.plan for step in goal.steps)


def test_wishes_without_a_tool_are_out_of_reach() -> None:
    for c in of_variant("missing_tool"):
        goal = c.draft.goals[-1]
        assert goal.tool not in c.tools
        changes = c.environment(c.draft.plan).call(goal.tool, goal.arguments).diff
        assert Reach(c.domain, c.tools.values(), c.environment()).obstacle(changes) is not None
        assert c.draft.proved["out_of_reach"]["why"] == "no_effect"
        assert not c.draft.solvable


def test_missing_facts_cannot_be_found_out() -> None:
    """The same state and the same words stand for another task, too: with the twin's value."""
    for c in of_variant("missing_parameter"):
        missing = c.draft.proved["missing"]
        (goal,) = (g for g in c.draft.goals if any(f.when == "asked" for f in g.known))
        (fact,) = (f for f in goal.known if f.when == "asked")
        before = c.draft.goals[: c.draft.goals.index(goal)]
        environment = c.environment([step for g in before for step in g.steps])
        right = environment.snapshot().call(goal.tool, goal.arguments)
        twin = environment.call(goal.tool, goal.arguments | {fact.param: missing["twin"]})
        assert not twin.is_error
        assert (twin.diff, twin.observation) != (right.diff, right.observation)


def test_irrelevant_wishes_belong_to_another_world() -> None:
    for c in of_variant("irrelevant_tool"):
        goal = c.draft.goals[-1]
        assert goal.tool not in c.domain.programs
        assert c.draft.proved["out_of_reach"]["why"] == "other_world"
        assert not c.draft.solvable
        assert c.draft.plan


def test_unclear_wishes_fit_two_tools_until_the_user_is_asked() -> None:
    for c in of_variant("unclear_tool"):
        goal = c.draft.goals[0]
        assert goal.could_be
        assert {goal.tool, *goal.could_be} <= c.tools.keys()
        told = [f for f in goal.known if f.when == "opening"]
        assert told
        assert all(goal.arguments.get(f.param) is not None for f in told)
        assert any(f.label == ACTION and f.when == "asked" for f in goal.known)
        shown = json.dumps(steps_for_words(c.draft)[0] | {"known": []})
        assert goal.tool not in shown
        assert action_of(c.tools[goal.tool]) not in shown.lower()


def test_reference_plans_are_no_longer_than_those_built() -> None:
    """Searched again, the plan is as long; some are shorter than what was put together wish by
    wish."""
    for c in cases():
        assert c.draft.proved["plan"] == "search"
        found = shortest_plan(c.domain, c.tools, c.draft.goals, c.environment())
        assert found is not None
        assert found.depth == c.draft.proved["depth"] == len(c.draft.plan)
    assert sum("shorter_by" in c.draft.proved for c in cases()) >= 5


def test_hardly_a_look_up_could_be_left_out() -> None:
    """Now and then a value stands in another answer by chance."""
    needless = total = 0
    for c in cases():
        own = [Step(tool=goal.tool, arguments=goal.arguments) for goal in c.draft.goals]
        for step in c.draft.plan if c.draft.variant != "against_policy" else ():
            if step not in own:
                rest = [other for other in c.draft.plan if other != step]
                total += 1
                try:
                    check_derivable(c.draft, c.play(rest).calls)
                    needless += 1
                except UnprovedError:
                    pass
    assert needless <= 0.08 * total, (needless, total)


def test_nothing_that_a_tool_did_is_out_of_its_reach() -> None:
    for c in cases():
        environment = c.environment()
        for call in c.play().calls:
            if call.diff:
                assert (
                    Reach(c.domain, [c.tools[call.tool]], environment).obstacle(call.diff) is None
                )
            environment.call(call.tool, call.arguments)


def test_questions_need_no_call() -> None:
    for c in of_variant("no_tool"):
        assert c.draft.plan == ()
        assert c.draft.solvable


def test_the_same_item_gives_the_same_task() -> None:
    for c, again in zip(cases()[:20], (case(domains()[0], i) for i in range(20)), strict=True):
        assert again == c


def test_initial_states_differ_and_fit_the_domain() -> None:
    states = {DomainEnvironment.of(c.domain, c.draft.initial_state).state_hash for c in cases()}
    assert len(states) > 0.8 * len(cases())


def test_kept_back_facts_follow_the_persona() -> None:
    draft = next(c.draft for c in cases() if c.draft.variant == "normal" and len(c.draft.goals) > 2)
    opened = draft.model_copy(
        update={
            "goals": tuple(
                g.model_copy(
                    update={
                        "known": tuple(f.model_copy(update={"when": "opening"}) for f in g.known)
                    }
                )
                for g in draft.goals
            )
        }
    )

    def kept(disclosure: str) -> int:
        drafts = [disclosed(opened, disclosure, Random(seed)) for seed in range(50)]
        return sum(f.when == "asked" for d in drafts for g in d.goals for f in g.known)

    assert kept("at_once") == 0 < kept("mixed") < kept("when_asked")


def test_a_plan_that_fails_is_no_task() -> None:
    c = next(c for c in cases() if len(c.draft.plan) > 1 and c.draft.variant == "normal")
    goal = c.draft.goals[-1]

    def proof_of(**changes: object) -> str:
        goals = (*c.draft.goals[:-1], goal.model_copy(update=changes))
        with pytest.raises(UnprovedError) as error:
            prove(c.domain, Draft(**{**dict(c.draft), "goals": goals}), c.tools)
        return error.value.reason

    unknown = goal.steps[-1].model_copy(update={"arguments": {"nothing": 1}})
    assert proof_of(steps=(unknown,)) == "plan_fails"
    other = goal.steps[-1].model_copy(update={"tool": "no_such_tool"})
    assert proof_of(steps=(other,)) == "tool_not_at_hand"


def test_a_value_from_nowhere_is_no_task() -> None:
    c = next(c for c in cases() if c.draft.goals[0].known and c.draft.variant == "normal")
    goals = tuple(g.model_copy(update={"known": ()}) for g in c.draft.goals)
    with pytest.raises(UnprovedError, match="underivable_argument"):
        prove(c.domain, c.draft.model_copy(update={"goals": goals}), c.tools)


def test_an_agent_without_tools_gets_no_task_but_a_reason() -> None:
    tasks = DomainTasks(domains()[0], [])
    with pytest.raises(UnprovedError, match="no_goal_found"):
        tasks.make("item-1", shares=Complexity(1.0, 0.0, 0.0), disclosure="at_once")


def test_lookups_show_the_row_and_single_it_out() -> None:
    """Every id that a reference plan uses was shown by an earlier answer or told by the user."""
    for c in cases():
        told = {f.value for g in c.draft.goals for f in g.known if isinstance(f.value, str)}
        keys = {e.key for e in c.domain.entities.values()}
        prefixes = tuple(e.prefix for e in c.domain.entities.values() if e.prefix)
        shown: set[str] = set()
        for call in c.play().calls:
            used = {
                v for v in call.arguments.values() if isinstance(v, str) and v.startswith(prefixes)
            }
            assert used <= told | shown, (c.domain.name, call)
            for key in keys:
                shown |= {row[key] for row in rows_in(call.observation, key)}
            shown |= {change["id"] for change in call.diff}


def test_tool_facts_are_read_off_the_semantics() -> None:
    for domain in domains():
        for name, tool in tools_of(domain).items():
            assert tool.read_only == domain.programs[name].read_only
            assert all(write.entity != "*" for write in tool.writes)
    assert SHARES.simple + SHARES.moderate + SHARES.complex == pytest.approx(1.0)


def test_what_nobody_mentioned_is_left_to_the_agent() -> None:
    """Another choice of an optional argument passes, as long as it changes nothing else."""
    tried = 0
    for c in cases():
        reference = c.play()
        free = left_open(c.draft, c.tools, reference.calls)
        for at, step in enumerate(c.draft.plan if free else ()):
            if step.tool not in c.tools:
                continue
            params = c.tools[step.tool].spec.params
            given = {n for w in c.tools[step.tool].writes for f, n in w.given.items()
                     if any((w.entity, f) == (e, n) for e, _, n in free)}  # fmt: skip
            for name in sorted(given - step.arguments.keys()):
                other = {"boolean": not params[name].default, "string": "as you like"}
                choices = [v for v in params[name].values if v != params[name].default]
                value = choices[0] if choices else other.get(params[name].type)
                steps = list(c.draft.plan)
                chosen = {"arguments": step.arguments | {name: value}}
                steps[at] = step.model_copy(update=chosen)
                episode = c.play(steps)
                if episode.breaches or any(call.is_error for call in episode.calls):
                    continue
                if without(episode.changes, free) == without(reference.changes, free):
                    tried += 1
                    assert c.failed(episode) == set(), (c.draft, name)
    assert tried >= 12


def test_questions_without_tools_are_mostly_about_the_rules_of_the_desk() -> None:
    asked = [question(domain, Random(n)) for domain in domains() for n in range(8)]
    about_rules = [goal for goal in asked if goal.wish]
    assert len(about_rules) >= 20
    for goal in about_rules:
        (value,) = goal.asks[0].values
        rules = [rule.text for domain in domains() for rule in domain.policy]
        (rule,) = [text for text in rules if goal.wish.split("dots: ")[1].split("...")[0] in text]
        assert str(value) in rule.replace(",", ".")
        assert str(value) not in goal.wish
