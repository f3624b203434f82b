"""Phrases with weights: what a setting draws from."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Annotated, Any

from pydantic import AfterValidator, StringConstraints

DrawnPhrase = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120, pattern=r"^[^\n]*$")
]
"""A line of the prompts."""


def drawable(weights: dict[Any, float]) -> dict[Any, float]:
    """The weights. ValueError where nothing can be drawn from them."""
    if any(weight < 0 for weight in weights.values()) or not sum(weights.values()) > 0:
        raise ValueError("weights are at least 0, and one of them is above 0")
    return weights


PhraseWeights = Annotated[dict[DrawnPhrase, float], AfterValidator(drawable)]
"""Phrase -> how often it is drawn, relative to the other weights of its table."""

LANGUAGES = {"English": 1.0}
"""English name of a language -> weight, where nothing else is set."""


def drawn(rng: Random, weights: Mapping[Any, float]) -> Any:
    """One of the keys, by their weights."""
    return rng.choices(list(weights), list(weights.values()))[0]


def clash_check(clashes: Sequence[tuple[str, str]]) -> Callable[[str, str], bool]:
    """Whether one of two phrases has the first part of a clash and the other the second. Asked of
    the same few hundred phrases millions of times, so every answer is kept."""

    @lru_cache(maxsize=1 << 16)
    def contradict(phrase: str, other: str) -> bool:
        return any((a in phrase and b in other) or (b in phrase and a in other) for a, b in clashes)

    return contradict
