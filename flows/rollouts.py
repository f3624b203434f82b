"""Trajectories: user, agent and tools in turns, one Prefect task per shard of episodes; and rounds,
in which pass rates are measured, tasks are derived from them, and these are played, too."""

from prefect import flow

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import joined_run, run_stages
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.stage_runner import run_stage
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.difficulty import run_rounds
from synth.pipeline.stages import RolloutStage


@flow(name="rollouts", flow_run_name="rollouts-{config.name}")
async def rollouts(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `trajectories` and `tool_calls` for the tasks that the dataset holds."""
    return await run_stages(config, dataset, [RolloutStage])


@flow(name="rounds", flow_run_name="rounds-{config.name}")
async def rounds(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `difficulty`, and derived `tasks` with their trajectories, round by round."""
    async with joined_run(config, dataset) as run:
        return await run_rounds(run, run_stage)
