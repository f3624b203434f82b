"""What fails around an item leaves it pending: the same command makes it, and pays for nothing
twice."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from records.errors import PendingError
from records.store.dataset import Dataset
from synth.judging.calibration import JudgingConfig
from tests.flows.endpoint_work import Endpoint, about, at, first_of, newest_end, paid, run
from tests.flows.pending_work import down_file, run_short
from tests.flows.pipeline_work import content_of
from tests.killing import run as harness
from tests.killing import spread
from tests.synth.llm.server import serve

pytestmark = pytest.mark.slow

KILLS = 2
"""Points of a run, spread over it, at which it is killed during an outage and after it."""


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Without the waits between attempts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synth.engine.shard_maker.ITEM_RETRY_S", 0.0)
        patch.setattr("synth.episode.rollout.INFRA_WAIT_S", 0.0)
        yield


UNTRIED = JudgingConfig(perturbed_share=0.0)


class Unfailed(NamedTuple):
    """A run that met no failure, what it paid, and what its endpoint was asked."""

    folder: Path
    content: dict[str, bytes]
    paid: Counter[tuple[str, ...]]
    endpoint: Endpoint


def unfailed(folder: Path, **changes: object) -> Unfailed:
    async def whole() -> Endpoint:
        endpoint = Endpoint()
        async with serve(endpoint.script) as server:
            await run(folder, at(server, **changes))
        return endpoint

    endpoint = asyncio.run(whole())
    return Unfailed(folder, content_of(folder), paid(folder), endpoint)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Unfailed:
    return unfailed(tmp_path_factory.mktemp("whole") / "d")


@pytest.fixture(scope="module")
def untried(tmp_path_factory: pytest.TempPathFactory) -> Unfailed:
    """Without a trial of the judge, which asks it in the same words."""
    folder = tmp_path_factory.mktemp("untried") / "d"
    return unfailed(folder, judging=UNTRIED)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("stage", ["agents", "personas", "tasks", "rollouts", "grading"])
def test_the_same_command_makes_what_an_endpoint_failed(
    stage: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """And comes to the bytes of a run that met no failure, with nothing paid twice."""
    changes = {"judging": UNTRIED} if stage == "grading" else {}
    expected: Unfailed = request.getfixturevalue("untried" if changes else "whole")

    async def both() -> None:
        endpoint = Endpoint()
        async with serve(endpoint.script) as server:
            config = at(server, **changes)
            endpoint.broken = about(min(expected.endpoint.bodies(stage), key=json.dumps))
            first = await run(tmp_path / "d", config)
            short = {report.stage: report for report in first if report.vain}
            assert set(short) == {stage}
            assert short[stage].pending >= sum(short[stage].vain.values()) >= 1
            assert short[stage].failed == 0
            assert "curation" not in {report.stage for report in first}
            status, detail = newest_end(tmp_path / "d")
            assert status == "pending"
            assert stage in detail
            endpoint.broken = lambda body: False
            second = await run(tmp_path / "d", config)
            assert [report.stage for report in second if report.pending] == []
            assert newest_end(tmp_path / "d")[0] == "completed"

    asyncio.run(both())
    assert content_of(tmp_path / "d") == expected.content
    assert paid(tmp_path / "d") == expected.paid
    assert max(expected.paid.values()) == 1


@pytest.mark.usefixtures("quick")
def test_after_so_many_invocations_it_counts_as_failed_until_it_is_asked_for(
    tmp_path: Path, whole: Unfailed
) -> None:
    folder = tmp_path / "d"

    async def all_of_it() -> None:
        endpoint = Endpoint()
        async with serve(endpoint.script) as server:
            config = at(server, around_attempts=2)
            endpoint.broken = about(min(whole.endpoint.bodies("rollouts"), key=json.dumps))
            [first] = [r for r in await run(folder, config) if r.stage == "rollouts"]
            assert (first.failed, first.vain) == (0, {"infra_error": 1})
            second = {report.stage: report for report in await run(folder, config)}
            assert second["rollouts"].troubles == {"infra_error": 1}
            assert (second["rollouts"].failed, second["rollouts"].pending) == (1, 0)
            assert second["curation"].kept == 1  # nothing is pending any more
            asked = len(server.requests)
            third = {report.stage: report for report in await run(folder, config)}
            probes = len(config.roles)
            assert len(server.requests) <= asked + 3 * probes
            assert third["rollouts"].failed == 1
            again = at(server, around_attempts=5)  # no part of the identity: it is open again
            [fourth] = [r for r in await run(folder, again) if r.stage == "rollouts"]
            assert (fourth.failed, fourth.vain) == (0, {"infra_error": 1})
            endpoint.broken = lambda body: False
            last = await run(folder, config, retry_failed=True)
            assert [report.failed for report in last] == [0] * len(last)

    asyncio.run(all_of_it())
    rows = [Dataset.open(path).rows("trajectories") for path in (folder, whole.folder)]
    assert rows[0] == rows[1]
    assert max(paid(folder).values()) == 1


@pytest.mark.usefixtures("quick")
def test_what_an_earlier_version_committed_as_failed_is_opened_again(
    tmp_path: Path, whole: Unfailed
) -> None:
    """It gave every item up at once, as one invocation's failure, with a row of it."""
    folder = tmp_path / "d"

    async def all_of_it() -> None:
        endpoint = Endpoint()
        async with serve(endpoint.script) as server:
            endpoint.broken = about(min(whole.endpoint.bodies("rollouts"), key=json.dumps))
            earlier = await run(folder, at(server, around_attempts=1))
            assert sum(report.failed for report in earlier) == 1
            _forget_details(folder)
            endpoint.broken = lambda body: False
            await run(folder, at(server))

    asyncio.run(all_of_it())
    made = content_of(folder)
    decided = {"calibration", "curation"}  # over what there was, and then over everything
    assert {t for t in made if made[t] != whole.content[t]} <= decided
    assert max(paid(folder).values()) == 1


