"""What the checks of the gym's instructions say of answers written by hand, honest and not.

    python -m benchmarks.instruction_checks [--half tuning|report] [--prose FILE ...]

The answers stand in `instructions_honest.yaml` and `instructions_faulty.yaml` beside this file:
every second one, from the first on, tuned the check of claims and emptiness; the others are for
reporting. Prints a table as in docs/results/gym_instructions_202611.md, and every answer that is
not judged as its label says. With `--prose`, how many paragraphs of files that people wrote for
other purposes would be taken for empty, or to claim something.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from synth.gym.core.environment import Reward
from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.claims import claims_in, emptiness
from synth.gym.instructions.constraint import Constraint
from synth.gym.instructions.environment import question_of, reward_of
from synth.gym.instructions.kinds import KINDS
from synth.gym.instructions.lengths import WordsAtMost

Half = Literal["tuning", "report"]
Label = Literal["honest", "faulty", "claims", "empty"]

MIN_WORDS = 8

_FOLDER = Path(__file__).parent


class LabelledAnswer(NamedTuple):
    label: Label
    half: Half
    language: str
    question: str
    constraints: tuple[Constraint, ...]
    answer: str

    @property
    def reward(self) -> Reward:
        return reward_of(self.constraints, self.answer, question=self.question)

    @property
    def is_judged_rightly(self) -> bool:
        """Whether the value is right, and what the label says stands in the parts."""
        reward = self.reward
        if self.label == "honest":
            return reward.value == 1
        named = self.label not in ("claims", "empty") or reward.parts[self.label] == 1
        return reward.value == 0 and named


def labelled_answers() -> list[LabelledAnswer]:
    """All of them, in the order of the files."""
    found: list[LabelledAnswer] = []
    for name in ("honest", "faulty"):
        rows = yaml.safe_load((_FOLDER / f"instructions_{name}.yaml").read_text())
        found += [_labelled(row, number) for number, row in enumerate(rows)]
    return found


def _labelled(row: dict[str, Any], number: int) -> LabelledAnswer:
    constraints = tuple(
        KINDS[kind].model_validate(params) for one in row["asked"] for kind, params in one.items()
    )
    return LabelledAnswer(
        label=row.get("label", "honest"),
        half="report" if number % 2 else "tuning",
        language=_language(row["answer"], row["about"]),
        question=question_of(row["about"], constraints, [0] * len(constraints)),
        constraints=constraints,
        answer=row["answer"],
    )


def _language(answer: str, about: str) -> str:
    """Good enough for a table: Chinese by its signs, German by the request or umlauts."""
    if any("\u4e00" <= sign <= "\u9fff" for sign in answer):
        return "zh"
    is_german = about.startswith(("Schreibe", "Beschreibe")) or any(s in answer for s in "äöüß")
    return "de" if is_german else "en"


def table(answers: Iterable[LabelledAnswer]) -> str:
    """Rows of Markdown: label, half, answers, how many are judged rightly."""
    counts: Counter[tuple[str, str, bool]] = Counter(
        (one.label, one.half, one.is_judged_rightly) for one in answers
    )
    lines = ["| label | half | answers | judged as labelled |", "|---|---|---|---|"]
    for label, half in dict.fromkeys((label, half) for label, half, _ in counts):
        right = counts[label, half, True]
        lines.append(f"| {label} | {half} | {right + counts[label, half, False]} | {right} |")
    return "\n".join(lines)


def prose_counts(paths: Iterable[Path]) -> Counter[str]:
    """Paragraphs of at least `MIN_WORDS` words, and what they would be taken for as answers to a
    request that asks for next to nothing."""
    constraints = [WordsAtMost(most=10**6)]
    question = question_of("Write something.", constraints, [0])
    counts: Counter[str] = Counter()
    for path in paths:
        for paragraph in AnswerText(path.read_text()).paragraphs:
            answer = AnswerText(paragraph)
            if len(answer.words) < MIN_WORDS or answer.tables:
                continue
            counts["paragraphs"] += 1
            empty = emptiness(answer, constraints, question=question)
            counts["empty"] += empty is not None
            counts["claims"] += bool(claims_in(answer))
    return counts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--half", choices=("tuning", "report"))
    parser.add_argument("--prose", nargs="+", type=Path, default=[])
    options = parser.parse_args(arguments)
    half = options.half
    answers = [one for one in labelled_answers() if half in (None, one.half)]
    print(table(answers))
    for one in answers:
        if not one.is_judged_rightly:
            print(f"\n{one.label} ({one.half}, {one.language}): {one.question}\n{one.answer}")
            print(one.reward)
    if options.prose:
        print("\nprose:", dict(prose_counts(options.prose)))


if __name__ == "__main__":
    main()
