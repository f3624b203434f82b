"""Rounds of difficulty: pass rates measured, tasks derived from them, and their rollouts."""

from prefect import flow

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import joined_run
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.stage_runner import run_stage
from synth.engine.plans import StageReport
from synth.pipeline.config import RunConfig
from synth.pipeline.difficulty import run_rounds


@flow(name="rounds", flow_run_name="rounds-{config.name}")
async def rounds(
    config: ConfigParameter[RunConfig] = RunConfig(), dataset: DatasetParameter = DEFAULT_DATASET
) -> list[StageReport]:
    """Write `difficulty`, and derived `tasks` with their trajectories, round by round."""
    async with joined_run(config, dataset) as run:
        return await run_rounds(run, run_stage)
