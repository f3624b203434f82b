"""Reinforcement learning on environments with verifiable rewards, one iteration after another."""

from collections.abc import Iterator
from uuid import UUID

from prefect import flow, task
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE

from flows.runtime.data_root import check_paths
from flows.runtime.joined_run import send_logs_to_ui
from flows.runtime.ownership import claim_this_flow_run
from flows.training.rl_artifacts import show_iterations, show_samples, summary_of
from flows.training.training_artifacts import Curves
from trainer.data.sources import folder_in
from trainer.rl.loop import finished, opened_run
from trainer.rl.plots import plots_of
from trainer.rl.run import Reinforced, RLRun
from trainer.rl.settings import RLConfig
from trainer.training.metrics import MetricsLine


@flow(name="rl", flow_run_name="rl-{config.out}")
async def rl(config: RLConfig) -> Reinforced:
    """Learn from rewards; run again, it goes on from the last checkpoint. Rollouts, samples,
    checkpoints, curves and the model for transformers lie in `out`."""
    send_logs_to_ui()
    await claim_this_flow_run()
    check_rl_reads(config)
    progress = await acreate_progress_artifact(
        progress=0.0, key="progress", description=f"{config.iterations:,} iterations"
    )
    assert isinstance(progress, UUID)
    curves = Curves(config.folder, plots_of, axis="iteration")
    async with opened_run(config) as run:
        await measuring_the_start(run)
        while not run.ended:
            await iteration(run, run.done + 1)
            words = f"iteration {run.done:,} of {config.iterations:,}"
            await aupdate_progress_artifact(progress, 100.0 * run.done / config.iterations, words)
            await curves.draw()
            await show_iterations(config.folder)
            await show_samples(config.folder, run.done - 1)
        done = await scoring_and_export(run)
    await acreate_markdown_artifact(
        key="trained-model",
        markdown=summary_of(done),
        description="What the run came to, and where it lies",
    )
    return done


# the run's folder is the cache of all three


@task(task_run_name="measuring-the-start", cache_policy=NO_CACHE)
async def measuring_the_start(run: RLRun) -> MetricsLine | None:
    """Validate the weights that a new run begins with."""
    return await run.begin()


@task(task_run_name="iteration-{number}", cache_policy=NO_CACHE)
async def iteration(run: RLRun, number: int) -> MetricsLine:
    """Play, learn, send the weights, measure, keep."""
    del number  # it names the task
    return await run.iterate()


@task(task_run_name="scoring-and-export", cache_policy=NO_CACHE)
async def scoring_and_export(run: RLRun) -> Reinforced:
    """Score what is held out, and write the model."""
    return await finished(run)


def check_rl_reads(config: RLConfig) -> None:
    """ConfigError for a path that a run from the UI may not use, and for programs."""
    check_paths(_paths(config))


def _paths(config: RLConfig) -> Iterator[tuple[str, str]]:
    yield "config.out", config.out
    yield "config.start_from", config.start_from
    for source in config.good:
        if (folder := folder_in(source.path)) is not None:
            yield "config.good.path", str(folder)
