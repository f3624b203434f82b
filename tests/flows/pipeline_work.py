"""The whole pipeline in one process, without Prefect: work for the killing harness."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flows.runtime.open_run import open_run
from records.reading.canonical import canonical_bytes
from records.store.dataset import Dataset
from records.tables.tables import TABLES
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.judging.stages import may_want_more
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES, CalibrationStage
from synth.tasks.config import TaskConfig
from synth.tasks.forms.forms import ALL_PLAIN

SMALL = RunConfig(
    name="small",
    seed=6,  # two trajectories are accepted, and one is not
    domains=("clinic_desk", "web_shop"),
    servers=(),
    code=(),
    num_tasks=3,
    shard_size=2,
    tasks=TaskConfig(forms=ALL_PLAIN),  # of which the offline model plays little
)


def run_pipeline(folder: Path, config: RunConfig = SMALL) -> None:
    """Every stage of `config` into the dataset at `folder`."""
    asyncio.run(_run(folder, config))


async def _run(folder: Path, config: RunConfig) -> None:
    async with open_run(config, str(folder), command="test") as run:
        await run_stages(run, STAGES)


async def run_stages(run: Run[Any], stages: Iterable[Callable[[Any], Stage]]) -> None:
    """Each in turn; the trial of the judge until it asks for nothing new."""
    for make_stage in stages:
        report = await run.run_stage(make_stage(run))
        while make_stage is CalibrationStage and may_want_more(report):
            report = await run.run_stage(make_stage(run))


def content_of(folder: Path) -> dict[str, bytes]:
    """Canonical bytes of every content table."""
    dataset = Dataset.open(folder)
    return {name: canonical_bytes(dataset, name) for name, table in TABLES.items() if table.content}
