"""Trajectories: user, agent and tools in turns, one Prefect task per shard of episodes."""

from prefect import flow

from flows.running import open_run
from flows.settings import DEFAULT_DATASET
from flows.shard_tasks import run_stage
from synth.config import RunConfig
from synth.pipeline import RolloutStage
from synth.run import StageReport


@flow(name="rollouts", flow_run_name="rollouts-{config.name}")
async def rollouts(
    config: RunConfig = RunConfig(), dataset: str = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `trajectories` and `tool_calls` for the tasks that the dataset holds."""
    async with open_run(config, dataset, command="rollouts") as run:
        return [await run_stage(run, RolloutStage(run))]
