"""From a call as the model wrote it to a record of what came of it.

Order of things for one call: is there such a tool, do the arguments parse and fit its schema (if
not, the agent reads why and nothing runs), which policy rules would it break, what outcome is
drawn, and only then the executor that the tool is routed to.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from records.digest import canonical_json, digest
from records.tables.schemas import Row
from synth.episode.tools.executors import Executor, ToolResult
from synth.episode.tools.fault_injection import (
    BEFORE_EXECUTION,
    Draw,
    FaultInjector,
    error_text,
    fault_of,
    reshaped,
)
from synth.rubrics.episode import is_read_only
from tool_specs.execution.fields import clean_json
from tool_specs.language.schemas import Validator
from tool_specs.language.values import EvaluationError

FORMAT_ERRORS = frozenset({"invalid_arguments", "unknown_tool", "too_many_calls"})
"""Error codes of calls that never reached a tool: the agent's form was wrong, not its idea."""

Actor = Literal["agent", "user"]
"""Who made a call. The user's own tools work on the same state; the agent does not see them."""

ARGUMENTS_CHARS = 200_000
"""Longer arguments are refused unread."""


class CallRecord(NamedTuple):
    """One call, as the table `tool_calls` has it."""

    turn: int
    call_index: int
    """Over the whole trajectory, from 0."""
    tool_call_id: str
    tool_id: str | None
    name: str
    executed_by: str | None
    """None for a call that reached no executor."""
    arguments: Any
    """The parsed object, or the model's own text where that is no JSON object."""
    observation: str
    is_error: bool
    error_code: str | None
    policy_violations: list[str]
    injected_outcome: str | None
    """None: the tool's own answer."""
    state_hash_before: str | None
    state_hash_after: str | None
    state_diff: list[dict[str, Any]]
    actor: Actor = "agent"
    parent_call_id: str | None = None
    """The call of `delegate` whose sub-agent made this one."""
    session: int = 0
    """The conversation of the episode that it was made in."""
    exchanges: list[dict[str, Any]] | None = None
    """What the tool's server asked the user or the model meanwhile, and what they answered; the
    agent does not see it."""

    def message(self) -> dict[str, Any]:
        return {
            "role": "tool",
            "tool_call_id": self.tool_call_id,
            "name": self.name,
            "content": self.observation,
        }


@dataclass(frozen=True, slots=True)
class CallerSnapshot:
    records: tuple[CallRecord, ...]
    faults: Any
    executors: tuple[Any, ...]


