"""Critics that answer by rule, and groups of answers that they are asked about."""

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import cache

from records.seeds import seed_of
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.ranked import RANKED
from trainer.data.chat import AssistantAnswer
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.policies import PolicyRequest
from trainer.rl.critic.asking import FOLDER
from trainer.rl.critic.critic import Critic
from trainer.rl.critic.settings import CriticSettings
from trainer.rl.rollouts.outcomes import EpisodeOutcome
from trainer.rl.rollouts.samples import Group, RolloutSample

Rule = Callable[[str, str, int], str]
"""What is said of two answers' texts, given a seed."""

_ANSWER = re.compile(r"(?:First|Second) answer:\n```json\n\[\n(.*?)\n\]\n```", re.DOTALL)


class ScriptedCritic:
    """Has the policy's interface, as far as a critic needs it."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.sampling = Sampling(temperature=0.9)
        self.asked: list[PolicyRequest] = []
        self.temperatures: set[float] = set()

    def forget(self) -> None:
        """Nothing is kept."""

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        self.asked += asked
        self.temperatures.add(self.sampling.temperature)
        return [AssistantAnswer(self._rule(*answers_in(one), one.seed), [], None) for one in asked]


def answers_in(asked: PolicyRequest) -> tuple[str, str]:
    """The two texts that are compared, as they stand in the prompt."""
    first, second = (
        json.loads(found)["assistant"] for found in _ANSWER.findall(asked.messages[-1]["content"])
    )
    return first, second


def points(text: str) -> int:
    """What an answer is worth in these tests."""
    return int((re.findall(r"\d+", text) or ["0"])[-1])


def perfect(first: str, second: str, seed: int) -> str:
    return "First." if points(first) > points(second) else "second"


def contrary(first: str, second: str, seed: int) -> str:
    return "second" if points(first) > points(second) else "first"


def always_first(first: str, second: str, seed: int) -> str:
    return "first"


def at_random(first: str, second: str, seed: int) -> str:
    return random.Random(seed).choice(["first", "second", "equal"])


def garbage(first: str, second: str, seed: int) -> str:
    return "I would say that the first answer is better than the second"


def task(number: int, *, ranked: bool = False, **body: object) -> GymTask:
    family = "open" if ranked else "sums"
    tags = (RANKED,) if ranked else ("kind:sum",)
    return GymTask(f"{family}-{number:03d}", family, "train", tags, body)


def sample(
    of: GymTask, number: int, text: str, outcome: EpisodeOutcome = "completed"
) -> RolloutSample:
    """Of a verifiable task the reward is a tenth of the points that the text ends with."""
    reward = None if RANKED in of.tags else Reward(points(text) / 10)
    messages = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": f"Tell me of {of.task_id}."},
        {"role": "assistant", "content": text},
    ]
    seed = seed_of(of.task_id, "sample", number)
    return RolloutSample(of, number, seed, [], messages, [], reward, outcome, "", False, 1, 0, 0)


def group(of: GymTask, *values: int, begun: int = 0) -> Group:
    samples = [sample(of, n, f"It is {value}") for n, value in enumerate(values)]
    return Group(of, begun, samples)


def verifiable(count: int) -> list[Group]:
    return [group(task(n), 1, 9, 5, n % 10) for n in range(count)]


@cache
def small_tokenizer() -> Tokenizer:
    prompt = (FOLDER / "ranking.md").read_text()  # else it has a token for every letter
    return train_tokenizer([prompt, "Tell me of sums. It is "] * 9, vocab_size=900)


def critic(
    rule: Rule, tasks: Sequence[GymTask] = (), seed: int = 0, room: int = 4000, **other: object
) -> tuple[Critic, ScriptedCritic]:
    policy = ScriptedCritic(rule)
    settings = CriticSettings.model_validate({"enabled": True, "held_back": 0.5, **other})
    made = Critic(
        policy, small_tokenizer(), ChatFormat(system=""), settings, tasks, room=room, seed=seed
    )
    return made, policy


OPEN_GROUP = group(task(1, ranked=True), 3, 8, 1, 5)
"""Answers that no code rewards."""
