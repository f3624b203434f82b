"""Progress for a person: bars on a terminal, a line now and then elsewhere. All on stderr."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 10.0
"""Between two lines about one stage where there is no terminal, in a CI log say."""


class StageProgress:
    """Called with (stage, items just finished, items to do); draws as it goes."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars: Progress | None = None
        self._bar_of: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._said_at: dict[str, float] = {}

    def __call__(self, stage: str, finished: int, total: int) -> None:
        if self._totals.get(stage) != total:  # a stage that is planned again counts anew
            self._totals[stage], self._done[stage] = total, 0
        self._done[stage] += finished
        if self._console.is_terminal:
            self._draw(stage, total)
        else:
            self._say(stage, total)

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()

    def _draw(self, stage: str, total: int) -> None:
        if self._bars is None:
            columns = TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn()
            self._bars = Progress(*columns, TimeElapsedColumn(), console=self._console)
            self._bars.start()
        if stage not in self._bar_of:
            self._bar_of[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._bar_of[stage], completed=self._done[stage], total=total)  # type: ignore[arg-type]

    def _say(self, stage: str, total: int) -> None:
        now = time.monotonic()
        first = stage not in self._said_at
        if self._done[stage] == total or first or now - self._said_at[stage] >= LINE_EVERY_S:
            self._said_at[stage] = now
            print(f"{stage}: {self._done[stage]} of {total}", file=sys.stderr, flush=True)  # noqa: T201
