"""The environment of complex instructions: a writing request with one to five constraints on form.

Reward: 1 where the answer meets every constraint and says something of its own, else 0. Its parts
are each constraint by its kind, `share` of the constraints met, `claims` where an answer that does
not comply says that it does, and `empty` where it complies by the letter alone.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import Field, model_validator

from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from records.seeds import rng_of
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.questions import Questions
from synth.gym.instructions.answer import AnswerText
from synth.gym.instructions.claims import claims_in, emptiness
from synth.gym.instructions.constraint import Constraint, kind_of
from synth.gym.instructions.kinds import GROUP_OF, KINDS, constraint_of, drawn_together
from synth.gym.instructions.nested import as_json
from synth.gym.instructions.subjects import (
    Shares,
    WritingSubject,
    drawn_subject,
    split_of_content,
    subjects_in,
)

FAMILY = "instructions"

MOST_LEVEL = 5


class InstructionsConfig(Config):
    """Which tasks there are."""

    tasks: int = Field(default=200, ge=1)
    """Of all splits together."""
    seed: int = 0
    """Of subjects, constraints, parameters and wordings."""
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    """Numbers of constraints, from 1 to 5, taken in turns; one that is named twice comes twice as
    often."""
    kinds: tuple[str, ...] = ()
    """Names of the kinds that are drawn; all of them where none is named."""
    prompts: str | None = None
    """A file, folder or pattern with writing requests of your own (JSON lines or Parquet with a
    column `prompt`, or lines of text), which take the place of the built-in ones. They are taken
    in turns, and should leave the form of the answer open."""
    validation_share: float = Field(default=0.1, ge=0, le=1)
    """Of the subjects."""
    heldout_share: float = Field(default=0.1, ge=0, le=1)
    """Of the subjects."""

    @model_validator(mode="after")
    def _check(self) -> "InstructionsConfig":
        if not self.levels or not all(1 <= level <= MOST_LEVEL for level in self.levels):
            raise ValueError(f"levels are numbers from 1 to {MOST_LEVEL}, got {self.levels}")
        if unknown := set(self.kinds) - set(KINDS):
            raise ValueError(f"kinds: there is no {sorted(unknown)}; kinds: {', '.join(KINDS)}")
        if self.validation_share + self.heldout_share > 1:
            raise ValueError("validation_share and heldout_share are more than 1 together")
        return self


class Instructions(Questions):
    """Tasks of the family `instructions`."""

    family = FAMILY

    def __init__(self, config: InstructionsConfig = InstructionsConfig()) -> None:
        self.config = config
        self._own = (
            None
            if config.prompts is None
            else subjects_in(config.prompts, setting="prompts of the gym's instructions")
        )

    @cached_property
    def _tasks(self) -> list[GymTask]:
        return [self._task(number) for number in range(self.config.tasks)]

    def tasks(self) -> Sequence[GymTask]:
        return self._tasks

    def question(self, task: GymTask) -> str:
        return question_of(task.body["request"], _constraints(task), task.body["variants"])

    def reward(self, task: GymTask, answer: str) -> Reward:
        constraints = _constraints(task)
        return reward_of(constraints, answer, question=self.question(task))

    def _task(self, number: int) -> GymTask:
        config = self.config
        rng = rng_of(f"{FAMILY}-{config.seed}", "task", number)
        subject = drawn_subject(rng) if self._own is None else self._own[number % len(self._own)]
        level = config.levels[number % len(config.levels)]
        constraints = drawn_together(rng, level, names=config.kinds or tuple(KINDS))
        variants = [rng.randrange(1000) for _ in constraints]
        return task_of(
            subject, constraints, variants, Shares(config.validation_share, config.heldout_share)
        )


def task_of(
    subject: WritingSubject,
    constraints: Sequence[Constraint],
    variants: Sequence[int],
    shares: Shares,
) -> GymTask:
    """The task to write on a subject under constraints; `variants` pick their wordings."""
    body: dict[str, Any] = {
        "request": subject.request,
        "constraints": [as_json(constraint) for constraint in constraints],
        "variants": list(variants),
    }
    kinds = [kind_of(type(constraint)) for constraint in constraints]
    groups = dict.fromkeys(GROUP_OF[kind] for kind in kinds)
    return GymTask(
        task_id=digest(FAMILY, body),
        family=FAMILY,
        split=split_of_content(subject.content, shares),
        tags=(
            f"domain:{subject.area}",
            *(f"kind:{kind}" for kind in kinds),
            *(f"group:{group}" for group in groups),
            f"level:{len(constraints)}",
        ),
        body=body,
    )


def question_of(request: str, constraints: Sequence[Constraint], variants: Sequence[int]) -> str:
    """What the user writes: the request, then the constraints, a line each where they are many."""
    sentences = [
        constraint.words(variant) for constraint, variant in zip(constraints, variants, strict=True)
    ]
    if len(sentences) == 1:
        return f"{request} {sentences[0]}"
    return "\n".join([request, "", *(f"- {sentence}" for sentence in sentences)])


def reward_of(constraints: Sequence[Constraint], answer: str, *, question: str) -> Reward:
    """What an answer is worth to whoever asked the question."""
    read = AnswerText(answer)
    met: dict[str, float] = {
        kind_of(type(constraint)): float(constraint.met(read)) for constraint in constraints
    }
    complies = all(met.values())
    empty = emptiness(read, constraints, question=question) is not None
    claims = not complies and bool(claims_in(read))
    return Reward(
        value=float(complies and not empty),
        parts=met
        | {
            "share": sum(met.values()) / len(met),
            "claims": float(claims),
            "empty": float(empty),
        },
    )


def _constraints(task: GymTask) -> list[Constraint]:
    stored: Sequence[Mapping[str, Any]] = task.body["constraints"]
    if not stored:
        raise ConfigError(f"task {task.task_id} has no constraints")
    return [constraint_of(value) for value in stored]
