"""Names of tools and parameters as models write them, from the names that servers use, and back.

Two readers bind for tools: the OpenAI API takes `[a-zA-Z0-9_-]{1,64}`, and the parser released with
Kimi K2 takes ids of word characters and dots (`functions.name:0`), splits at the dot, and wants a
letter or an underscore first. What both take is an identifier of at most 64 ASCII characters. For
parameters it is the Anthropic API, which takes `[a-zA-Z0-9_.-]{1,64}`. Other scripts, and emoji,
are transliterated; a name of which nothing can be written out gets a number of its own.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from anyascii import anyascii

from records.digest import digest

MAX_NAME = 64
API_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
"""Names of tools that every reader of ours takes."""

API_PARAMETER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
"""Names of parameters that every API takes."""

_MARK = 6
"""Hex digits that tell two names apart which look alike once mapped."""


def mapped_names(
    originals: Iterable[str], what: Literal["tool", "parameter"] = "tool"
) -> dict[str, str]:
    """Original -> the name that models use, for all the names of one server, or of one tool's
    parameters; no two alike.

    Hangs on the set alone, not on its order. A name that needs no change keeps itself; of several
    that become one name, the first in order of characters gets it and the others a mark of their
    own digest. Names that no letters stand for are `tool_` or `parameter_` and such a mark.
    """
    names = sorted(set(originals))
    usable = API_NAME if what == "tool" else API_PARAMETER
    taken = {name for name in names if usable.fullmatch(name)}
    found = {name: name for name in taken}
    for name in names:
        if name in found:
            continue
        readable, length = _readable(name), _MARK
        plain = readable or what
        is_whole = readable is not None and len(plain) <= MAX_NAME
        mapped = plain if is_whole else _marked(plain, name, length)
        while mapped in taken:
            mapped = _marked(plain, name, length)
            length += 2
        taken.add(mapped)
        found[name] = mapped
    return found


def _readable(name: str) -> str | None:
    """The name in the characters allowed, at any length; None if no letter or digit is left."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    if any(c.isalnum() and not c.isascii() for c in plain) or not re.search("[a-zA-Z0-9]", plain):
        plain = re.sub(r"[\W_]+", "_", anyascii(name)).strip("_")
    words = re.sub(r"[^a-zA-Z0-9_]", "_", plain).lstrip("_")
    if not words:
        return None
    return words if not words[0].isdigit() else f"_{words}"


def _marked(plain: str, name: str, length: int) -> str:
    mark = digest("name", [ord(c) for c in name], length=length)  # no bytes stand for some names
    return f"{plain[: MAX_NAME - length - 1]}_{mark}"
