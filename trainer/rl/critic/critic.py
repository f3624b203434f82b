"""The policy as critic of an iteration: measured by what code knows, then asked where code knows
nothing, if what was measured allows it.

A function of the policy's weights, the seed, the samples and the pairs measured before.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from records.errors import ConfigError
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.ranked import is_ranked, rubric_of
from synth.render.intervals import wilson
from trainer.data.chat import encode_chat
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer
from trainer.rl.critic.agreement import CHANCE, AgreementRecord, MeasuredPair
from trainer.rl.critic.asking import (
    ComparedPair,
    CriticPolicy,
    PairVerdict,
    asked_about,
    empty_question,
)
from trainer.rl.critic.lessons import CriticLessons, lessons_of
from trainer.rl.critic.pairs import RatedPair, is_held_back, rated_pairs
from trainer.rl.critic.ranking import GroupComparisons, comparisons_of
from trainer.rl.critic.settings import CriticSettings
from trainer.rl.rollouts.samples import Group


class CriticisedGroups(NamedTuple):
    groups: list[Group]
    """As they were given, but for the rewards of ranked samples."""
    lessons: CriticLessons | None
    """None where nothing is learnt from."""
    measures: Mapping[str, Any]
    """Metrics of the iteration, by name."""


class Critic:
    """Not for concurrent use, nor while the policy draws."""

    def __init__(
        self,
        policy: CriticPolicy,
        tokenizer: Tokenizer,
        chat: ChatFormat,
        settings: CriticSettings,
        tasks: Iterable[GymTask],
        *,
        room: int,
        seed: int,
    ) -> None:
        """`tasks`: of the run; `room`: tokens that a question with its verdict may have.

        ConfigError where not even a question without answers fits, for a rubric that is none, and
        for tasks to rank beside so few verifiable ones that nothing could ever show what the critic
        is worth.
        """
        self._policy, self._tokenizer, self._chat = policy, tokenizer, chat
        self._settings, self._room, self._seed = settings, room, seed
        self.record = AgreementRecord(settings.window)
        self._check([task for task in tasks if task.split == "train"])

    def criticise(self, groups: Sequence[Group], iteration: int) -> CriticisedGroups:
        """Measure the critic, rank by it if it may, and make lessons for it."""
        settings = self._settings
        measured = self._measured_pairs(groups, iteration)
        pairs = [ComparedPair(pair.better, pair.worse) for pair in measured]
        said = self._asked(pairs)
        self.record.add(
            MeasuredPair(iteration, pair.better.task.task_id, verdict.worth)
            for pair, verdict in zip(measured, said, strict=True)
        )
        on = self.record.exceeds_chance
        compared = [self._comparisons(group) for group in groups]
        ranking, ranked = self._ranked(compared) if on else ([], {})
        whole = [
            group if place not in ranked else _with(group, ranked[place])
            for place, group in enumerate(groups)
        ]
        lessons = self._lessons(groups, iteration) if settings.weight else None
        low, high = self.record.interval
        asked = [*said, *ranking]
        readable = [verdict for verdict in asked if not verdict.unreadable]
        waiting = [sample for group in groups for sample in group.samples if sample.awaits_rank]
        num_ranked = sum(map(len, ranked.values()))
        measures: dict[str, Any] = {
            "critic_on": int(on),
            "critic_agreement": self.record.agreement,
            "critic_low": low,
            "critic_high": high,
            "critic_measured": len(measured),
            "critic_differs": _mean([float(verdict.worth == 0) for verdict in said]),
            "critic_differs_trend": self.record.trend,
            "critic_inconsistent": _mean([float(one.inconsistent) for one in readable]),
            "critic_asked": 2 * len(asked),
            "critic_unreadable": sum(verdict.unreadable for verdict in asked),
            "critic_by_code": sum(_by_code(one) for one in compared) if on else 0,
            "critic_ranked": num_ranked,
            "critic_off": 0 if on else len(waiting),
            "critic_alone": len(waiting) - num_ranked if on else 0,
            "critic_spread": _mean([_spread(rewards) for rewards in ranked.values()]),
            "critic_lessons": 0 if lessons is None else len(lessons.pairs),
            "critic_too_long": 0 if lessons is None else lessons.too_long,
        }
        return CriticisedGroups(whole, lessons, measures)

    def to_json(self) -> list[Any]:
        """What `restore` goes on from."""
        return self.record.to_json()

    def restore(self, told: Iterable[Sequence[Any]]) -> None:
        self.record.restore(told)

    def _check(self, tasks: Sequence[GymTask]) -> None:
        least = len(encode_chat(self._tokenizer, empty_question(), chat=self._chat).ids)
        if least + self._settings.answer_tokens >= self._room:
            raise ConfigError(
                f"critic: its question has {least} tokens without any answer in it, and a "
                f"conversation may have {self._room} (slot_tokens, or what the model takes); raise "
                "slot_tokens, or take a model of more positions"
            )
        ranked = [task for task in tasks if is_ranked(task)]
        for task in ranked:
            rubric_of(task)
        share = self._settings.held_back
        held_back = sum(not is_ranked(task) and is_held_back(task, share) for task in tasks)
        if ranked and wilson(held_back, held_back).low <= CHANCE:
            raise ConfigError(
                f"critic: its rewards stay off until it agrees with code, and only {held_back} of "
                f"the {len(tasks) - len(ranked)} verifiable tasks to learn from are held back to "
                "show that, too few even if it were always right; add tasks that code rewards, or "
                f"raise critic.held_back = {share}"
            )

    def _measured_pairs(self, groups: Sequence[Group], iteration: int) -> list[RatedPair]:
        return self._rated(groups, iteration, held_back=True, most=self._settings.measured_pairs)

    def _lessons(self, groups: Sequence[Group], iteration: int) -> CriticLessons:
        settings = self._settings
        pairs = self._rated(groups, iteration, held_back=False, most=settings.lesson_pairs)
        return lessons_of(
            pairs,
            self._tokenizer,
            self._chat,
            tokens=min(settings.lesson_tokens, self._room),
            weight=settings.weight,
        )

    def _rated(
        self, groups: Sequence[Group], iteration: int, *, held_back: bool, most: int
    ) -> list[RatedPair]:
        share = self._settings.held_back
        own = [group for group in groups if is_held_back(group.task, share) == held_back]
        return rated_pairs(own, most=most, seed=self._seed, iteration=iteration)

    def _comparisons(self, group: Group) -> GroupComparisons | None:
        return comparisons_of(group, opponents=self._settings.opponents, seed=self._seed)

    def _ranked(
        self, compared: Sequence[GroupComparisons | None]
    ) -> tuple[list[PairVerdict], dict[int, dict[int, Reward]]]:
        """Verdicts, and rewards by the group's place and the sample's number."""
        pairs = [pair for own in compared if own is not None for pair in own.pairs]
        verdicts = self._asked(pairs)
        rewards: dict[int, dict[int, Reward]] = {}
        at = 0
        for place, own in enumerate(compared):
            if own is not None:
                rewards[place] = own.rewards(verdicts[at : at + len(own.pairs)])
                at += len(own.pairs)
        return verdicts, rewards

    def _asked(self, pairs: Sequence[ComparedPair]) -> list[PairVerdict]:
        tokens = self._settings.answer_tokens
        return asked_about(self._policy, pairs, seed=self._seed, answer_tokens=tokens)


def _with(group: Group, rewards: Mapping[int, Reward]) -> Group:
    """The group with these rewards by the number of the sample: only those that await them."""
    assert all(s.awaits_rank for s in group.samples if s.number in rewards)
    samples = [
        sample._replace(reward=rewards[sample.number]) if sample.number in rewards else sample
        for sample in group.samples
    ]
    return group._replace(samples=samples)


def _by_code(compared: GroupComparisons | None) -> int:
    return 0 if compared is None else len(compared.places) - len(compared.pairs)


def _spread(rewards: Mapping[int, Reward]) -> float:
    values = [reward.value for reward in rewards.values()]
    return max(values) - min(values)


def _mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return fmean(values) if values else None
