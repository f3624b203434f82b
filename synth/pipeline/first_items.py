"""One item of each stage of a run: enough to see how an endpoint takes each kind of request.

Where an item is dropped or fails, the next is tried, so that the stages after it have something to
work on.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from records.errors import ConfigError
from synth.catalogue.evolution.config import EvolveConfig, domains_of
from synth.catalogue.evolution.rounds import Rounds
from synth.catalogue.evolution.specialise import SpecialiseStage
from synth.engine.job_config import JobConfig
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.llm.settings.config import BudgetConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.stages import STAGES, RolloutStage, TaskStage
from synth.rephrasing.rephrase import decide
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig

TRIED = 4
"""Items at most that are tried until one is kept."""

SMALL_BATCH = 4
"""Tools that are asked for at once: the fewest that a batch may have."""

SHORT_DOCUMENT_TOKENS = 1024
"""Of a text that is rewritten: a few parts, so that later ones go on from earlier ones."""


def with_one_of_each(config: JobConfig, budget: BudgetConfig) -> JobConfig:
    """The settings of a run that `make_first_items` makes: those of `config` in small, for a
    dataset of its own. ConfigError for a kind of run that needs what a dataset holds."""
    match config:
        case RunConfig():
            small = config.in_small()
            tasks = small.tasks.model_copy(update={"tasks_per_agent": TRIED})
            changes = {
                "roles": config.roles,
                "num_tasks": TRIED,
                "tasks": tasks.model_copy(update={"personas_per_block": 1}),
                # the judge is asked, too, where code rejects what the model has made of its item
                "judging": config.judging.model_copy(update={"judge_failed": True}),
                **_first_source(small),
            }
        case EvolveConfig():
            small = config
            specialise = min(1, config.specialise)
            changes = {"count": 1, "batch_size": SMALL_BATCH, "specialise": specialise}
        case RephraseConfig():
            small = config
            few = (one.model_copy(update={"max_documents": TRIED}) for one in config.sources[:1])
            length = min(config.max_document_tokens, SHORT_DOCUMENT_TOKENS)
            changes = {"sources": tuple(few), "rewrites": 1, "max_document_tokens": length}
        case _:
            raise ConfigError(
                f"one item of each stage cannot be made of a config of kind {config.KIND!r}, which "
                "is about what a dataset holds; give the config of a run with the same judge"
            )
    return small.model_copy(
        update={**changes, "budget": budget, "workers": 1, "stage_seconds": {}, "max_failed": 1.0}
    )


def _first_source(config: RunConfig) -> dict[str, tuple[str, ...]]:
    """Of domains, servers and code, those that come first; a few items need no more."""
    if config.domains:
        return {"servers": (), "code": ()}
    return {"code": ()} if config.servers else {}


async def make_first_items(run: Run[Any]) -> None:
    """Raises what stops a run; what was committed before is there."""
    match run.config:
        case RunConfig():
            for kind in STAGES:
                if kind in (TaskStage, RolloutStage):
                    await _until_kept(run, kind)
                else:
                    await run.run_stage(kind(run))
        case EvolveConfig():
            domains = (await asyncio.to_thread(domains_of, run.config))[:1]
            if run.config.specialise:
                await run.run_stage(SpecialiseStage(run, domains))
            rounds = Rounds(run, domains)
            for stage in await asyncio.to_thread(rounds.next_stages):
                await run.run_stage(stage)
        case _:
            await _until_kept(run, RephraseStage)
            await decide(run, Run.run_stage)


async def _until_kept(run: Run[Any], kind: Callable[[Run[Any]], Stage]) -> None:
    """The stage's items in their order until one is kept, or has to be tried again later."""
    for number in range(TRIED):
        report = await _make(run, kind(run), number)
        if not report.requested or report.kept or report.pending:
            return


async def _make(run: Run[Any], stage: Stage, number: int) -> StageReport:
    plan = await asyncio.to_thread(run.plan, stage, only=lambda at, item: at == number)
    made = run.run_shards(stage, plan, plan.open_shards)
    return run.stage_report(stage, plan, [report async for report in made])
