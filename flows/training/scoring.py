"""Scoring a model on held-out tasks: one Prefect task, with its progress and its table."""

import asyncio
from typing import Any
from uuid import UUID

from prefect import task
from prefect.artifacts import (
    acreate_markdown_artifact,
    acreate_progress_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE

from flows.runtime.data_root import check_paths
from records.store.dataset import Dataset
from synth.pipeline.config_files import newest_run_config
from trainer.evaluation.scoring import (
    EPISODES,
    KINDS,
    ScoreConfig,
    Scored,
    ScoreSettings,
    score,
    table,
)
from trainer.training.settings import TrainConfig


def check_scores(settings: ScoreSettings) -> None:
    """ConfigError for a dataset that has no tasks to play: before the model is trained."""
    check_paths([("scores.dataset", settings.dataset)])
    newest_run_config(Dataset.open(settings.dataset))


async def scored(config: TrainConfig, settings: ScoreSettings) -> Scored:
    """Score the model that a training run has made, and show the table."""
    given: dict[str, Any] = settings.model_dump()
    done = await scoring(ScoreConfig(**given, model=config.out, out=str(config.folder / "scores")))
    await acreate_markdown_artifact(
        key="scores",
        markdown=f"{table(done.scores)}\n\n{_notes(done)}\n",
        description="Shares of the episodes or calls, with 95% intervals",
    )
    return done


def _notes(done: Scored) -> str:
    """What the table does not count, and where the conversations are; a markdown list."""
    left_out = ", ".join(f"{n} {why}" for why, n in done.left_out.items()) or "none"
    aside = [f"{s.left_aside} of {KINDS[s.split]}" for s in done.scores if s.left_aside]
    return (
        f"- tasks left out: {left_out}\n"
        f"- episodes ended by a failure outside the agent: {', '.join(aside) or 'none'}\n"
        f"- the conversations: `{(done.folder / EPISODES).resolve()}`"
    )


@task(task_run_name="scoring", cache_policy=NO_CACHE)  # the same tasks give the same scores
async def scoring(config: ScoreConfig) -> Scored:
    shown = await acreate_progress_artifact(
        progress=0.0, key="scoring", description="episodes played"
    )
    assert isinstance(shown, UUID)
    loop = asyncio.get_running_loop()

    def on_played(done: int, of: int) -> None:
        words = f"{done} of {of} episodes played"
        coroutine = aupdate_progress_artifact(shown, 100.0 * done / of, words)
        asyncio.run_coroutine_threadsafe(coroutine, loop)

    return await asyncio.to_thread(score, config, on_played=on_played)
