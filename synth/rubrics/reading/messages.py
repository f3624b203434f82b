"""What chat messages say."""

from collections.abc import Mapping
from typing import Any


def text_of(message: Mapping[str, Any]) -> str:
    """What a chat message says: its content where that is a text, the texts of its parts, a line
    each, where it is a list, and nothing where it is null."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part if isinstance(part, str) else part.get("text") or "" for part in content)
