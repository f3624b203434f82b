"""Tasks whose plan waits: for what comes about by itself, as long as is needed and no shorter."""

import copy
import json
from functools import cache
from pathlib import Path

import pytest

from synth.rubrics.built_in import BUILT_IN, episode_of
from synth.tasks.composing import DomainTasks, GoalMix
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.goals import Draft, Goal, Proof, Step
from synth.tasks.goals.waiting import waiting_tools
from synth.tasks.lengths import Complexity
from synth.tasks.proof.pace import played, slow_plays
from synth.tasks.proof.proving import UnprovedError, prove, reference_messages
from synth.tasks.proof.waiting import shortest_wait
from synth.tasks.words.brief import steps_for_words
from tests.tool_specs.conftest import CANTEEN
from tool_specs.domains.domain import Domain, load_domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment
from tool_specs.domains.loading import read_yaml
from tool_specs.domains.taxonomy import load_taxonomy

TAXONOMY = Path(__file__).parents[3] / "tool_specs/domains/taxonomy"
VACUUMS = TAXONOMY / "smart_home/vacuum_robots.yaml"
CRAWLERS = TAXONOMY / "robot_control/sewer_crawlers.yaml"
SHARES = Complexity(0.4, 0.4, 0.2)


def made(domain: Domain, count: int, *, share: float = 1.0) -> list[tuple[Draft, Proof]]:
    maker = DomainTasks(domain, domain.programs, mix=GoalMix(waiting=share))
    found: list[tuple[Draft, Proof]] = []
    for number in range(count):
        try:
            _, draft, proof = maker.make(f"w-{number}", shares=SHARES, disclosure="mixed")
        except UnprovedError:
            continue
        found.append((draft, proof))
    return found


@cache
def waits(path: Path) -> list[tuple[Draft, Proof]]:
    return [pair for pair in made(load_domain(path), 12) if _awaits(pair[0])]


def _awaits(draft: Draft) -> bool:
    return any(goal.awaited for goal in draft.goals)


def passes(draft: Draft, proof: Proof, domain: Domain) -> bool:
    plays = [played(domain, draft, {}), *slow_plays(domain, draft)]
    for play in plays:
        messages = reference_messages(draft)
        episode = episode_of(messages, play.calls, policy_violations=play.broken)
        verdicts = BUILT_IN.check_all(proof.rubric, episode).values()
        if play.failure is not None or not all(verdict.passed for verdict in verdicts):
            return False
    return True


def ends_with(domain: Domain, draft: Draft, minutes: int | None) -> tuple[str, str | None] | None:
    """(tool, error) of the call at which the plan stops when its wait is so long, or is left out;
    None where it gets to its end."""
    [awaited] = [goal.awaited for goal in draft.goals if goal.awaited]
    environment = DomainEnvironment.of(domain, draft.initial_state)
    for step in draft.plan:
        arguments = dict(step.arguments)
        if step == awaited.wait:
            if minutes is None:
                continue
            arguments[awaited.minutes] = minutes
        result = environment.call(step.tool, arguments)
        if result.is_error:
            return step.tool, result.error_code
    return None


def check_wait(domain: Domain, draft: Draft, proof: Proof) -> None:
    """What the page on tasks says of a plan with a wait, from the draft alone."""
    [goal] = [goal for goal in draft.goals if goal.awaited]
    assert goal.awaited is not None
    at = draft.plan.index(goal.awaited.wait)
    assert draft.plan[at + 1] == Step(tool=goal.tool, arguments=goal.arguments)
    minutes = goal.awaited.wait.arguments[goal.awaited.minutes]
    failure = (goal.tool, goal.awaited.error)
    assert ends_with(domain, draft, minutes) is None
    assert ends_with(domain, draft, None) == failure
    assert ends_with(domain, draft, minutes - 1) == failure
    assert goal.awaited.error not in ("internal", "invalid_arguments")
    assert passes(draft, proof, domain)
    fails = {"tool": goal.tool, "error": goal.awaited.error, "minutes": minutes - 1}
    assert draft.proved["wait"]["fails_before"] == fails


@pytest.mark.parametrize("path", [VACUUMS, CRAWLERS], ids=lambda path: path.stem)
def test_the_plan_fails_without_its_wait_and_with_a_shorter_one(path: Path) -> None:
    assert len(waits(path)) >= 4
    for draft, proof in waits(path):
        check_wait(load_domain(path), draft, proof)


def test_the_plan_of_the_page_on_tasks_is_as_the_page_says() -> None:
    page = Path(__file__).parents[3].joinpath("docs/tasks.md").read_text(encoding="utf-8")
    shown = json.loads(page.split("```json\n")[1].split("```")[0])
    wait, fails = shown["proof"]["wait"], shown["proof"]["wait"]["fails_before"]
    domain = load_domain(TAXONOMY / f"{shown['domain']}.yaml")
    for minutes in (None, fails["minutes"], wait["minutes"]):
        environment = DomainEnvironment.of(domain)
        results: list[CallResult] = []
        for step in shown["plan"]:
            arguments = step["arguments"]
            if step["tool"] == wait["tool"]:
                if minutes is None:
                    continue
                arguments = arguments | {"minutes": minutes}
            results.append(environment.call(step["tool"], arguments))
        assert not any(result.is_error for result in results[:-1])
        is_long = minutes == wait["minutes"]
        assert results[-1].error_code == (None if is_long else fails["error"])
        jobs = {change["job"] for result in results for change in result.jobs_before}
        assert jobs == ({wait["job"]} if is_long else set())


