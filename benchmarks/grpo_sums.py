"""Sums that are added up step by step: what `bench_grpo.py` learns, here and with TRL.

An environment in one file, as `docs/gym.md` has them. Answers to learn from before have mistakes in
some of their steps, so a model that was fine-tuned on them is right some of the time, and what
rewards can add is to be right more often.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from records.seeds import rng_of
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.questions import Questions
from synth.gym.maths.answers import exact_number, final_answer

NUMBERS, LARGEST = 3, 9

TASKS = 300
"""Of the 729 that there can be."""


class SumSteps(Questions):
    """One question, one answer, right or wrong: the value is 1 or 0."""

    family = "sum_steps"
    system = "Add step by step."

    def tasks(self) -> Sequence[GymTask]:
        """All of them to learn from."""
        drawn = dict.fromkeys(numbers_of("task", index) for index in range(2 * TASKS))
        return [
            GymTask(
                task_id="sum-" + "-".join(map(str, numbers)),
                family=self.family,
                split="train",
                tags=("kind:sum",),
                body={"numbers": list(numbers)},
            )
            for numbers in list(drawn)[:TASKS]
        ]

    def question(self, task: GymTask) -> str:
        return question_of(task.body["numbers"])

    def reward(self, task: GymTask, answer: str) -> Reward:
        found = final_answer(answer)
        right = exact_number(found.text) == sum(task.body["numbers"])
        return Reward(float(right), {"answered": float(not found.fault)})


def numbers_of(purpose: str, index: int) -> tuple[int, ...]:
    rng = rng_of("sum-steps", purpose, index)
    return tuple(rng.randint(1, LARGEST) for _ in range(NUMBERS))


def question_of(numbers: Sequence[int]) -> str:
    return f"Add {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}."


def answer_of(numbers: Sequence[int], rng: random.Random, *, mistakes: float) -> str:
    """With the share of `mistakes` a step is one off, and what follows goes on from there."""
    return "".join(_lines(numbers, rng, mistakes))


def _lines(numbers: Sequence[int], rng: random.Random, mistakes: float) -> Iterator[str]:
    total = numbers[0]
    for number in numbers[1:]:
        wrong = rng.choice((-1, 1)) if rng.random() < mistakes else 0
        found = total + number + wrong
        yield f"{total} + {number} = {found}\n"
        total = found
    yield f"<answer>{total}</answer>"


def write_rows(path: Path, count: int, *, mistakes: float) -> None:
    """Conversations to fine-tune on, as JSON lines."""
    with path.open("w") as file:
        for index in range(count):
            numbers = numbers_of("row", index)
            answer = answer_of(numbers, rng_of("sum-steps", "answer", index), mistakes=mistakes)
            messages = [
                {"role": "system", "content": SumSteps.system},
                {"role": "user", "content": question_of(numbers)},
                {"role": "assistant", "content": answer},
            ]
            file.write(json.dumps({"messages": messages}) + "\n")


ENVIRONMENT = SumSteps()
