"""A running server as its users have it: one in a sandbox of its own, or several joined as one.

Of a joined server each part runs for itself. Its tools are listed together, and a call goes to the
part that has the tool. A part that is lost in a call is a `ServerLostError` like that of any
server: whoever plays the episode starts all parts afresh.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple, Protocol, cast

from sandboxes.core.workspace_files import WorkspaceFiles
from sandboxes.mcp.domains.running import RunningDomain
from sandboxes.mcp.joining import DomainPart, JoinedServerConfig, entity_of
from sandboxes.mcp.protocol.questions import AnswerServer
from sandboxes.mcp.protocol.results import McpResult
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import open_server
from sandboxes.mcp.state import ServerState
from tool_specs.importing.names import mapped_names

META = "_meta"
"""Where a joined server says, in the list of its tools, what each is at its part."""


class RunningPart(Protocol):
    async def list_tools(self) -> list[dict[str, Any]]: ...

    async def call(
        self, name: str, arguments: Mapping[str, Any], answers: AnswerServer | None = None
    ) -> McpResult: ...

    async def state(self) -> ServerState: ...


class EndingPart(RunningPart, Protocol):
    """One that is a program of its own, and may be ended."""

    async def ended_files(self) -> WorkspaceFiles: ...


class LiveServer(RunningPart, Protocol):
    """What `McpServer` and `JoinedServer` have in common."""

    config: ServerConfig


OpenProgram = Callable[
    [ServerConfig, Mapping[str, Any] | None], AbstractAsyncContextManager[RunningPart]
]


class _Place(NamedTuple):
    part: RunningPart
    tool: str
    """By the name that models would use there."""


class JoinedServer:
    """Several running servers as one; made by `open_joined`."""

    def __init__(self, config: JoinedServerConfig, parts: Mapping[str, RunningPart]) -> None:
        """`parts` by name, in the order of the definition."""
        self.config: ServerConfig = config
        self._definition, self._parts = config, parts
        self._places: dict[str, _Place] | None = None

    async def list_tools(self) -> list[dict[str, Any]]:
        """Those of each part, one part after the other. `_meta` has the part and the tool's own
        name there, and a tool that only reads by its part's definition says so."""
        listed = {name: await part.list_tools() for name, part in self._parts.items()}
        own = {name: [tool["name"] for tool in tools] for name, tools in listed.items()}
        joint = joint_names(own)
        by_models = mapped_names(joint.values())
        self._places = {
            by_models[joint[part, name]]: _Place(self._parts[part], plain)
            for part, names in own.items()
            for name, plain in mapped_names(names).items()
        }
        return [
            self._as_listed(tool, part, joint[part, tool["name"]])
            for part, tools in listed.items()
            for tool in tools
        ]

    def _as_listed(self, tool: Mapping[str, Any], part: str, name: str) -> dict[str, Any]:
        listed = {**tool, "name": name, META: {"part": part, "tool": tool["name"]}}
        if tool["name"] in self._definition.part(part).read_only_tools:
            listed["annotations"] = {**(tool.get("annotations") or {}), "readOnlyHint": True}
        return listed

    async def call(
        self, name: str, arguments: Mapping[str, Any], answers: AnswerServer | None = None
    ) -> McpResult:
        """As `McpServer.call`, at the part that has the tool."""
        if self._places is None:
            await self.list_tools()
        assert self._places is not None
        if (place := self._places.get(name)) is None:
            return McpResult(f"Unknown tool: {name}", True)
        return await place.part.call(place.tool, arguments, answers)

    async def ended_files(self, parts: Iterable[str]) -> WorkspaceFiles:
        """What lies in the workspaces of these parts, which are programs of their own, once they
        have ended: each file under its part's name. ConfigError where that is too much."""
        return {
            entity_of(name, path): text
            for name in parts
            for path, text in (await cast(EndingPart, self._parts[name]).ended_files()).items()
        }

    async def state(self) -> ServerState:
        """The entities of all parts, each with its part's name before it."""
        return {
            entity_of(name, entity): rows
            for name, part in self._parts.items()
            for entity, rows in (await part.state()).items()
        }


def joint_names(names: Mapping[str, Iterable[str]]) -> dict[tuple[str, str], str]:
    """(part, own name of a tool) -> its name in the list of all. A name that two parts have, as
    models write it, gets the part's name before it in each; any other stays."""
    own = {part: mapped_names(listed) for part, listed in names.items()}
    times = Counter(plain for mapped in own.values() for plain in mapped.values())
    taken = set(times)
    found: dict[tuple[str, str], str] = {}
    for part, mapped in own.items():
        for name, plain in mapped.items():
            joint = name
            if times[plain] > 1:
                joint = f"{part}_{plain}"
                while joint in taken:
                    joint = f"{part}_{joint}"
                taken.add(joint)
            found[part, name] = joint
    return found


@asynccontextmanager
async def open_live(
    config: ServerConfig, fixture: Mapping[str, Any] | None = None
) -> AsyncIterator[LiveServer]:
    """A server, or all parts of a joined one, with the errors of `open_server`."""
    opened = (
        open_joined(config, fixture, open_server)
        if isinstance(config, JoinedServerConfig)
        else open_server(config, fixture)
    )
    async with opened as server:
        yield server


@asynccontextmanager
async def open_joined(
    config: JoinedServerConfig, fixture: Mapping[str, Any] | None, open_program: OpenProgram
) -> AsyncIterator[JoinedServer]:
    """All parts, each in its fixture; `open_program` opens those that are programs."""
    async with AsyncExitStack() as stack:
        parts: dict[str, RunningPart] = {}
        for part, chosen in config.with_fixtures(fixture):
            parts[part.name] = (
                RunningDomain(part.load())
                if isinstance(part, DomainPart)
                else await stack.enter_async_context(open_program(part, chosen))
            )
        yield JoinedServer(config, parts)
