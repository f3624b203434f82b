"""Tools that a model plays: it proposes what a call returns and which rows change, and code decides
whether that counts.

Models are known to be bad at keeping state, so nothing they say about it is taken on trust: a patch
is checked against the domain (`synth.episode.tools.state_patch`), an answer against the tool's
output schema. What does not fit is shown to the model with its faults; what still does not fit is a
call that failed for reasons of the environment (`SIMULATION_FAILED`): it ends the episode as
`infra_error`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import Field

from records.config import Config
from records.digest import canonical_json, digest
from records.errors import ItemError
from records.tables.schemas import Row
from synth.episode.tools.simulation_view import entities_of, rows_for
from synth.episode.tools.state_patch import (
    PATCH,
    PatchedInTime,
    PatchError,
    patched_in_time,
)
from synth.llm.client import LLM, Completion
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import render, version_of
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.fields import clean_json
from tool_specs.execution.state import RowChange, State
from tool_specs.language.schemas import Validator
from tool_specs.language.values import EvaluationError

PROMPT = "simulate_call"

ROLE = "simulator"

REPAIRS = 2
"""How often the model is shown what is wrong with its answer to one call."""

SIMULATION_FAILED = "simulation_failed"
"""Error code of a call that no usable answer was found for."""

MAX_OBSERVATION = 20_000
"""Characters of an observation as JSON."""

_CODE = re.compile(r"[a-z][a-z0-9_]{0,63}")

ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"observation": {}, "is_error": {"type": "boolean"}, "patch": PATCH},
    "required": ["observation", "is_error", "patch"],
    "additionalProperties": False,
}
"""Schema of the simulator's answer to one call."""


class SimulateConfig(Config):
    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"cassettes"})

    tools: Literal["without_semantics", "all"] | tuple[str, ...] = "without_semantics"
    """Which tools a model plays: those that no program defines, all tools of domains (to measure
    the model against the interpreter), or the former and those of these names."""

    sources: tuple[str, ...] = ()
    """Imported sources whose tools are played, since nothing here can run them: names of servers as
    `synth tools stats` lists them, or `all`."""

    cassettes: tuple[str, ...] = ()
    """Datasets whose recorded answers stand in for servers that cannot run here."""

    page: int = Field(default=12, ge=0, le=200)
    """Rows of each entity that the model sees whatever the call is about."""

    recent: int = Field(default=6, ge=0, le=50)
    """Earlier calls of the episode that it sees."""

    def plays(self, tool: Row) -> bool:
        """Whether a model plays this tool of a domain."""
        if tool["semantics_json"] is None or self.tools == "all":
            return True
        return tool["name"] in self.tools if isinstance(self.tools, tuple) else False


def simulation_identity(config: SimulateConfig, role: Any) -> list[Any]:
    """What decides the answers of simulated tools, for the ids of what depends on them."""
    return [config.page, config.recent, config.tools, role.identity(), version_of(PROMPT)]


class SimulatedAnswer(NamedTuple):
    """An answer that counts, and the environment that it leaves."""

    observation: Any
    is_error: bool
    error_code: str | None
    diff: list[RowChange]
    after: DomainEnvironment
    repairs: int
    all_changes: list[RowChange]
    """`diff`, and what jobs changed in the time that the call takes."""


class Question(NamedTuple):
    """One call as the simulator is asked about it."""

    tool: Row
    arguments: dict[str, Any]
    read_only: bool
    environment: DomainEnvironment
    """Before the call; not to be changed."""
    recent: Sequence[dict[str, Any]]
    number: int
    """Of the simulated call in its episode, from 0."""


class SimulationAccuracy(NamedTuple):
    """What a simulated answer is worth beside the interpreter's, from the same state."""

    changed_fields: int
    """That the interpreter changes: of a created or deleted row, each of its fields."""
    state_match: bool
    """The states after the call are equal, row by row."""
    observation_match: bool
    """Equal as JSON values; of two errors, their codes."""
    error_match: bool
    """Both succeed, or both fail."""


class Note(NamedTuple):
    """How one answer came about."""

    tool_id: str
    repairs: int
    measured: SimulationAccuracy | None
    """None for a tool that no program defines."""


class Answers(Protocol):
    """Where the answers of simulated tools come from."""

    async def answer(self, question: Question) -> SimulatedAnswer | None:
        """None where no usable answer was found; TransientError where none could be asked for."""
        ...


