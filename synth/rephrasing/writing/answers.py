"""An answer of the rewriter taken apart: whole parts by their numbers, and no reasoning.

A part stands between `<rewrite part="3">` and `</rewrite>`, in any order, with anything around it.
Where one part alone was asked for, its number may be missing or another one.
"""

import re
from collections.abc import Mapping
from itertools import zip_longest

from synth.llm.wire.reasoning import reasoning_blocks

_OPENING = re.compile(r"<rewrite(?:\s+part\s*=\s*[\"']?(\d{1,6})[\"']?)?\s*>", re.IGNORECASE)
_CLOSING = "</rewrite>"
_CANNOT = re.compile(r"\s*<cannot>.*</cannot>\s*", re.DOTALL)


def declines(content: str) -> bool:
    """Whether the rewriter says that it cannot do what is asked."""
    return _CANNOT.fullmatch(_without_reasoning(content, "")) is not None


def parts_in(content: str, sources: Mapping[int, str]) -> dict[int, str]:
    """The whole parts among those asked for, by number. `sources`: what each of them says in the
    source, which may be about the marks of reasoning. Of a part that is there twice it is the last
    one."""
    text = _without_reasoning(content, "\n".join(sources.values()).lower())
    openings = list(_OPENING.finditer(text))
    numbered = [one for one in openings if one[1]]
    if len(sources) == 1 and not any(int(one[1]) in sources for one in numbered):
        [only] = sources
        whole = _whole(text, openings[0].end(), len(text)) if openings else None
        return {} if whole is None else {only: whole}
    found: dict[int, str] = {}
    for opening, following in zip_longest(numbered, numbered[1:]):
        end = following.start() if following else len(text)
        number, whole = int(opening[1]), _whole(text, opening.end(), end)
        if number in sources and whole is not None:
            found[number] = whole
    return found


def _whole(text: str, start: int, end: int) -> str | None:
    """What a part says, None for one that never ends. A text may hold the closing tag itself, so
    the last one counts."""
    closing = text.rfind(_CLOSING, start, end)
    return None if closing < 0 else text[start:closing].strip()


def _without_reasoning(content: str, sources: str) -> str:
    """`sources`: in small letters. A mark within a part that stands in them is the text's own."""
    kept: list[str] = []
    at = 0
    for block in reasoning_blocks(content):
        if block.start < at:
            continue
        before = "".join((*kept, content[at : block.start]))
        if block.opening in sources and _is_inside(before):
            continue
        kept.append(content[at : block.start])
        at = block.end
    return "".join((*kept, content[at:]))


def _is_inside(before: str) -> bool:
    opened = [one.end() for one in _OPENING.finditer(before)]
    return bool(opened) and before.rfind(_CLOSING) < opened[-1]
