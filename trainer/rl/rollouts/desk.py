"""Where episodes wait for their next answer: many of them, for few slots.

Answers are drawn in a thread, a chunk of tokens at a time. Behind each chunk those that are over go
to their episodes, and others take their slots; one that waits while a slot is free joins at once.
An answer keeps its slot to its end.
"""

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from trainer.inference.policies import PolicyRequest
from trainer.rl.rollouts.calls import told
from trainer.rl.rollouts.episodes import AnsweredTurn, OpenEpisode
from trainer.rl.rollouts.outcomes import LostEpisodeError
from trainer.rl.rollouts.policy import RolloutPolicy
from trainer.rl.rollouts.settings import RolloutSettings


class _Wanted(NamedTuple):
    episode: OpenEpisode
    asked: PolicyRequest
    answer: "asyncio.Future[AnsweredTurn | None]"


class AnswerDesk:
    """Of one phase: what is over is told by tokens or by the clock."""

    def __init__(self, policy: RolloutPolicy, settings: RolloutSettings, *, drawn: int = 0) -> None:
        """`drawn`: tokens of the phase that were drawn before."""
        self._policy, self._settings = policy, settings
        self._slots = policy.slots
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drawing")
        self._waiting: deque[_Wanted] = deque()
        self._active: list[_Wanted] = []
        self._arrived = asyncio.Event()
        self._failure: BaseException | None = None
        self._stopped = False
        self._began = time.monotonic()
        self._phase_drawn = drawn
        self.drawn = 0
        """Tokens."""
        self.passes = 0
        """Of the model, each of which may draw a token for every slot."""
        self.decode_s = 0.0
        """Seconds in which it drew."""
        self.idle_s = 0.0
        """Seconds in which no answer was wanted, as all episodes were with their environments."""

    @property
    def over(self) -> bool:
        """Whether the phase has had its tokens or its time."""
        settings = self._settings
        by_tokens = settings.phase_tokens
        return (by_tokens is not None and self._phase_drawn >= by_tokens) or (
            settings.phase_s is not None and time.monotonic() - self._began >= settings.phase_s
        )

    def ask(self, episode: OpenEpisode) -> "asyncio.Future[AnsweredTurn | None]":
        """The answer that will have been drawn; None for an episode that is to pause.
        LostEpisodeError for a conversation that the policy cannot read."""
        if self._failure is not None:
            raise self._failure
        answer = asyncio.get_running_loop().create_future()
        if self.over or episode.room <= 0:
            answer.set_result(None)
            return answer
        try:
            asked = episode.asked()
            self._policy.open(asked)
        except Exception as error:  # whatever an environment hands over as a conversation
            raise LostEpisodeError(
                "environment_error", f"its conversation: {told(error)}"
            ) from error
        self._waiting.append(_Wanted(episode, asked, answer))
        self._arrived.set()
        return answer

    async def serve(self) -> None:
        """Draw whatever is asked for, until cancelled. What stops the policy stops all who wait."""
        try:
            while True:
                if not await self.turn():
                    began = time.monotonic()
                    self._arrived.clear()
                    await self._arrived.wait()
                    self.idle_s += time.monotonic() - began
        except Exception as error:
            self._failure = error
            for wanted in (*self._active, *self._waiting):
                if not wanted.answer.done():
                    wanted.answer.set_exception(error)

    async def turn(self) -> bool:
        """Draw a chunk of what is wanted; False, and nothing done, where nothing is."""
        while self._waiting and len(self._active) < self._slots:
            self._active.append(self._waiting.popleft())
        if not self._active:
            return False
        if self.over:
            for wanted in (*self._active, *self._waiting):
                _give(wanted, None)
            self._active.clear()
            self._waiting.clear()
            return False
        active, before = self._active, sum(wanted.episode.segment for wanted in self._active)
        chunk = min(self._settings.chunk_tokens, *(wanted.episode.room for wanted in active))
        began = time.monotonic()
        drawn = partial(
            self._policy.draw,
            [wanted.asked for wanted in active],
            budget=chunk,
            paused=self._is_to_look_up,
        )
        answers = await asyncio.get_running_loop().run_in_executor(self._thread, drawn)
        self.decode_s += time.monotonic() - began
        new = sum(wanted.episode.segment for wanted in active) - before
        self.drawn += new
        self._phase_drawn += new
        self._active, most = [], self._policy.sampling.max_tokens
        for wanted, answer in zip(active, answers, strict=True):
            episode = wanted.episode
            if answer is not None:
                _give(wanted, AnsweredTurn(answer, episode.cut_by_room(most)))
            elif (cut := episode.cut_now()) is not None:
                _give(wanted, AnsweredTurn(episode.end_answer(self._policy.tokenizer), cut))
            elif episode.room <= 0:
                _give(wanted, None)
            elif not wanted.answer.cancelled():
                self._active.append(wanted)
        return True

    def _is_to_look_up(self) -> bool:
        """Asked in the thread before each pass."""
        if self._stopped or (self._waiting and len(self._active) < self._slots):
            return True
        self.passes += 1
        return False

    def close(self) -> None:
        """Waits for the pass that is under way."""
        self._stopped = True
        self._thread.shutdown(wait=True, cancel_futures=True)


def _give(wanted: _Wanted, answer: AnsweredTurn | None) -> None:
    if not wanted.answer.done():
        wanted.answer.set_result(answer)
