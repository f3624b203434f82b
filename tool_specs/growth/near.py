"""Names that are nearly another's: one letter of a surname, or a word after the name of a thing."""

import re
from random import Random

from tool_specs.growth.text_kinds import words

_SPELLINGS = (
    ("nn", "n"),
    ("ss", "s"),
    ("tt", "t"),
    ("ff", "f"),
    ("sch", "sh"),
    ("ph", "f"),
    ("th", "t"),
    ("ck", "k"),
    ("ei", "ai"),
    ("ey", "ei"),
    ("y", "i"),
    ("c", "k"),
    ("k", "ck"),
    ("v", "w"),
    ("z", "s"),
    ("d", "dt"),
    ("n", "nn"),
    ("e", "ee"),
    ("a", "aa"),
)
"""Spellings that people mix up, tried in an order that is drawn."""


_SOUNDS = (("sch", "sh"), ("ph", "f"), ("th", "t"), ("dt", "t"), ("ck", "k"))
_LETTERS = str.maketrans("cyvzdj", "kiwsti")


def sound_of(name: str) -> str:
    """The same for names that are easily taken for each other."""
    text = re.sub(rf" ({'|'.join(words()['marks'])})$", "", name).lower()
    for here, there in _SOUNDS:
        text = text.replace(here, there)
    text = text.translate(_LETTERS).replace("ei", "ai").replace("ee", "e")
    return re.sub(r"(.)\1", r"\1", text)


def near_duplicate(name: str, rng: Random, *, person: bool) -> str | None:
    """A name that is easily taken for this one; None where none comes to mind."""
    if not person:
        return f"{name} {rng.choice(words()['marks'])}"
    *first, last = name.split(" ")
    for here, there in rng.sample(_SPELLINGS, len(_SPELLINGS)):
        found = re.search(here, last[1:])
        if found:
            start = found.start() + 1
            return " ".join([*first, last[:start] + there + last[start + len(here) :]])
    return None
