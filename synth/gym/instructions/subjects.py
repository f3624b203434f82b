"""What answers are about: writing requests from a seeded grammar, or prompts of the user's files.

What decides a subject's split is its content: the topic of a built-in request, the words of a
user's prompt. No topic and no prompt stands in two splits, whatever the seed.
"""

import random
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ConfigError
from records.seeds import share_of
from synth.gym.core.environment import GymSplit
from synth.matching.evaluations import evaluation_rows
from synth.matching.word_runs import words_of

PROMPT_KEYS = ("prompt", "request", "text")
"""Of a row that is an object, the first of these that it has is the prompt."""

_FILE = Path(__file__).with_name("subjects.toml")


class WritingSubject(NamedTuple):
    request: str
    """What is to be written, a sentence or more."""
    area: str
    """For coverage: `home`, `food` and so on, `own` for the user's."""
    content: str
    """What decides the split."""


class Shares(NamedTuple):
    """Shares of subjects from 0 to 1; the rest is trained on."""

    validation: float
    heldout: float


def split_of_content(content: str, shares: Shares) -> GymSplit:
    """Where a subject of this content belongs."""
    place = share_of(content, "gym_instructions_split")
    if place < shares.heldout:
        return "heldout"
    return "validation" if place < shares.heldout + shares.validation else "train"


def drawn_subject(rng: random.Random) -> WritingSubject:
    """A built-in writing request."""
    known = _grammar()
    area, topic = rng.choice(known.topics)
    request = f"Write {rng.choice(known.forms)} about {topic} for {rng.choice(known.readers)}."
    return WritingSubject(request, area, topic)


class _Grammar(NamedTuple):
    forms: Sequence[str]
    readers: Sequence[str]
    topics: Sequence[tuple[str, str]]
    """(area, topic)"""


@cache
def _grammar() -> _Grammar:
    known = tomllib.loads(_FILE.read_text())
    topics = [(area, topic) for area, some in known["topics"].items() for topic in some]
    return _Grammar(known["forms"], known["readers"], topics)


def subjects_in(path: str, *, setting: str) -> list[WritingSubject]:
    """The user's prompts in their order, each once: rows of JSON lines, JSON or Parquet, lines of
    text. ConfigError for a row that holds none, and for a path without prompts."""
    found: dict[str, WritingSubject] = {}
    for row in evaluation_rows(path, setting=setting):
        for prompt in _prompts(row.value, f"{setting}: {row.path}, row {row.number}"):
            content = " ".join(words_of(prompt))
            found.setdefault(content, WritingSubject(prompt, "own", content))
    if not found:
        raise ConfigError(f"{setting}: {path} holds no prompts")
    return list(found.values())


def _prompts(value: Any, where: str) -> list[str]:
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    if isinstance(value, Mapping):
        prompt = next((value[key] for key in PROMPT_KEYS if value.get(key)), None)
        if isinstance(prompt, str) and prompt.strip():
            return [prompt.strip()]
    raise ConfigError(
        f"{where} holds no prompt; give a text, or an object with one of {', '.join(PROMPT_KEYS)}"
    )
