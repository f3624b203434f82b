"""An episode in flight: its environment, its tokens, its limits, how it pauses and how it ends."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from records.digest import digest, ordered_json
from records.errors import TransientError
from records.seeds import seed_of
from synth.gym.core.environment import (
    GymEnvironment,
    GymEpisode,
    GymStep,
    GymTask,
    Reward,
    RewardError,
    checked,
)
from synth.gym.core.questions import Questions
from synth.gym.core.ranked import is_ranked
from synth.gym.files import unguarded
from synth.llm.wire.request import Message
from trainer.data.chat import AssistantAnswer
from trainer.data.tokenizer import Tokenizer
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.inference.policies import PolicyRequest, num_calls
from trainer.rl.rollouts.calls import (
    EnvironmentCall,
    in_own_thread,
    in_time,
    no_reward,
    plain,
    told,
)
from trainer.rl.rollouts.outcomes import (
    LOST,
    CutReason,
    EpisodeOutcome,
    LostEpisodeError,
    says_the_same,
)
from trainer.rl.rollouts.samples import RolloutSample, drawn_in
from trainer.rl.rollouts.settings import RolloutSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

NOTHING = Reward(0.0)
"""What an episode is worth that the policy did not bring to its end."""


class EpisodeKey(NamedTuple):
    begun: int
    """Iteration for which it was asked."""
    task_id: str
    number: int


class PausedEpisode(NamedTuple):
    """All that brings an episode back, in this process or another."""

    task: GymTask
    number: int
    begun: int
    size: int
    """Samples of its group."""
    actions: list[Message]
    """What the policy said; none of an episode that has not begun."""
    conversation: str | None
    """Digest of all messages; None of an episode that has not begun."""
    tokens: EpisodeTokens

    @property
    def key(self) -> EpisodeKey:
        return EpisodeKey(self.begun, self.task.task_id, self.number)


class AnsweredTurn(NamedTuple):
    answer: AssistantAnswer
    cut: CutReason | None
    """Why it ends where it is; None where the policy ended it, or the policy's own limit."""


@dataclass
class EnvironmentMeter:
    """What environments took, over the episodes of a phase."""

    steps: int = 0
    """Answers that were played."""
    seconds: float = 0.0
    """In all calls, those beside each other added up."""


