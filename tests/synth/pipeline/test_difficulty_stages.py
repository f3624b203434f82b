"""What a task's attempts come to: its rate, and whether it counts as hard or as faulty."""

from typing import Any

import pytest

from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.curation.candidates import CurationCandidate
from synth.judging.attribution import Party
from synth.pipeline.difficulty import measured
from tests.synth.curation.test_band import attempt

TASK = {"task_id": "t", "round": None, "parent_task_id": None, "operator": None, "split": "train"}


def passed(number: int) -> CurationCandidate:
    return attempt("t", number, passes=True)


def failed(number: int, party: Party, reason: str = "user_done") -> CurationCandidate:
    one = attempt("t", number, passes=False, reason=reason)
    return one._replace(attributed_to=party)


def row_of(attempts: list[CurationCandidate], replay: str | None = None) -> Row:
    return measured("d", "g", TASK, attempts, lambda task: replay)


def test_the_row_has_every_column_and_the_rates() -> None:
    row = row_of([passed(0), passed(1), failed(2, "agent"), failed(3, "agent")])
    assert set(row) == set(TABLES["difficulty"].schema.names) - {"run_id", "schema_version"}
    assert (row["n"], row["c"], row["round"], row["fault"]) == (4, 2, 0, None)
    assert row["pass_at_k"] == pytest.approx([1 / 2, 5 / 6, 1.0, 1.0])
    assert row["pass_hat_k"] == pytest.approx([1 / 2, 1 / 6, 0.0, 0.0])


def test_attempts_that_ended_outside_the_agents_reach_do_not_count() -> None:
    spoiled = [failed(i, "environment", "infra_error") for i in (2, 3)]
    row = row_of([passed(0), failed(1, "agent"), *spoiled])
    assert (row["n"], row["c"]) == (2, 1)
    assert row["attributed_to"] == {"agent": 1, "environment": 2}


def test_an_endpoint_that_is_down_makes_no_task_faulty() -> None:
    down = [failed(i, "endpoint", "infra_error") for i in range(3)]
    for attempts in (down, [*down, failed(3, "agent")]):
        assert row_of(attempts)["fault"] is None


CASES: list[tuple[list[Party], str | None]] = [
    (["agent", "agent", "agent"], None),
    (["agent", "user", "user"], "failed_by_user"),
    (["agent", "agent", "user", "task"], None),  # a half is no majority
    (["agent", "task", "task", "user"], "failed_by_task"),
    (["undetermined", "undetermined", "undetermined"], None),
    (["simulator", "simulator"], None),  # too few attempts to say never
]


@pytest.mark.parametrize(("parties", "fault"), CASES)
def test_what_nobody_passed_is_faulty_where_others_made_most_of_it_fail(
    parties: list[Party], fault: str | None
) -> None:
    assert row_of([failed(i, party) for i, party in enumerate(parties)])["fault"] == fault


def test_a_reference_that_fails_makes_a_task_faulty_whoever_failed_it() -> None:
    row = row_of([failed(i, "agent") for i in range(3)], "plan_fails: no such row")
    assert (row["fault"], row["replay_fault"]) == ("reference_fails", "plan_fails: no such row")


def test_what_somebody_passed_is_not_looked_at() -> None:
    def never(task: Row) -> Any:
        raise AssertionError("the reference was replayed")

    others = [failed(i, "user") for i in (1, 2, 3)]
    assert measured("d", "g", TASK, [passed(0), *others], never)["fault"] is None
