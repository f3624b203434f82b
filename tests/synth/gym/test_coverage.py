"""Weights raise what few tasks are about, and drawing follows them, in any order of the tasks."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.gym.core.environment import GymTask
from synth.gym.coverage import CoverageSettings, coverage, coverage_table, drawn, weights

FULL = CoverageSettings(strength=1.0, most=1000.0)


def task(number: int, *tags: str) -> GymTask:
    return GymTask(f"t{number}", "f", "train", tags, {})


TASKS = [task(n, "kind:sum") for n in range(90)] + [task(n, "kind:riddle") for n in range(90, 100)]

tagged = st.lists(
    st.lists(st.sampled_from(["kind:a", "kind:b", "level:1", "level:2", "other:x"]), max_size=3),
    min_size=1,
    max_size=30,
).map(lambda tags: [task(n, *own) for n, own in enumerate(tags)])


@given(tagged, st.floats(0, 1), st.floats(1, 20))
def test_weights_are_positive_1_on_average_and_within_their_bound(
    tasks: list[GymTask], strength: float, most: float
) -> None:
    found = weights(tasks, CoverageSettings(strength=strength, most=most))
    assert found.keys() == {one.task_id for one in tasks}
    assert sum(found.values()) / len(found) == pytest.approx(1.0)
    assert max(found.values()) <= min(found.values()) * most * (1 + 1e-9)


@given(tagged, st.randoms())
def test_the_order_of_tasks_changes_nothing(tasks: list[GymTask], rng: object) -> None:
    shuffled = list(tasks)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    found, again = weights(tasks, FULL), weights(shuffled, FULL)
    assert found == pytest.approx(again)
    assert set(drawn(tasks, found, len(tasks) // 2, 3)) == set(
        drawn(shuffled, found, len(tasks) // 2, 3)
    )


def test_full_strength_gives_every_value_of_a_lone_facet_the_same_share() -> None:
    found = weights(TASKS, FULL)
    of_riddles = sum(found[one.task_id] for one in TASKS[90:])
    assert of_riddles == pytest.approx(sum(found.values()) / 2)


def test_no_strength_leaves_all_alike() -> None:
    found = weights(TASKS, CoverageSettings(strength=0))
    assert set(found.values()) == {1.0}


def test_rarer_is_never_lighter() -> None:
    found = weights(TASKS, CoverageSettings())
    assert found["t95"] > found["t5"]


def test_a_bound_holds_what_is_very_rare_down() -> None:
    tasks = [task(n, "kind:sum") for n in range(999)] + [task(999, "kind:riddle")]
    found = weights(tasks, CoverageSettings(strength=1, most=4))
    assert found["t999"] == pytest.approx(4 * found["t0"])


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_draws_follow_the_weights(seed: int) -> None:
    found = weights(TASKS, FULL)
    first = Counter(drawn(TASKS, found, 1, seed * 1000 + n)[0] for n in range(300))
    riddles = sum(count for one, count in first.items() if int(one[1:]) >= 90)
    assert 0.35 < riddles / 300 < 0.65


def test_a_draw_repeats_no_task_and_is_the_same_for_a_seed() -> None:
    found = weights(TASKS, FULL)
    ids = drawn(TASKS, found, 60, 1)
    assert len(set(ids)) == 60
    assert ids == drawn(TASKS, found, 60, 1)
    assert ids[:20] == drawn(TASKS, found, 20, 1)
    assert ids != drawn(TASKS, found, 60, 2)
    with pytest.raises(ValueError, match="101 of 100"):
        drawn(TASKS, found, 101, 1)


def test_the_table_counts_tasks_weights_and_draws() -> None:
    found = weights(TASKS, FULL)
    rows = coverage(TASKS, found, FULL, taken=["t1", "t95", "t96"])
    assert [(row.value, row.tasks, row.share, row.drawn) for row in rows] == [
        ("riddle", 10, 0.1, 2),
        ("sum", 90, 0.9, 1),
    ]
    assert [row.weighted for row in rows] == pytest.approx([0.5, 0.5])
    lines = coverage_table(rows).splitlines()
    assert lines[2] == "| kind | riddle | 10 | 10.0% | 50.0% | 2 |"


def test_a_task_without_a_tag_of_a_facet_is_counted_as_without() -> None:
    tasks = [task(0, "kind:a"), task(1, "kind:b", "kind:a"), task(2)]
    rows = coverage(tasks, weights(tasks, FULL), FULL)
    assert [(row.facet, row.value, row.tasks) for row in rows] == [
        ("kind", "(none)", 1),
        ("kind", "b", 1),
        ("kind", "a", 2),
    ]


def test_nothing_to_weigh_is_nothing() -> None:
    assert weights([], FULL) == {}
    assert coverage([], {}, FULL) == []
