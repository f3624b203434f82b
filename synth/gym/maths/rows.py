"""Mathematical questions of users' files, compared by math-verify (family `maths`)."""

import asyncio
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from synth.gym.core.environment import GymTask, Reward
from synth.gym.maths.answers import final_answer, one_space
from synth.gym.maths.checker import Checker
from synth.gym.maths.mathematics import refusal
from synth.gym.maths.splits import DrawnQuestions, SplitCounts, SplitShares, drawn_into_splits
from synth.matching.evaluations import evaluation_rows


class MathsFile(Config):
    """Rows of questions and answers: Parquet, JSON lines or JSON, a file, a folder or a pattern."""

    path: str
    """Where the rows are."""
    question: str = "question"
    """Column of the question."""
    answer: str = "answer"
    """Column of the right answer, in LaTeX or plain; a number counts as its text. Where it ends
    with `#### 42`, as in GSM8K, or holds a box, that is the answer."""
    tags: tuple[str, ...] = ()
    """Columns whose values become tags, `column:value`."""
    counts: SplitCounts = SplitCounts()
    """How many rows each split takes, from the beginning of the files."""


class MathsSettings(Config):
    """The family `maths`."""

    files: tuple[MathsFile, ...] = Field(min_length=1)
    """Where the questions are."""
    shares: SplitShares = SplitShares()
    """Which questions belong to which split."""


class MathsQuestions(DrawnQuestions):
    """One question, one answer, right or wrong: the value is 1 or 0. Its parts are `answered`,
    `refused` for an answer that was not worked out or is several, and `unchecked` where comparing
    took more time or memory than there is for it."""

    family = "maths"

    def __init__(self, settings: MathsSettings) -> None:
        super().__init__()
        self._settings = settings
        self._checker = Checker()

    def reward(self, task: GymTask, answer: str) -> Reward:
        found = final_answer(answer)
        if found.fault is not None:
            return Reward(0.0, {"answered": 0.0})
        parts = {"answered": 1.0}
        right = self._is_right(task.body, found.text, parts)
        return Reward(float(right), parts)

    async def graded(self, task: GymTask, answer: str) -> Reward:
        return await asyncio.to_thread(self.reward, task, answer)

    async def close(self) -> None:
        self._checker.close()

    def _is_right(self, body: Mapping[str, Any], given: str, parts: dict[str, float]) -> bool:
        right = body["answer"]
        if _plain(given) == _plain(right):
            return True
        if refusal(right, given, body["question"]) is not None:
            parts["refused"] = 1.0
            return False
        compared = self._checker.judged("maths", {"right": right, "answer": given})
        if compared.fault is not None:
            parts["unchecked"] = 1.0
            return False
        return bool(compared.result)

    def _drawn(self, seen: set[str]) -> Iterator[GymTask]:
        """ConfigError for a row without question or answer, and for files that have too few."""
        for own in self._settings.files:
            yield from self._of(own, seen)

    def _of(self, own: MathsFile, seen: set[str]) -> Iterator[GymTask]:
        what = f"gym.maths.files, path {own.path!r}"
        for split, key, body in drawn_into_splits(
            _rows(own, what), own.counts, self._settings.shares, what=what, seen=seen
        ):
            tags = tuple(body.pop("tags"))
            yield GymTask(digest(self.family, key, body), self.family, split, tags, body)


def _plain(text: str) -> str:
    """For what is the same text: one form of each letter, no capitals, one space."""
    return one_space(unicodedata.normalize("NFC", text)).casefold().rstrip(".")


def _rows(own: MathsFile, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in evaluation_rows(own.path, setting="gym.maths.files"):
        place = f"{what}: row {row.number + 1} of {row.path}"
        if not isinstance(row.value, Mapping):
            raise ConfigError(f"{place} is no object with columns, but {type(row.value).__name__}")
        question, answer = (_text_of(row.value, name, place) for name in (own.question, own.answer))
        tags = [f"{name}:{row.value[name]}" for name in own.tags if row.value.get(name) is not None]
        yield question, {"question": question, "answer": right_answer(answer), "tags": tags}


def _text_of(row: Mapping[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(
            f"{place}: column {column!r} is {value!r}, and a text is wanted; its columns are "
            f"{', '.join(row) or 'none'}. Name the columns by `question` and `answer`"
        )
    return value.strip()


def right_answer(text: str) -> str:
    """What a solution gives as its answer: behind its last `####`, or what all its boxes hold, or
    the whole text."""
    if "####" in text:
        return text.rpartition("####")[2].strip()
    found = final_answer(text)
    return text if found.fault is not None else found.text
