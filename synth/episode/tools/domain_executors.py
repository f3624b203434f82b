"""Executors of a domain's tools: the interpreter, a model that plays them, and a record of one.

Tools of one domain may be routed to different ones; they share the `SharedState` that holds the
state.
"""

import json
from typing import Any

from records.errors import TransientError
from records.tables.schemas import Row
from synth.episode.tools.cassette import Tape
from synth.episode.tools.simulator import SIMULATION_FAILED, Answers, Question, text_of
from synth.episode.tools.state_patch import PatchError, patched_in_time
from synth.episode.tools.tool_result import ExecutedBy, ToolResult
from synth.rubrics.episode import own_changes
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.execution.jobs import JobChange
from tool_specs.language.jobs import seconds_in
from tool_specs.language.values import EvaluationError

RECENT_CHARS = 1_000
"""Of an observation among the recent calls that a simulator is shown."""

RECENT = 50
"""Calls that are remembered for it."""


class SharedState:
    """The state of a domain in one episode."""

    def __init__(self, environment: DomainEnvironment) -> None:
        self.environment = environment
        self.initial = environment.snapshot()
        self._turn = 0
        self._meanwhile: list[JobChange] = []

    def user_answered(self, turn: int) -> None:
        """Let the user's time pass, once a turn, whoever of those that share the state says it."""
        said = self.environment.domain.file.user_turn
        if said is None or turn <= self._turn:
            return
        self._turn = turn
        try:
            self._meanwhile += self.environment.pass_time(seconds_in(said) or 0)
        except EvaluationError as error:
            raise TransientError(f"while the user answered, {error}") from None

    def with_meanwhile(self, result: ToolResult) -> ToolResult:
        """The result of a call, and of what jobs changed since the last one that succeeded."""
        if result.is_error or not self._meanwhile:
            return result
        meanwhile, self._meanwhile = self._meanwhile, []
        return result._replace(diff=[*meanwhile, *result.diff])

    def snapshot(self) -> Any:
        return self.environment.snapshot(), self._turn, tuple(self._meanwhile)

    def restore(self, snapshot: Any) -> None:
        environment, self._turn, meanwhile = snapshot
        self.environment, self._meanwhile = environment.snapshot(), list(meanwhile)


class _DomainExecutor:
    """What all of them do alike."""

    executed_by: ExecutedBy

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared

    async def stale(self, tool: str, arguments: dict[str, Any]) -> str | None:
        return None

    def policy_violations(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        return policy_violations(self._shared.environment, tool, arguments)

    def user_answered(self, turn: int) -> None:
        self._shared.user_answered(turn)

    def state_hash(self) -> str | None:
        return self._shared.environment.state_hash

    def snapshot(self) -> Any:
        return self._shared.snapshot()

    async def restore(self, snapshot: Any) -> None:
        self._shared.restore(snapshot)

    async def close(self) -> None:
        return None


class StateMachineExecutor(_DomainExecutor):
    """Synthetic tools: the interpreter, in process, exact state."""

    executed_by: ExecutedBy = "state_machine"

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        result = self._shared.environment.call(tool, arguments)
        return self._shared.with_meanwhile(
            ToolResult(
                json.dumps(result.observation, ensure_ascii=False),
                result.is_error,
                result.error_code,
                result.all_changes,
                result.hash_before,
                result.hash_after,
            )
        )

    async def stale(self, tool: str, arguments: dict[str, Any]) -> str | None:
        result = self._shared.initial.snapshot().call(tool, arguments)
        return None if result.is_error else json.dumps(result.observation, ensure_ascii=False)


class SimulatedExecutor(_DomainExecutor):
    """Tools that a model plays. What it answers has been checked before it gets here."""

    executed_by: ExecutedBy = "llm"

    def __init__(self, shared: SharedState, tools: dict[str, Row], answers: Answers) -> None:
        """`tools` by name."""
        super().__init__(shared)
        self._tools, self._answers = tools, answers
        self._recent: list[dict[str, Any]] = []
        self._number = 0

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        environment = self._shared.environment
        question = Question(
            self._tools[tool], arguments, read_only, environment, tuple(self._recent), self._number
        )
        self._number += 1
        before = environment.state_hash
        played = await self._answers.answer(question)
        if played is None:
            text = text_of({"error": {"code": SIMULATION_FAILED, "message": "No usable answer."}})
            return ToolResult(text, True, SIMULATION_FAILED, [], before, before)
        self._shared.environment = played.after
        text = text_of(played.observation)
        seen = {"tool": tool, "arguments": arguments, "observation": text[:RECENT_CHARS]}
        self._recent = [*self._recent, seen | {"is_error": played.is_error}][-RECENT:]
        after = played.after.state_hash
        diff = played.all_changes
        made = ToolResult(text, played.is_error, played.error_code, diff, before, after)
        return self._shared.with_meanwhile(made)

    def snapshot(self) -> Any:
        return super().snapshot(), list(self._recent), self._number

    async def restore(self, snapshot: Any) -> None:
        environment, recent, self._number = snapshot
        self._recent = list(recent)
        await super().restore(environment)


class RecordedSimulation(_DomainExecutor):
    """Tools that a model played, replayed without it: the recorded answer counts, and its changes
    are made again, checked as they were then, so that the hashes are made anew."""

    executed_by: ExecutedBy = "llm"

    def __init__(self, shared: SharedState, tape: Tape) -> None:
        super().__init__(shared)
        self._tape = tape

    async def call(self, tool: str, arguments: dict[str, Any], *, read_only: bool) -> ToolResult:
        row = self._tape.next(tool, arguments)
        environment = self._shared.environment
        before = environment.state_hash
        patch = [
            {name: change[name] for name in ("op", "entity", "id")} | {"set": change["after"] or {}}
            for change in own_changes(row["state_diff"])
        ]
        try:
            diff: list[Any] = []
            if not row["is_error"]:
                diff = patched_in_time(environment, tool, arguments, patch).all_changes
        except PatchError as error:
            raise TransientError(
                f"the recorded changes of call {row['call_index']} do not fit the state: {error}"
            ) from None
        return self._shared.with_meanwhile(
            ToolResult(
                row["observation"],
                row["is_error"],
                row["error_code"],
                diff,
                before,
                environment.state_hash,
                settled=True,
            )
        )
