"""Trajectories: user, agent and tools in turns, one Prefect task per shard of episodes."""

from prefect import flow

from flows.runtime.joining import joined_run
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.shard_tasks import run_stage
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import RolloutStage


@flow(name="rollouts", flow_run_name="rollouts-{config.name}")
async def rollouts(
    config: RunConfig = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `trajectories` and `tool_calls` for the tasks that the dataset holds."""
    async with joined_run(config, dataset) as run:
        return [await run_stage(run, RolloutStage(run))]
