"""A stage in windows: planned and made a part at a time, for one whose plan memory cannot hold.

A window is a stage of the same name with a number (`Stage.window`). While one ends, the next is
planned and made, so that no slot waits for the stragglers of a window.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from synth.engine.context import ConfigT
from synth.engine.plans import StageReport
from synth.engine.run import Run
from synth.engine.stages import Stage

PLANNED_ITEMS = 20_000
"""Items of windows under way, from which on the next one waits: a window may be small."""


async def run_in_windows(
    run: Run[ConfigT],
    windows: Iterator[Stage],
    run_stage: Callable[[Run[ConfigT], Stage], Awaitable[StageReport]],
) -> StageReport:
    """Every window by `run_stage`, planned as it comes; the report of the whole stage. At least one
    window is wanted, and `plan` of each is asked for twice.

    After an error no further window begins; it is raised once those under way have ended.
    """
    under_way: dict[asyncio.Task[StageReport], int] = {}
    broken: list[BaseException] = []
    name = ""

    async def some_ended() -> None:
        ended, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            del under_way[task]
            if error := task.exception():
                broken.append(error)

    try:
        while not broken and run.stop_reason is None:
            try:
                window = await asyncio.to_thread(next, windows, None)
            except Exception as error:  # such as a file that cannot be read
                broken.append(error)
                break
            if window is None:
                break
            name = window.name
            items = len(window.plan())
            while under_way and not broken and sum(under_way.values()) + items > PLANNED_ITEMS:
                await some_ended()
            if not broken:
                under_way[asyncio.create_task(_run(run, window, run_stage))] = items
        while under_way:
            await some_ended()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    if run.stop_reason is not None:
        raise run.stop_reason
    if broken:
        raise broken[0]
    return run.reports[name]


async def _run(
    run: Run[ConfigT],
    window: Stage,
    run_stage: Callable[[Run[ConfigT], Stage], Awaitable[StageReport]],
) -> StageReport:
    return await run_stage(run, window)
