"""What a server that begins empty is filled with, once, by its own tools: the generator says which
calls do it, and what lies in the workspace afterwards is what tasks start from."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from records.errors import ConfigError
from records.tables.schemas import Row
from sandboxes.core.workspace_files import WorkspaceFiles
from sandboxes.mcp.servers import Fixture, ServerConfig
from sandboxes.mcp.session import McpServer
from sandboxes.mcp.state import ServerState
from synth.llm.client import LLM
from synth.prompts.templates import render, version_of
from synth.rubrics.episode import is_read_only
from synth.tasks.servers.looking import CALL, about, cut, in_short, usable_tools
from synth.tasks.servers.trying import drawing

STAGE_VERSION = 1
PROMPT = "server_start"

ROUNDS = 3
"""How often the generator is asked for calls, each time with what the earlier ones answered."""

CALLS = 15
"""Calls of one round at most."""

START: dict[str, Any] = {
    "type": "object",
    "properties": {"calls": {"type": "array", "items": CALL, "maxItems": CALLS}},
    "required": ["calls"],
    "additionalProperties": False,
}


class OpenAlone(Protocol):
    """A server of one's own, which may be ended."""

    def __call__(
        self, config: ServerConfig, fixture: Mapping[str, Any] | None = None, /
    ) -> AbstractAsyncContextManager[McpServer]: ...


def may_be_empty(config: ServerConfig) -> bool:
    """Whether its one fixture names nothing that lies there, and no goals hang on it: a script may
    make no more than a folder."""
    if config.goals or config.fixtures.keys() != {"default"}:
        return False
    fixture = config.fixtures["default"]
    return fixture == Fixture(setup=fixture.setup)


async def make_start(
    config: ServerConfig,
    tools: Mapping[str, Row],
    llm: LLM,
    *,
    item_id: str,
    definition: str,
    model: str,
    open_alone: OpenAlone,
) -> list[Row]:
    """The row of `server_starts`; none where nobody described one and something is there already.

    Raises what asking the generator raises, and TransientError for the server's own failure.
    """
    description = config.fixtures["default"].description
    base: Row = {
        "item_id": item_id,
        "server": config.name,
        "definition": definition,
        "description": description,
        "model": model,
        "prompt_version": version_of(PROMPT),
        "calls": [],
        "num_rows": 0,
        "files": {},
        "drop_reason": None,
        "detail": "",
    }
    usable = usable_tools(config, tools)
    if all(is_read_only(tool) for tool in usable.values()):
        return [base | {"drop_reason": "nothing_writes"}] if description else []
    async with open_alone(config, drawing(config, item_id, "start")) as server:
        if _num_rows(await server.state()) and not description:
            return []
        made = await _made(server, usable, llm, item_id, description)
        state = await server.state()
        rows = base | {"calls": made, "num_rows": _num_rows(state)}
        if not _num_rows(state):
            return [rows | {"drop_reason": "not_in_workspace"}]
        try:
            files = await server.ended_files()
        except ConfigError as error:
            return [rows | {"drop_reason": "too_large", "detail": str(error)[:500]}]
    again = config.model_copy(update={"starts": {item_id: files}, "start": item_id})
    async with open_alone(again, None) as server:
        lost = _missing(state, await server.state())
    if lost:
        return [rows | {"drop_reason": "not_kept", "detail": f"gone after a new start: {lost}"}]
    return [rows | {"files": files}]


async def _made(
    server: McpServer, tools: Mapping[str, Row], llm: LLM, item_id: str, description: str
) -> list[dict[str, Any]]:
    """The calls that were made, each with its answer."""
    made: list[dict[str, Any]] = []
    shown = [
        {key: tool[key] for key in ("name", "description", "input_schema")}
        for tool in tools.values()
    ]
    for number in range(ROUNDS):
        prompt = render(
            PROMPT,
            server=about(server.config),
            wanted=description,
            tools=shown,
            workspace=in_short(await server.state()),
            made=made,
            calls=CALLS,
            number=number + 1,
            rounds=ROUNDS,
        )
        asked = await llm.structured(
            "generator",
            prompt.messages,
            item=item_id,
            step=f"start-{number}",
            name="start",
            schema=START,
        )
        calls = [call for call in asked["calls"] if call["tool"] in tools]
        if not calls:
            break
        for call in calls:
            result = await server.call(call["tool"], call["arguments"])
            made.append({**call, "error" if result.is_error else "answer": cut(result.text)})
    return made


def _num_rows(state: ServerState) -> int:
    """Rows that say anything: a database or a folder that is merely there does not."""
    return sum(any(row.values()) for rows in state.values() for row in rows.values())


def _missing(wanted: ServerState, found: ServerState) -> str:
    """An entity of which rows are not there any more; "" where all are."""
    lost = (entity for entity, rows in wanted.items() if rows.keys() - found.get(entity, {}).keys())
    return next(lost, "")


def starts_in(rows: Iterable[Row]) -> dict[str, dict[str, WorkspaceFiles]]:
    """Definition of a server -> id of a start -> its files."""
    found: dict[str, dict[str, WorkspaceFiles]] = {}
    for row in rows:
        if row["drop_reason"] is None:
            found.setdefault(row["definition"], {})[row["item_id"]] = row["files"]
    return found
