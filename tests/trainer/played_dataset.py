"""A small dataset of the real pipeline, without Prefect: tasks that can be played."""

import asyncio
from pathlib import Path
from typing import Any

from flows.runtime.open_run import open_run
from synth.episode.environment import EpisodeConfig
from synth.episode.rollout import RolloutConfig
from synth.episode.tools.fault_injection import FaultInjectionConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES

QUIET = EpisodeConfig(fault_injection=FaultInjectionConfig(weights={"success": 1.0}))


def make_dataset(
    folder: Path,
    *,
    num_tasks: int,
    domains: tuple[str, ...] = ("parcel_depot",),
    code: tuple[str, ...] = (),
    **other: Any,
) -> Path:
    config = RunConfig(
        domains=domains,
        servers=(),
        code=code,
        num_tasks=num_tasks,
        workers=1,
        rollouts=RolloutConfig(episode=QUIET),
        **other,
    )

    async def work() -> None:
        async with open_run(config, str(folder), command="test") as run:
            for kind in STAGES:
                await run.run_stage(kind(run))

    asyncio.run(work())
    return folder
