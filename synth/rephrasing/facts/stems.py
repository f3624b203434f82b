"""Word stems: what is left of a word without the endings of its language's inflection.

By the Snowball stemmers. They are rough and the same on both sides, which is all that a comparison
of two texts asks of them.
"""

import threading
from collections.abc import Callable
from functools import lru_cache

import snowballstemmer

UNSTEMMED_LENGTH = 40
"""Longer words are no words of a language and stay as they are."""

_ALGORITHMS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "und": "english",  # most of what cannot be told is too short to, and English
}

_threads = threading.local()
"""A stemmer writes its word into itself, so each thread has its own."""


@lru_cache(maxsize=131_072)
def stem(word: str, language: str = "en") -> str:
    """Of a word in lower case. A word of a language without a stemmer stays as it is."""
    algorithm = _ALGORITHMS.get(language)
    if algorithm is None or len(word) > UNSTEMMED_LENGTH:
        return word
    return _stemmer(algorithm)(word.replace("\u2019", "'"))


def _stemmer(algorithm: str) -> Callable[[str], str]:
    own: dict[str, Callable[[str], str]] = _threads.__dict__
    if algorithm not in own:
        own[algorithm] = snowballstemmer.stemmer(algorithm).stemWord
    return own[algorithm]
