"""What a prompt gives: text under `## Heading` lines, with fenced json where it is data."""

import json
import re
from typing import Any

from offline_llm.server.request import ChatRequest

_HEADING = re.compile(r"^## +(.+?)[ \t]*$", re.MULTILINE)
_BLOCK = re.compile(r"\A`{4,}\w*\n|\n`{4,}(?s:\n.*|)\Z")
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n```", re.DOTALL)


def sections(request: ChatRequest) -> dict[str, str]:
    """Heading in lower case -> text below it, over all messages but tool results."""
    found: dict[str, str] = {}
    for message in request.messages:
        pieces = _HEADING.split("" if message["role"] == "tool" else message["content"])
        for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
            found.setdefault(heading.strip().lower(), body.strip())
    return found


def unfenced(text: str) -> str:
    """The text of a section that is in a fence of its own."""
    return _BLOCK.sub("", text).strip()


def data(text: str) -> Any:
    """The fenced json of a section; the text itself when there is none that parses."""
    fenced = _FENCE.search(text)
    try:
        return json.loads(fenced.group(1) if fenced else text)
    except ValueError:
        return text


def json_of(found: dict[str, str], heading: str, default: Any) -> Any:
    """The data under a heading when it is of the default's type, else the default."""
    value = data(found.get(heading, ""))
    return value if isinstance(value, type(default)) else default