class OpenEpisode:
    """Not for concurrent calls. What an environment does wrong ends the episode as a sample without
    a reward; nothing of it is raised, but for `pause`."""

    def __init__(
        self,
        paused: PausedEpisode,
        environment: GymEnvironment,
        settings: RolloutSettings,
        meter: EnvironmentMeter,
        *,
        iteration: int,
        seed: int,
    ) -> None:
        """`seed`: of the run."""
        self.key = paused.key
        item = f"{paused.task.task_id}-{paused.begun}-{paused.number}"
        self.seed = seed_of(item, "rollout", seed)
        self.tokens = paused.tokens
        self._paused = paused
        self._actions = list(paused.actions)
        self._environment, self._settings, self._meter = environment, settings, meter
        self._episode: GymEpisode | None = None
        self.go_on(iteration, meter)

    def go_on(self, iteration: int, meter: EnvironmentMeter) -> None:
        """Another iteration begins."""
        self._iteration, self._meter = iteration, meter
        self._drawn_before = drawn_in([self.tokens])

    @property
    def segment(self) -> int:
        """Tokens that were drawn in this iteration."""
        return drawn_in([self.tokens]) - self._drawn_before

    @property
    def room(self) -> int:
        """Tokens that may be drawn now."""
        segment = self._settings.segment_tokens
        left = self._left
        return left if segment is None else min(left, segment - self.segment)

    @property
    def _left(self) -> int:
        """Tokens of the budget."""
        return self._settings.budget_of(self._paused.task.family) - drawn_in([self.tokens])

    @property
    def turns(self) -> int:
        """Answers that are over."""
        return len(self.tokens.answers) + sum(len(own.answers) for own in self.tokens.earlier)

    async def begin(self) -> RolloutSample | None:
        """To where the policy is to answer, by the answers that were given if there are any. The
        sample, if it is over with that."""
        if self._episode is not None:  # it waited with its environment
            return None
        try:
            for tried in range(self._settings.begin_tries):
                try:
                    await self._call(self._begin, "the beginning")
                    break
                except LostEpisodeError as lost:
                    last = tried + 1 == self._settings.begin_tries
                    if last or not isinstance(lost.__cause__, TransientError):
                        raise
                    await asyncio.sleep(0.1 * 2**tried)
            await self._bring_back()
        except LostEpisodeError as lost:
            return self.lost(lost)
        return None

    async def _begin(self) -> None:
        # kept from here, so that one that comes late is closed as well
        self._episode = await self._environment.begin(self._paused.task, self.seed)

    async def _bring_back(self) -> None:
        for number, action in enumerate(self._actions):
            step = await self._call(partial(self._step, action), f"step {number}, again,")
            if step.done:
                raise LostEpisodeError("changed", f"it ends at answer {number}, and did not")
        expected = self._paused.conversation
        if expected is not None and self._conversation() != expected:
            raise LostEpisodeError("changed", "the same answers led to other messages")

    def asked(self) -> PolicyRequest:
        """What the policy is to answer."""
        episode = self._episode
        assert episode is not None
        seed = seed_of(str(self.seed), "answer", len(self._actions))
        return PolicyRequest(episode.messages, episode.tools, seed, self.tokens)

    def cut_now(self) -> CutReason | None:
        """Whether the answer that is being drawn ends here, and why."""
        if self._left <= 0:
            return "truncated"
        repeats, at = self._settings.repeats, self.tokens.begun_at
        if repeats is not None and at is not None:
            ids = self.tokens.ids[at:]
            if says_the_same(ids, tokens=repeats.tokens, period=repeats.period):
                return "repeats"
        return None

    def cut_by_room(self, most: int) -> CutReason | None:
        """Whether the last answer ended since its slot was full; answers may have `most` tokens."""
        last = self.tokens.answers[-1]
        full = last.finish_reason == "length" and last.end - last.begin < most
        return "truncated" if full or last.finish_reason == "no_room" else None

    def end_answer(self, tokenizer: Tokenizer) -> AssistantAnswer:
        """The answer that is being drawn, as far as it is."""
        draft = self.tokens.draft()
        draft.finish_reason = "length"
        self.tokens.keep(draft, tokenizer)
        return self.tokens.answer(tokenizer)

    async def play(self, answered: AnsweredTurn) -> RolloutSample | None:
        """Play what the policy said. The sample, if it is over with that."""
        cut = answered.cut
        if cut is None and self.tokens.answers[-1].finish_reason == "length":
            return self._ended("endless")
        assert self._episode is not None
        action = answered.answer.message(calls_before=num_calls(self.tokens.messages))
        if cut is None and self._is_silence(action):
            return self._ended("silent", NOTHING if self._settings.silence == "fails" else None)
        self._actions.append(action)
        self._meter.steps += 1
        try:
            step = await self._call(partial(self._step, action), f"step {len(self._actions) - 1}")
            return self._after(step, cut)
        except LostEpisodeError as lost:
            return self.lost(lost)

    async def _step(self, action: Message) -> GymStep:
        assert self._episode is not None
        return await self._episode.step(deepcopy(action))

    def _after(self, step: GymStep, cut: CutReason | None) -> RolloutSample | None:
        if not isinstance(step, GymStep):
            raise LostEpisodeError("environment_error", f"a step gave {type(step).__name__}")
        if step.outside is not None:
            raise LostEpisodeError("outside", plain(str(step.outside)))
        ended = cut or ("truncated" if step.truncated else "completed")
        if step.done and is_ranked(self._paused.task):
            if step.reward is not None:
                raise LostEpisodeError(
                    "environment_error",
                    f"its answers are ranked, and it ended with a reward: {step.reward!r}",
                )
            return self._ended(ended)
        if step.done:
            if not isinstance(step.reward, Reward):
                raise LostEpisodeError(
                    "environment_error", f"it ended with neither reward nor reason: {step.reward!r}"
                )
            try:
                return self._ended(ended, checked(step.reward))
            except RewardError as error:
                raise no_reward(error) from error
        if cut is not None:
            return self._ended(cut, NOTHING)
        if self.turns >= self._settings.most_turns:
            return self._ended("too_many_turns", NOTHING)
        if self._left <= 0:
            return self._ended("truncated", NOTHING)
        return None

    def _is_silence(self, action: Message) -> bool:
        """Whether nobody heard anything of the policy for long enough."""
        last = [*self._actions, action][-self._settings.silent_answers :]
        return len(last) == self._settings.silent_answers and all(map(_says_nothing, last))

    @property
    def paused(self) -> PausedEpisode:
        """What brings it back to where it paused last."""
        return self._paused

    def pause(self) -> None:
        """It waits, with its environment open. LostEpisodeError for a conversation that cannot be
        kept."""
        begun = self._episode is not None
        self._paused = self._paused._replace(
            actions=list(self._actions),
            conversation=self._conversation() if begun else self._paused.conversation,
            tokens=self.tokens,
        )

    def lost(self, lost: LostEpisodeError) -> RolloutSample:
        return self._ended(lost.outcome, detail=lost.detail)

    def _ended(
        self, outcome: EpisodeOutcome, reward: Reward | None = None, detail: str = ""
    ) -> RolloutSample:
        messages: list[Message] = json.loads(json.dumps(self.tokens.messages))
        tools: list[Mapping[str, Any]] = []
        try:
            if self._episode is not None:
                tools = json.loads(ordered_json(list(self._episode.tools)).encode())
                messages = json.loads(ordered_json(self._episode.messages).encode())
        except Exception as error:  # of an environment's own containers
            if outcome not in LOST:
                outcome, reward = "environment_error", None
                detail = f"its messages or tools are no JSON: {told(error)}"
        if reward is not None:
            reward = Reward(reward.value, {str(name): part for name, part in reward.parts.items()})
        return RolloutSample(
            task=self._paused.task,
            number=self._paused.number,
            seed=self.seed,
            tokens=[self.tokens] if self.tokens.ids else [],
            messages=messages,
            tools=tools,
            reward=reward,
            outcome=outcome,
            detail=detail,
            truncated=outcome in ("truncated", "repeats", "too_many_turns"),
            turns=self.turns,
            begun=self._paused.begun,
            ended=self._iteration,
        )

    async def close(self) -> None:
        """Stop what the environment runs, as far as it does so in its time."""
        if self._episode is not None:
            episode, self._episode = self._episode, None
            try:
                await self._call(episode.close, "the end")
            except LostEpisodeError as lost:
                log.warning("episode %s was not closed: %s", self.key, lost)

    def _conversation(self) -> str:
        assert self._episode is not None
        try:
            return digest(self._episode.messages)
        except Exception as error:  # of an environment's own containers
            raise LostEpisodeError(
                "environment_error", f"its messages are no JSON: {told(error)}"
            ) from error

    async def _call(self, call: EnvironmentCall[T], what: str) -> T:
        if isinstance(unguarded(self._environment), Questions):
            # they compute, and so would keep all waiting
            call = in_own_thread(call)
        settings, began = self._settings, time.monotonic()
        what = f"{what} of a task of {self._paused.task.family}"
        try:
            return await in_time(call, settings.step_s, grace_s=settings.grace_s, what=what)
        finally:
            self._meter.seconds += time.monotonic() - began


def _says_nothing(action: Message) -> bool:
    return not (
        str(action.get("content") or "").strip()
        or action.get("tool_calls")
        or action.get("reasoning_content")
    )
