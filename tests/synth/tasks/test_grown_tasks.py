"""Tasks that start from grown seeds: proved there, of one split, and ready to be replayed."""

import json
from functools import cache

import pytest
from pydantic import ValidationError

from records.tables.splits import Split
from synth.tasks.composing import DomainTasks
from synth.tasks.config import GrowthShares
from synth.tasks.goals.goals import Draft
from synth.tasks.lengths import Complexity
from synth.tasks.proof.proving import prove
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.growth.grown_seed import GROWN, GrownSeed, grown_seed_of

ROWS = 300
ITEMS = [f"grown {i}" for i in range(8)]


@cache
def clinic() -> Domain:
    return load_domains(["clinic_desk"])[0]


def tasks(grown: GrownSeed | None) -> DomainTasks:
    return DomainTasks(clinic(), [tool.name for tool in clinic().tools], grown=grown)


@cache
def drafts(split: Split) -> tuple[Draft, ...]:
    made = tasks(GrownSeed(rows=ROWS, split=split))
    shares = Complexity(0.3, 0.4, 0.3)
    return tuple(made.make(item, shares=shares, disclosure="mixed")[1] for item in ITEMS)


def texts_of(draft: Draft) -> set[str]:
    """What users of the task say of rows: names, above all."""
    return {
        fact.value for goal in draft.goals for fact in goal.known if isinstance(fact.value, str)
    }


def test_a_task_names_the_state_that_it_starts_from_and_is_proved_there() -> None:
    for draft in drafts("train"):
        stored = json.loads(json.dumps(draft.initial_state))
        named = grown_seed_of(stored)
        assert named is not None
        assert (named.rows, named.split) == (ROWS, "train")
        environment = DomainEnvironment.of(clinic(), stored)
        assert sum(len(environment.rows(name)) for name in clinic().entities) > 0.9 * ROWS
        tools = tasks(named).tools
        again = prove(clinic(), draft.model_copy(update={"initial_state": stored}), tools)
        assert again.rubric.criteria


def test_a_grown_state_counts_once_and_the_patch_holds_what_calls_changed() -> None:
    for draft in drafts("train"):
        size = sum(len(rows) for name, rows in draft.initial_state.items() if name != GROWN)
        assert size <= 12


def test_names_of_held_out_tasks_are_none_of_those_in_training() -> None:
    of_seed = {str(v) for rows in clinic().seed.values() for row in rows for v in row.values()}
    names = {
        split: {
            row["name"]
            for row in DomainEnvironment.of(clinic(), {GROWN: {"rows": ROWS, "split": split}}).rows(
                "patient"
            )
        }
        for split in ("train", "heldout_task")
    }
    assert (names["train"] & names["heldout_task"]) <= of_seed
    told = {text for draft in drafts("heldout_task") for text in texts_of(draft)}
    assert told & (names["heldout_task"] - of_seed)
    assert not told & (names["train"] - of_seed)


def test_no_goal_is_about_a_row_that_its_name_does_not_single_out() -> None:
    patients = DomainEnvironment.of(clinic(), {GROWN: {"rows": 3000}}).rows("patient")
    names = [row["name"] for row in patients]
    twins = {name for name in names if names.count(name) > 1}
    assert twins
    made = tasks(GrownSeed(rows=3000))
    shares = Complexity(1.0, 0.0, 0.0)
    found = [made.make(item, shares=shares, disclosure="mixed")[1] for item in ITEMS]
    steps = [s for draft in found for s in draft.plan if "patient_id" in s.arguments]
    by_id = {row["patient_id"]: row["name"] for row in patients}
    assert all(by_id.get(step.arguments["patient_id"]) not in twins for step in steps)


def test_shares_say_how_many_tasks_start_from_which_size() -> None:
    growth = GrowthShares(shares={"seed": 0.5, "500": 0.25, "2000": 0.25}, per_domain=3)
    found = [growth.grown_seed_of(f"task {i}", "heldout_tool") for i in range(400)]
    sizes = [None if grown is None else grown.rows for grown in found]
    assert abs(sizes.count(None) - 200) < 50
    assert abs(sizes.count(500) - 100) < 40
    assert {grown.number for grown in found if grown is not None} == {0, 1, 2}
    assert {grown.split for grown in found if grown is not None} == {"heldout_tool"}
    assert all(GrowthShares().grown_seed_of(f"task {i}", "train") is None for i in range(20))


@pytest.mark.parametrize(
    "shares", [{"seed": 0.5}, {"5": 1.0}, {"many": 1.0}, {"seed": 1.5, "100": -0.5}, {}]
)
def test_wrong_shares_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        GrowthShares(shares=shares)