def _forget_details(folder: Path) -> None:
    """Commits as they were before statuses had words: two elements each."""
    for path in (folder / "commits").glob("*.json"):
        commit = json.loads(path.read_bytes())
        commit["items"] = {i: status[:2] for i, status in commit["items"].items()}
        path.write_text(json.dumps(commit))


@pytest.mark.usefixtures("quick")
def test_more_than_max_failed_ends_the_run_at_its_stage_with_the_server_s_words(
    tmp_path: Path,
) -> None:
    async def all_of_it() -> str:
        endpoint = Endpoint()
        endpoint.broken = first_of("personas")
        async with serve(endpoint.script) as server:
            reports = await run(tmp_path / "d", at(server))
            [personas] = [report for report in reports if report.stage == "personas"]
            assert personas.pending == 1
            with pytest.raises(PendingError, match=r"personas.*max_failed = 0") as met:
                personas.check(0.0)
            personas.check(1 / personas.requested)
            return str(met.value)

    words = asyncio.run(all_of_it())
    assert "endpoint_unavailable" in words
    assert "\x1b" not in words
    assert "answered 500" in words
    [row] = [r for r in Dataset.open(tmp_path / "d").rows("stages") if r["details"]]
    assert row["pending"] == len(row["details"]) == 1
    assert row["requested"] == row["kept"] + row["pending"]
    assert set(row["items"].values()) == {"endpoint_unavailable"}


def test_killed_while_items_are_pending_the_same_command_completes(tmp_path: Path) -> None:
    points = harness(run_short, tmp_path / "whole").points
    expected = content_of(tmp_path / "whole")
    kills = 0
    for kill_at in spread(points, KILLS, seed=3):
        folder = tmp_path / f"killed-{kill_at}"
        down_file(folder).touch()
        kills += harness(run_short, folder, kill_at=kill_at).killed
        harness(run_short, folder)
        assert content_of(folder)["agents"] != expected["agents"]
        down_file(folder).unlink()
        kills += harness(run_short, folder, kill_at=kill_at // 2 + 1).killed  # less is left to do
        harness(run_short, folder)
        assert content_of(folder) == expected, f"killed at point {kill_at}"
    assert kills > KILLS
