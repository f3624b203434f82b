"""Trajectories: user, agent and tools in turns, one Prefect task per shard of episodes."""

from prefect import flow

from flows.joining import joined_run
from flows.settings import DEFAULT_DATASET, DatasetParameter
from flows.shard_tasks import run_stage
from synth.config import RunConfig
from synth.pipeline import RolloutStage
from synth.run import StageReport


@flow(name="rollouts", flow_run_name="rollouts-{config.name}")
async def rollouts(
    config: RunConfig = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `trajectories` and `tool_calls` for the tasks that the dataset holds."""
    async with joined_run(config, dataset) as run:
        return [await run_stage(run, RolloutStage(run))]
