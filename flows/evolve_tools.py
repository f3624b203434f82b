"""Evolution of synthetic tools: a generator writes them, workers prove them, quotas steer."""

from prefect import flow

from flows.runtime.data_root import ConfigParameter
from flows.runtime.joined_run import joined_run
from flows.runtime.settings import DEFAULT_DATASET, DatasetParameter
from flows.runtime.stage_runner import run_stage
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.evolve import evolve
from synth.engine.plans import StageReport


@flow(name="evolve-tools", flow_run_name="evolve-tools-{config.name}")
async def evolve_tools(
    config: ConfigParameter[EvolveConfig] = EvolveConfig(),
    dataset: DatasetParameter = DEFAULT_DATASET,
) -> list[StageReport]:
    """Write `tools`, `domains` and `proposals` until there are `count` tools."""
    async with joined_run(config, dataset) as run:
        return await evolve(run, run_stage)