class ModelAnswers:
    """The simulator model behind one episode or task."""

    def __init__(
        self,
        llm: LLM,
        *,
        item: str,
        config: SimulateConfig = SimulateConfig(),
        step: str = "simulate",
        on_answer: Callable[[Completion], None] | None = None,
    ) -> None:
        self._llm, self._item, self._config, self._step = llm, item, config, step
        self._on_answer = on_answer
        self.notes: list[Note] = []
        """On every answer, in the order of the calls."""

    async def answer(self, question: Question) -> SimulatedAnswer | None:
        asked = -1
        played: SimulatedAnswer | None = None

        def count(completion: Completion) -> None:
            nonlocal asked
            asked += 1
            if self._on_answer is not None:
                self._on_answer(completion)

        def check(value: dict[str, Any]) -> None:
            nonlocal played
            played = checked_answer(question, value, repairs=asked)

        # the call is part of the place: after a restore another call may have the same number
        place = digest(question.tool["tool_id"], question.arguments, length=8)
        try:
            await self._llm.structured(
                ROLE,
                prompt_for(question, self._config),
                item=self._item,
                step=f"{self._step}-{question.number}-{place}",
                name=PROMPT,
                schema=ANSWER,
                repairs=REPAIRS,
                on_answer=count,
                check=check,
            )
        except ItemError:
            played = None
        self.notes.append(Note(question.tool["tool_id"], asked, measured(question, played)))
        return played


def prompt_for(question: Question, config: SimulateConfig) -> list[dict[str, Any]]:
    """The messages that ask about one call."""
    domain, state, tool = question.environment.domain, _state_met(question), question.tool
    prompt = render(
        PROMPT,
        world={"title": domain.title, "description": domain.description, "now": state.now},
        entities=entities_of(domain, state),
        rows=rows_for(domain, state, question.arguments, page=config.page),
        recent=list(question.recent[-config.recent :] if config.recent else ()),
        tool={
            "name": tool["name"],
            "description": tool["description"],
            "input_schema": tool["input_schema"],
            "output_schema": tool["output_schema"],
            "read_only": question.read_only,
        },
        arguments=question.arguments,
    )
    return prompt.messages


def _state_met(question: Question) -> State:
    """The state in which the call runs: after the wait, where it is one."""
    environment = question.environment
    waited_s = environment.durations(question.tool["name"], question.arguments).before_s
    if not waited_s:
        return environment.state
    environment = environment.snapshot()
    with suppress(EvaluationError):  # a job that fails is told when the answer is checked
        environment.pass_time(waited_s)
    return environment.state


def checked_answer(
    question: Question, value: Mapping[str, Any], *, repairs: int = 0
) -> SimulatedAnswer:
    """The answer with its patch applied to an environment of its own. InvalidOutputError names
    every fault: what is wrong with the patch, and how the observation misses its schema."""
    observation, is_error, patch = value["observation"], value["is_error"], value["patch"]
    faults: list[str] = []
    try:
        observation = clean_json(observation)
    except EvaluationError as error:
        raise InvalidOutputError(f"observation is {error}") from None
    if len(canonical_json(observation)) > MAX_OBSERVATION:
        faults.append(f"observation is longer than {MAX_OBSERVATION} characters")
    if patch and question.read_only:
        faults.append("the tool is read_only: patch must be empty")
    if patch and is_error:
        faults.append("a call that fails changes nothing: patch must be empty")
    code = error_code_of(observation) if is_error else None
    if is_error and code is None:
        faults.append('observation of an error must be {"error": {"code": ..., "message": ...}}')
    if not is_error:
        faults += _mismatches(question.tool["output_schema"], observation)
    after, made = question.environment.snapshot(), PatchedInTime([], [], [])
    if not is_error and not faults:
        try:
            made = patched_in_time(after, question.tool["name"], question.arguments, patch)
        except PatchError as error:
            faults += error.problems
    if faults:
        raise InvalidOutputError("; ".join(faults[:10]))
    return SimulatedAnswer(observation, is_error, code, made.own, after, repairs, made.all_changes)


def error_code_of(observation: Any) -> str | None:
    error = observation.get("error") if isinstance(observation, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    is_code = isinstance(code, str) and _CODE.fullmatch(code) and code != SIMULATION_FAILED
    return code if is_code and isinstance(error, dict) and error.get("message") else None


def _mismatches(schema: Mapping[str, Any] | None, observation: Any) -> list[str]:
    if schema is None:
        return []
    found = _validator(canonical_json(schema)).problems(observation)
    return [f"observation: {problem.removeprefix('arguments: ')}" for problem in found]


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Validator:
    return Validator(json.loads(schema))


def measured(question: Question, played: SimulatedAnswer | None) -> SimulationAccuracy | None:
    """None for a tool that no program defines."""
    domain: Domain = question.environment.domain
    if question.tool["name"] not in domain.programs:
        return None
    true = question.environment.snapshot()
    result = true.call(question.tool["name"], question.arguments)
    count = sum(max(len(c["before"] or ()), len(c["after"] or ())) for c in result.diff)
    if played is None:
        return SimulationAccuracy(count, False, False, False)
    if result.is_error and played.is_error:
        same = result.error_code == played.error_code
    else:
        true_one = clean_json(result.observation)  # numbers in the same spelling
        same = canonical_json(true_one) == canonical_json(played.observation)
    return SimulationAccuracy(
        changed_fields=count,
        state_match=true.state_hash == played.after.state_hash,
        observation_match=same,
        error_match=result.is_error == played.is_error,
    )


def text_of(observation: Any) -> str:
    """As the agent reads it."""
    if isinstance(observation, str):
        return observation
    return json.dumps(observation, ensure_ascii=False)
