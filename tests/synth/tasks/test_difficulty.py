"""Pass rates by their estimators, and what is derived from them."""

from itertools import combinations
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from records.tables.schemas import Row
from synth.tasks.difficulty import (
    EASIER,
    HARDER,
    DifficultyConfig,
    Operator,
    pass_at_k,
    pass_hat_k,
    plan_derivations,
)


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_the_estimators_are_shares_of_all_choices_of_k_attempts(case: tuple[int, int, int]) -> None:
    n, c, k = case
    chosen = [picks for picks in combinations([i < c for i in range(n)], k)]
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))


def row(task_id: str, c: int, n: int = 4, number: int = 0, fault: str | None = None) -> Row:
    return {"task_id": task_id, "n": n, "c": c, "round": number, "fault": fault}


ROUNDS = DifficultyConfig(rounds=2)


def operators(rows: list[Row], config: DifficultyConfig = ROUNDS) -> list[Operator]:
    return [
        d.operator for d in plan_derivations(rows, config, can_have=lambda task, operator: True)
    ]


def test_what_is_passed_too_often_is_made_harder_and_what_too_seldom_easier() -> None:
    rows = [row(f"task-{i}", 4) for i in range(40)]
    assert set(operators(rows)) == set(HARDER)
    assert set(operators([r | {"c": 1} for r in rows])) == set(EASIER)
    assert set(get_args(Operator)) == {*HARDER, *EASIER}


def test_no_child_of_a_task_at_the_target_of_a_faulty_one_or_without_attempts() -> None:
    rows = [row("at", 2), row("faulty", 0, fault="reference_fails"), row("none", 0, n=0)]
    assert operators(rows) == []


def test_the_last_round_has_no_children() -> None:
    assert len(operators([row("a", 4, number=1)])) == 1
    assert operators([row("a", 4, number=2)]) == []


def test_only_operators_that_are_named_and_that_the_task_can_have_are_drawn() -> None:
    config = DifficultyConfig(rounds=1, operators={"longer": 1.0, "shorter": 2.0})
    rows = [row(f"task-{i}", i % 5) for i in range(30)]
    assert set(operators(rows, config)) == {"longer", "shorter"}
    assert plan_derivations(rows, config, can_have=lambda task, operator: False) == []


def test_a_child_hangs_on_its_parent_alone() -> None:
    def planned(rows: list[Row]) -> set[tuple]:
        return set(plan_derivations(rows, ROUNDS, can_have=lambda task, operator: True))

    rows = [row(f"task-{i}", 4 * (i % 2)) for i in range(20)]
    assert planned(rows[:7]) <= planned(rows[::-1])
    assert len({d[0] for d in planned(rows)}) == 20


def test_a_weight_of_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="above 0"):
        DifficultyConfig(operators={"longer": 0.0})
