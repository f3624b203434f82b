"""A small dataset of the real pipeline, without Prefect: tasks that can be played."""

import asyncio
from pathlib import Path

from flows.runtime.running import open_run
from synth.episode.environment import EpisodeConfig
from synth.episode.rollout import RolloutConfig
from synth.episode.tools.fault_injection import OutcomeConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES

QUIET = EpisodeConfig(fault_injection=OutcomeConfig(weights={"success": 1.0}))


def make_dataset(folder: Path, *, num_tasks: int) -> Path:
    config = RunConfig(
        domains=("parcel_depot",),
        servers=(),
        code=(),
        num_tasks=num_tasks,
        workers=1,
        rollouts=RolloutConfig(episode=QUIET),
    )

    async def work() -> None:
        async with open_run(config, str(folder), command="test") as run:
            for kind in STAGES:
                stage = kind(run)
                plan = run.plan(stage)
                for index in plan.open_shards:
                    await run.run_shard(stage, plan, index)

    asyncio.run(work())
    return folder
