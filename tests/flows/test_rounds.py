"""A run in rounds: what is derived from what, killed and resumed, and the band decided anew."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.curation.deciding import OUTSIDE_BAND
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import check_sources
from synth.tasks.difficulty import EASIER, HARDER
from tests.flows.pipeline_work import content_of
from tests.flows.rounds_work import ROUNDS, banded, curate_again, run_in_rounds
from tests.killing import run

KILLS = 2
"""Points at which the default test kills a run, drawn over all of them."""


class Undisturbed(NamedTuple):
    folder: Path
    points: int
    """At which it could be killed."""
    content: dict[str, bytes]
    requests: list[str]
    """That were paid."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("rounds") / "d"
    points = run(run_in_rounds, folder).points
    return Undisturbed(folder, points, content_of(folder), paid(Dataset.open(folder)))


@pytest.fixture(scope="module")
def whole(undisturbed: Undisturbed) -> Path:
    """Its dataset, which tests may decide about anew."""
    return undisturbed.folder


def by_task(dataset: Dataset) -> dict[str, Row]:
    return {row["task_id"]: row for row in dataset.rows("difficulty")}


def paid(dataset: Dataset) -> list[str]:
    """Requests of items that were answered and not taken from the cache, sorted."""
    query = """SELECT request_hash FROM llm_calls
        WHERE NOT cache_hit AND status = 'ok' AND stage != 'probe' ORDER BY 1"""
    with dataset.connect() as db:
        return [request for (request,) in db.execute(query).fetchall()]


@pytest.mark.slow
def test_every_child_is_harder_or_easier_by_its_parents_rate(whole: Path) -> None:
    dataset = Dataset.open(whole)
    measured = by_task(dataset)
    children = [task for task in dataset.rows("tasks") if task["parent_task_id"]]
    assert {task["round"] for task in children} >= {1}
    for task in children:
        parent = measured[task["parent_task_id"]]
        rate = parent["c"] / parent["n"]
        assert task["operator"] in (HARDER if rate > ROUNDS.difficulty.target else EASIER)
        assert task["round"] == parent["round"] + 1
        own = measured[task["task_id"]]
        assert (own["operator"], own["round"]) == (task["operator"], task["round"])


@pytest.mark.slow
def test_every_task_has_its_attempts_and_its_rate(whole: Path) -> None:
    dataset = Dataset.open(whole)
    measured = by_task(dataset)
    assert measured.keys() == dataset.ids("tasks")
    for row in measured.values():
        attempts = [t for t in dataset.rows("trajectories") if t["task_id"] == row["task_id"]]
        assert len(attempts) == ROUNDS.rollouts.attempts
        assert row["n"] <= len(attempts)
        assert len(row["pass_at_k"]) == len(row["pass_hat_k"]) == row["n"]
        if row["n"]:
            assert row["pass_at_k"][0] == pytest.approx(row["c"] / row["n"])
            assert row["pass_hat_k"][0] == pytest.approx(row["c"] / row["n"])


@pytest.mark.slow
def test_the_same_run_again_makes_nothing_and_pays_nothing(whole: Path) -> None:
    before, requests = content_of(whole), paid(Dataset.open(whole))
    run_in_rounds(whole)
    assert content_of(whole) == before
    assert paid(Dataset.open(whole)) == requests


@pytest.mark.slow
def test_killed_anywhere_the_same_command_completes_and_pays_nothing_twice(
    tmp_path: Path, undisturbed: Undisturbed
) -> None:
    _, points, expected, requests = undisturbed
    assert len(requests) == len(set(requests))
    # rounds come in the second half of a run
    for kill_at in sorted(random.Random(5).sample(range(points // 3, points), KILLS)):
        folder = tmp_path / f"killed-{kill_at}"
        assert run(run_in_rounds, folder, kill_at=kill_at).killed
        assert not run(run_in_rounds, folder).killed
        assert content_of(folder) == expected, f"killed at point {kill_at}"
        assert paid(Dataset.open(folder)) == requests, f"killed at point {kill_at}"


@pytest.mark.slow
def test_another_band_decides_anew_without_new_rollouts(whole: Path) -> None:
    dataset = Dataset.open(whole)
    trajectories = dataset.ids("trajectories")

    def accepted() -> tuple[set[str], set[str]]:
        """Tasks with an accepted trajectory, and those with one outside the band."""
        query = f"""SELECT task_id, accepted FROM trajectories
            WHERE accepted OR drop_reason = '{OUTSIDE_BAND}'"""
        with Dataset.open(whole).connect() as db:
            rows = db.execute(query).fetchall()
        return {t for t, kept in rows if kept}, {t for t, kept in rows if not kept}

    rates = {i: row["c"] / row["n"] for i, row in by_task(dataset).items() if row["n"]}
    passed = [rate for rate in rates.values() if rate]
    for low, high in ((0.0, max(passed) - 0.01), (min(passed) + 0.01, 1.0)):
        curate_again(whole, banded(low, high))
        kept, outside = accepted()
        assert all(low <= rates[i] <= high for i in kept)
        assert outside
        assert not any(low <= rates[i] <= high for i in outside)
    assert Dataset.open(whole).ids("trajectories") == trajectories


def test_one_attempt_measures_no_pass_rate() -> None:
    with pytest.raises(ConfigError, match=r"rollouts\.attempts must be at least 2"):
        check_sources(RunConfig.model_validate({"difficulty": {"rounds": 1}}))
