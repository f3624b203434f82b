"""Sentences that say that the material does not tell what was asked, and sentences that state
nothing.

Read in English, by their form and by the words that they may hold: one word that is neither the
question's nor known here leaves the sentence open. So no claim slips through behind "the document
does not say", and nothing is found to be silence that tells something.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from synth.gym.grounding.material import telling_words
from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import NEGATIONS
from synth.rubrics.reading.locales import locale
from synth.rubrics.reading.readings import read

_FILE = Path(__file__).with_name("silence.toml")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SORRY = re.compile(
    r"^(?:(?:i'm|i am|we're|we are) )?(?:so |very )?(?:sorry|afraid|apologies)"
    r"(?: about that)?,? but "
)
_SHORTENED = re.compile(r"[a-z]+n't\b")


class _Words(NamedTuple):
    silent: tuple[re.Pattern[str], ...]
    """Any of them tells that something is not told."""
    contrast: re.Pattern[str]
    known: frozenset[str]
    """Stems of the words of such a sentence, beside those of its question."""
    nothing: frozenset[str]
    """Stems of the words of a sentence that states nothing."""


@cache
def _words() -> _Words:
    known = tomllib.loads(_FILE.read_text())
    silence = {name: words.split() for name, words in known["silence"].items()}
    tell, things, places, able = (
        "|".join(silence[name]) for name in ("tell", "things", "places", "able")
    )
    silent = (
        rf"\b(?:not|never|[a-z]+n't) (?:\w+ ){{0,2}}(?:{tell})\b",
        rf"\b(?:no|nothing|none|neither|nowhere) (?:\w+ ){{0,4}}(?:{things}|{places}|{tell})\b",
        rf"\b(?:cannot|can't|couldn't|unable to|not able to|(?:not|n't) possible to|don't|do not"
        rf"|could not|can not) (?:\w+ ){{0,2}}(?:{able})\b",
        rf"\b(?:lacks?|missing) (?:\w+ ){{0,4}}(?:{things})\b",
    )
    around = {stem(word) for name in silence if name != "contrast" for word in silence[name]}
    nothing = {stem(word) for word in known["nothing"]["words"].split()}
    greetings = {stem(word) for word in locale("en").greetings}
    return _Words(
        tuple(map(re.compile, silent)),
        re.compile(rf"\b(?:{'|'.join(silence['contrast'])})\b|[;:]"),
        frozenset(around),
        frozenset(nothing | greetings),
    )


def is_silence(sentence: str, question: frozenset[str], asked: str) -> bool:
    """Whether it says, and says nothing else than, that the material does not tell what was asked.
    `question`: stems of the telling words of what was `asked`."""
    words, lower = _words(), _SORRY.sub("", _plain(sentence))
    if words.contrast.search(lower) or not any(one.search(lower) for one in words.silent):
        return False
    if any(r.words.lower() not in asked.lower() for r in read(sentence, "en").readings):
        return False
    return _telling(lower) <= words.known | question


def states_nothing(sentence: str) -> bool:
    """Whether it is a question, a greeting, an offer to help or the like. A yes or a no states
    something."""
    lower = _plain(sentence)
    if lower.endswith("?"):
        return not any(mark in lower[:-1] for mark in ".!:;")
    own = _WORD.findall(lower)
    if read(sentence, "en").readings or not NEGATIONS.isdisjoint(own) or "yes" in own:
        return False
    return _telling(lower) <= _words().nothing


def _plain(sentence: str) -> str:
    return sentence.lower().replace("\u2019", "'").strip(" *_\"'")


def _telling(lower: str) -> frozenset[str]:
    return telling_words(_SHORTENED.sub(" ", lower))
