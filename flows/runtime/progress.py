"""Progress for a person: bars on a terminal, a line now and then elsewhere. All on stderr."""

import logging
import sys
import time
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from synth.render.foreign_text import one_line

LINE_EVERY_S = 10.0
"""Between two lines about one stage where there is no terminal, in a CI log say."""


OVER = "the wait is over: the run goes on"

log = logging.getLogger("synth.flows")


class _Bars(Progress):
    """With lines below the bars that say what they wait for."""

    note = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.note:
            yield Text(self.note)


class StageProgress:
    """Called with (stage, items just finished, items to do); draws as it goes."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars: _Bars | None = None
        self._waiting: dict[str, str] = {}
        self._bar_of: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._planned: dict[str, int] = {}
        self._said_at: dict[str, float] = {}

    def planned(self, stage: str, items: int) -> None:
        """So many more items of a stage that is planned in windows are to do."""
        self._planned[stage] = self._planned.get(stage, 0) + items

    def __call__(self, stage: str, finished: int, total: int) -> None:
        if stage in self._planned:
            total = self._totals[stage] = self._planned[stage]
            self._done.setdefault(stage, 0)
        if self._totals.get(stage) != total:  # a stage that is planned again counts anew
            self._totals[stage], self._done[stage] = total, 0
        self._done[stage] += finished
        if self._console.is_terminal:
            self._draw(stage, total)
        else:
            self._say(stage, total)

    def waiting(self, endpoint: str, words: str | None) -> None:
        """What requests to an endpoint wait for; None once it answers again. The flow run's log has
        the beginning and the end of each wait."""
        if words is None:
            if self._waiting.pop(endpoint, None) is None:
                return
            over = self._end_of(endpoint)
            log.info("%s", over)
        else:
            if endpoint not in self._waiting:
                log.warning("%s", one_line(words))
            self._waiting[endpoint] = one_line(words)
            over = None
        if self._console.is_terminal:
            bars = self._drawn()
            bars.note = "\n".join(self._waiting.values())
            bars.refresh()
        elif over is not None:
            print(over, file=sys.stderr, flush=True)  # noqa: T201
        elif self._is_due(f"waiting for {endpoint}"):
            print(self._waiting[endpoint], file=sys.stderr, flush=True)  # noqa: T201

    def _end_of(self, endpoint: str) -> str:
        """What is said where this endpoint answers again: others may not."""
        if not self._waiting:
            return OVER
        left = ", ".join(map(one_line, self._waiting))
        return f"{one_line(endpoint)} answers again; the run still waits for {left}"

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()

    def _draw(self, stage: str, total: int) -> None:
        bars = self._drawn()
        if stage not in self._bar_of:
            self._bar_of[stage] = bars.add_task(stage, total=total)
        bars.update(self._bar_of[stage], completed=self._done[stage], total=total)  # type: ignore[arg-type]

    def _drawn(self) -> _Bars:
        if self._bars is None:
            columns = TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn()
            self._bars = _Bars(*columns, TimeElapsedColumn(), console=self._console)
            self._bars.start()
        return self._bars

    def _say(self, stage: str, total: int) -> None:
        if self._is_due(stage) or self._done[stage] == total:
            print(f"{stage}: {self._done[stage]} of {total}", file=sys.stderr, flush=True)  # noqa: T201

    def _is_due(self, what: str) -> bool:
        """Whether it is time for another line about it."""
        now = time.monotonic()
        due = what not in self._said_at or now - self._said_at[what] >= LINE_EVERY_S
        if due:
            self._said_at[what] = now
        return due
