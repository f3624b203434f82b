"""Cassettes: recorded answers in the place of what gave them, a live server or a model.

A `Tape` is one trajectory's calls, for its replay: each is answered once, in their order. A
`Cassette` is many trajectories' calls on servers: what a tool answered in a state, whoever asked. A
call that is not recorded is an error of the environment that says so, and nobody's in the episode.
"""

import copy
import re
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from records.digest import canonical_json
from records.errors import TransientError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.protocol.results import McpResult
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.state import ServerState
from synth.episode.tools.fault_injection import BEFORE_EXECUTION
from synth.episode.tools.tool_result import ExecutedBy, ToolResult
from tool_specs.importing.tool_lists import ToolListSource, is_of


class NotRecordedError(TransientError):
    """A call that no record answers; asking again does not help."""


def is_executed(call: Row) -> bool:
    """Whether a recorded call reached what executes the tool."""
    return call["executed_by"] is not None and call["injected_outcome"] not in BEFORE_EXECUTION


class Tape:
    """The calls of one trajectory, to be played in the order in which they were made."""

    def __init__(self, calls: Iterable[Row], executed_by: Iterable[str]) -> None:
        """`calls`: rows of `tool_calls` in call order; only those of these executors are on it."""
        wanted = set(executed_by)
        self._calls: dict[tuple[str, str], deque[Row]] = defaultdict(deque)
        for call in calls:
            if call["executed_by"] in wanted and is_executed(call):
                self._calls[_signature(call["name"], call["arguments"])].append(call)

    def next(self, tool: str, arguments: Mapping[str, Any]) -> Row:
        """The next recorded call of this tool with these arguments."""
        left = self._calls.get(_signature(tool, arguments))
        if not left:
            shown = canonical_json(arguments)[:200]
            raise NotRecordedError(f"the call {tool} {shown} is not on the tape")
        return left.popleft()

    def exchanges(self, tool: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Of the next recorded call; none where it is not on the tape, or asked nothing."""
        left = self._calls.get(_signature(tool, arguments))
        return (left.popleft()["exchanges"] or []) if left else []

    def left(self) -> dict[tuple[str, str], list[Row]]:
        return {signature: list(calls) for signature, calls in self._calls.items()}

    def restore(self, left: Mapping[tuple[str, str], Iterable[Row]]) -> None:
        self._calls = defaultdict(deque, {key: deque(calls) for key, calls in left.items()})


def _signature(tool: str, arguments: Any) -> tuple[str, str]:
    return tool, canonical_json(arguments)


class _Recorded:
    """Executor of a live server's tools whose state is known by its hash alone."""

    executed_by: ExecutedBy

    def __init__(self) -> None:
        self._hash: str | None = None

    async def stale(self, tool: str, arguments: dict[str, Any]) -> str | None:
        return None

    def policy_violations(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        return []

    def user_answered(self, turn: int) -> None:
        return None

    def state_hash(self) -> str | None:
        return self._hash

    async def close(self) -> None:
        self._hash = None


class TapeExecutor(_Recorded):
    """For a replay: each call's state is the one that the call before it left, so that a record
    that does not hang together shows as a difference."""

    def __init__(self, tape: Tape, executed_by: ExecutedBy) -> None:
        super().__init__()
        self.executed_by: ExecutedBy = executed_by
        self._tape = tape

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        row = self._tape.next(tool, arguments)
        before = row["state_hash_before"] if self._hash is None else self._hash
        self._hash = row["state_hash_after"]
        return _result(row, before)._replace(settled=True)

    def snapshot(self) -> Any:
        return self._hash, self._tape.left()

    async def restore(self, snapshot: Any) -> None:
        self._hash, left = snapshot
        self._tape.restore(left)


def _result(row: Row, before: str | None) -> ToolResult:
    return ToolResult(
        row["observation"],
        row["is_error"],
        row["error_code"],
        row["state_diff"],
        before,
        row["state_hash_after"],
        exchanges=row["exchanges"],
    )


def start_name(initial_state: Mapping[str, Any]) -> str:
    """What tells the states apart that a server's tasks begin with: its fixture, and what a run
    has filled it with."""
    name, start = initial_state["fixture"], initial_state.get("start")
    return f"{name}/{start}" if start else name


class _Start(NamedTuple):
    server: str
    fixture: str


_Key = tuple[_Start, str, str, str]
"""(where, tool id, state hash before, arguments)."""

_CUT = re.compile(r"\n\[cut: \d+ of \d+ characters shown\]\Z")


class Cassette:
    """What the tools of live servers answered in recorded trajectories."""

    def __init__(self) -> None:
        self.tools: dict[str, dict[str, Row]] = {}
        """Server -> rows of `tools` by id."""
        self.conflicts: set[_Key] = set()
        """Calls that were answered in two ways, and are answered in none."""
        self._answers: dict[_Key, Row] = {}
        self._starts: dict[_Start, str] = {}
        self._rows: dict[_Start, ServerState] = {}

    @classmethod
    def of(cls, datasets: Iterable[Dataset]) -> "Cassette":
        """Everything that was recorded on servers, of the datasets together."""
        cassette = cls()
        for dataset in datasets:
            for tool in dataset.rows("tools"):
                if tool["server"]:
                    cassette.tools.setdefault(tool["server"], {})[tool["tool_id"]] = tool
            tasks = {t["task_id"]: t for t in dataset.rows("tasks") if t["server"]}
            places = {
                t["trajectory_id"]: _Start(
                    t["server"], start_name(tasks[t["task_id"]]["initial_state"])
                )
                for t in dataset.rows("trajectories", ["trajectory_id", "task_id", "server"])
                if t["server"] and t["task_id"] in tasks
            }
            calls: dict[str, list[Row]] = {}
            for call in dataset.rows("tool_calls"):
                if call["trajectory_id"] in places and call["executed_by"] in ("mcp", "cassette"):
                    calls.setdefault(call["trajectory_id"], []).append(call)
            for trajectory, own in calls.items():
                cassette.add(places[trajectory], own)
        return cassette

    def add(self, start: "_Start", calls: Iterable[Row]) -> None:
        """The calls of one trajectory, in their order. What was changed on the agent's way, by an
        injected outcome or a cut, is no answer of the tool's, and one that hangs on what somebody
        said meanwhile is no answer to the same call of another episode."""
        made: set[tuple[str, str]] = set()
        for call in filter(is_executed, calls):
            if call["state_hash_before"] is None:
                continue
            self._starts.setdefault(start, call["state_hash_before"])
            for change in call["state_diff"]:
                line = (change["entity"], change["id"])
                if change["op"] == "create":
                    made.add(line)
                elif line not in made:
                    rows = self._rows.setdefault(start, {}).setdefault(change["entity"], {})
                    known = rows.setdefault(change["id"], {})
                    known |= {f: v for f, v in change["before"].items() if f not in known}
            changed = call["injected_outcome"] or _CUT.search(call["observation"])
            if not changed and not call["exchanges"]:
                self._keep(start, call)

    def _keep(self, start: "_Start", call: Row) -> None:
        before = call["state_hash_before"]
        key = (start, call["tool_id"], before, canonical_json(call["arguments"]))
        known = self._answers.setdefault(key, call)
        said = ("observation", "is_error", "error_code", "state_hash_after", "state_diff")
        if any(canonical_json(known[name]) != canonical_json(call[name]) for name in said):
            self.conflicts.add(key)

    def tools_of(self, source: ToolListSource) -> list[Row]:
        """The tools of this very server, as they were recorded."""
        rows = self.tools.get(source.server, {}).values()
        return sorted((row for row in rows if is_of(row, source)), key=lambda row: row["tool_id"])

    def start(self, server: str, fixture: str) -> str:
        """Hash of the state that the fixture begins with."""
        start = self._starts.get(_Start(server, fixture))
        if start is None:
            raise NotRecordedError(f"no call on server {server} with fixture {fixture} is recorded")
        return start

    def rows(self, server: str, fixture: str) -> ServerState:
        """As far as the record shows it: the rows of that state that something removed or changed,
        with the fields that it did."""
        return copy.deepcopy(self._rows.get(_Start(server, fixture), {}))

    def answer(
        self, server: str, fixture: str, tool_id: str, state: str, arguments: Mapping[str, Any]
    ) -> Row:
        """The recorded call. NotRecordedError where there is none."""
        key = (_Start(server, fixture), tool_id, state, canonical_json(arguments))
        row = self._answers.get(key)
        if row is None or key in self.conflicts:
            why = "is not on the cassette" if row is None else "was answered in two ways on record"
            raise NotRecordedError(
                f"server {server} cannot run here, and its call of tool {tool_id} with "
                f"{key[-1][:200]} in state {state} {why}"
            )
        return row


class CassetteExecutor(_Recorded):
    """A server's tools in a new episode, answered as they were on record in the same state."""

    executed_by: ExecutedBy = "cassette"

    def __init__(
        self, cassette: Cassette, server: str, fixture: str, tools: Mapping[str, str]
    ) -> None:
        """`tools`: ids by name."""
        super().__init__()
        self._cassette, self._server, self._fixture = cassette, server, fixture
        self._tools = tools

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        before = self._hash or self._cassette.start(self._server, self._fixture)
        row = self._cassette.answer(
            self._server, self._fixture, self._tools[tool], before, arguments
        )
        self._hash = row["state_hash_after"]
        return _result(row, before)

    def snapshot(self) -> str | None:
        return self._hash

    async def restore(self, snapshot: str | None) -> None:
        self._hash = snapshot


class ServerForProof(Protocol):
    """What the proof of a task needs of a server: a live one has it, and a recorded one."""

    config: ServerConfig

    async def call(self, name: str, arguments: Mapping[str, Any]) -> McpResult: ...

    async def state(self) -> ServerState: ...


OpenForProof = Callable[
    [ServerConfig, Mapping[str, Any] | None], AbstractAsyncContextManager[ServerForProof]
]


class CassetteServer:
    """A recorded server as the proof of a task uses a live one: calls, and the state, of which it
    knows what something on record removed, changed or added."""

    def __init__(self, cassette: Cassette, config: ServerConfig, fixture: str) -> None:
        self.config = config
        self._tools = {row["name"]: row["tool_id"] for row in cassette.tools_of(source_of(config))}
        self._executor = CassetteExecutor(cassette, config.name, fixture, self._tools)
        self._rows: ServerState = {probe: {} for probe in config.probes}
        self._rows |= cassette.rows(config.name, fixture)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> McpResult:
        result = await self._executor.call(name, dict(arguments), read_only=False)
        for change in result.diff:
            rows = self._rows.setdefault(change["entity"], {})
            if change["op"] == "delete":
                rows.pop(change["id"], None)
            else:
                rows[change["id"]] = rows.get(change["id"], {}) | change["after"]
        return McpResult(result.text, result.is_error)

    async def state(self) -> ServerState:
        return copy.deepcopy(self._rows)


def cassette_at(paths: Sequence[str]) -> Cassette:
    """Of the datasets at the paths, as they are now. ConfigError for one that is none."""
    datasets = [Dataset.open(Path(path)) for path in paths]
    return _loaded(tuple((str(d.root.resolve()), len(d.commits())) for d in datasets))


@lru_cache(maxsize=8)
def _loaded(places: tuple[tuple[str, int], ...]) -> Cassette:
    """One for each number of commits: what is committed stays as it is."""
    return Cassette.of(Dataset.open(Path(path)) for path, _ in places)


def opening(cassette: Cassette, recorded: Container[str], live: OpenForProof) -> OpenForProof:
    """Opens servers live, but those that are recorded from the cassette."""

    def opened(
        config: ServerConfig, fixture: Mapping[str, Any] | None = None
    ) -> AbstractAsyncContextManager[ServerForProof]:
        if config.name not in recorded:
            return live(config, fixture)
        return nullcontext(CassetteServer(cassette, config, start_name(fixture or {})))

    return opened
