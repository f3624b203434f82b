"""Text from models, tools and files, made safe to show: what it says, and nothing that it does.

`visible` is for every medium; HTML escaping comes on top of it from Jinja2, `markdown_text` is for
markdown. Neither is for text that goes back into a model or an export.
"""

import re
from collections.abc import Sequence
from typing import Any

from synth.render.figures import number

_CONTROLS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # terminals obey these; tab and newline stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the order of the text around them
    "\u2028\u2029"  # end a line where a reader sees none
    "\ud800-\udfff"  # lone surrogates: no bytes stand for them
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible, and read by models all the same
    "]"
)
_PUNCTUATION = re.compile(r"([!-%'-/:;=?@\[-`{-~])")
"""ASCII punctuation but for <, > and &, which become entities."""

_ADDRESS = re.compile(r"(:(?=//)|\bwww(?=\.)|@)", re.IGNORECASE)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def visible(text: str) -> str:
    """Control characters, bidirectional ones too, spelt out as `[U+202E]`; tab and newline stay."""
    return _CONTROLS.sub(lambda found: f"[U+{ord(found[0]):04X}]", text)


def one_line(text: str) -> str:
    """`visible`, with every run of white space as one blank."""
    return visible(" ".join(text.split()))


def markdown_text(text: str) -> str:
    """The text as itself inside a paragraph or a table cell of markdown.

    No link, image, HTML, heading or code can come of it: punctuation is escaped and line ends
    become blanks. Some readers make links of addresses after undoing the escapes, so an invisible
    word joiner parts `http:` from `//`, `www` from its dot and `@` from the host.
    """
    parted = _ADDRESS.sub("\\1\u2060", one_line(text))
    escaped = _PUNCTUATION.sub(r"\\\1", parted)
    return re.sub("[&<>]", lambda found: _ENTITIES[found[0]], escaped)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Cells are text as itself, and numbers as reports show them; `none` without rows."""
    if not rows:
        return "none"
    lines = [head, ["---" for _ in head], *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return markdown_text(value) if isinstance(value, str) else number(value)


def shortened(text: str, limit: int) -> str:
    """The beginning of the text, with how much was left out where it is longer."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} ... ({len(text) - limit:,} more characters)"
