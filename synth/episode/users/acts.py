"""Whether a call of the user's own tool was spoken of before it is made."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from synth.episode.users.wishes import TELLING, content
from synth.rubrics.reading.locales import language_of

_FILLING = content("does not only one ones own also again new")
"""Words of a tool's description that tell nothing of what it is about."""

_PLEA = re.compile(
    r"\b(?:please|(?:can|could|would|will) you|you(?:'ll| will)? (?:need|have|should|must|can))\b",
    re.IGNORECASE,
)


def was_spoken_of(tool: Mapping[str, Any], arguments: str, heard: Sequence[str]) -> bool:
    """Whether the assistant has spoken of what this call of the user's own tool does.

    Two messages in a row must hold the act (the word that the description begins with) and another
    of the tool's words or a value of the call; or most of its other words; or, as people put it
    who say it in words of their own, a plea, another of its words and a value. The object alone
    ("I have found the device") is no word about the act. An assistant that speaks another language
    than the description shares no words with it: once it has spoken, any act may be what it meant.
    """
    first = tool["description"].split(".")[0]
    spoken = heard[1:]
    languages = {language_of(text) for text in spoken} - {None}
    if languages and language_of(tool["description"]) not in {None, *languages}:
        return True
    act, *_ = [*re.findall(r"[\w']+", first), ""]
    acts = content(act)
    named = content(f"{tool['name'].replace('_', ' ')} {first}") - _FILLING
    values = [v.casefold() for v in _values(arguments) if len(v) >= TELLING]
    for pair in zip(["", *spoken], spoken, strict=False):
        said = "\n".join(pair)
        words = content(said)
        others = (named - acts) & words
        valued = any(value in said.casefold() for value in values)
        asked = valued and bool(others) and bool(_PLEA.search(said))
        most = len(others) >= 2 and 2 * len(others) > len(named - acts)
        if (acts & words and (others or valued)) or asked or most:
            return True
    return False


def _values(arguments: str) -> list[str]:
    """The values of a call, as far as its text is a JSON object of plain ones."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return []
    return [str(value) for value in given.values()] if isinstance(given, dict) else []
