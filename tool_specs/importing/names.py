"""Names of tools as models write them, from the names that servers use, and back.

Two readers bind: the OpenAI API takes `[a-zA-Z0-9_-]{1,64}`, and the parser released with Kimi K2
takes ids of word characters and dots (`functions.name:0`), splits at the dot, and wants a letter or
an underscore first. What both take is an identifier of at most 64 ASCII characters.
"""

import re
import unicodedata
from collections.abc import Iterable

from records.digest import digest

MAX_NAME = 64
API_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
"""Names that every reader of ours takes."""

_MARK = 6
"""Hex digits that tell two names apart which look alike once mapped."""


def mapped_names(originals: Iterable[str]) -> dict[str, str]:
    """Original -> the name that models use, for the names of one server; no two alike.

    Hangs on the set alone, not on its order. A name that needs no change keeps itself; of several
    that become one name, the first in order of characters gets it and the others a mark of their
    own digest. Names of which too little stays readable are left out.
    """
    names = sorted(set(originals))
    taken = {name for name in names if API_NAME.fullmatch(name)}
    found = {name: name for name in taken}
    for name in names:
        if name in taken and name in found:
            continue
        plain = _readable(name)
        if plain is None:
            continue
        length = _MARK
        mapped = plain if len(plain) <= MAX_NAME else _marked(plain, name, length)
        while mapped in taken:
            mapped = _marked(plain, name, length)
            length += 2
        taken.add(mapped)
        found[name] = mapped
    return found


def _readable(name: str) -> str | None:
    """The name in the characters allowed, at any length; None if less than half of it is left."""
    ascii_form = "".join(
        c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)
    )
    letters = len(re.sub(r"[^a-zA-Z0-9]", "", ascii_form))
    if letters == 0 or 2 * letters < len(re.sub(r"[\W_]", "", name)):
        return None
    words = re.sub(r"[^a-zA-Z0-9_]", "_", ascii_form).lstrip("_") or "_"
    return words if not words[0].isdigit() else f"_{words}"


def _marked(plain: str, name: str, length: int) -> str:
    mark = digest("name", [ord(c) for c in name], length=length)  # no bytes stand for some names
    return f"{plain[: MAX_NAME - length - 1]}_{mark}"
