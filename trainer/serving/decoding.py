"""The one thread that draws: answers join and leave between any two passes of the model.

The sampler draws a group of answers together and asks before each pass whether to pause. It pauses
where an answer ends by what only this module knows (a limit of its own, a text to stop at, a client
that is gone) or where one that waits has a slot. To go on costs nothing: each slot still holds what
its answer was read and drawn so far.

What is drawn for an answer hangs on its prompt, seed and sampling alone; its company changes the
last bits of numbers at most.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from torch import Tensor

from trainer.inference.drawing import Sampling
from trainer.inference.sampler import AnswerDraft, Guide, GuideError, Sampler

log = logging.getLogger(__name__)

TURN_TOKENS = 16
"""Tokens of each answer that are drawn in a row where answers are sampled in different ways, which
take turns."""


class FullError(Exception):
    """As many answers as may wait are waiting."""


class ClosedError(Exception):
    """Nothing is drawn any more."""


@dataclass(eq=False)
class PendingAnswer:
    """An answer that waits, is drawn or is over. The thread writes to it; others read, and cancel
    by `Decoding.cancel`."""

    draft: AnswerDraft
    sampling: Sampling
    guide: Guide | None = None
    is_stopped: Callable[[Sequence[int]], bool] = lambda ids: False
    """Whether these tokens hold a text to stop at; asked after each token."""
    on_change: Callable[[], None] = lambda: None
    """Told, in the thread that draws, when it is over."""
    every_token: bool = False
    """Whether `on_change` is told of each token, too."""
    error: Exception | None = None
    """Why it is over, where it was not drawn to its end."""
    over: bool = False
    cancelled: bool = False

    def ends(self) -> bool:
        """Whether nothing more of it is to be drawn."""
        if self.draft.finish_reason is None and not self.cancelled:
            if self.draft.ids and self.is_stopped(self.draft.ids):
                self.draft.finish_reason = "stop"
            elif len(self.draft.ids) >= self.sampling.max_tokens:
                self.draft.finish_reason = "length"
        return self.draft.finish_reason is not None or self.cancelled

    def end(self, error: Exception | None = None) -> None:
        self.error, self.over = error, True
        self._tell()

    def tell_of_token(self) -> None:
        if self.every_token:
            self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # whoever listened has closed its event loop
            self.on_change()


class _Held:
    """A guide that gives up its own answer where it allows nothing, rather than all answers."""

    def __init__(self, guide: Guide) -> None:
        self._guide = guide

    def allowed(self) -> Tensor:
        allowed_V = self._guide.allowed()
        if not allowed_V.any():
            raise GuideError("no token may follow what was written")
        return allowed_V

    def take(self, token: int) -> None:
        self._guide.take(token)


class Decoding:
    """A sampler and its thread, which runs from `start` to `close`."""

    def __init__(self, sampler: Sampler, *, slots: int, stop: int, most_waiting: int) -> None:
        """`slots`: of the sampler. `stop`: the token that ends an answer. `most_waiting`: answers
        that may wait for a slot."""
        self.sampler, self._slots, self._stop = sampler, slots, stop
        self._most_waiting = most_waiting
        self._changed = threading.Condition()
        self._waiting: deque[PendingAnswer] = deque()
        self._active: list[PendingAnswer] = []
        """Those with a slot, the oldest first, so that each finds its own again."""
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="decoding", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End every answer that is not over, with ClosedError, and the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    @property
    def in_flight(self) -> int:
        """Answers that are drawn or wait, and that somebody wants."""
        with self._changed:
            wanted = (not (answer.over or answer.cancelled) for answer in self._active)
            return len(self._waiting) + sum(wanted)

    def submit(self, answer: PendingAnswer) -> None:
        """Draw it when there is a slot. FullError, ClosedError."""
        with self._changed:
            if self._closed:
                raise ClosedError
            busy = sum(not one.over for one in self._active)
            if busy + len(self._waiting) >= self._slots + self._most_waiting:
                raise FullError
            self._waiting.append(answer)
            self._changed.notify()

    def cancel(self, answer: PendingAnswer) -> None:
        """Nobody wants it any more: it makes room at once, or before the next pass."""
        with self._changed:
            answer.cancelled = True
            if answer in self._waiting:
                self._waiting.remove(answer)
                answer.over = True

    def _run(self) -> None:
        while self._admit():
            for group in self._groups():
                self._draw(group)
        with self._changed:
            left = [*self._active, *self._waiting]
            self._waiting.clear()
        for answer in left:
            if not answer.over:
                answer.end(ClosedError())

    def _admit(self) -> bool:
        """Wait for something to draw and give it slots; False once closed."""
        with self._changed:
            self._active = [answer for answer in self._active if not answer.over]
            while not (self._closed or self._active or self._waiting):
                self._changed.wait()
            while self._waiting and len(self._active) < self._slots:
                self._active.append(self._waiting.popleft())
            return not self._closed

    def _groups(self) -> list[list[PendingAnswer]]:
        """Active answers that are sampled in one way, and so in one pass."""
        groups: dict[tuple[float, float], list[PendingAnswer]] = {}
        for answer in self._active:
            way = (answer.sampling.temperature, answer.sampling.top_p)
            groups.setdefault(way, []).append(answer)
        return list(groups.values())

    def _draw(self, group: Sequence[PendingAnswer]) -> None:
        """Until something has to be decided. What goes wrong here ends this group and no more."""
        alone = len(group) == len(self._active)
        most = max(answer.sampling.max_tokens for answer in group)
        guides = [_Held(answer.guide) if answer.guide else None for answer in group]
        try:
            self.sampler.draw(
                [answer.draft for answer in group],
                group[0].sampling.model_copy(update={"max_tokens": most}),
                stop=self._stop,
                guides=guides,
                budget=None if alone else TURN_TOKENS,
                paused=lambda: self._look(group),
            )
        except Exception as error:
            log.exception("%d answers could not be drawn", len(group))
            for answer in group:
                if not answer.over:
                    answer.end(error)
            return
        self._look(group)

    def _look(self, group: Sequence[PendingAnswer]) -> bool:
        """End what has ended; whether the sampler has to pause: it does not know of all ends."""
        unknown = False
        for answer in group:
            if answer.over:
                continue
            known = answer.draft.finish_reason is not None
            if answer.ends():
                answer.end()
                unknown |= not known
            else:
                answer.tell_of_token()
        with self._changed:
            busy = sum(not answer.over for answer in self._active)
            return unknown or self._closed or bool(self._waiting and busy < self._slots)