class Caller:
    """The tools of one episode: routing, injected faults and the records of every call."""

    def __init__(
        self,
        tools: Sequence[Row],
        executors: Mapping[str, Executor],
        faults: FaultInjector,
        *,
        max_parallel_calls: int,
        observation_chars: int,
        user_tools: Sequence[Row] = (),
    ) -> None:
        """`executors` by tool name; tools may share one. `user_tools` only the user can call."""
        self._tools = {tool["name"]: tool for tool in tools}
        self._user_tools = {tool["name"]: tool for tool in user_tools}
        self._routes = executors
        self._executors = list({id(e): e for e in executors.values()}.values())
        self._faults = faults
        self._max_parallel_calls = max_parallel_calls
        self._observation_chars = observation_chars
        self.records: list[CallRecord] = []

    def openai_tools(self) -> list[dict[str, Any]]:
        return [openai_tool(tool) for tool in self._tools.values()]

    async def run(
        self,
        calls: Sequence[Mapping[str, Any]],
        *,
        turn: int,
        actor: Actor = "agent",
        place: int = 0,
        parent_call_id: str | None = None,
        session: int = 0,
    ) -> list[CallRecord]:
        """Make the calls one after the other, in their order. Nothing is kept yet. `place`: how
        many calls of their message came before them."""
        first = len(self.records)
        made = [
            await self._call(
                call,
                turn=turn,
                index=first + i,
                refused=place + i >= self._max_parallel_calls,
                actor=actor,
            )
            for i, call in enumerate(calls)
        ]
        place_told = {"parent_call_id": parent_call_id, "session": session}
        return [record._replace(**place_told) for record in made]

    def keep(self, records: Sequence[CallRecord]) -> None:
        """Make `records` part of the episode: as they were run, or as a journal has them."""
        self.records += records

    def user_answered(self, turn: int) -> None:
        """Tell the executors: time may pass with a user's turn."""
        for executor in self._executors:
            executor.user_answered(turn)

    def state_hash(self) -> str | None:
        """Of all state that this episode's tools hold; None when none was ever read."""
        hashes = [executor.state_hash() for executor in self._executors]
        return hashes[0] if len(hashes) == 1 else digest(hashes) if any(hashes) else None

    def snapshot(self) -> CallerSnapshot:
        states = tuple(executor.snapshot() for executor in self._executors)
        return CallerSnapshot(tuple(self.records), self._faults.snapshot(), states)

    async def restore(self, snapshot: CallerSnapshot) -> None:
        self.records = list(snapshot.records)
        self._faults.restore(snapshot.faults)
        for executor, state in zip(self._executors, snapshot.executors, strict=True):
            await executor.restore(state)

    async def close(self) -> None:
        for executor in self._executors:
            await executor.close()

    async def _call(
        self, call: Mapping[str, Any], *, turn: int, index: int, refused: bool, actor: Actor
    ) -> CallRecord:
        name, text = call["function"]["name"], call["function"]["arguments"]
        tools = self._tools if actor == "agent" else self._user_tools
        tool, arguments = tools.get(name), parsed_arguments(text)
        record = CallRecord(
            turn=turn,
            call_index=index,
            tool_call_id=call["id"],
            tool_id=tool["tool_id"] if tool else None,
            name=name,
            executed_by=None,
            arguments=text if isinstance(arguments, NotJson) else arguments,
            observation="",
            is_error=True,
            error_code=None,
            policy_violations=[],
            injected_outcome=None,
            state_hash_before=None,
            state_hash_after=None,
            state_diff=[],
            actor=actor,
        )
        if refused:
            limit = (
                f"At most {self._max_parallel_calls} calls in one message; this one was not run."
            )
            return _refusal(record, "too_many_calls", limit)
        if tool is None:
            known = ", ".join(tools) or "none"
            return _refusal(record, "unknown_tool", f"No tool {name!r}. Tools: {known}.")
        if isinstance(arguments, NotJson):
            return _refusal(record, "invalid_arguments", arguments.problem)
        if problem := schema_problem(tool["input_schema"], arguments):
            return _refusal(record, "invalid_arguments", problem)
        return await self._execute(record, arguments, read_only=is_read_only(tool))

    async def _execute(
        self, record: CallRecord, arguments: dict[str, Any], *, read_only: bool
    ) -> CallRecord:
        executor, name = self._routes[record.name], record.name
        record = record._replace(
            executed_by=executor.executed_by,
            policy_violations=executor.policy_violations(name, arguments),
        )
        if record.actor == "user":  # what people do with their own hands meets no outage of ours
            result = await executor.call(name, arguments, read_only=read_only)
            return (_recorded if result.settled else self._filled)(record, result, None)
        draw = self._faults.draw(name, arguments, read_only=read_only)
        if draw.kind in BEFORE_EXECUTION:
            code, text = fault_of(draw, name)
            state = executor.state_hash()
            result = ToolResult(text, True, code, [], state, state)
            return self._filled(record, result, draw.kind)
        result = await executor.call(name, arguments, read_only=read_only)
        if result.settled:
            return _recorded(record, result, None if draw.kind == "success" else draw.kind)
        if draw.kind == "success" or result.is_error:
            return self._filled(record, result, None)
        text = await _seen(draw, executor, record, arguments, result.text)
        if text is None:
            return self._filled(record, result, None)
        if draw.kind == "malformed":
            result = result._replace(is_error=True, error_code="malformed")
        return self._filled(record, result._replace(text=text), draw.kind)

    def _filled(self, record: CallRecord, result: ToolResult, injected: str | None) -> CallRecord:
        text = cut(result.text, self._observation_chars)
        return _recorded(record, result._replace(text=text), injected)


def cut(text: str, limit: int) -> str:
    """The text as an agent is shown it; one that is too long says that it is cut."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: {limit} of {len(text)} characters shown]"


def _recorded(record: CallRecord, result: ToolResult, injected: str | None) -> CallRecord:
    return record._replace(
        observation=result.text,
        is_error=result.is_error,
        error_code=result.error_code,
        injected_outcome=injected,
        state_hash_before=result.hash_before,
        state_hash_after=result.hash_after,
        state_diff=result.diff,
        exchanges=result.exchanges,
    )


async def _seen(
    draw: Draw, executor: Executor, record: CallRecord, arguments: dict[str, Any], text: str
) -> str | None:
    """What the agent reads instead of `text`; None where the outcome has nothing to act on."""
    if draw.kind != "stale":
        return reshaped(draw, text)
    old = await executor.stale(record.name, arguments)
    return None if old == text else old


def _refusal(record: CallRecord, code: str, message: str) -> CallRecord:
    return record._replace(observation=error_text(code, message), error_code=code)


class NotJson(NamedTuple):
    problem: str


def parsed_arguments(text: str) -> dict[str, Any] | NotJson:
    """The arguments object; an empty text is one without arguments, as many models write it."""
    if len(text) > ARGUMENTS_CHARS:
        return NotJson(f"Arguments of {len(text)} characters; at most {ARGUMENTS_CHARS}.")
    try:
        value = clean_json(json.loads(text or "{}"))
    except RecursionError:
        return NotJson("Arguments are nested too deeply.")
    except (ValueError, EvaluationError) as error:
        return NotJson(f"Arguments are not valid JSON: {error}.")
    if not isinstance(value, dict):
        return NotJson(f"Arguments must be a JSON object, got {type(value).__name__}.")
    return value


def schema_problem(schema: Mapping[str, Any], arguments: dict[str, Any]) -> str | None:
    """Where and why `arguments` do not fit, for the agent to read; None when they fit."""
    validator = _validator(canonical_json(schema))
    if validator.is_valid(arguments):
        return None
    return "; ".join(validator.problems(arguments)) + "."


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Validator:
    return Validator(json.loads(schema))


def openai_tool(tool: Row) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["input_schema"],
        },
    }
