"""Which language a text is in, by py3langid's model of 140 languages.

The model lies in the package and is loaded when the first text is told. It has a class of its own
for what is no language (numbers, markup, identifiers). A text is told where the model is sure of
it, at its beginning and at its end alike. A short or mixed text is not told at all, since a wrong
answer drops a rewrite and a missing one drops nothing.
"""

import re
from collections import Counter
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

LOOKED_AT = 8_000
"""Characters from the beginning by which a text is told."""

UNTOLD = "und"
"""Where it cannot be told."""

MIN_LETTERS = 8
"""Fewer letters tell nothing."""

MIN_PROBABILITY = 0.5
"""Of the best language; below, nothing is told."""

SAMPLE = 150
"""Bytes, about, of the beginning and of the end that tell a longer text where they agree."""

PIECE = 400
"""Bytes, about, of the pieces that are told one by one where they do not agree."""

MIN_SHARE = 0.75
"""Share of the pieces' characters that must be in one language: below, the text is mixed."""

_NO_LANGUAGE = "zxx"
_VARIETY_OF = {"nn": "no", "ary": "ar", "arz": "ar", "wuu": "zh", "yue": "zh", "uzs": "uz"}
"""Languages of the model that ISO 639 counts to a macrolanguage, which texts are labelled with."""

_NO_WORDS = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\$\$[^$]*\$\$|\$[^$\n]*\$|\\[A-Za-z]+|</?[A-Za-z][^<>\n]*>"
    r"|https?://\S+|[0-9_]+",
    re.DOTALL,
)
_LETTERS = re.compile(r"[^\W\d_]")


@lru_cache(maxsize=512)
def language_of(text: str) -> str:
    """A code of ISO 639 such as "en"; "und" where it cannot be told. Code, formulas and markup
    inside the text do not count."""
    words = " ".join(_NO_WORDS.sub(" ", text[:LOOKED_AT]).split())
    a_letter = max(1, len(words.encode(errors="surrogatepass")) // max(1, len(words)))
    sample, size_of_piece = SAMPLE // a_letter, PIECE // a_letter
    if len(words) <= 2 * sample:
        return _told(words)
    first, last = _told(words[:sample]), _told(words[-sample:])
    if first == last != UNTOLD:
        return first
    found: Counter[str] = Counter()
    for start in range(0, len(words), size_of_piece):
        piece = words[start : start + size_of_piece]
        found[_told(piece)] += len(piece)
    best, size = max(found.items(), key=lambda one: (one[1], one[0]))
    return best if size >= MIN_SHARE * len(words) else UNTOLD


@lru_cache(maxsize=512)
def _told(words: str) -> str:
    if len(list(islice(_LETTERS.finditer(words), MIN_LETTERS))) < MIN_LETTERS:
        return UNTOLD
    language, probability = _identifier().classify(words)
    if probability < MIN_PROBABILITY or language == _NO_LANGUAGE:
        return UNTOLD
    return _VARIETY_OF.get(language, language)


@cache
def _identifier() -> "LanguageIdentifier":
    """Nothing of it changes once it is loaded, so threads share it."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
