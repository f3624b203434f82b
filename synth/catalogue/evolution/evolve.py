"""A whole evolution: narrower domains first, then rounds of batches until there is enough."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from synth.catalogue.evolution.config import EvolveConfig, domains_of
from synth.catalogue.evolution.rounds import Rounds
from synth.catalogue.evolution.specialise import SpecialiseStage
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage

log = logging.getLogger("synth.evolution")

RunEvolveStage = Callable[[Run[EvolveConfig], Stage], Awaitable[StageReport]]


async def evolve(run: Run[EvolveConfig], run_stage: RunEvolveStage) -> list[StageReport]:
    """A report per stage of every round. `run_stage` makes the open items of a stage and commits
    them; it decides how they are scheduled."""
    reports: list[StageReport] = []
    domains = await asyncio.to_thread(domains_of, run.config)
    if run.config.specialise:
        stage = SpecialiseStage(run, domains)
        reports.append(await run_stage(run, stage))
        run.require_all("the rounds of evolution")
        domains += stage.made()
    rounds = Rounds(run, domains)
    while stages := await asyncio.to_thread(rounds.next_stages):
        for stage in stages:
            reports.append(await run_stage(run, stage))
        run.require_all("the next round of evolution")
    kept = rounds.kept
    if kept < run.config.count:
        dry = "no domain can give more; name more domains, or specialise"
        log.warning("%d of %d tools: %s", kept, run.config.count, rounds.stopped or dry)
    return reports
