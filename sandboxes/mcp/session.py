"""Live MCP servers, each in a sandbox, spoken to with the official SDK.

The server's process is only ever started inside the sandbox. What it answers, errors included, is
an `McpResult`; so is the refusal of arguments that no server can be sent (half surrogate pairs,
more than `MAX_ARGUMENTS`), and an answer that does not fit the protocol: another start would change
neither.

A server that hangs, dies or prints rubbish in a call is a `ServerLostError`, and who caused it
cannot be seen from one call. So whoever plays an episode (`synth.episode.tools.mcp_executor`) makes
the call once more, on a fresh server that has been through the same calls before. Where that goes
well the first server failed by itself. Where the second is lost as well and a third lives without
the call, the call is what ends servers: its result is an error that the agent reads and is scored
for, so that no policy gets out of a bad score by crashing its server. A server that does not start
is a TransientError, since no call was made yet.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp_types import CallToolRequestParams
from pydantic import ValidationError

from records.errors import ConfigError, ItemError, TransientError
from sandboxes.core.body import ProgramEndedError
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.workspace_files import WorkspaceFiles, files_in, put_files
from sandboxes.egress import forwarding
from sandboxes.egress.forwarding import reaching, start_forwarder
from sandboxes.egress.proxy import Egress, open_egress
from sandboxes.lending import leases
from sandboxes.mcp.launch import check_way_out, launch_of
from sandboxes.mcp.protocol.contents import text_of_blocks
from sandboxes.mcp.protocol.offered import (
    OfferKind,
    names_of_offers,
    offered_tools,
    text_of_offer,
    wrong_arguments,
)
from sandboxes.mcp.protocol.pages import BoundRequest, all_pages
from sandboxes.mcp.protocol.questions import (
    AnswerServer,
    CallQuestions,
    QuestionCallbacks,
)
from sandboxes.mcp.protocol.results import McpResult, clip
from sandboxes.mcp.secret_values import NO_SECRETS, Redactor, secret_values
from sandboxes.mcp.servers import Fixture, ServerConfig
from sandboxes.mcp.state import ServerState, state_of
from sandboxes.mcp.wire import McpWire
from tool_specs.importing.checked_schemas import usable_schema
from tool_specs.importing.names import mapped_names
from tool_specs.importing.parameter_names import WritableSchema, own_arguments, writable

MAX_ARGUMENTS = 1 << 20
"""Bytes of a call's arguments as JSON."""


class ServerLostError(TransientError):
    """The server hung, died or printed rubbish in a call, or does not run any more."""


