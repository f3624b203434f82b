"""The proof: every part of its short form at work, and what its page says of given episodes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.proof import __main__ as command
from benchmarks.proof.overlap import overlap_of
from benchmarks.proof.pace import LEAST_STEPS, steps_within
from benchmarks.proof.report import (
    POLICIES,
    difference_interval,
    parts_of_combinations,
    shortfalls,
)
from records.store.dataset import Dataset
from tests.flows.conftest import ROOT
from tests.trainer.evaluation.test_evaluation import GOOD
from tests.trainer.played_dataset import make_dataset
from trainer.evaluation.playing import EpisodeScore


@pytest.mark.slow
def test_the_short_form_makes_trains_and_scores(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.proof", "--short", "--out", tmp_path]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (tmp_path / "proof.md").read_text().strip()
    for policy in ("pretrained only", "nearest training example", "copies slots", "the teacher"):
        assert policy in done.stdout
    for kind in ("seen tools, new values", "new combination of tools", "new tools", "new domains"):
        assert kind in done.stdout
    taken = json.loads((tmp_path / "seed-0" / "steps.json").read_text())
    assert taken == {"pretrain": 20, "drills": 20, "sft": 20}


def test_a_budget_shrinks_steps_and_never_below_a_few() -> None:
    assert steps_within(10, 0.5, 3200).taken == 1020
    assert steps_within(100, 0.5, 3200).taken == 3200
    assert steps_within(-5, 0.5, 3200).taken == LEAST_STEPS
    assert steps_within(-5, 0.5, 20).taken == 20


def test_what_scored_tasks_share_with_training_is_counted(tmp_path: Path) -> None:
    """Of the training tasks themselves: every plan and every call."""
    dataset = Dataset.open(make_dataset(tmp_path / "data", num_tasks=8))
    tasks = [row for row in dataset.rows("tasks") if row["split"] == "train"]
    asked = [GOOD._replace(task_id=task["task_id"], split="train") for task in tasks]
    found = overlap_of(dataset, asked)["train"]
    assert found.tasks == len(tasks)
    assert found.plans == sum(bool(task["reference_plan"]) for task in tasks) > 0
    assert found.calls == found.calls_seen == sum(len(task["reference_plan"]) for task in tasks)


NEW = ("heldout_task", "heldout_tool", "heldout_domain")


def episodes(split: str, *, clusters: int, succeed: int) -> list[EpisodeScore]:
    """One episode of each cluster, of which the first `succeed` succeed."""
    return [
        GOOD._replace(task_id=f"{split}-{n}", split=split, cluster=f"c-{n}", success=n < succeed)
        for n in range(clusters)
    ]


def first_line(own: list[EpisodeScore], seeds: int = 3) -> str:
    others = [one._replace(success=False) for one in own]
    played = {name: [others] * seeds for name in POLICIES} | {"sft": [own] * seeds}
    return shortfalls(played, NEW).splitlines()[0]


def test_the_first_line_says_what_is_not_reached_and_how_many_seeds_ran() -> None:
    good = [one for split in NEW for one in episodes(split, clusters=20, succeed=20)]
    assert first_line(good) == "**3 seeds ran. Not reached: nothing, all 6 aims are reached.**"
    assert first_line(good, seeds=1).startswith("**1 of 3 seeds ran.")
    few = [*good[:40], *episodes("heldout_domain", clusters=20, succeed=5)]
    assert "task success on new domains: 0.25 (" in first_line(few)
    assert "new tools" not in first_line(few)
    wrong = [one._replace(valid_calls=2) for one in good]
    assert first_line(wrong).count("valid calls on") == 3


def test_too_few_new_tools_or_domains_are_a_shortfall() -> None:
    tools = episodes("heldout_tool", clusters=12, succeed=12)
    domains = episodes("heldout_domain", clusters=9, succeed=9)
    told = first_line([*episodes("heldout_task", clusters=5, succeed=5), *tools, *domains])
    assert "new tools that are scored: 12 in a seed, at least 20" in told
    assert "new domains that are scored: 9 in a seed, at least 10" in told


def test_who_learnt_nothing_and_does_as_well_is_named_by_its_share() -> None:
    """Two of two are more than three of four, whoever played fewer tasks to an end."""
    own = episodes("heldout_task", clusters=4, succeed=3)
    played = {name: [[one._replace(success=False) for one in own]] for name in POLICIES}
    played |= {"sft": [own], "slots": [episodes("heldout_task", clusters=2, succeed=2)]}
    told = shortfalls(played, ("heldout_task",))
    assert f"as good or better on new combination of tools: {POLICIES['slots']}" in told
    assert told.count("as good or better") == 1


def test_a_combination_without_a_call_has_no_known_parts() -> None:
    asked = [GOOD, GOOD._replace(known_tools=False), GOOD._replace(wanted_calls=0, exact_calls=0)]
    told = parts_of_combinations([asked])
    for words in ("all parts in training", "a part that is not", "no call is wanted"):
        [line] = [line for line in told.splitlines() if words in line]
        assert line.endswith("1 of 3 tasks")


def test_what_seeds_have_shown_is_kept_when_a_later_one_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped:
        def __init__(self, folder: Path, seed: int, **_: object) -> None:
            self._seed = seed

        def run(self) -> None:
            if self._seed == 2:
                sys.exit("stopped")

    monkeypatch.setattr(command, "SeedRun", Stopped)
    monkeypatch.setattr(command, "report", lambda runs, *, short: f"{len(runs)} seeds")
    words = ["proof", "--out", str(tmp_path), "--seeds"]
    monkeypatch.setattr(sys, "argv", [*words, "3"])
    with pytest.raises(SystemExit, match="stopped"):
        command.main()
    assert (tmp_path / "proof.md").read_text() == "2 seeds"
    monkeypatch.setattr(sys, "argv", [*words, "0"])
    with pytest.raises(SystemExit, match="2"):
        command.main()


def test_a_difference_between_policies_has_its_interval() -> None:
    same = [(f"d-{n}", 0) for n in range(9)]
    better = [(f"d-{n}", 1) for n in range(9)]
    mixed = [(f"d-{n}", n % 3 - 1) for n in range(9)]
    assert difference_interval(same) == pytest.approx((0.0, 0.0))
    assert difference_interval(better).low > 0
    low, high = difference_interval(mixed)
    assert low < 0 < high
