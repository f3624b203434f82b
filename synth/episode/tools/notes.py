"""Notes: what an agent keeps from one conversation of an episode to the next."""

import json
from typing import Any

from records.digest import digest
from records.tables.schemas import Row
from synth.episode.tools.fault_injection import error_text
from synth.episode.tools.tool_result import ExecutedBy, ToolResult

MAX_NOTES = 50
"""Notes of one episode; further ones are refused."""

_NAMES = WRITE, READ = "write_note", "read_notes"


def _tool(name: str, description: str, properties: dict[str, Any], *, read_only: bool) -> Row:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    annotations = {"readOnlyHint": read_only, "openWorldHint": False}
    return {
        "tool_id": None,
        "name": name,
        "description": description,
        "input_schema": schema,
        "output_schema": None,
        "annotations": annotations,
        "server": None,
        "domain_id": None,
    }


NOTE_TOOLS: tuple[Row, ...] = (
    _tool(
        WRITE,
        "Keep a note for later conversations, of which each begins without a memory of the earlier "
        "ones. Returns how many notes there are.",
        {
            "text": {
                "type": "string",
                "minLength": 1,
                "maxLength": 2000,
                "description": "What is to be kept, so that it can be understood by itself.",
            }
        },
        read_only=False,
    ),
    _tool(READ, "Read all notes that were kept so far, oldest first.", {}, read_only=True),
)
"""Like rows of the table `tools`. They are none of it: they belong to no domain and no server."""


class NotesExecutor:
    """The notes of one episode."""

    executed_by: ExecutedBy = "notes"

    def __init__(self) -> None:
        self._notes: list[str] = []

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        before = self.state_hash()
        if tool == READ:
            text = json.dumps({"notes": self._notes}, ensure_ascii=False)
            return ToolResult(text, False, None, [], before, before)
        if len(self._notes) == MAX_NOTES:
            text = error_text(
                "too_many_notes", f"There are {MAX_NOTES} notes, and no room for more."
            )
            return ToolResult(text, True, "too_many_notes", [], before, before)
        self._notes.append(arguments["text"])
        text = json.dumps({"notes": len(self._notes)})
        return ToolResult(text, False, None, [], before, self.state_hash())

    async def stale(self, tool: str, arguments: dict[str, Any]) -> str | None:
        return None

    def policy_violations(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        return []

    def user_answered(self, turn: int) -> None:
        return None

    def state_hash(self) -> str | None:
        return digest("notes", self._notes)

    def snapshot(self) -> Any:
        return tuple(self._notes)

    async def restore(self, snapshot: Any) -> None:
        self._notes = list(snapshot)

    async def close(self) -> None:
        return None
