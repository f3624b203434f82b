"""What the flows that train share: one Prefect task around a training run, with its progress."""

import asyncio
from collections.abc import Iterator
from uuid import UUID

from prefect import task
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE

from flows.data_root import check_paths
from flows.joining import send_logs_to_ui
from flows.ownership import claim_this_flow_run
from trainer.curves import FILE as CURVES
from trainer.metrics import Line, read_metrics
from trainer.settings import TrainConfig
from trainer.sources import View
from trainer.training import MODEL, Trained, train

SHOWN = 20
"""Lines of metrics in the table of a finished run."""

COLUMNS = ("step", "loss", "grad_norm", "lr", "max_logit", "clipped_heads", "tokens_per_s")


async def learn(config: TrainConfig, stage: View) -> Trained:
    """Train to the end; a run that stopped goes on from its last checkpoint."""
    send_logs_to_ui()
    await claim_this_flow_run()
    check_paths(_paths(config))
    done = await training(config.model_copy(update={"stage": stage}))
    lines = read_metrics(done.folder)
    every = max(1, len(lines) // SHOWN)
    table = [{name: line[name] for name in COLUMNS} for line in lines[::-1][::every][::-1]]
    await acreate_table_artifact(key="metrics", table=table, description="A line a step, thinned")
    await acreate_markdown_artifact(
        key="trained-model",
        markdown=(
            f"{done.steps} steps, {done.skipped} of them skipped; loss {done.loss:.4f}.\n\n"
            f"- model for transformers: `{(done.folder / MODEL).resolve()}`\n"
            f"- curves: `{(done.folder / CURVES).resolve()}`\n"
        ),
    )
    return done


@task(task_run_name="training", cache_policy=NO_CACHE)  # the checkpoints are the cache
async def training(config: TrainConfig) -> Trained:
    shown = await acreate_progress_artifact(
        progress=0.0, key="progress", description=f"{config.steps} steps"
    )
    assert isinstance(shown, UUID)
    steps: asyncio.Queue[Line] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def on_step(line: Line) -> None:
        loop.call_soon_threadsafe(steps.put_nowait, line)

    watching = asyncio.create_task(_show(shown, steps, config.steps))
    try:
        return await asyncio.to_thread(train, config, on_step=on_step)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await aupdate_progress_artifact(shown, progress=100.0)


async def _show(artifact: UUID, steps: asyncio.Queue[Line], total: int) -> None:
    """Progress in whole percents: steps may be many and fast."""
    told = 0
    while True:
        line = await steps.get()
        percent = 100 * line["step"] // total
        if percent > told:
            told = percent
            await aupdate_progress_artifact(artifact, progress=float(percent))


def _paths(config: TrainConfig) -> Iterator[tuple[str, str]]:
    yield "config.out", config.out
    for source in config.data.sources:
        yield "config.data.sources.path", source.path
    if config.data.tokenizer is not None:
        yield "config.data.tokenizer", config.data.tokenizer
    if config.start_from is not None:
        yield "config.start_from", config.start_from