@pytest.mark.scale
def test_so_it_is_in_every_world_with_jobs() -> None:
    worlds = [domain for domain in load_taxonomy() if domain.jobs]
    with_waits: dict[str, int] = {}
    for domain in worlds:
        drafts = [pair for pair in made(domain, 30) if _awaits(pair[0])]
        for draft, proof in drafts:
            check_wait(domain, draft, proof)
        with_waits[domain.name] = len(drafts)
        at_hand = waiting_tools(tools_of(domain).values())
        assert at_hand or not drafts, domain.name
    assert sum(count > 0 for count in with_waits.values()) >= 10, with_waits


def test_how_long_it_may_take_is_not_told_and_what_is_waited_for_is() -> None:
    """A wait in three parts, the last longer than needed, passes; the words say what happens."""
    domain = load_domain(VACUUMS)
    texts = {job.spec.text for job in domain.jobs}
    for draft, proof in waits(VACUUMS):
        [goal] = [goal for goal in draft.goals if goal.awaited]
        assert goal.awaited is not None
        wait, name = goal.awaited.wait, goal.awaited.minutes
        lengths = [1, wait.arguments[name] - 2, 4]
        parts = [Step(tool=wait.tool, arguments=wait.arguments | {name: m}) for m in lengths]
        steps = [s for step in goal.steps for s in (parts if step == wait else [step])]
        cut = goal.model_copy(update={"steps": tuple(steps)})
        goals = tuple(cut if other is goal else other for other in draft.goals)
        play = played(domain, draft.model_copy(update={"goals": goals}), {})
        episode = episode_of(reference_messages(draft), play.calls, policy_violations=play.broken)
        verdicts = BUILT_IN.check_all(proof.rubric, episode)
        assert play.failure is None
        assert all(verdict.passed for verdict in verdicts.values())
        [once] = [step["once"] for step in steps_for_words(draft) if "once" in step]
        assert once == goal.awaited.happens
        assert once in texts
        assert once in goal.sentence


def test_the_share_is_a_setting() -> None:
    assert not any(_awaits(draft) for draft, _ in made(load_domain(VACUUMS), 6, share=0.0))


def test_an_agent_without_a_tool_to_wait_with_gets_no_such_task() -> None:
    domain = load_domain(VACUUMS)
    [waiting] = waiting_tools(tools_of(domain).values())
    names = [name for name in domain.programs if name != waiting.tool.name]
    maker = DomainTasks(domain, names, mix=GoalMix(waiting=1.0))
    drafts = [maker.make(f"w-{n}", shares=SHARES, disclosure="at_once")[1] for n in range(4)]
    assert not any(_awaits(draft) for draft in drafts)


def test_nobody_waits_for_what_the_call_then_takes_back() -> None:
    """A room that opens by itself is not waited for in order to close it."""
    for draft, _ in waits(VACUUMS):
        for goal in draft.goals:
            assert goal.awaited is None or goal.tool != "close_room"


def test_a_wait_that_another_job_ends_proves_nothing() -> None:
    """The same plan, said to wait for another job, and with a world whose jobs all stand still."""
    domain = load_domain(VACUUMS)
    draft = waits(VACUUMS)[0][0]
    [goal] = [goal for goal in draft.goals if goal.awaited]
    assert goal.awaited is not None
    tool = tools_of(domain)[goal.awaited.wait.tool]
    other = next(j.spec.name for j in domain.jobs if j.spec.name != goal.awaited.job)
    awaited = goal.awaited.model_copy(update={"job": other})
    with pytest.raises(UnprovedError, match="is earlier than"):
        shortest_wait(domain, _awaiting(draft, goal, awaited=awaited), tool)
    still = copy.deepcopy(read_yaml(VACUUMS))
    still["jobs"] = [job | {"where": f"({job['where']}) and 1 == 2"} for job in still["jobs"]]
    with pytest.raises(UnprovedError, match="no wait is long enough"):
        shortest_wait(Domain.of(still, origin="still.yaml"), draft, tool)


def _awaiting(draft: Draft, goal: Goal, **changes: object) -> Draft:
    changed = goal.model_copy(update=changes)
    goals = tuple(changed if other is goal else other for other in draft.goals)
    return draft.model_copy(update={"goals": goals})


def test_a_plan_that_waits_too_short_is_no_task() -> None:
    domain = load_domain(VACUUMS)
    draft = waits(VACUUMS)[0][0]
    [goal] = [goal for goal in draft.goals if goal.awaited]
    assert goal.awaited is not None
    wait = goal.awaited.wait
    short = Step(tool=wait.tool, arguments=wait.arguments | {goal.awaited.minutes: 1})
    steps = tuple(short if step == wait else step for step in goal.steps)
    with pytest.raises(UnprovedError, match="plan_fails"):
        prove(domain, _awaiting(draft, goal, steps=steps), tools_of(domain))


def test_a_tool_that_waits_as_long_as_it_likes_is_none_to_wait_with() -> None:
    data = copy.deepcopy(read_yaml(CANTEEN))
    lasting = [tool for tool in data["tools"] if "waits" in tool]
    assert lasting
    for tool in lasting:
        tool.update(waits="10 minutes", params={})
    domain = Domain.of(data, origin="canteen.yaml")
    assert waiting_tools(tools_of(domain).values()) == []
