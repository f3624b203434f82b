"""What failed, or was asked for and then not, is made by a later command and never paid twice."""

import asyncio
import shutil
from pathlib import Path

import pytest

from flows.runtime.open_run import open_run
from offline_llm.settings.settings import Misbehaviour
from records.store.dataset import Dataset
from synth.engine.job_config import OfflineConfig
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES, TaskStage
from tests.flows.pipeline_work import SMALL, content_of, run_pipeline


async def retried(folder: Path, config: RunConfig) -> list[StageReport]:
    async with open_run(config, str(folder), command="test", retry_failed=True) as run:
        return [await run.run_stage(make_stage(run)) for make_stage in STAGES]


async def plan_tasks_and_die(folder: Path, config: RunConfig) -> None:
    """What a run leaves that is killed before its first shard of tasks is committed."""
    async with open_run(config, str(folder), command="test") as run:
        for make_stage in STAGES[: STAGES.index(TaskStage)]:
            await run.run_stage(make_stage(run))
        run.plan(TaskStage(run))


@pytest.mark.slow
def test_items_that_answers_failed_are_asked_anew_and_kept(tmp_path: Path) -> None:
    broken = OfflineConfig(misbehave=Misbehaviour(malformed=0.75))
    config = SMALL.model_copy(update={"offline": broken, "max_failed": 1.0})
    run_pipeline(tmp_path / "d", config)
    dataset = Dataset.open(tmp_path / "d")
    failed = [s for s in dataset.item_statuses("personas").values() if s.status == "failed"]
    assert failed
    reports = asyncio.run(retried(tmp_path / "d", SMALL))
    assert [report.failed for report in reports] == [0] * len(reports)
    paid = [row["call_id"] for row in dataset.rows("llm_calls")]
    assert len(paid) == len(set(paid))


@pytest.mark.slow
def test_a_retry_of_what_was_kept_asks_nothing(tmp_path: Path, small_run: Path) -> None:
    shutil.copytree(small_run, tmp_path / "d")
    before, calls = content_of(tmp_path / "d"), Dataset.open(tmp_path / "d").ids("llm_calls")
    asyncio.run(retried(tmp_path / "d", SMALL))
    after = Dataset.open(tmp_path / "d").rows("llm_calls")
    assert content_of(tmp_path / "d") == before
    assert {row["stage"] for row in after if row["call_id"] not in calls} <= {"probe"}


@pytest.mark.slow
def test_a_shard_can_be_finished_after_fewer_items_were_asked_for(tmp_path: Path) -> None:
    more = SMALL.model_copy(update={"num_tasks": 5, "shard_size": 3})
    asyncio.run(plan_tasks_and_die(tmp_path / "d", more))
    run_pipeline(tmp_path / "d", SMALL.model_copy(update={"num_tasks": 2}))
    run_pipeline(tmp_path / "d", more)
    run_pipeline(tmp_path / "whole", more)
    tasks = [content_of(tmp_path / name)["tasks"] for name in ("d", "whole")]
    assert tasks[0] == tasks[1]
