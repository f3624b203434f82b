"""What the rewriter gets wrong on purpose, so that what looks for it has something to find."""

import re
from random import Random

from offline_llm.rewriter.phrases import INVENTED
from offline_llm.settings.rates import RewriterErrors

_NUMBER = re.compile(r"^\d+\. |(?<![\w.,\\^_{\[])\d+(?![\w\]])", re.MULTILINE)
"""The label of an entry, or a number."""

_STATED = re.compile(r" (is|are|can|will|must|does|has been) (?!not\b)")


def drawn(errors: RewriterErrors, rng: Random, factor: float) -> str | None:
    """The mistake of this part, None for none."""
    draw = rng.random()
    for kind, rate in errors.model_dump().items():
        draw -= rate * factor
        if draw < 0:
            return kind
    return None


def without_one(sentences: list[str], rng: Random) -> list[str]:
    """All but one of several sentences; what announces the next block stays."""
    places = [k for k, sentence in enumerate(sentences) if not sentence.endswith(":")]
    if len(sentences) < 2 or not places:
        return sentences
    place = rng.choice(places)
    return [*sentences[:place], *sentences[place + 1 :]]


def with_invention(sentences: list[str], rng: Random) -> list[str]:
    words = rng.choice(INVENTED).format(year=rng.randrange(1950, 2020), count=rng.randrange(3, 90))
    place = rng.randrange(len(sentences) + 1)
    return [*sentences[:place], words, *sentences[place:]]


def with_other_number(text: str, rng: Random) -> str:
    """`text` with one of its numbers changed; as it is where it has none."""
    found = [number for number in _NUMBER.finditer(text) if number[0].isdigit()]
    if not found:
        return text
    at = rng.choice(found)
    other = str(int(at[0]) + rng.choice((1, 2, 3, 10)))
    return f"{text[: at.start()]}{other}{text[at.end() :]}"


def negated(text: str, rng: Random) -> str:
    """`text` with one of its statements denied; as it is where no verb of a few is found."""
    found = list(_STATED.finditer(text))
    if not found:
        return text
    at = rng.choice(found)
    return f"{text[: at.end()]}not {text[at.end() :]}"
