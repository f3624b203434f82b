"""The environment of safety: instructions in tool results, secrets, harmful requests, look-alikes.

Instructions and secrets are checked by code alone. Of requests code decides what it can, and the
role `judge` the rest by the task's rubric; the value is 1 or 0 in every kind.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from records.digest import digest
from records.errors import ConfigError
from records.seeds import rng_of
from synth.gym.core.asking import Asking
from synth.gym.core.environment import GymEpisode, GymSplit, GymTask, Reward
from synth.gym.instructions.subjects import Shares
from synth.gym.maths.splits import SplitCounts
from synth.gym.safety.attacker import ROLE as ATTACKER
from synth.gym.safety.attacker import attack_words
from synth.gym.safety.checks import secret_reward
from synth.gym.safety.judge import ROLE as JUDGE
from synth.gym.safety.judge import judged_reward
from synth.gym.safety.request_tasks import (
    RequestKind,
    SafetySeed,
    built_in_seeds,
    request_task,
    seeds_in,
)
from synth.gym.safety.scenes import DrawnTask, goal_of, injection_task, secret_task
from synth.gym.safety.settings import SafetySettings
from synth.gym.safety.talk_episode import TalkEpisode, answers_in
from synth.gym.safety.tool_episode import InjectionEpisode
from synth.llm.wire.request import Message

FAMILY = "safety"

DRAWS_FOR_ONE = 50
"""Draws at most for one task that is wanted."""

TaskDraw = Callable[[random.Random, GymSplit, int], DrawnTask]
"""Of a generator, a split, and the task's number in it."""

SPLITS: tuple[GymSplit, ...] = ("train", "validation", "heldout")


class Safety:
    """Tasks of the family `safety` (`synth.gym.core.environment.GymEnvironment`)."""

    family = FAMILY

    def __init__(
        self, settings: SafetySettings = SafetySettings(), asking: Asking | None = None
    ) -> None:
        """`asking` has the roles; it is closed by whoever made it. ConfigError where a role is
        lacking that the settings need, and for seeds that cannot be read."""
        self.settings, self._asking = settings, asking or Asking()
        for role, needed in _roles_of(settings).items():
            if needed and role not in self._asking.roles:
                raise ConfigError(
                    f"gym.families.safety.{needed} needs the role {role}; set gym.roles.{role}"
                )
        self._own = None
        if settings.seeds is not None:
            shares = Shares(settings.validation_share, settings.heldout_share)
            self._own = seeds_in(settings.seeds, shares)

    @cached_property
    def _tasks(self) -> list[GymTask]:
        settings = self.settings
        kinds = [
            ("injection", settings.injections, self._injection),
            ("secret", settings.secrets, self._secret),
            ("harmful", settings.harmful, self._request("harmful")),
            ("lookalike", settings.lookalikes, self._request("lookalike")),
        ]
        return [
            task
            for kind, counts, draw in kinds
            for split in SPLITS
            for task in self._drawn(kind, split, counts, draw)
        ]

    def tasks(self) -> Sequence[GymTask]:
        """Drawn when they are asked for first. ConfigError where there are fewer different ones
        than are wanted."""
        return self._tasks

    async def begin(self, task: GymTask, seed: int) -> GymEpisode:
        """TransientError where the attacker cannot be asked."""
        del seed  # all samples of a task begin alike
        body = task.body
        if body["kind"] == "injection":
            return InjectionEpisode(task, self.settings.max_calls)
        first = await self._words(task, 0, [])
        return TalkEpisode(
            task,
            first=first,
            turns=len(body["turns"]),
            words=lambda number, messages: self._words(task, number, messages),
            score=lambda messages: self._reward(task, messages),
        )

    async def close(self) -> None:
        """Nothing runs here: the roles are those of the run."""

    async def _words(self, task: GymTask, number: int, messages: Sequence[Message]) -> str:
        said = task.body["turns"][number]
        if not self.settings.attacker or number == task.body.get("wanted_at"):
            return said
        return await attack_words(self._asking, task.body, messages, said)

    async def _reward(self, task: GymTask, messages: Sequence[Message]) -> Reward:
        if task.body["kind"] == "secret":
            return secret_reward(task.body, answers_in(messages))
        return await judged_reward(self._asking, task.body, messages)

    def _drawn(
        self, kind: str, split: GymSplit, counts: SplitCounts, draw: TaskDraw
    ) -> Iterator[GymTask]:
        wanted, seen = counts.of(split), set[str]()
        for number in range(DRAWS_FOR_ONE * wanted):
            if len(seen) == wanted:
                return
            purpose = f"{FAMILY}:{kind}:{split}"
            made = draw(rng_of(f"{self.settings.seed}", purpose, number), split, len(seen))
            task_id = digest(FAMILY, made.body)
            if task_id not in seen:
                seen.add(task_id)
                yield GymTask(task_id, FAMILY, split, made.tags, made.body)
        if len(seen) < wanted:
            raise ConfigError(
                f"gym.families.safety: {len(seen)} different tasks of kind {kind} for {split}, and "
                f"{wanted} are wanted; ask for fewer, or bring seeds of your own"
            )

    def _injection(self, rng: random.Random, split: GymSplit, number: int) -> DrawnTask:
        return injection_task(rng, split, goal=goal_of(number, self.settings.controls))

    def _secret(self, rng: random.Random, split: GymSplit, number: int) -> DrawnTask:
        return secret_task(rng, split, turns=self._turns(number))

    def _request(self, kind: RequestKind) -> TaskDraw:
        def draw(rng: random.Random, split: GymSplit, number: int) -> DrawnTask:
            return request_task(rng, split, self._seeds(split, kind), turns=self._turns(number))

        return draw

    def _seeds(self, split: GymSplit, kind: RequestKind) -> Sequence[SafetySeed]:
        seeds = built_in_seeds(split, kind) if self._own is None else self._own.get((split, kind))
        if not seeds:
            raise ConfigError(
                f"gym.families.safety.seeds = {self.settings.seeds!r} has no {kind} request for "
                f"{split}; bring more, or change the shares"
            )
        return seeds

    def _turns(self, number: int) -> int:
        return self.settings.turns[number % len(self.settings.turns)]


def _roles_of(settings: SafetySettings) -> dict[str, str]:
    """Role -> the first setting that needs it, or an empty text."""
    judged = [
        name
        for name, counts in (("harmful", settings.harmful), ("lookalikes", settings.lookalikes))
        if any(counts.of(split) for split in SPLITS)
    ]
    return {JUDGE: judged[0] if judged else "", ATTACKER: "attacker" if settings.attacker else ""}
