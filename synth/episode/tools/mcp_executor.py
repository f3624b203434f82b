"""The tools of a live MCP server behind the protocol of executors: one server for each episode.

A call that loses its server is made once more, on a fresh server that the earlier calls were made
on again. Where that server is lost too and a third one lives without the call, the call is to
blame: the agent reads so, and the episode goes on there as if the call had not been made.

What a server asks in a call is answered once. Where the call is made again on a fresh server, it is
told the same.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, NamedTuple

from records.digest import digest
from sandboxes.core.body import ProgramEndedError
from sandboxes.mcp.joined import LiveServer
from sandboxes.mcp.protocol.questions import AnswerServer, ServerExchange, recorded_answers
from sandboxes.mcp.protocol.results import McpResult
from sandboxes.mcp.session import ServerLostError
from sandboxes.mcp.state import ServerState
from synth.episode.tools.tool_result import ExecutedBy, ToolResult
from synth.rubrics.built_in import state_changes

LOSSES = ServerLostError, ProgramEndedError
"""What a call can cause."""

TRIES = 2
"""Servers on which one call is made."""

MOST_LOST = 6
"""Servers lost in one episode, after which none is started any more."""


class ServerCall(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    read_only: bool
    exchanges: tuple[ServerExchange, ...] = ()


class CallPlace(NamedTuple):
    """A call among those of its episode on one server: what its questions are kept under."""

    number: int
    """Of calls made before it."""
    tool: str
    arguments: dict[str, Any]


AnswersFor = Callable[[CallPlace], AnswerServer]
"""Who answers what a server asks in a call."""


class ServerPast(NamedTuple):
    """What happened so far, for a replay."""

    made: tuple[ServerCall, ...]
    """Without those that ended a server."""
    lost: int
    why: str


class McpExecutor:
    """The server is started by the first call that needs it. Its state is read once at the start
    and after every call that may write; in between nothing else touches the sandbox."""

    executed_by: ExecutedBy = "mcp"

    def __init__(
        self,
        open_it: Callable[[], AbstractAsyncContextManager[LiveServer]],
        answers_for: AnswersFor | None = None,
    ) -> None:
        """`open_it` gives a server whose fixture has just been made. Without `answers_for` what it
        asks is declined."""
        self._open_it = open_it
        self._answers_for = answers_for
        self._open: AsyncExitStack | None = None
        self._server: LiveServer | None = None
        self._state: ServerState = {}
        self._hash: str | None = None
        self._made: list[ServerCall] = []
        self._lost, self._why = 0, ""

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        made = ServerCall(tool, arguments, read_only)
        if self._lost >= MOST_LOST:
            return self._not_answered()
        place = CallPlace(len(self._made), tool, arguments)
        answers = self._answers_for(place) if self._answers_for else None
        for _ in range(TRIES):
            try:
                return await self._called(made, answers)
            except LOSSES as error:
                await self._lose(error)
        while self._lost < MOST_LOST:
            try:
                await self._running()  # no call is to blame for a server that does not start
                break
            except LOSSES as error:  # in a call that had not ended it before
                await self._lose(error)
        return self._not_answered()

    async def stale(self, tool: str, arguments: dict[str, Any]) -> str | None:
        return None

    def policy_violations(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        return []

    def user_answered(self, turn: int) -> None:
        return None

    def state_hash(self) -> str | None:
        return self._hash

    def snapshot(self) -> ServerPast:
        return ServerPast(tuple(self._made), self._lost, self._why)

    async def restore(self, snapshot: ServerPast) -> None:
        await self.close()
        self._made, self._lost, self._why = list(snapshot.made), snapshot.lost, snapshot.why
        if self._made:
            await self._running()

    async def close(self) -> None:
        await self._end()
        self._state, self._hash, self._made = {}, None, []
        self._lost, self._why = 0, ""

    async def _called(self, made: ServerCall, answers: AnswerServer | None) -> ToolResult:
        server = await self._running()
        before, old = self._state, self._hash
        result = await server.call(made.tool, made.arguments, answers)
        state = self._state if made.read_only else await server.state()
        self._made.append(made._replace(exchanges=result.exchanges))
        self._state, self._hash = state, digest(state)
        changes = state_changes(before, state)
        return ToolResult(
            result.text,
            result.is_error,
            code_of(result),
            changes,
            old,
            self._hash,
            exchanges=[exchange._asdict() for exchange in result.exchanges] or None,
        )

    async def _running(self) -> LiveServer:
        """The server, on which everything that was done is done."""
        if self._server is None:
            async with AsyncExitStack() as stack:
                server = await stack.enter_async_context(self._open_it())
                for made in self._made:
                    told = recorded_answers(made.exchanges)
                    await server.call(made.tool, made.arguments, told)
                self._state = await server.state()
                self._hash = digest(self._state)
                self._open, self._server = stack.pop_all(), server
        return self._server

    async def _lose(self, error: Exception) -> None:
        self._lost, self._why = self._lost + 1, str(error)
        await self._end()

    async def _end(self) -> None:
        opened, self._open, self._server = self._open, None, None
        if opened is not None:
            await opened.aclose()

    def _not_answered(self) -> ToolResult:
        """For a call that ended its server, and for all once too many were lost."""
        if self._lost >= MOST_LOST:
            text = f"The server has ended {self._lost} times and is not started again"
        else:
            text = "The server ended in this call, and so did a fresh one; it had no effect"
        text = f"error: {text}. The last time: {self._why}"
        return ToolResult(text, True, "server_ended", [], self._hash, self._hash)


def code_of(result: McpResult) -> str | None:
    return result.error_code or ("tool_error" if result.is_error else None)
