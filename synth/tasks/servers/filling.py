"""What a server that begins empty is filled with, once, by its own tools: the generator says which
calls do it, and what lies in the workspace afterwards is what tasks start from.

Of a joined server the parts that begin empty are filled in one go, so that what lies in one belongs
to what lies in the others; the tools of its other parts only read meanwhile."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from records.errors import ConfigError
from records.tables.schemas import Row
from sandboxes.core.workspace_files import WorkspaceFiles
from sandboxes.mcp.joined import JoinedServer, LiveServer, open_live
from sandboxes.mcp.joining import (
    JoinedServerConfig,
    entity_of,
    part_of,
    programs_of,
    with_starts,
)
from sandboxes.mcp.servers import Fixture, ServerConfig
from sandboxes.mcp.session import McpServer
from sandboxes.mcp.state import ServerState
from synth.llm.client import LLM
from synth.prompts.templates import render, version_of
from synth.rubrics.episode import is_read_only
from synth.tasks.servers.looking import CALL, about, cut, in_short, shown_tool, usable_tools
from synth.tasks.servers.shared import parts_told
from synth.tasks.servers.trying import drawing

STAGE_VERSION = 2
PROMPT = "server_start"

ROUNDS = 3
"""How often the generator is asked for calls, each time with what the earlier ones answered."""

ROWS_OF_ITS_OWN = 2
"""Rows that a server that begins empty may keep for itself, such as its settings."""

CALLS = 15
"""Calls of one round at most."""

START: dict[str, Any] = {
    "type": "object",
    "properties": {"calls": {"type": "array", "items": CALL, "maxItems": CALLS}},
    "required": ["calls"],
    "additionalProperties": False,
}


def may_be_empty(config: ServerConfig) -> bool:
    """Whether its one fixture names nothing that lies there, and no goals hang on it: a script may
    make no more than a folder."""
    if config.goals or config.fixtures.keys() != {"default"}:
        return False
    fixture = config.fixtures["default"]
    return fixture == Fixture(setup=fixture.setup)


def wants_start(config: ServerConfig, *, bare: bool) -> bool:
    """Whether something may have to be made for it to begin with. `bare`: also for what nobody has
    described, should it begin empty."""
    return bool(_to_fill(config, bare=bare))


def _to_fill(config: ServerConfig, *, bare: bool) -> list[ServerConfig]:
    """The programs that may have to be filled: the server, or parts of a joined one."""
    if isinstance(config, JoinedServerConfig) and config.goals:
        bare = False
    return [
        program
        for program in programs_of(config)
        if _description(program) or (bare and program.may_try_writes and may_be_empty(program))
    ]


def _description(config: ServerConfig) -> str:
    return config.fixtures["default"].description if "default" in config.fixtures else ""


async def make_start(
    config: ServerConfig,
    tools: Mapping[str, Row],
    llm: LLM,
    *,
    item_id: str,
    definition: str,
    model: str,
    bare: bool = True,
) -> list[Row]:
    """The row of `server_starts`; none where nobody described one and something is there already.

    Raises what asking the generator raises, and TransientError for the server's own failure.
    """
    filled = _to_fill(config, bare=bare)
    described = [program for program in filled if _description(program)]
    base: Row = {
        "item_id": item_id,
        "server": config.name,
        "definition": definition,
        "description": _wanted(config, described),
        "model": model,
        "prompt_version": version_of(PROMPT),
        "calls": [],
        "num_rows": 0,
        "files": {},
        "drop_reason": None,
        "detail": "",
    }
    async with open_live(config, drawing(config, item_id, "start")) as server:
        before = await server.state()
        filled = [p for p in filled if p in described or _is_bare(_own(config, p, before))]
        if not filled:
            return []
        names = {program.name for program in filled}
        usable = {
            name: tool
            for name, tool in usable_tools(config, tools).items()
            if is_read_only(tool) or part_of(config, tool).name in names
        }
        if all(map(is_read_only, usable.values())):
            return [base | {"drop_reason": "nothing_writes"}] if described else []
        made = await _made(server, usable, llm, item_id, base["description"])
        state = await server.state()
        state = {e: rows for p in filled for e, rows in _own(config, p, state).items()}
        rows = base | {"calls": made, "num_rows": _num_rows(state)}
        if all(rows_of == before.get(entity) for entity, rows_of in state.items()):
            return [rows | {"drop_reason": "not_in_workspace"}]
        try:
            files = await _ended_files(server, names)
        except ConfigError as error:
            return [rows | {"drop_reason": "too_large", "detail": str(error)[:500]}]
        if not files:  # what the state tells is what its own probes print
            return [rows | {"drop_reason": "not_in_workspace"}]
    again = with_starts(config, {item_id: files}).model_copy(update={"start": item_id})
    async with open_live(again) as server:
        lost = _missing(state, await server.state())
    if lost:
        return [rows | {"drop_reason": "not_kept", "detail": f"gone after a new start: {lost}"}]
    return [rows | {"files": files}]


def _wanted(config: ServerConfig, described: Sequence[ServerConfig]) -> str:
    """What is to be there in the user's words; of a joined server with the parts' names."""
    if not isinstance(config, JoinedServerConfig):
        return "".join(map(_description, described))
    return "\n".join(f"{program.name}: {_description(program)}" for program in described)


def _own(config: ServerConfig, program: ServerConfig, state: ServerState) -> ServerState:
    """What of the state is the program's."""
    if not isinstance(config, JoinedServerConfig):
        return state
    prefix = entity_of(program.name, "")
    return {entity: rows for entity, rows in state.items() if entity.startswith(prefix)}


async def _ended_files(server: LiveServer, names: Iterable[str]) -> WorkspaceFiles:
    """What lies in its workspace, or in those of the named parts, once it has ended."""
    if isinstance(server, JoinedServer):
        return await server.ended_files(sorted(names))
    return await cast(McpServer, server).ended_files()


async def _made(
    server: LiveServer, tools: Mapping[str, Row], llm: LLM, item_id: str, description: str
) -> list[dict[str, Any]]:
    """The calls that were made, each with its answer."""
    made: list[dict[str, Any]] = []
    shown = [shown_tool(tool) for tool in tools.values()]
    for number in range(ROUNDS):
        prompt = render(
            PROMPT,
            server=about(server.config),
            parts=parts_told(server.config),
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


def _is_bare(state: ServerState) -> bool:
    return _num_rows(state) <= ROWS_OF_ITS_OWN


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
