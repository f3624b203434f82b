"""Trajectories: user, agent and tools in turns, one Prefect task per shard of episodes."""

from prefect import flow

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import run_stages
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import RolloutStage


@flow(name="rollouts", flow_run_name="rollouts-{config.name}")
async def rollouts(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `trajectories` and `tool_calls` for the tasks that the dataset holds."""
    return await run_stages(config, dataset, [RolloutStage])
