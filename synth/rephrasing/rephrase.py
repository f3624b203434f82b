"""A whole rephrasing: every rewrite, then one decision over all of them."""

from collections.abc import Awaitable, Callable, Iterator

from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.engine.windows import run_in_windows
from synth.rephrasing.selection import SelectionStage
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig

READING = "sources, MB"
"""Shown beside the stages: how far the sources are read."""

WORTH_SHOWING_MB = 64

RunRephraseStage = Callable[[Run[RephraseConfig], Stage], Awaitable[StageReport]]


async def rephrase(run: Run[RephraseConfig], run_stage: RunRephraseStage) -> list[StageReport]:
    """A report per stage. `run_stage` makes the open items of a stage and commits them; it decides
    how they are scheduled."""
    rewritten = await run_in_windows(run, _windows(run), run_stage)
    return [rewritten, await run_stage(run, SelectionStage(run))]


def _windows(run: Run[RephraseConfig]) -> Iterator[Stage]:
    stage, shown_mb = RephraseStage(run), 0
    for window in stage.windows():
        read_mb, all_mb = (n // 1_000_000 for n in stage.bytes_read())
        if all_mb >= WORTH_SHOWING_MB and read_mb > shown_mb:
            run.on_progress(READING, read_mb - shown_mb, all_mb)
            shown_mb = read_mb
        yield window
