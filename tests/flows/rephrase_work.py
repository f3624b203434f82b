"""A whole rephrasing in one process, without Prefect: work for the killing harness."""

import asyncio
from pathlib import Path

from flows.runtime.open_run import open_run
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.rephrase import rephrase
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig

LENIENT = FidelityConfig(
    min_numbers=0.0,
    max_new_numbers=1000,
    min_names=0.0,
    max_new_names=1000,
    min_quotations=0.0,
    lost_at=0.0,
    added_at=0.0,
    min_recall=0.0,
    min_precision=0.0,
    min_length=0.0,
    max_length=100.0,
    max_repetition=1.0,
    max_copied=1.0,
)
"""Keeps most of what the offline model writes: these tests are about the pipeline."""

SMALL = RephraseConfig(
    name="small",
    sources=(
        SourceConfig(path="cpython", max_documents=5),
        SourceConfig(path="maths", kind="maths", max_documents=3),
    ),
    chunk_tokens=128,
    max_document_tokens=512,
    fidelity=LENIENT,
    shard_size=6,
    max_failed=1.0,
)


def run_rephrase(folder: Path, config: RephraseConfig = SMALL, *, retry_failed: bool = False):
    """Every stage of `config` into the dataset at `folder`; a report each."""
    return asyncio.run(_run(folder, config, retry_failed))


async def _run(folder: Path, config: RephraseConfig, retry_failed: bool) -> list[StageReport]:
    command = "synth rephrase test.toml"
    async with open_run(config, str(folder), command=command, retry_failed=retry_failed) as run:
        return await rephrase(run, Run.run_stage)
