"""The rollouts of one iteration: episodes that go on beside each other, or all together."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from trainer.rl.rollouts.desk import AnswerDesk
from trainer.rl.rollouts.episodes import AnsweredTurn, OpenEpisode
from trainer.rl.rollouts.outcomes import LostEpisodeError
from trainer.rl.rollouts.policy import RolloutPolicy
from trainer.rl.rollouts.samples import RolloutSample
from trainer.rl.rollouts.settings import RolloutSettings

EndedOne = tuple[OpenEpisode, RolloutSample]

OnPart = Callable[[Sequence[EndedOne], Sequence[OpenEpisode]], None]
"""Is given the episodes that have ended, and those that have paused, once each."""

AskedAnswer = asyncio.Future[AnsweredTurn | None] | LostEpisodeError
"""An answer to come, or why there can be none."""


class RolloutPhase:
    """Plays episodes to their end, or to the phase's."""

    def __init__(
        self,
        policy: RolloutPolicy,
        settings: RolloutSettings,
        desk: AnswerDesk,
        on_part: OnPart,
        *,
        iteration: int,
    ) -> None:
        self._policy, self._settings, self._desk = policy, settings, desk
        self._on_part, self._iteration = on_part, iteration
        self._ended: list[EndedOne] = []
        self._paused: list[OpenEpisode] = []

    async def play(self, episodes: Sequence[OpenEpisode]) -> None:
        """Every episode is handed to `on_part` once. What stops the policy is raised."""
        if self._settings.deterministic:
            size = self._settings.in_flight
            for at in range(0, len(episodes), size):
                await self._together(episodes[at : at + size])
                self._hand_over()
        else:
            await self._beside_each_other(episodes)
            self._hand_over()

    async def _together(self, episodes: Sequence[OpenEpisode]) -> None:
        """All answers, then all steps: what is computed beside what hangs on no clock. The slots
        are emptied first, so that a run which begins here computes the same."""
        self._policy.forget()
        if self._desk.over:
            for episode in episodes:
                await self._pause(episode)
            return
        going = await self._those(episodes, [self._begin(episode) for episode in episodes])
        while going:
            asked = [self._ask(episode) for episode in going]
            while await self._desk.turn():
                pass
            turns = [self._turn(*pair) for pair in zip(going, asked, strict=True)]
            going = await self._those(going, turns)

    async def _those(
        self, episodes: Sequence[OpenEpisode], going: Sequence[Awaitable[bool]]
    ) -> list[OpenEpisode]:
        """Those that go on, once it is known of all; the model waits meanwhile."""
        began = time.monotonic()
        kept = await asyncio.gather(*going)
        self._desk.idle_s += time.monotonic() - began
        return [episode for episode, goes_on in zip(episodes, kept, strict=True) if goes_on]

    async def _beside_each_other(self, episodes: Sequence[OpenEpisode]) -> None:
        """Each at its own pace: who waits for an environment keeps nobody else waiting."""
        queue = deque(episodes)

        async def work() -> None:
            while queue:
                episode = queue.popleft()
                if self._desk.over:
                    await self._pause(episode)
                    continue
                going = await self._begin(episode)
                while going:
                    going = await self._turn(episode, self._ask(episode))
                if len(self._ended) >= self._settings.part_samples:
                    self._hand_over()

        open_at_once = min(self._settings.in_flight, len(episodes))
        serving = asyncio.create_task(self._desk.serve())
        workers = [asyncio.create_task(work()) for _ in range(open_at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in (*workers, serving):
                task.cancel()
            await asyncio.gather(*workers, serving, return_exceptions=True)

    def _ask(self, episode: OpenEpisode) -> AskedAnswer:
        try:
            return self._desk.ask(episode)
        except LostEpisodeError as lost:
            return lost

    async def _begin(self, episode: OpenEpisode) -> bool:
        """Whether the episode goes on; likewise below."""
        return await self._goes_on(episode, await episode.begin())

    async def _turn(self, episode: OpenEpisode, asked: AskedAnswer) -> bool:
        if isinstance(asked, LostEpisodeError):
            return await self._goes_on(episode, episode.lost(asked))
        answered = await asked
        if answered is None:
            await self._pause(episode)
            return False
        return await self._goes_on(episode, await episode.play(answered))

    async def _goes_on(self, episode: OpenEpisode, sample: RolloutSample | None) -> bool:
        if sample is None:
            return True
        self._ended.append((episode, sample))
        await episode.close()
        return False

    async def _pause(self, episode: OpenEpisode) -> None:
        most = self._settings.most_iterations
        try:
            if self._iteration + 1 - episode.key.begun >= most:
                raise LostEpisodeError("too_old", f"it is not over after {most} iterations")
            episode.pause()
        except LostEpisodeError as lost:
            await self._goes_on(episode, episode.lost(lost))
        else:
            self._paused.append(episode)

    def _hand_over(self) -> None:
        """In the episodes' order, which is not that in which they ended."""
        if self._ended or self._paused:
            ended = sorted(self._ended, key=lambda one: one[0].key)
            self._on_part(ended, sorted(self._paused, key=lambda episode: episode.key))
            self._ended, self._paused = [], []
