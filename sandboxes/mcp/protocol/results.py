"""What a call came to, as the agent reads it."""

from typing import NamedTuple

from sandboxes.mcp.protocol.questions import ServerExchange

MAX_TEXT = 64 << 10
"""Characters of a result that are passed on; a note says how many are missing."""


class McpResult(NamedTuple):
    text: str
    is_error: bool
    """The server says that the call failed, or we do."""
    error_code: str | None = None
    """Of an error that is not the server's own: `invalid_arguments`, `bad_answer`."""
    exchanges: tuple[ServerExchange, ...] = ()
    """What the server asked in the call, and was answered."""


def clip(text: str) -> str:
    """The text, cut at `MAX_TEXT` with a note."""
    over = len(text) - MAX_TEXT
    return text if over <= 0 else f"{text[:MAX_TEXT]}\n[{over} more characters]"
