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
    """With a line below the bars that says what they wait for."""

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
        self._waiting = False
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

    def waiting(self, words: str | None) -> None:
        """What everything waits for, such as an endpoint that is gone; None once it is over. The
        flow run's log has the beginning and the end."""
        if words is None and not self._waiting:
            return
        if words is None:
            log.info(OVER)
        elif not self._waiting:
            log.warning("%s", one_line(words))
        self._waiting = words is not None
        if self._console.is_terminal:
            bars = self._drawn()
            bars.note = one_line(words or "")
            bars.refresh()
        elif words is None:
            print(OVER, file=sys.stderr, flush=True)  # noqa: T201
        elif self._is_due("waiting"):
            print(one_line(words), file=sys.stderr, flush=True)  # noqa: T201

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
