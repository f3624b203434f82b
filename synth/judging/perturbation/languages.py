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
    "en": "the and is are was of to for you your with on has have been will at from this it not",
    "de": "der die das und ist sind ihre ihr sie ich mit auf ein eine von zu den dem nicht für",
    "es": "el la los las y es su de que en un una para por con se no ha del al le está",
    "fr": "le la les et est votre vous de des un une pour avec je sur ne pas du au a été à",
    "it": "il lo la gli e è di che un una per con non del della suo sua ho le si sono",
    "pt": "o os as e é de que um uma para com não do da seu sua em se foi ao você",
    "nl": "de het een en is van u uw voor met op niet zijn heb dat te ik aan er",
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
