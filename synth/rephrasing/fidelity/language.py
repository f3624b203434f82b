"""Which language a text is in: by script, then by the little words of each language."""

import re
from collections import Counter

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("el", re.compile("[\u0370-\u03ff]{3}")),
)
_LITTLE_WORDS = {
    "en": "the of and to is in that it for as with are be this by or an from which not on we if",
    "de": "der die das und ist von mit zu den ein eine nicht auf sich dem des wir im fur hat",
    "fr": "le la les des et est un une du que dans pour qui sur pas par au avec nous sont donc",
    "es": "el la los las de y es un una que en por para con se del al lo son su como tiene",
    "it": "il lo la gli di e che un una per con non del della sono si dei nel alla quindi",
    "pt": "o os as de e que um uma para com do da em nao por se dos das ao tem sao entao pelo",
    "pl": "i w na z jest do nie to sie ze przez dla od o jak ma liczba czyli po oraz lub wiec",
}
_LITTLE = {
    word: [language for language, words in _LITTLE_WORDS.items() if word in words.split()]
    for words in _LITTLE_WORDS.values()
    for word in words.split()
}
_WORDS = re.compile(r"[^\W\d_]+")
_PLAIN = str.maketrans("\u00e4\u00f6\u00fc\u00e3\u00f5\u0119\u0105\u017c\u00e9", "aouaoeaze")

LOOKED_AT = 20_000
"""Characters from the beginning by which a text is told."""

UNTOLD = "und"
"""Where it cannot be told."""

MIN_HITS = 3
"""Fewer little words tell nothing."""

FOREIGN_SHARE = 0.2
"""Share of the letters in another script from which on it is the text's script."""


def language_of(text: str) -> str:
    """A code such as "en"; "und" where it cannot be told."""
    text = text[:LOOKED_AT]
    letters = sum(map(str.isalpha, text))
    if not letters:
        return UNTOLD
    if not text.isascii():
        for language, script in _SCRIPTS:
            least = FOREIGN_SHARE if language != "ja" else FOREIGN_SHARE / 4
            if len(script.findall(text)) > least * letters:
                return language
    hits = Counter(
        language
        for word in _WORDS.findall(text.lower().translate(_PLAIN))
        for language in _LITTLE.get(word, ())
    )
    if not hits:
        return UNTOLD
    best, count = max(hits.items(), key=lambda hit: (hit[1], hit[0]))
    return best if count >= MIN_HITS else UNTOLD
