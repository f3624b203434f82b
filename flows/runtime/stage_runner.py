"""The stage runner: one stage as Prefect tasks, a task for each request to the executor.

With the executor of this machine a request is one shard. Prefect owns shards (names, retries,
progress, logs); `synth` owns items. The committed shard is the cache, so Prefect persists nothing.
"""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from prefect import State, task
from prefect.artifacts import (
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from records.errors import TransientError
from synth.engine.plans import ShardReport, StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.render.foreign_text import markdown_text

log = logging.getLogger("synth.flows")


async def is_transient(_task: object, _run: object, state: State) -> bool:
    return isinstance(await state.aresult(raise_on_failure=False), TransientError)


def yield_row(report: StageReport) -> dict[str, str | int]:
    """For a table artifact, whose cells the UI shows as markdown: what a server said is no markup
    there."""
    return report.row() | {"example": markdown_text(report.example)}


async def run_stage(run: Run[Any], stage: Stage) -> StageReport:
    """Run every shard of a stage that is not committed yet, and report the whole stage.

    A stop (budget spent, endpoint refusing) lets shards in flight end, since what they were
    answered is journalled, and is raised once all have. Other failures are collected and raised
    together.
    """
    plan = await asyncio.to_thread(run.plan, stage)
    progress = await acreate_progress_artifact(
        progress=0.0 if plan.open_shards else 100.0,
        key=f"{stage.name}-progress",
        description=f"{stage.name}: {len(plan.open_shards)} shards to do, "
        f"{plan.num_reused} of {plan.num_items} items already committed",
    )

    @task(
        name=f"{stage.name}-shard",
        task_run_name=f"{stage.name}-{{number:05d}}",
        tags=[f"stage:{stage.name}"],
        retries=2,
        retry_delay_seconds=exponential_backoff(backoff_factor=2),
        retry_jitter_factor=0.5,
        retry_condition_fn=is_transient,
        cache_policy=NO_CACHE,
        persist_result=False,
    )
    async def run_shards(number: int, indexes: Sequence[int]) -> None:
        """The shards of one request to the executor; `number`, the first of them, names the task.
        A retry leaves alone those that an earlier try has committed."""
        left = [index for index in indexes if index not in reports]
        async with aclosing(run.run_shards(stage, plan, left)) as made:
            async for report in made:
                reports[report.index] = report
                log.info("%s shard %d: %s", stage.name, report.index, report.summary())

    reports: dict[int, ShardReport] = {}

    limit_s = run.config.stage_seconds.get(stage.name, math.inf)
    begun = run.begun_at(stage)

    async def one(indexes: Sequence[int]) -> None:
        async with run.turn(stage, plan, indexes):
            if run.stop_reason is not None:
                return
            if time.monotonic() - begun > limit_s:
                words = "%s: %d shards from %d left pending, over %g s"
                log.warning(words, stage.name, len(indexes), indexes[0], limit_s)
                return
            await run_shards(indexes[0], indexes)
        share = len(reports) / len(plan.open_shards)
        await aupdate_progress_artifact(progress, progress=100.0 * share)

    outcomes = await asyncio.gather(*map(one, run.requests(plan)), return_exceptions=True)
    report = run.stage_report(stage, plan, list(reports.values()))
    await acreate_table_artifact(
        key=f"{stage.name}-yield",
        table=[yield_row(report)],
        description="requested = kept + dropped + failed + pending",
    )
    if run.stop_reason is not None:
        raise run.stop_reason
    if broken := [o for o in outcomes if isinstance(o, Exception)]:
        if len(broken) == 1:
            raise broken[0]
        raise ExceptionGroup(f"{len(broken)} shards of {stage.name} failed; run again", broken)
    if fatal := [o for o in outcomes if isinstance(o, BaseException)]:
        raise fatal[0]
    report.check(run.config.max_failed)
    return report
