"""What the gym's environment `grounding` finds in answers that were labelled by hand.

    python -m benchmarks.gym_grounding [--half tuning|reporting]

The answers stand in `benchmarks/grounding`, each with a finding for every sentence and with what
the answer is worth. Prints every answer that does not get its worth, then the tables of
docs/results/gym_grounding_202611.md: the sentences that code decides against their labels; the
rewards without a judge; and those with a judge who answers by the labels, which shows what is left
to go wrong where the judge is right.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from synth.gym.core.environment import GymTask, Reward
from synth.gym.grounding.by_judge import JudgedSentences
from synth.gym.grounding.environment import (
    ReadAnswer,
    certain_reward,
    judged_reward,
    read_answer,
)
from synth.gym.grounding.tasks import FAMILY

Half = Literal["tuning", "reporting"]

_FOLDER = Path(__file__).parent / "grounding"


class LabelledText(NamedTuple):
    kind: str
    """right, wrong, or cheating."""
    worth: str
    """full, part, or none."""
    text: str
    says: Sequence[Any]
    """The finding of each sentence, in order."""
    task: GymTask

    @property
    def read(self) -> ReadAnswer:
        return read_answer(self.task, self.text)

    def is_worth(self, reward: Reward) -> bool:
        worth = "full" if reward.value == 1 else "part" if reward.value else "none"
        return worth == self.worth

    def judged(self) -> Reward:
        """With a judge who answers by the labels."""
        read = self.read
        if (reward := certain_reward(self.task, read)) is not None:
            return reward
        labels = dict(zip(read.sentences, self.says, strict=True))
        answered = self.worth != "none"
        found = JudgedSentences({name: labels[name] for name in read.open}, answered, 0)
        return judged_reward(self.task, read, found)


def labelled_texts(half: Half) -> list[LabelledText]:
    """In the order of the file."""
    found: list[LabelledText] = []
    for one in yaml.safe_load((_FOLDER / f"{half}.yaml").read_text()):
        texts = one.pop("texts")
        body = {"documents": [], "results": [], "answerable": True, "answers": []} | one
        task = GymTask(one["question"], FAMILY, "train", ("kind:labelled",), body)
        found += [
            LabelledText(own["kind"], own["worth"], own["text"], own["says"], task) for own in texts
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["tuning", "reporting"], default="reporting")
    texts = labelled_texts(parser.parse_args().half)
    sentences: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    judged: Counter[tuple[str, str]] = Counter()
    for one in texts:
        read = one.read
        for name, label in zip(read.sentences, one.says, strict=True):
            if read.is_refused:  # no sentence of it is looked at
                continue
            sentences[label, read.findings[name]] += 1
            if read.findings[name] not in (label, "open"):
                _say(f"{label}, and code says {read.findings[name]}: {read.sentences[name]!r}")
        by_code, by_both = certain_reward(one.task, read), one.judged()
        alone[one.kind, _outcome(one, by_code)] += 1
        judged[one.kind, _outcome(one, by_both)] += 1
        if not one.is_worth(by_both):
            _say(f"{one.kind}, worth {one.worth}, gets {by_both.value:g}: {one.text!r}")
    for title, counts in (
        ("sentence", sentences),
        ("without a judge", alone),
        ("with a judge who is right", judged),
    ):
        columns = sorted({column for _, column in counts})
        _say(f"\n| {title} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
        for row in dict.fromkeys(row for row, _ in counts):
            _say(f"| {row} | {' | '.join(str(counts[row, column]) for column in columns)} |")


def _outcome(one: LabelledText, reward: Reward | None) -> str:
    if reward is None:
        return "no reward"
    return "as labelled" if one.is_worth(reward) else "otherwise"


def _say(line: str) -> None:
    print(line)


if __name__ == "__main__":
    main()
