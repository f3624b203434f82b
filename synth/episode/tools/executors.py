"""Where a call really runs, behind one protocol; routing is per tool row.

An executor holds the state of one episode. A failure that the agent's calls could not cause is a
TransientError, and the episode is not scored. What they did cause is an error observation, their
sandbox's or server's end included (`code_executor`, `mcp_executor`): the agent reads it and is
scored for what its rows hold, so that no act gets it out of a bad score.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

from records.errors import ConfigError
from records.tables.schemas import Row
from sandboxes.code.suite import CLOCK
from sandboxes.lending.leases import LeaseSandbox, lease
from sandboxes.mcp.joined import LiveServer, open_live
from sandboxes.mcp.protocol.questions import AnswerServer, ServerExchange, recorded_answers
from sandboxes.mcp.servers import ServerConfig
from synth.episode.tools.cassette import (
    Cassette,
    CassetteExecutor,
    Tape,
    TapeExecutor,
    start_name,
)
from synth.episode.tools.code_bench import Bench
from synth.episode.tools.code_environments import CODE_DOMAIN, CodeEnvironment, is_code
from synth.episode.tools.code_executor import CodeExecutor
from synth.episode.tools.domain_executors import (
    RecordedSimulation,
    SharedState,
    SimulatedExecutor,
    StateMachineExecutor,
)
from synth.episode.tools.mcp_executor import AnswersFor, CallPlace, McpExecutor
from synth.episode.tools.notes import NOTE_TOOLS, NotesExecutor
from synth.episode.tools.simulator import Answers, SimulateConfig
from synth.episode.tools.tool_result import ExecutedBy, ToolResult
from synth.rubrics.built_in import BUILT_IN, Kinds
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment


class Executor(Protocol):
    @property
    def executed_by(self) -> ExecutedBy: ...

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        """Run the tool; arguments fit its schema. Raises TransientError when it cannot be run."""
        ...

    async def stale(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """What a read would have returned when the episode began; None if that is not known."""
        ...

    def policy_violations(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        """Ids of the policy rules that this call would break if it were made now."""
        ...

    def user_answered(self, turn: int) -> None:
        """The user has answered the assistant's message of this number, from 1, and what time that
        takes has passed. Raises TransientError where that cannot be played."""
        ...

    def state_hash(self) -> str | None:
        """None while no state was read yet (a server that no call has started)."""
        ...

    def snapshot(self) -> Any: ...

    async def restore(self, snapshot: Any) -> None: ...

    async def close(self) -> None: ...


OpenServer = Callable[
    [ServerConfig, Mapping[str, Any] | None], AbstractAsyncContextManager[LiveServer]
]


_EDITED = "it was edited since, or belongs to another run; replay with the definition of then"


class TaskBackground(NamedTuple):
    about: str
    """What an agent must know of the place, such as the folder that it works in."""
    now: str
    policy: tuple[str, ...]
    users_part: tuple[str, ...] = ()
    """What only the user can do, with tools of its own."""


@dataclass(frozen=True)
class Catalogue:
    """What the rows of tasks refer to, by id: everything that an episode is put together from."""

    agents: Mapping[str, Row]
    personas: Mapping[str, Row]
    tools: Mapping[str, Row]
    domains: Mapping[str, Domain]
    """By `domain_id`."""
    servers: Mapping[str, ServerConfig]
    """By name. Empty where no sandbox can run them; their tasks are not planned then."""
    code: Mapping[str, CodeEnvironment] = field(default_factory=dict)
    """Repositories and problems by name. Empty where no sandbox can run them."""
    lease: LeaseSandbox = lease
    """How an episode on code gets its sandbox."""
    open_server: OpenServer = open_live
    """How an episode gets its server. `WarmServers.open` bounds them and spares most starts."""
    kinds: Kinds = BUILT_IN
    """What checks the criteria of the tasks."""
    simulate: SimulateConfig = field(default_factory=SimulateConfig)
    """Which tools a model plays."""
    cassette: Cassette | None = None
    """Recorded answers of the servers named in `recorded`."""
    recorded: frozenset[str] = frozenset()
    """Servers that cannot run here and are answered from the cassette."""
    played: frozenset[str] = frozenset()
    """Ids of the domains that no program defines: environments of imported tools."""

    @cached_property
    def bench(self) -> Bench:
        """Runs the graded tests of tasks on code."""
        return Bench(self.environment)

    def background_of(self, task: Row) -> TaskBackground:
        """Description, clock and rules of the environment that a task plays in."""
        if task["server"]:
            server = self.server(task["server"])
            return TaskBackground(server.description or server.title, server.clock, ())
        if is_code(task):
            environment = self.environment(task)
            return TaskBackground(environment.about, CLOCK, ())
        domain = self.domain(task["domain_id"])
        rules = tuple(rule.text for rule in domain.policy)
        own = tuple(in_short(tool) for tool in self.user_tools_of(task))
        return TaskBackground(domain.description, domain.now, rules, own)

    def tools_of(self, agent: Row) -> list[Row]:
        """ConfigError for an agent that was made with tools that are not there any more."""
        if gone := [tool_id for tool_id in agent["tool_ids"] if tool_id not in self.tools]:
            raise ConfigError(
                f"agent {agent['agent_id']} has tools ({', '.join(gone)}) that none of the domains "
                f"and servers at hand has; {_EDITED}"
            )
        return [self.tools[tool_id] for tool_id in agent["tool_ids"]]

    def user_tools_of(self, task: Row) -> list[Row]:
        """Tools that the simulated user of the task owns. ConfigError where one is not there."""
        ids = task.get("user_tool_ids") or ()
        if gone := [tool_id for tool_id in ids if tool_id not in self.tools]:
            raise ConfigError(f"the user's tools {', '.join(gone)} are not at hand; {_EDITED}")
        return [self.tools[tool_id] for tool_id in ids]

    def is_simulated(self, tool: Row) -> bool:
        """Whether a model plays the tool."""
        outside = tool["server"] is not None or tool["domain_id"] == CODE_DOMAIN
        return not outside and self.simulate.plays(tool)

    def domain(self, domain_id: str) -> Domain:
        if domain_id not in self.domains:
            raise ConfigError(f"domain {domain_id} is not at hand; {_EDITED}")
        return self.domains[domain_id]

    def environment(self, task: Row) -> CodeEnvironment:
        """The repository or problem of a task. ConfigError for one that is not as it was."""
        return code_environment_in(self.code, task)

    def server(self, name: str) -> ServerConfig:
        if name not in self.servers:
            known = ", ".join(self.servers) or "none"
            raise ConfigError(
                f"MCP server {name!r} cannot run here (`synth sandbox doctor` says why) or is not "
                f"among those of the run: {known}"
            )
        return self.servers[name]


def code_environment_in(environments: Mapping[str, CodeEnvironment], task: Row) -> CodeEnvironment:
    """The repository or problem of a task. ConfigError for one that is not as it was."""
    name, definition = task["initial_state"]["world"], task["initial_state"]["definition"]
    if name not in environments or environments[name].definition != definition:
        raise ConfigError(
            f"repository or problem {name!r} is not at hand, or no sandbox can run it here "
            f"(`synth sandbox doctor` says why); {_EDITED}"
        )
    return environments[name]


def in_short(tool: Row) -> str:
    """What the tool does, in a sentence."""
    return tool["description"].split(". ")[0].rstrip(".") + "."


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """The calls of a stored trajectory, for its replay."""

    simulated: Tape
    """What a model answered then."""
    live: Tape | None = None
    """What servers answered then; None: they are started and asked again."""
    asked: Tape | None = None
    """What servers that are started again asked then, and were answered."""


def executors_for(
    catalogue: Catalogue,
    task: Row,
    tools: Sequence[Row],
    *,
    seed: int,
    answers: Answers | None = None,
    recorded: RecordedCalls | None = None,
    answers_for: AnswersFor | None = None,
) -> dict[str, Executor]:
    """An executor for each tool by name. Tools of one domain or server share their state.

    `seed` is the episode's, and what a server draws at random is a stream of it. `answers` are a
    simulator's, `answers_for` those to what servers ask in a call; `recorded` replays what was
    answered. ConfigError for a tool that is to be played by a model where there is neither.
    """
    made: dict[tuple[str, bool], Executor] = {}
    shared_states: dict[str, SharedState] = {}
    routes: dict[str, Executor] = {}
    notes = NotesExecutor()
    for tool in tools:
        if tool in NOTE_TOOLS:
            routes[tool["name"]] = notes
            continue
        name = tool["server"] or tool["domain_id"]
        plays = catalogue.is_simulated(tool)
        if (name, plays) not in made:
            if tool["server"] or tool["domain_id"] == CODE_DOMAIN:
                made[name, plays] = _outside(
                    catalogue, task, tool, tools, seed, recorded, answers_for
                )
            else:
                shared = shared_states.setdefault(name, _shared_state(catalogue, task, tool))
                made[name, plays] = (
                    _simulated(shared, tools, answers, recorded)
                    if plays
                    else StateMachineExecutor(shared)
                )
        routes[tool["name"]] = made[name, plays]
    return routes


def _shared_state(catalogue: Catalogue, task: Row, tool: Row) -> SharedState:
    domain = catalogue.domain(tool["domain_id"])
    own = tool["domain_id"] == task["domain_id"]  # tools of another domain find its plain seed
    return SharedState(DomainEnvironment.of(domain, task["initial_state"] if own else None))


def _simulated(
    shared: SharedState,
    tools: Sequence[Row],
    answers: Answers | None,
    recorded: RecordedCalls | None,
) -> Executor:
    if recorded is not None:
        return RecordedSimulation(shared, recorded.simulated)
    if answers is None:
        raise ConfigError("tools are to be played by a model, and none is given to play them")
    return SimulatedExecutor(shared, {tool["name"]: tool for tool in tools}, answers)


def _outside(
    catalogue: Catalogue,
    task: Row,
    tool: Row,
    tools: Sequence[Row],
    seed: int,
    recorded: RecordedCalls | None,
    answers_for: AnswersFor | None,
) -> Executor:
    """Of a server or of the workspace for code."""
    if tool["domain_id"] == CODE_DOMAIN:
        environment = catalogue.environment(task)
        return CodeExecutor(environment.project, environment.start(task), catalogue.lease)
    server = tool["server"]
    if recorded is not None and recorded.live is not None:
        return TapeExecutor(recorded.live, "cassette" if server in catalogue.recorded else "mcp")
    if server in catalogue.recorded and catalogue.cassette is not None:
        ids = {t["name"]: t["tool_id"] for t in tools if t["server"] == server}
        start = start_name(task["initial_state"])
        return CassetteExecutor(catalogue.cassette, server, start, ids)
    config = catalogue.server(server)
    if recorded is not None and recorded.asked is not None:
        answers_for = partial(_recorded_answers, recorded.asked)
    begins = {**task["initial_state"], "seed": seed}
    return McpExecutor(partial(catalogue.open_server, config, begins), answers_for)


def _recorded_answers(asked: Tape, place: CallPlace) -> AnswerServer:
    exchanges = asked.exchanges(place.tool, place.arguments)
    return recorded_answers([ServerExchange(**exchange) for exchange in exchanges])