class McpServer:
    """A running server; made by `open_server`. Calls may come from any task."""

    def __init__(
        self,
        config: ServerConfig,
        fixture: Fixture,
        sandbox: Sandbox,
        redactor: Redactor = NO_SECRETS,
    ) -> None:
        self.config, self._fixture, self.sandbox = config, fixture, sandbox
        self._redactor = redactor
        self._client: Client | None = None
        self._wire: McpWire | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._names: dict[str, str] | None = None
        self._schemas: dict[str, WritableSchema] = {}
        self._offers: dict[str, OfferKind] = {}
        """Tools that stand for resources and prompts, by the names that models use."""
        self._reads: set[str] = set()
        self._questions = QuestionCallbacks(
            elicitation=config.elicitation, sampling=config.sampling
        )

    async def list_tools(self) -> list[dict[str, Any]]:
        """All tools as on the wire, page by page, and after them those that stand for the server's
        resources and prompts."""
        client, server = self._ready(), self.config.name
        try:
            own = await all_pages(client, "tools", server, partial(self._asking, "tools/list"))
        except MCPError:
            has = client.server_capabilities
            if has.tools is not None or not (has.resources or has.prompts):
                raise
            own = []
        names = [tool["name"] for tool in own]
        offers = names_of_offers(server, client.server_capabilities, names)
        made = await offered_tools(client, offers, server, partial(self._asking, "its lists"))
        self._reads = {tool["name"] for tool in own if only_reads(self.config, tool)}
        self._names = {name: own_name for own_name, name in mapped_names(names).items()}
        self._schemas = dict(_writable_schemas(own))
        self._offers = offers
        return self._redactor.value([*own, *made])

    async def call(
        self, name: str, arguments: Mapping[str, Any], answers: AnswerServer | None = None
    ) -> McpResult:
        """Call a tool by the names that models use (`tool_specs.importing.names.mapped_names`): its
        own name, and the names that it has for its parameters, are what the server is sent.

        A tool that may write is refused where the server may not (`ServerConfig.may_write`). What
        the server asks in the call `answers` says, whose exceptions are raised; without it, nobody
        is there.
        ServerLostError if the server hangs or is lost; never for what it answers.
        """
        if self._names is None:
            await self.list_tools()
        assert self._names is not None
        if (kind := self._offers.get(name)) is not None:
            if problem := unsendable(name, arguments) or wrong_arguments(kind, arguments):
                return McpResult(problem, True, "invalid_arguments")
            return await self._made(name, partial(self._offer, kind, arguments), answers)
        own = self._names.get(name, name)
        if not self.config.may_write and own not in self._reads:
            refused = f"{name} is refused: only tools that read are allowed"
            return McpResult(refused if name in self._names else f"Unknown tool: {name}", True)
        if own in self._schemas:
            arguments = own_arguments(arguments, self._schemas[own])
        if (problem := unsendable(own, arguments)) is not None:
            return McpResult(problem, True, "invalid_arguments")
        return await self._made(name, partial(self._tool, own, arguments), answers)

    async def _made(
        self,
        name: str,
        request: Callable[[BoundRequest], Awaitable[McpResult]],
        answers: AnswerServer | None,
    ) -> McpResult:
        """The result of `request` for the agent, whatever it is."""
        async with self._questions.of_call(answers) as asked:
            try:
                result = await request(partial(self._asking, name, asked))
            except MCPError as error:  # the protocol's way to refuse: unknown tool, bad arguments
                result = McpResult(error.message, is_error=True)
            except (RuntimeError, ValidationError, ItemError) as error:
                result = McpResult(f"The server's answer is none: {error}", True, "bad_answer")
        text = clip(self._redactor.text(result.text))
        return result._replace(text=text, exchanges=tuple(asked.exchanges))

    async def _tool(
        self, own: str, arguments: Mapping[str, Any], asking: BoundRequest
    ) -> McpResult:
        async with asking():
            result = await self._ready().call_tool(own, dict(arguments))
        return McpResult(text_of(result), bool(result.is_error))

    async def _offer(
        self, kind: OfferKind, arguments: Mapping[str, Any], asking: BoundRequest
    ) -> McpResult:
        server = self.config.name
        return McpResult(await text_of_offer(self._ready(), kind, arguments, server, asking), False)

    async def state(self) -> ServerState:
        """What its probes print in this sandbox now, or what lies in its workspace."""
        return await state_of(self.config, self.sandbox, self._redactor)

    async def ended_files(self) -> WorkspaceFiles:
        """What lies in its workspace, once it has ended. ConfigError where that is too much."""
        await self._close()
        return await files_in(self.sandbox)

    async def reset(self) -> None:
        """Make the workspace as it was at the start. Only for servers that keep no other state."""
        if not self.config.resettable:
            raise ValueError(f"server {self.config.name} is not declared resettable")
        await empty_workspace(self.sandbox)
        await set_up(self.config, self._fixture, self.sandbox)

    @property
    def runs(self) -> bool:
        """Whether it can be asked; False from a call that lost it on."""
        return self._client is not None and (self._wire is None or self._wire.lost() is None)

    def _ready(self) -> Client:
        if self._client is None:
            raise ServerLostError(f"server {self.config.name} does not run")
        return self._client

    @asynccontextmanager
    async def _asking(self, what: str, asked: CallQuestions | None = None) -> AsyncIterator[None]:
        """Bound one request, and tell the server's death from its answers. The time in which
        somebody thinks of an answer to what the server `asked` does not count."""
        limit = self.config.call_timeout_s
        try:
            async with asyncio.timeout(limit) as clock:
                with asked.timed_by(clock) if asked else nullcontext():
                    yield
        except TimeoutError as error:
            self._client = None  # what the call still does there is unknown
            raise ServerLostError(
                f"server {self.config.name} did not answer {what} within {limit:g} s"
            ) from error
        except MCPError as error:
            if self._wire is None or self._wire.lost() is None:
                raise
            raise self._death(what) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise self._death(what) from error

    def _death(self, what: str) -> TransientError:
        wire = self._wire
        why = (wire and wire.lost()) or "the connection closed"
        kind = TransientError if wire and wire.sandbox_lost() else ServerLostError
        return kind(f"server {self.config.name} died in {what}: {why}")

    async def _start(self, argv: list[str], env: Mapping[str, str]) -> None:
        """`env`: what the server's process alone is given, beside its definition's."""
        await set_up(self.config, self._fixture, self.sandbox)
        process = await self.sandbox.open_stdio(argv, env=env)
        self._wire = wire = McpWire(process, self._redactor)
        started = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(wire, started))
        try:
            async with asyncio.timeout(self.config.start_timeout_s):
                await started
        except TimeoutError:
            problem = f"did not answer within {self.config.start_timeout_s:g} s"
        except (MCPError, ValidationError, RuntimeError, OSError) as error:
            problem = f"did not start: {self._redactor.text(str(error))}"
        else:
            return
        await asyncio.sleep(0)  # let the end of its output arrive
        why = wire.lost() or wire.heard()
        raise TransientError(f"server {self.config.name} {problem}{why and f' ({why})'}")

    async def _serve(self, wire: McpWire, started: asyncio.Future[None]) -> None:
        """Hold the SDK's client open in one task, as its cancel scopes require."""
        try:
            questions = self._questions
            async with Client(
                wire.streams(),
                cache=None,
                elicitation_callback=questions.elicit,
                sampling_callback=questions.sample,
            ) as client:
                self._client = client
                if not started.done():
                    started.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            if not started.done():
                started.set_exception(error)
        finally:
            self._client = None

    async def _close(self) -> None:
        self._stop.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _writable_schemas(listed: list[dict[str, Any]]) -> Iterator[tuple[str, WritableSchema]]:
    """By the tool's own name, of those with parameters that models know by other names."""
    for tool in listed:
        schema = usable_schema(tool.get("inputSchema")).schema
        if schema is not None and (found := writable(schema)).originals:
            yield tool["name"], found


