"""What there is to see of a server before goals are proposed: its tools, what they answer, and what
lies in its workspace."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.tables.schemas import Row
from sandboxes.mcp.joining import part_of
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.state import ServerState
from synth.episode.tools.cassette import ServerForProof
from synth.llm.client import LLM
from synth.prompts.templates import render
from synth.rubrics.episode import is_read_only

PROMPT = "server_look"

SHOWN_CHARS = 1_500
"""Of one answer, and of one entity of the state."""

SHOWN_ENTITIES = 30

CALL: dict[str, Any] = {
    "type": "object",
    "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["tool", "arguments"],
    "additionalProperties": False,
}
"""Schema of one call."""


class ServerLook(NamedTuple):
    tools: list[dict[str, Any]]
    """Name, description and input schema of those that goals may use, and the part of a joined
    server that they belong to."""

    answers: list[dict[str, Any]]
    """Calls that were made, one after the other, and what they returned."""

    workspace: dict[str, str]
    """Entity of the state -> its rows as JSON, cut."""


def usable_tools(config: ServerConfig, tools: Mapping[str, Row]) -> dict[str, Row]:
    """Tools that goals may be about: all, or those that read where no effect may be tried."""
    return {
        name: tool
        for name, tool in tools.items()
        if part_of(config, tool).may_try_writes or is_read_only(tool)
    }


async def look_at(
    server: ServerForProof, tools: Mapping[str, Row], llm: LLM, *, item_id: str, calls: int
) -> ServerLook:
    """Look around on a fresh server: call what reads and takes no argument, then what the generator
    asks for, at most `calls`."""
    shown = [shown_tool(tool) for tool in tools.values()]
    workspace = in_short(await server.state())
    answers = [
        await _answered(server, {"tool": name, "arguments": {}})
        for name, tool in tools.items()
        if is_read_only(tool) and not tool["input_schema"].get("required")
    ]
    look = ServerLook(shown, answers, workspace)
    if not calls:
        return look
    asked = await llm.structured(
        "generator",
        render(PROMPT, server=about(server.config), look=look._asdict(), calls=calls).messages,
        item=item_id,
        step="look",
        name="calls",
        schema={
            "type": "object",
            "properties": {"calls": {"type": "array", "items": CALL, "maxItems": calls}},
            "required": ["calls"],
            "additionalProperties": False,
        },
    )
    made = [call for call in asked["calls"] if call["tool"] in tools]
    return look._replace(answers=answers + [await _answered(server, call) for call in made])


def shown_tool(tool: Row) -> dict[str, Any]:
    """What the generator sees of a tool, and the part of a joined server that it belongs to."""
    part = {"part": tool["annotations"]["part"]} if "part" in tool["annotations"] else {}
    return {key: tool[key] for key in ("name", "description", "input_schema")} | part


async def _answered(server: ServerForProof, call: Mapping[str, Any]) -> dict[str, Any]:
    result = await server.call(call["tool"], call["arguments"])
    return {**call, "error" if result.is_error else "answer": cut(result.text)}


def about(config: ServerConfig) -> dict[str, str]:
    """What the generator is told of the place."""
    return {
        "name": config.title or config.name.replace("_", " "),
        "about": config.description,
        "now": config.clock,
    }


def in_short(state: ServerState) -> dict[str, str]:
    entities = sorted(state.items())[:SHOWN_ENTITIES]
    return {entity: cut(json.dumps(rows, ensure_ascii=False)) for entity, rows in entities}


def cut(text: str, most: int = SHOWN_CHARS) -> str:
    over = len(text) - most
    return text if over <= 0 else f"{text[:most]} [{over} more characters]"


def described(calls: Sequence[Any]) -> list[dict[str, Any]]:
    """Executed calls with their answers, for the generator."""
    return [
        {"tool": c.tool, "arguments": c.arguments, "answer": cut(str(c.observation))} for c in calls
    ]
