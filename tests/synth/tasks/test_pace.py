"""Tasks where time passes: proved for the fastest agent and for the slowest, or left out."""

import copy
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest

from synth.rubrics.built_in import BUILT_IN, STATE, episode_of
from synth.rubrics.criteria import StateCheck
from synth.tasks.composing import DomainTasks
from synth.tasks.goals.domain_tools import tools_of
from synth.tasks.goals.goals import Asked, Draft, Fact, Goal, Proof, Step
from synth.tasks.goals.states import seeded_state
from synth.tasks.lengths import Complexity
from synth.tasks.proof.pace import PlayedPlan, at_any_pace, played, slow_plays
from synth.tasks.proof.proving import UnprovedError, prove, reference_messages
from synth.tasks.proof.reach import Reach
from tests.tool_specs.conftest import CANTEEN
from tool_specs.domains.domain import Domain, load_domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.loading import read_yaml

DOMAIN = load_domain(CANTEEN)
SLACK_S = 20 * 60


@cache
def tasks() -> list[tuple[Draft, Proof]]:
    maker = DomainTasks(DOMAIN, DOMAIN.programs)
    shares = Complexity(0.5, 0.3, 0.2)
    made = (maker.make(f"task-{i}", shares=shares, disclosure="at_once") for i in range(12))
    return [(draft, proof) for _, draft, proof in made]


def failed(draft: Draft, proof: Proof, play: PlayedPlan) -> set[str]:
    episode = episode_of(reference_messages(draft), play.calls, policy_violations=play.broken)
    verdicts = BUILT_IN.check_all(proof.rubric, episode)
    return {name for name, verdict in verdicts.items() if not verdict.passed}


def windows(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and set(value) == {"$from", "$to"}:
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from windows(part)


def state_check(proof: Proof) -> StateCheck:
    [found] = [c for c in proof.rubric.criteria if c.kind == STATE.name]
    return StateCheck.model_validate(found.check)


def test_every_task_is_passed_at_either_pace() -> None:
    for draft, proof in tasks():
        for play in [played(DOMAIN, draft, {}), *slow_plays(DOMAIN, draft)]:
            assert failed(draft, proof, play) == set()


def test_what_depends_on_the_time_taken_is_expected_in_a_window() -> None:
    """As wide as the slack, and an agent that takes longer than it falls out."""
    with_windows = [
        (draft, proof)
        for draft, proof in tasks()
        if list(windows(state_check(proof).model_dump(mode="json")))
    ]
    assert len(with_windows) >= 3
    for draft, proof in with_windows:
        late = played(DOMAIN, draft, {0: 3 * SLACK_S})
        assert late.failure is not None or "state" in failed(draft, proof, late)


def goal(
    tool: str, booking: str, *, asks: tuple[Asked, ...] = (), steps: tuple[Step, ...] = ()
) -> Goal:
    arguments = {"booking_id": booking}
    return Goal(
        tool=tool,
        description="Confirm a booking.",
        arguments=arguments,
        labels={"booking_id": "booking"},
        known=(Fact(label="booking id", value=booking, param="booking_id", needed=True),),
        asks=asks,
        steps=(*steps, Step(tool=tool, arguments=arguments)),
        writes=True,
    )


def proved(goal: Goal, domain: Domain = DOMAIN) -> Proof:
    draft = Draft(variant="normal", goals=(goal,), initial_state={})
    return prove(domain, draft, tools_of(domain))


def test_a_goal_that_only_a_fast_agent_reaches_is_left_out() -> None:
    """The table is held until 9:10, and the slowest agent comes at 9:20."""
    with pytest.raises(UnprovedError) as caught:
        proved(goal("confirm_booking", "BK-1001"))
    assert caught.value.reason == "depends_on_time"
    assert "is lapsed" in str(caught.value)


def test_the_same_goal_is_proved_where_there_is_time_enough() -> None:
    proved(goal("confirm_booking", "BK-1003"))
    data = copy.deepcopy(read_yaml(CANTEEN)) | {"slack": "5 hours"}
    with pytest.raises(UnprovedError, match="depends_on_time"):
        proved(goal("confirm_booking", "BK-1003"), Domain.of(data, origin="canteen.yaml"))


def test_slowness_before_a_later_step_counts_too() -> None:
    """The hold of a quarter of an hour begins with the first step, whenever that is."""
    held = Step(tool="hold_table", arguments={"guest": "Ines Boulos", "seats": 2})
    two = goal("confirm_booking", "BK-1005", steps=(held,))
    facts = [
        Fact(label=n, value=v, param=n, needed=True)
        for n, v in (("guest", "Ines Boulos"), ("seats", 2))
    ]
    draft = two.model_copy(update={"known": (*two.known, *facts)})
    with pytest.raises(UnprovedError, match="depends_on_time"):
        proved(draft)


def test_an_answer_that_depends_on_time_is_left_out() -> None:
    oven = Step(tool="heat_oven", arguments={"oven_id": "OV-1001", "target": 100})
    ready = Asked(label="moment", values=("2026-03-02T09:10:00",))
    facts = (
        Fact(label="oven id", value="OV-1001", param="oven_id", needed=True),
        Fact(label="target", value=100, param="target", needed=True),
    )
    asked = Goal(
        tool=oven.tool,
        description="Heat an oven.",
        arguments=oven.arguments,
        labels={},
        known=facts,
        asks=(ready,),
        steps=(oven,),
        writes=True,
    )
    with pytest.raises(UnprovedError, match="depends_on_time: the answer '2026-03-02T09:10:00'"):
        proved(asked)
    [expected] = state_check(proved(asked.model_copy(update={"asks": ()}))).changes
    assert expected.match["ready_at"] == {
        "$from": "2026-03-02T09:10:00",
        "$to": "2026-03-02T09:30:00",
    }


def test_a_domain_without_time_has_one_pace() -> None:
    [hub] = load_domains(["home_hub"])
    draft = Draft(variant="normal", goals=(goal("x", "BK-1001"),), initial_state={})
    assert slow_plays(hub, draft) == []
    change = {"op": "update", "entity": "room", "id": "RM-1", "before": {"a": 1}, "after": {"a": 2}}
    assert at_any_pace([change], []) == [change]


def test_seeded_states_are_at_rest_at_the_start() -> None:
    for seed in range(20):
        environment = DomainEnvironment.of(
            DOMAIN, seeded_state(DOMAIN, tools_of(DOMAIN), Random(seed))
        )
        assert environment.state.now == DOMAIN.now
        assert environment.pass_time(0) == []


def test_what_happens_by_itself_is_not_out_of_reach() -> None:
    """No tool at hand lets a booking lapse, but time does; nothing but a tool confirms it."""
    tools = [tool for name, tool in tools_of(DOMAIN).items() if name != "confirm_booking"]
    reach = Reach(DOMAIN, tools, DomainEnvironment.of(DOMAIN))

    def wanted(status: str) -> list[dict[str, Any]]:
        row = {"op": "update", "entity": "booking", "id": "BK-1003", "before": {}}
        return [row | {"after": {"status": status}}]

    assert reach.obstacle(wanted("lapsed")) is None
    found = reach.obstacle(wanted("confirmed"))
    assert found is not None
    assert found.why == "no_effect"
