"""The figures of reinforcement learning: that what is measured is what is said, at tiny sizes."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks import bench_families, bench_grpo, bench_rollouts
from benchmarks.grpo_sums import ENVIRONMENT, TASKS, answer_of
from benchmarks.grpo_ways import GrpoCourse, GrpoPlan, fine_tuned, ours, tasks_of, with_trl
from benchmarks.rl_tables import tables
from records.seeds import rng_of
from tests.trainer.configs import small
from trainer.data.sources import CorpusConfig, samples_of

PLAN = GrpoPlan(iterations=2, prompts=3, samples=2, tokens=6, lr=1e-3)

SHAPE = small(vocab_size=320, init_std=0.05, max_positions=512)


def by_name(measurements: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [one for one in measurements if one["name"] == name]


@pytest.mark.parametrize(("family", "whole"), [("reasoning", 1.0), ("instructions", None)])
def test_steps_of_a_family_are_counted_and_its_right_answers_taken(
    family: str, whole: float | None, tmp_path: Path
) -> None:
    options = Namespace(seconds=0.05, at_once=[1, 3], repeats=2)
    alone, together = bench_families.measurements(family, options, tmp_path)
    for measured in (alone, together):
        assert measured["steps"] >= 2
        assert measured["n"] == 2
        assert measured["value"] > 0
        assert measured["outside_share"] == 0
        assert measured["whole_share"] == whole if whole else 0 <= measured["whole_share"] < 1


def test_every_question_of_the_file_of_quotients_has_an_answer_in_another_form(
    tmp_path: Path,
) -> None:
    gym = bench_families.Gym.of(
        bench_families.GymConfig(families={"maths": bench_families.quotients(tmp_path)})
    )
    tasks = gym.tasks()
    answers = bench_families.slashed(tasks)
    assert len(answers) == len(tasks)
    assert all(str(t.body["answer"]) not in a for t, a in zip(tasks, answers, strict=True))


@pytest.mark.slow
def test_episodes_in_flight_are_measured_to_their_end(tmp_path: Path) -> None:
    options = Namespace(preset="tiny", slots=2, in_flight=[1, 4], delay=0.01, repeats=1, threads=1)
    shape = SHAPE.model_copy(update={"max_positions": 1024})
    measured = list(bench_rollouts.measurements(options, tmp_path, shape=shape))
    rollouts = by_name(measured, "rollouts")
    parameters = [
        (m["parameters"]["in_flight"], m["parameters"]["deterministic"]) for m in rollouts
    ]
    assert parameters == [(1, False), (4, False), (2, True)]
    for one in rollouts:
        assert one["completed_share"] == 1.0
        assert 0 < one["occupancy"]["value"] <= 1
        assert 0 <= one["waiting_share"]["value"] < 1
    apart, shared = sorted(
        by_name(measured, "rollouts_read"), key=lambda m: m["parameters"]["shared"]
    )
    assert shared["value"] < apart["value"]
    (weights,) = by_name(measured, "rollouts_weights")
    assert weights["value"] > 0
    table = tables(measured, {"commit": "1234"})
    assert f"| 2, deterministic | {rollouts[2]['value']:,} (" in table
    assert f"| tokens read, beginnings shared: True | {shared['value']:,} | tokens |" in table


def test_answers_without_mistakes_are_right_and_with_mistakes_the_share_of_steps_is_wrong() -> None:
    tasks = ENVIRONMENT.tasks()
    assert len({task.task_id for task in tasks}) == len(tasks) == TASKS
    right = [answer_of(t.body["numbers"], rng_of(t.task_id, "x"), mistakes=0.0) for t in tasks]
    assert all(ENVIRONMENT.reward(*pair).value == 1 for pair in zip(tasks, right, strict=True))
    lines = [
        line.split(" = ")
        for t in tasks
        for line in answer_of(t.body["numbers"], rng_of(t.task_id, "x"), mistakes=0.2).splitlines()
        if " = " in line
    ]
    wrong = [sum(map(int, said.split(" + "))) != int(total) for said, total in lines]
    assert sum(wrong) / len(wrong) == pytest.approx(0.2, abs=0.04)
    assert ENVIRONMENT.reward(tasks[0], "").value == 0


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fine_tuned(tmp_path_factory.mktemp("sums"), SHAPE, 2, mistakes=0.1)


def check(course: GrpoCourse) -> None:
    assert [len(numbers) for numbers in course] == [PLAN.iterations] * 4
    assert all(0 <= reward <= 1 for reward in course.rewards)
    assert all(PLAN.episodes <= drawn <= PLAN.episodes * PLAN.tokens for drawn in course.drawn)
    pairs = zip(course.play_s, course.iteration_s, strict=True)
    assert all(0 < played < whole for played, whole in pairs)


@pytest.mark.slow
def test_ours_plays_the_tasks_that_are_told_beforehand(start: Path, tmp_path: Path) -> None:
    check(ours(start, tmp_path / "run", PLAN, 3, muon=False))
    for path, tasks in zip(
        sorted((tmp_path / "run" / "samples").glob("*.parquet")), tasks_of(PLAN, 3), strict=True
    ):
        played = pq.read_table(path, columns=["task_id"]).column("task_id").to_pylist()
        assert played == [task.task_id for task in tasks for _ in range(PLAN.samples)]


@pytest.mark.slow
def test_trl_takes_as_many_iterations_of_the_same_prompts(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("trl", reason="TRL is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    check(with_trl(start, tmp_path / "run", PLAN, 3))


def test_figures_leave_the_first_iteration_out_of_times_and_not_out_of_rewards() -> None:
    slow = GrpoCourse(
        rewards=[0.0, 0.25, 0.5, 1.0],
        drawn=[10, 20, 20, 20],
        play_s=[9.0, 1.0, 1.0, 1.0],
        iteration_s=[50.0, 2.0, 4.0, 3.0],
    )
    quick = slow._replace(iteration_s=[50.0, 1.0, 2.0, 1.0], rewards=[0.5] * 4)
    told = bench_grpo.figures([slow, quick, slow])
    assert (told["value"], told["range"], told["n"]) == (3.0, [1.0, 3.0], 3)
    assert told["playing_share"]["range"] == [0.33, 0.75]
    assert told["tokens_per_s"]["range"] == [7, 15]  # 60 tokens in 9 s, and in 4
    assert told["playing_tokens_per_s"]["range"] == [20, 20]
    assert told["reward_first"]["range"] == [0.0, 0.5]
    assert told["reward_last"]["value"] == 1.0
    assert told["curve"] == [0.0, 0.25, 0.5, 1.0]
    assert "| TRL | 3.0 (1.0 to 3.0) | 0.33 (0.33 to 0.75) |" in tables(
        [{"name": "grpo", "way": "TRL", **told}], {}
    )


@pytest.mark.slow
def test_each_way_runs_by_itself_and_is_compared(tmp_path: Path) -> None:
    options = Namespace(**PLAN._asdict(), steps=2, repeats=2, threads=1)
    ways = ("ours, AdamW", "ours")
    one, other, ratio = bench_grpo.measurements(options, tmp_path, ways=ways, shape=SHAPE)
    assert [one["way"], other["way"], ratio["way"]] == ["ours, AdamW", "ours", "ours"]
    assert len(one["curve"]) == PLAN.iterations
    assert one["reward_first"]["n"] == ratio["n"] == 2
    assert ratio["value"] > 0
    assert "| ours, AdamW | " in tables([one, other, ratio], {})


@pytest.mark.slow
def test_rows_for_fine_tuning_are_conversations(start: Path) -> None:
    rows = samples_of(CorpusConfig(path=str(start.parents[1] / "rows.jsonl")), "sft")
    first = next(rows).body
    assert not isinstance(first, str)
    assert [message["role"] for message in first.messages] == ["system", "user", "assistant"]
