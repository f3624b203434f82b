"""What comes of one executed call, whoever executes it."""

from typing import Any, Literal, NamedTuple

ExecutedBy = Literal["state_machine", "mcp", "code", "llm", "cassette", "sub_agent", "notes"]
Changes = list[dict[str, Any]]


class ToolResult(NamedTuple):
    text: str
    """What the agent reads."""
    is_error: bool
    error_code: str | None
    diff: Changes
    hash_before: str | None
    hash_after: str | None
    settled: bool = False
    """As it was recorded, injected faults and cuts included: nothing more is done to it."""
    exchanges: list[dict[str, Any]] | None = None
    """What a server asked in the call and was answered (`ServerExchange`); None where it asked
    nothing."""
