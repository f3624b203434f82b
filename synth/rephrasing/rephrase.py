"""A whole rephrasing: the rewrites, then measurements, verdicts and decisions on all of them."""

from collections.abc import Awaitable, Callable

from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.rephrasing.calibration.stage import RephrasingTrialStage
from synth.rephrasing.decisions.deciding import DecisionStage
from synth.rephrasing.decisions.judging import JudgingStage
from synth.rephrasing.decisions.measuring import MeasuringStage
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig

RunRephraseStage = Callable[[Run[RephraseConfig], Stage], Awaitable[StageReport]]
"""Makes the open items of a stage and commits them; it decides how they are scheduled."""


async def rephrase(run: Run[RephraseConfig], run_stage: RunRephraseStage) -> list[StageReport]:
    """A report per stage."""
    return [await run_stage(run, RephraseStage(run)), *await decide(run, run_stage)]


async def decide(run: Run[RephraseConfig], run_stage: RunRephraseStage) -> list[StageReport]:
    """The stages after the writing alone, over every rewrite that the dataset holds: other
    settings, other decisions. A report per stage."""
    stages = (MeasuringStage, JudgingStage, RephrasingTrialStage, DecisionStage)
    return [await run_stage(run, stage(run)) for stage in stages]
