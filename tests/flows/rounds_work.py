"""A run in rounds in one process, without Prefect: work for the killing harness."""

import asyncio
from pathlib import Path

from flows.runtime.open_run import open_run
from synth.curation.settings.config import CurationConfig
from synth.curation.stages import CurationStage
from synth.episode.rollout import RolloutConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.difficulty import run_rounds
from synth.pipeline.stages import STAGES, RolloutStage
from synth.tasks.difficulty import DifficultyConfig
from tests.flows.pipeline_work import SMALL, run_stages

ROUNDS = SMALL.model_copy(
    update={
        "num_tasks": 6,
        "rollouts": RolloutConfig(attempts=3),
        "difficulty": DifficultyConfig(rounds=2),
    }
)


def banded(low: float, high: float) -> RunConfig:
    return ROUNDS.model_copy(update={"curation": CurationConfig(band=(low, high))})


def run_in_rounds(folder: Path, config: RunConfig = ROUNDS) -> None:
    """Every stage and every round of `config` into the dataset at `folder`."""
    asyncio.run(_run(folder, config))


async def _run(folder: Path, config: RunConfig) -> None:
    after = STAGES.index(RolloutStage) + 1
    async with open_run(config, str(folder), command="test") as run:
        await run_stages(run, STAGES[:after])
        await run_rounds(run, lambda run, stage: run.run_stage(stage))
        await run_stages(run, STAGES[after:])


def curate_again(folder: Path, config: RunConfig) -> None:
    """The decision alone, by other settings."""

    async def work() -> None:
        async with open_run(config, str(folder), command="test") as run:
            await run.run_stage(CurationStage(run))

    asyncio.run(work())
