"""A whole rephrasing: the rewrites, then measurements, verdicts and decisions on all of them."""

import logging
from collections.abc import Awaitable, Callable, Iterator

from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.engine.windows import run_in_windows
from synth.rephrasing.calibration.stage import RephrasingTrialStage
from synth.rephrasing.decisions.deciding import DecisionStage
from synth.rephrasing.decisions.gating import GatingStage
from synth.rephrasing.decisions.judging import JudgingStage
from synth.rephrasing.decisions.measuring import MeasuringStage
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.parts import fitting

log = logging.getLogger(__name__)

READING = "sources, MB"
"""Shown beside the stages: how far the sources are read."""

WORTH_SHOWING_MB = 64

RunRephraseStage = Callable[[Run[RephraseConfig], Stage], Awaitable[StageReport]]
"""Makes the open items of a stage and commits them; it decides how they are scheduled."""


async def rephrase(run: Run[RephraseConfig], run_stage: RunRephraseStage) -> list[StageReport]:
    """A report per stage."""
    tell_of_room(run.config)
    rewritten = await run_in_windows(run, _windows(run), run_stage)
    return [rewritten, *await decide(run, run_stage)]


async def decide(run: Run[RephraseConfig], run_stage: RunRephraseStage) -> list[StageReport]:
    """The stages after the writing alone, over every rewrite that the dataset holds: other
    settings, other decisions. A report per stage."""
    stages = (MeasuringStage, GatingStage, JudgingStage, RephrasingTrialStage, DecisionStage)
    return [await run_stage(run, stage(run)) for stage in stages]


def tell_of_room(config: RephraseConfig) -> None:
    """Says, once a run, where answers have no room for as many parts as are asked for."""
    wanted, room = config.parts_per_request, config.roles["rewriter"].max_tokens
    number = fitting([config.chunk_tokens] * wanted, wanted, room)
    if number < wanted:
        log.warning(
            "roles.rewriter.max_tokens = %d has room for %d parts of chunk_tokens = %d, not for"
            " parts_per_request = %d: fewer are asked for at once",
            room,
            number,
            config.chunk_tokens,
            wanted,
        )


def _windows(run: Run[RephraseConfig]) -> Iterator[Stage]:
    stage, shown_mb = RephraseStage(run), 0
    for window in stage.windows():
        read_mb, all_mb = (n // 1_000_000 for n in stage.bytes_read())
        if all_mb >= WORTH_SHOWING_MB and read_mb > shown_mb:
            run.on_progress(READING, read_mb - shown_mb, all_mb)
            shown_mb = read_mb
        yield window
