"""An evolution in one process, without Prefect."""

import asyncio
from pathlib import Path
from typing import Any

from flows.runtime.open_run import open_run
from records.reading.canonical import canonical_bytes
from records.store.dataset import Dataset
from records.tables.schemas import Row
from records.tables.tables import TABLES
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.evolve import evolve
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.llm.settings.config import ModelConfig, RoleConfig
from tests.synth.catalogue.evolution.boats import BOATS, MODEL

CONTENT = [name for name, table in TABLES.items() if table.content]


def run_evolution(folder: Path, config: EvolveConfig) -> list[StageReport]:
    async def work() -> list[StageReport]:
        async with open_run(config, str(folder), command="synth tools evolve") as run:
            return await evolve(run, Run.run_stage)

    return asyncio.run(work())


def config_for(url: str, **settings: Any) -> EvolveConfig:
    own = RoleConfig(base_url=url, models=(ModelConfig(name=MODEL),), retries=0)
    given: dict[str, Any] = {"domains": (str(BOATS),), "batch_size": 12, "workers": 1}
    given |= {"shard_size": 1, "quotas": {"on": False}}
    return EvolveConfig.model_validate({"roles": {"generator": own}} | given | settings)


def content_of(folder: Path) -> dict[str, bytes]:
    dataset = Dataset.open(folder)
    return {name: canonical_bytes(dataset, name) for name in CONTENT}


def rows_of(folder: Path, table: str) -> list[Row]:
    return Dataset.open(folder).rows(table)
