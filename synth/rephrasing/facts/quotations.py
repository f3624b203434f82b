"""Quotations: what stands between double quotation marks of any kind, when it is long enough."""

import re
from functools import lru_cache

from synth.rephrasing.facts.text import ReadText, squeeze

MIN_WORDS = 3
"""Fewer words in marks are an expression or an emphasis, not somebody's words."""

_QUOTED = re.compile(
    r"(?<![\w\"])\"(?=\S)([^\"\n]{1,600})(?<=\S)\"(?!\w)|\u201c([^\u201c\u201d\n]{1,600})\u201d"
    r"|\u00ab([^\u00ab\u00bb\n]{1,600})\u00bb|\u201e([^\u201e\u201c\u201d\n]{1,600})[\u201c\u201d]"
)


def quotations_of(text: ReadText) -> list[str]:
    return [words for words in quoted_in(text) if len(words.split()) >= MIN_WORDS]


@lru_cache(maxsize=128)
def quoted_in(text: ReadText) -> tuple[str, ...]:
    """Whatever stands in quotation marks, however short."""
    found = _QUOTED.finditer(text.stated)
    return tuple(next(filter(None, match.groups())).strip() for match in found)


def is_quoted_in(words: str, text: ReadText) -> bool:
    """Whether the text holds the words, whatever marks and spaces it sets; a full stop or comma
    that belongs to the sentence around them makes no difference."""
    return squeeze(words).strip(".,;:!?'") in text.squeezed
