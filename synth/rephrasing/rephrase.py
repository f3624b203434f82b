"""A whole rephrasing: every rewrite, then one decision over all of them."""

from collections.abc import Awaitable, Callable

from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.rephrasing.selection import SelectionStage
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig

RunRephraseStage = Callable[[Run[RephraseConfig], Stage], Awaitable[StageReport]]


async def rephrase(run: Run[RephraseConfig], run_stage: RunRephraseStage) -> list[StageReport]:
    """A report per stage. `run_stage` makes the open items of a stage and commits them; it decides
    how they are scheduled."""
    return [await run_stage(run, RephraseStage(run)), await run_stage(run, SelectionStage(run))]