def only_reads(config: ServerConfig, tool: Mapping[str, Any]) -> bool:
    """Whether the server, or its definition, says that the tool changes nothing."""
    annotations = tool.get("annotations") or {}
    return annotations.get("readOnlyHint") is True or tool["name"] in config.read_only_tools


def unsendable(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Why a call cannot be put into a message, for the agent to read; None if it can."""
    try:
        size = len(json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode())
        if size <= MAX_ARGUMENTS:
            CallToolRequestParams(name=tool, arguments=dict(arguments)).model_dump_json()
            return None
    except (ValueError, TypeError, RecursionError) as error:
        said = str(error).partition("\n")[0][:200]
        return f"These arguments cannot be sent, since no JSON can hold them: {said}"
    return f"Arguments of {size} bytes; at most {MAX_ARGUMENTS} are sent."


def text_of(result: Any) -> str:
    """What the agent reads: the text blocks; a line for each block that is not text."""
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return text_of_blocks(result.content)


async def set_up(config: ServerConfig, fixture: Fixture, sandbox: Sandbox) -> None:
    await put_files(sandbox, fixture.contents)
    for path, text in fixture.files.items():
        await sandbox.write_file(path, text.encode())
    if fixture.setup:
        done = await sandbox.exec(["/bin/sh", "-euc", fixture.setup])
        if done.exit_code:
            said = done.stderr.decode(errors="replace").strip()[-500:]
            raise ConfigError(
                f"server {config.name}: its fixture's setup ended with {done.exit_code}: {said}"
            )


async def empty_workspace(sandbox: Sandbox) -> None:
    script = "find . -mindepth 1 -delete; find /tmp /dev/shm -mindepth 1 -delete"
    done = await sandbox.exec(["/bin/sh", "-c", script], cwd=sandbox.template.workdir)
    if done.exit_code:
        raise TransientError(f"the workspace could not be emptied: {done.stderr[-200:]!r}")


def fixture_of(config: ServerConfig, wanted: Mapping[str, Any] | None) -> Fixture:
    """The fixture of {"fixture": name, "start": id of what its tools made of it}."""
    name = (wanted or {}).get("fixture", "default")
    if name not in config.fixtures:
        known = ", ".join(config.fixtures)
        raise ConfigError(f"server {config.name} has no fixture {name!r}; it has: {known}")
    fixture = config.fixtures[name]
    start = config.start if wanted is None else wanted.get("start", "")
    if not start:
        return fixture
    if start not in config.starts:
        raise ConfigError(
            f"server {config.name} has no start {start!r}: the dataset lacks it; "
            "the run's own command makes it again"
        )
    # what the setup did is in it already
    return Fixture(contents=config.starts[start])


@asynccontextmanager
async def open_server(
    config: ServerConfig, fixture: Mapping[str, Any] | None = None
) -> AsyncIterator[McpServer]:
    """A server in a sandbox of its own, its fixture made: {"fixture": name, "start": id}, or the
    default one. With a "seed", an int, what the server draws at random is a stream of it, if it may
    be seeded (`ServerConfig.may_be_seeded`), else chance.

    ConfigError where it can never start (command, fixture, a secret that is not set, no sandbox
    here), TransientError where it did not this time: it hung, ended or printed something else than
    the protocol.
    """
    template, argv = launch_of(config)
    if config.may_be_seeded:
        template = template.model_copy(update={"seed": (fixture or {}).get("seed")})
    env = secret_values(config.name, config.secrets)
    redactor = Redactor(env)
    async with AsyncExitStack() as stack:
        proxy = leases.place_in_use().proxy
        if config.hosts and proxy is None:
            check_way_out(config)
            egress = Egress(config.name, config.hosts, clean=redactor.text)
            template = reaching(template, await stack.enter_async_context(open_egress(egress)))
        elif config.hosts:
            template = reaching(template, None)
        sandbox = await stack.enter_async_context(leases.lease(template))
        if config.hosts:
            env |= forwarding.ENV
            if proxy is None:
                await start_forwarder(sandbox)
            else:
                line = proxy.first_line(config.name, config.hosts)
                await start_forwarder(sandbox, proxy.address, line)
        server = McpServer(config, fixture_of(config, fixture), sandbox, redactor)
        try:
            try:
                await server._start(argv, env)
            except ProgramEndedError as error:
                raise TransientError(f"server {config.name} did not start: {error}") from error
            yield server
        finally:
            await server._close()
