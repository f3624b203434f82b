"""What the flows that train share: one Prefect task around a training run, seen as it goes."""

import asyncio
import logging
from collections.abc import Iterator
from uuid import UUID

from prefect import task
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE

from flows.runtime.data_root import check_addresses, check_paths
from flows.runtime.joined_run import send_logs_to_ui
from flows.runtime.ownership import claim_this_flow_run
from flows.training.training_artifacts import Curves, show_tables, summary, tried
from records.sources.stored_files import is_remote
from trainer.data.sources import ViewName, folder_in
from trainer.training.ending import Trained
from trainer.training.loop import train
from trainer.training.metrics import MetricsLine, told
from trainer.training.settings import TrainConfig

log = logging.getLogger("synth.flows")

STRETCHES = 20
"""How often a run draws its curves anew and logs a line of metrics, besides at its first step."""

MOST_WARNINGS = 20
"""Skipped steps that are logged; the table counts them all."""


async def learn(config: TrainConfig, stage: ViewName) -> Trained:
    """Train to the end; a run that stopped goes on from its last checkpoint. SynthError for a run
    that has gone wrong: no model comes of it."""
    send_logs_to_ui()
    await claim_this_flow_run()
    check_reads(config)
    done = await training(config.model_copy(update={"stage": stage}))
    await acreate_markdown_artifact(
        key="trained-model",
        markdown=summary(done),
        description="What the run came to, and where it lies",
    )
    return done


@task(task_run_name="training", cache_policy=NO_CACHE)  # the checkpoints are the cache
async def training(config: TrainConfig) -> Trained:
    progress = await acreate_progress_artifact(
        progress=0.0, key="progress", description=f"{config.steps:,} steps"
    )
    assert isinstance(progress, UUID)
    steps: asyncio.Queue[MetricsLine | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def on_step(line: MetricsLine) -> None:
        loop.call_soon_threadsafe(steps.put_nowait, line)

    watching = asyncio.create_task(_watch(config, steps, progress))
    try:
        done = await asyncio.to_thread(train, config, on_step=on_step)
    finally:  # what a run was like that stopped is what somebody wants to see
        steps.put_nowait(None)
        await tried(watching)
    if done.begun == done.steps:
        log.info("%s: all was done before, nothing was left to do", done.words)
        await tried(_show_all(config))
    await tried(aupdate_progress_artifact(progress, 100.0, done.words))
    return done


async def _show_all(config: TrainConfig) -> None:
    await Curves(config.folder).draw()
    await show_tables(config.folder)


async def _watch(
    config: TrainConfig, steps: asyncio.Queue[MetricsLine | None], progress: UUID
) -> None:
    """Until the queue says None. Progress moves in whole percents: steps may be many and fast."""
    curves = Curves(config.folder)
    stretch, percent, skipped = -1, -1, 0
    while (line := await steps.get()) is not None:
        step, of = line["step"], config.steps
        words = f"step {step:,} of {of:,}"
        skipped += bool(line["skipped"])
        if line["skipped"] and skipped <= MOST_WARNINGS:
            more = "; more are not logged" if skipped == MOST_WARNINGS else ""
            log.warning("%s was skipped: %s%s", words, line["why_skipped"], more)
        if STRETCHES * step // of > stretch:
            stretch = STRETCHES * step // of
            log.info("%s", told(line))
            if steps.empty():  # a picture of now: steps may be faster than drawing
                await curves.draw()
        if 100 * step // of > percent:
            percent = 100 * step // of
            await aupdate_progress_artifact(progress, float(percent), words)
    if percent >= 0:
        await curves.draw()
        await show_tables(config.folder)


def check_reads(config: TrainConfig) -> None:
    """ConfigError for a path or an address that a run from the UI may not use."""
    check_paths(_paths(config))
    check_addresses(_addresses(config))


def _paths(config: TrainConfig) -> Iterator[tuple[str, str]]:
    yield "config.out", config.out
    for source in config.data.sources:
        if not is_remote(source.path):
            yield "config.data.sources.path", source.path
        elif (folder := folder_in(source.path)) is not None:
            yield "config.data.sources.path", folder
    if config.data.tokenizer is not None:
        yield "config.data.tokenizer", config.data.tokenizer
    if config.start_from is not None:
        yield "config.start_from", config.start_from


def _addresses(config: TrainConfig) -> Iterator[tuple[str, str]]:
    for source in config.data.sources:
        if is_remote(source.path):
            yield "config.data.sources.path", source.path
