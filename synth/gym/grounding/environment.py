"""The environment of answers from given material (family `grounding`).

Reward: the supported share of the sentences that state something, 0 where one contradicts the
material or the question is not answered. Where the material does not answer the question, the value
is 1 for an answer that says so and states nothing unsupported, else 0. What code and what the judge
decided stand apart among the parts. A sentence that nobody decides is never guessed at: the episode
has no reward then, unless it is 0 whatever that sentence may be.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from records.errors import TransientError
from synth.gym.core.asking import Asking
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.questions import Questions
from synth.gym.grounding.by_code import SentenceFinding, decided
from synth.gym.grounding.by_judge import JUDGE, JudgedSentences, judged
from synth.gym.grounding.material import Material, material_of, sentences_of
from synth.gym.grounding.settings import GroundingSettings
from synth.gym.grounding.tasks import FAMILY, tasks_of
from synth.gym.grounding.told import is_told
from synth.rephrasing.facts.text import squeeze, words_of
from synth.rephrasing.fidelity.overlap import copied

MOST_COUNTED = 5
"""Supported sentences that count: many true ones do not water down one that is made up."""

MOST_SENTENCES = 60
"""Of an answer that are looked at; a longer one is none."""

MOST_CHARS = 12_000
"""The same in characters."""

MOST_COPIED = 0.6
"""Share of the material from which on an answer that holds it word for word is a copy and no
answer."""

FEWEST_WORDS = 60
"""Of material that can be too much to say again."""


class ReadAnswer(NamedTuple):
    """An answer as code reads it."""

    text: str
    sentences: Mapping[str, str]
    """`s1`, `s2`, ... in their order -> the sentence. What is said again counts once."""
    findings: Mapping[str, SentenceFinding]
    is_refused: bool
    """Whether it is too long, or a copy of the material: worth nothing, and not looked at."""

    @property
    def open(self) -> dict[str, str]:
        return {name: said for name, said in self.sentences.items() if self.is_open(name)}

    def is_open(self, name: str) -> bool:
        return self.findings[name] == "open"


class GroundedAnswers(Questions):
    """Tasks of the family `grounding`."""

    family = FAMILY
    system = (
        "Answer the question from the given material alone. Where the material does not hold the "
        "answer, say so."
    )

    def __init__(self, settings: GroundingSettings, *, asking: Asking = Asking()) -> None:
        """`asking` is whose it is that made it, and is not closed here."""
        self.settings, self._asking = settings, asking
        self._tasks: Sequence[GymTask] | None = None

    def tasks(self) -> Sequence[GymTask]:
        """Read when they are asked for first. ConfigError for rows without what is needed, and for
        a dataset that gives no question."""
        if self._tasks is None:
            self._tasks = tasks_of(self.settings)
        return self._tasks

    def question(self, task: GymTask) -> str:
        material = material_of(task.body)
        return f"{material.shown}\n\nQuestion: {material.question}"

    def reward(self, task: GymTask, answer: str) -> Reward:
        """By code alone. TransientError where that does not decide it."""
        read = read_answer(task, answer)
        reward = certain_reward(task, read)
        if reward is None:
            told = (
                f"{len(read.open)} sentences" if read.open else "whether the question is answered"
            )
            raise TransientError(
                f"code leaves open {told}, and nobody plays the role {JUDGE}; set "
                f"gym.roles.{JUDGE}.base_url"
            )
        return reward

    async def graded(self, task: GymTask, answer: str) -> Reward:
        read = await asyncio.to_thread(read_answer, task, answer)
        reward = certain_reward(task, read)
        if reward is not None:
            return reward
        if JUDGE not in self._asking.roles:
            return self.reward(task, answer)
        found = await judged(self._asking, material_of(task.body), answer, read.open)
        return judged_reward(task, read, found)


def read_answer(task: GymTask, answer: str) -> ReadAnswer:
    """What code finds of each sentence."""
    material, answers = material_of(task.body), task.body["answers"]
    said = sentences_of(answer[:MOST_CHARS], material.language)
    too_long = len(answer) > MOST_CHARS or len(said) > MOST_SENTENCES
    is_refused = too_long or _is_copy(answer, material)
    once = list({squeeze(one): one for one in said[:MOST_SENTENCES]}.values())
    sentences = {f"s{number}": one for number, one in enumerate(once, 1)}
    findings: dict[str, SentenceFinding] = {
        name: "open" if is_refused else decided(one, material, answers).finding
        for name, one in sentences.items()
    }
    return ReadAnswer(answer[:MOST_CHARS], sentences, findings, is_refused)


def _is_copy(answer: str, material: Material) -> bool:
    if len(material.words) < FEWEST_WORDS:
        return False
    share, _ = copied(words_of(answer), material.words)
    return share > MOST_COPIED


def certain_reward(task: GymTask, read: ReadAnswer) -> Reward | None:
    """The reward, where no judge could make it another; None where it takes one."""
    found = set(read.findings.values())
    tells = is_told(task.body, read.text)
    if task.body["answerable"]:
        is_nothing = "contradicted" in found or tells is False
        silent = not found & {"supported", "unsupported", "open"}
        is_open = bool(read.open) or tells is None
    else:
        is_nothing = bool(found & {"contradicted", "unsupported"})
        silent = not found & {"abstains", "open"}
        is_open = bool(read.open)
    if read.is_refused or is_nothing or silent or not read.sentences:
        return _reward(task, read, read.findings, 0.0)
    if is_open:
        return None
    return _reward(task, read, read.findings, _value(task, read, read.findings, answered=True))


def judged_reward(task: GymTask, read: ReadAnswer, by_judge: JudgedSentences) -> Reward:
    findings: dict[str, SentenceFinding] = {**read.findings, **by_judge.findings}
    value = _value(task, read, findings, answered=by_judge.answered)
    reward = _reward(task, read, findings, value)
    return Reward(value, {**reward.parts, "unproved": float(by_judge.unproved)})


def _value(
    task: GymTask,
    read: ReadAnswer,
    findings: Mapping[str, SentenceFinding],
    *,
    answered: bool,
) -> float:
    """`answered`: by the judge, who is heard where the task does not name what is to be told."""
    count = Counter(findings.values())
    if count["contradicted"]:
        return 0.0
    if not task.body["answerable"]:
        return float(count["abstains"] > 0 and not count["unsupported"])
    heard = [read.sentences[name] for name, one in findings.items() if one == "supported"]
    tells = is_told(task.body, "\n".join(heard))
    if not heard or not (answered if tells is None else tells):
        return 0.0
    counted = min(len(heard), MOST_COUNTED)
    return counted / (counted + count["unsupported"])


def _reward(
    task: GymTask, read: ReadAnswer, findings: Mapping[str, SentenceFinding], value: float
) -> Reward:
    by_code = Counter(one for one in read.findings.values() if one != "open")
    by_judge = Counter(findings[name] for name in read.open if findings[name] != "open")
    parts = {f"code_{name}": float(count) for name, count in by_code.items()}
    parts |= {f"judge_{name}": float(count) for name, count in by_judge.items()}
    tells = is_told(task.body, read.text)
    return Reward(
        value,
        {
            "sentences": float(len(read.sentences)),
            "answerable": float(task.body["answerable"]),
            **({} if tells is None else {"told": float(tells)}),
            "refused": float(read.is_refused),
            **parts,
        },
    )
