"""Which language a reply is in: by script, then by the little words that every text has.

Of the languages that are known here; what is none of them is `other`. Rates are told apart by it,
nothing is decided by it.
"""

import re
from collections import Counter

_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u3400-\u9fff]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
}
"""In this order: Japanese has the signs of Chinese, too."""

_WORDS = {
    "en": "the and is are was of to for you your with on has have been will at from this it not an"
    " i in be as do can no or we my",
    "de": "der die das und ist sind ihre ihr sie ich mit auf ein eine von zu den dem nicht für",
    "es": "el los las y su que en un una para por con se no ha del al está y tu le",
    "fr": "le les et est votre vous des un une pour avec je sur ne pas du au été à la",
    "it": "il gli è che di una per con non del della suo sua ho sono alle",
    "pt": "os é que um uma para com não da seu sua em foi ao você às dos",
    "nl": "het een en van uw voor met op niet zijn heb dat ik aan er je",
}
_LITTLE = {name: frozenset(text.split()) for name, text in _WORDS.items()}

_MOST = 20_000
"""Characters of a text that are looked at."""


def language_of(text: str) -> str:
    """ISO 639-1 code, or `other` where nothing tells."""
    text = text[:_MOST]
    letters = sum(map(str.isalpha, text))
    for name, signs in _SCRIPTS.items():
        if letters and len(signs.findall(text)) >= 0.2 * letters:
            return name
    words = re.findall(r"[^\W\d_]+", text.casefold())
    scores = Counter({name: sum(w in little for w in words) for name, little in _LITTLE.items()})
    [(best, most), (_, next_most)] = scores.most_common(2)
    return best if most > next_most else "other"
