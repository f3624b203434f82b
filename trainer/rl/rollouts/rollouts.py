"""The rollouts of a run: iteration by iteration, groups of samples of the tasks that are asked for.

A group is handed over once, whole, in the iteration in which its last sample ends. Until then its
samples that are over wait for those that paused.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from records.digest import digest
from records.errors import ConfigError
from synth.gym.core.environment import GymEnvironment, GymTask
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.rl.rollouts.desk import AnswerDesk
from trainer.rl.rollouts.episodes import EnvironmentMeter, EpisodeKey, OpenEpisode, PausedEpisode
from trainer.rl.rollouts.figures import PhaseFigures, account_of
from trainer.rl.rollouts.phase import EndedOne, RolloutPhase
from trainer.rl.rollouts.policy import RolloutPolicy
from trainer.rl.rollouts.samples import Group, GroupKey, task_to_json
from trainer.rl.rollouts.settings import RolloutSettings
from trainer.rl.rollouts.store import EndedEpisode, RolloutStore, StoredEpisodes


@dataclass
class _OpenGroup:
    task: GymTask
    size: int
    ended: dict[int, EndedEpisode] = field(default_factory=dict)


class Rollouts:
    """Not for concurrent use, and one at a time on a folder."""

    def __init__(
        self,
        policy: RolloutPolicy,
        environments: Iterable[GymEnvironment],
        settings: RolloutSettings,
        folder: Path,
        *,
        seed: int = 0,
    ) -> None:
        """`folder`: where what was played is kept; its own, or an earlier process's. `seed`: of all
        that is drawn. Environments stay the caller's, to close behind `close`. ConfigError for two
        of one family."""
        self._policy, self._settings, self._seed = policy, settings, seed
        self._environments: dict[str, GymEnvironment] = {}
        for environment in environments:
            if environment.family in self._environments:
                raise ConfigError(f"two environments play the family {environment.family}")
            self._environments[environment.family] = environment
        self._store = RolloutStore(folder)
        self._live: dict[EpisodeKey, OpenEpisode] = {}
        """Paused with their environments open, as the file of this digest has them."""
        self._live_of = ""
        self.figures: PhaseFigures | None = None
        """Of the last iteration that was played, or read."""

    async def play(self, tasks: Sequence[GymTask], iteration: int) -> list[Group]:
        """Groups that are whole with this iteration, those asked for earlier first. An iteration
        that was played before, with the same tasks by the same weights, is read: it says the same.

        Iterations follow each other; weights and `policy.sampling` are those of the iteration when
        this is called. ConfigError for a task of a family without an environment, for one that is
        asked for twice or is no JSON, and for an iteration that does not follow what the folder
        holds.
        """
        before = self._store.carried(iteration - 1)
        self._check(tasks, before.paused)
        identity = digest(
            *(iteration, self._seed),
            *(self._policy.version, self._policy.checksum(), before.digest),
            self._settings.model_dump(mode="json"),
            self._policy.sampling.model_dump(mode="json"),
            _digests_of(tasks),
        )
        known = self._store.begin(iteration, identity)
        paused = [*before.paused, *self._asked_for(tasks, iteration)]
        self.figures = self._store.figures(iteration)
        if self.figures is None:
            self.figures = await self._play(paused, before, known, iteration)
        return self._whole(_groups_of(paused, before.ended, known.ended))

    async def close(self) -> None:
        """Close the environments of episodes that are paused: whoever goes on with them later
        brings them back."""
        episodes, self._live = list(self._live.values()), {}
        for episode in episodes:
            await episode.close()

    def delete_before(self, iteration: int) -> None:
        """Delete what is kept of iterations that are not gone back to: `iteration` is the first
        that may still be played."""
        self._store.delete_before(iteration)

    def _check(self, tasks: Sequence[GymTask], paused: Sequence[PausedEpisode]) -> None:
        for task in (*tasks, *(one.task for one in paused)):
            if task.family not in self._environments:
                there = ", ".join(sorted(self._environments)) or "none"
                raise ConfigError(
                    f"task {task.task_id} is of the family {task.family}; there are "
                    f"environments of: {there}"
                )
        for task_id, times in Counter(task.task_id for task in tasks).items():
            if times > 1:
                raise ConfigError(
                    f"task {task_id} is asked for {times} times in one iteration; raise samples "
                    f"({self._settings.samples}) for more episodes of it"
                )

    def _asked_for(self, tasks: Sequence[GymTask], iteration: int) -> list[PausedEpisode]:
        size = self._settings.samples
        return [
            PausedEpisode(task, number, iteration, size, [], None, EpisodeTokens())
            for task in tasks
            for number in range(size)  # beside each other: they share what they begin with
        ]

    async def _play(
        self,
        at_hand: Sequence[PausedEpisode],
        before: StoredEpisodes,
        known: StoredEpisodes,
        iteration: int,
    ) -> PhaseFigures:
        """To the phase's end. `known` becomes all that ended or paused in it."""
        began, settings, meter = time.monotonic(), self._settings, EnvironmentMeter()
        over = {*(one.key for one in known.ended), *(one.key for one in known.paused)}
        sizes = {one.key: one.size for one in at_hand}
        if before.digest != self._live_of:
            await self.close()
        episodes = [self._opened(one, meter, iteration) for one in at_hand if one.key not in over]
        live: dict[EpisodeKey, OpenEpisode] = {}

        def keep(ended: Sequence[EndedOne], paused: Sequence[OpenEpisode]) -> None:
            part = StoredEpisodes(
                [EndedEpisode(sample, sizes[e.key], e.segment) for e, sample in ended],
                [episode.paused for episode in paused],
            )
            drawn = [episode.segment for episode in paused]
            self._store.write_part(
                iteration, part.ended, list(zip(part.paused, drawn, strict=True))
            )
            known.add(part)
            live.update({episode.key: episode for episode in paused})

        desk = AnswerDesk(self._policy, settings, drawn=known.drawn)
        try:
            phase = RolloutPhase(self._policy, settings, desk, keep, iteration=iteration)
            await phase.play(episodes)
        except BaseException:
            for episode in episodes:
                await episode.close()
            raise
        finally:
            desk.close()
        ended = [one.sample for one in known.ended]
        figures = PhaseFigures(
            account=account_of(len(at_hand), ended, len(known.paused)),
            seconds=time.monotonic() - began,
            decode_s=desk.decode_s,
            waiting_s=desk.idle_s,
            passes=desk.passes,
            slots=self._policy.slots,
            tokens=desk.drawn,
            env_steps=meter.steps,
            env_s=meter.seconds,
        )
        waiting = {GroupKey(one.begun, one.task.task_id) for one in known.paused}
        held = [
            one
            for one in (*before.ended, *known.ended)
            if GroupKey(one.sample.begun, one.sample.task.task_id) in waiting
        ]
        known.paused.sort(key=lambda one: one.key)
        self._store.end(iteration, held, known.paused, figures)
        self._live, self._live_of = live, self._store.carried(iteration).digest
        return figures

    def _opened(
        self, paused: PausedEpisode, meter: EnvironmentMeter, iteration: int
    ) -> OpenEpisode:
        """One that waited with its environment, else one that brings it back."""
        if (live := self._live.pop(paused.key, None)) is not None:
            live.go_on(iteration, meter)
            return live
        environment = self._environments[paused.task.family]
        return OpenEpisode(
            *(paused, environment, self._settings, meter), iteration=iteration, seed=self._seed
        )

    def _whole(self, groups: dict[GroupKey, _OpenGroup]) -> list[Group]:
        return [
            Group(group.task, key.begun, [group.ended[n].sample for n in range(group.size)])
            for key, group in groups.items()
            if len(group.ended) == group.size
        ]


def _digests_of(tasks: Sequence[GymTask]) -> list[str]:
    digests = []
    for task in tasks:
        try:
            digests.append(digest(task_to_json(task)))
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"task {task.task_id} of the family {task.family} is no JSON, and so could not be "
                f"played again: {error}"
            ) from error
    return digests


def _groups_of(
    at_hand: Iterable[PausedEpisode], *ended: Iterable[EndedEpisode]
) -> dict[GroupKey, _OpenGroup]:
    """Those with an episode in the phase, in the order of their episodes."""
    groups: dict[GroupKey, _OpenGroup] = {}
    for one in at_hand:
        groups.setdefault(GroupKey(one.begun, one.task.task_id), _OpenGroup(one.task, one.size))
    for some in ended:
        for one in some:
            key = GroupKey(one.sample.begun, one.sample.task.task_id)
            groups[key].ended[one.sample.number] = one
    return groups
