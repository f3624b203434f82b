"""The environment of a domain: its state in one episode, and calls of its tools.

A call either succeeds, or changes nothing and says why. No input makes it raise.

Where a domain has time, a call runs and then takes as long as its tool declares; a wait lasts and
runs then, so that its answer is of the end. What jobs change meanwhile is told apart from
what the call changes. A call that fails has taken no time.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from records.errors import ConfigError, ItemError
from tool_specs.domains.domain import Domain
from tool_specs.domains.loading import refusal
from tool_specs.domains.seed_rows import check_refs, checked_rows
from tool_specs.execution.fields import clean_json
from tool_specs.execution.jobs import Faults, JobChange, JobFault, pass_time
from tool_specs.execution.programs import Problems, Program
from tool_specs.execution.state import EntityRow, RowChange, State
from tool_specs.execution.statements import MAX_STEPS, ToolError, check_listed
from tool_specs.growth.grown_seed import GROWN, grown_seed_of
from tool_specs.language.domain_file import ParamSpec
from tool_specs.language.evaluation import Env
from tool_specs.language.types import EXAMPLES
from tool_specs.language.values import (
    EvaluationError,
    OutOfRangeError,
    is_date,
    is_datetime,
    show_value,
)

SeedPatch = Mapping[str, Mapping[str, Any]]
"""{entity: {key: whole row, or null to delete}} on a domain's seed, or on the grown one that it
names under `GROWN`."""


class CallResult(NamedTuple):
    observation: Any
    """A JSON value; `{"error": {"code", "message"}}` when `is_error`."""
    is_error: bool
    error_code: str | None
    diff: list[RowChange]
    hash_before: str
    hash_after: str
    statement: int | None = None
    """Index of the statement that failed, where one did."""
    jobs_before: tuple[JobChange, ...] = ()
    """What jobs changed during a wait."""
    jobs_after: tuple[JobChange, ...] = ()
    """What jobs changed while the call took its time, or at once because of it."""

    @property
    def all_changes(self) -> list[RowChange]:
        """The call's and those of jobs, in their order; the latter have `job` and `at`."""
        return [*self.jobs_before, *self.diff, *self.jobs_after]


class Durations(NamedTuple):
    """Seconds that pass before a call runs, a wait's, and those that it takes after."""

    before_s: int
    after_s: int


class DomainEnvironment:
    """One domain in one episode. Calls change it in place; snapshots are independent of it."""

    __slots__ = ("domain", "job_faults", "state")

    def __init__(self, domain: Domain, state: State) -> None:
        self.domain = domain
        self.state = state
        self.job_faults: Counter[JobFault] = Counter()
        """How often a job could not run: faults of the domain, which fail no call."""

    @classmethod
    def of(cls, domain: Domain, patch: SeedPatch | None = None) -> "DomainEnvironment":
        """The seed, grown where the patch says so, and patched. Raises ConfigError for a patch that
        does not fit the entities, for rows on which a job is due from the start, and for a seed
        that does not grow as it did."""
        environment = cls(domain, domain.start(grown_seed_of(patch)).snapshot())
        changes = {name: rows for name, rows in (patch or {}).items() if name != GROWN}
        if changes:
            _apply(environment, changes)
        if patch and (overdue := list(domain.overdue(environment.state))):
            raise refusal(domain.name, [f"initial_state: {words}" for words in overdue])
        return environment

    def snapshot(self) -> "DomainEnvironment":
        """An environment of its own from here, at the cost of what has changed."""
        copy = DomainEnvironment(self.domain, self.state.snapshot())
        copy.job_faults = Counter(self.job_faults)
        return copy

    @property
    def state_hash(self) -> str:
        """32 hex digits over all rows; equal for equal rows, whatever led to them."""
        return self.state.hash

    def rows(self, entity: str) -> list[EntityRow]:
        """All rows in reading order, to be looked at and not changed."""
        return list(self.state.tables[entity].rows())

    def get(self, entity: str, key: str) -> EntityRow | None:
        return self.state.get(entity, key)

    def call(self, tool_name: str, arguments: Any) -> CallResult:
        """Validate, run, and commit or undo. Never raises for any arguments or tool name."""
        before = self.state.hash
        try:
            program, args = self._validated(tool_name, arguments)
            if self.domain.has_time:
                return self._timed(program, args)
            observation = _run(program, args, self.state)
            if words := self.domain.dangling(self.state):
                raise EvaluationError(words)
        except (ToolError, EvaluationError) as error:
            self.state.rollback()
            return _failed(error, before)
        diff = self.state.commit()
        after = self.state.hash if diff else before
        return CallResult(observation, False, None, diff, before, after)

    def look(self, tool_name: str, arguments: Any) -> CallResult:
        """The call of a tool that changes nothing, from here and leaving no trace, the time that
        it takes included."""
        return (self.snapshot() if self.domain.has_time else self).call(tool_name, arguments)

    def pass_time(self, seconds: int) -> list[JobChange]:
        """Let time pass that no call takes: what jobs changed. A job that cannot run leaves its row
        as it is, and is counted in `job_faults`. EvaluationError, with everything as it was, past
        the year 9999 and for jobs without end."""
        before = self.state.snapshot()
        faults: Faults = []
        try:
            changes = pass_time(self.domain.jobs, self.state, seconds, self.domain.dangling, faults)
        except EvaluationError:
            self.state = before
            raise
        self.job_faults.update(faults)
        return changes

    def durations(self, tool_name: str, arguments: Any) -> Durations:
        """Of the call, which is not made: none for a tool that nothing here defines, or for
        arguments that it refuses."""
        try:
            return self._durations(*self._validated(tool_name, arguments))
        except (ToolError, EvaluationError):
            return Durations(0, 0)

    def _durations(self, program: Program, args: dict[str, Any]) -> Durations:
        seconds = 0 if program.takes is None else program.takes([args, self.state, MAX_STEPS])
        return Durations(0, seconds) if program.spec.waits is None else Durations(seconds, 0)

    def _met(self, program: Program, args: dict[str, Any]) -> "DomainEnvironment":
        """What the call's statements meet: the environment, or a snapshot of it after the wait."""
        waited_s, _ = self._durations(program, args)
        if not waited_s:
            return self
        met = self.snapshot()
        met.pass_time(waited_s)
        return met

    def _timed(self, program: Program, args: dict[str, Any]) -> CallResult:
        undo = self.state.snapshot()
        try:
            before_s, after_s = self._durations(program, args)
            earlier = self.pass_time(before_s)
            observation = _run(program, args, self.state)
            if words := self.domain.dangling(self.state):
                raise EvaluationError(words)
            diff = self.state.commit()
            later = self.pass_time(after_s)
        except (ToolError, EvaluationError) as error:
            self.state = undo
            return _failed(error, undo.hash)
        return CallResult(
            observation,
            False,
            None,
            diff,
            undo.hash,
            self.state.hash,
            jobs_before=tuple(earlier),
            jobs_after=tuple(later),
        )

    def _validated(self, tool_name: str, arguments: Any) -> tuple[Program, dict[str, Any]]:
        program = self.domain.programs.get(tool_name) if isinstance(tool_name, str) else None
        if program is None:
            known = ", ".join(self.domain.programs)
            raise _invalid(f"There is no tool {show_value(tool_name)}. Tools: {known}.")
        try:
            args = clean_json(arguments)
        except EvaluationError as error:
            raise _invalid(f"Arguments: {error}.") from None
        if not program.validator.is_valid(args):
            raise _invalid("; ".join(program.validator.problems(args)) + ".")
        return program, _filled(program.spec.params, args)


def _invalid(message: str) -> ToolError:
    return ToolError("invalid_arguments", message)


def _failed(error: ToolError | EvaluationError, state_hash: str) -> CallResult:
    match error:
        case ToolError():
            code = error.code
        case OutOfRangeError():
            code = "invalid_arguments"
        case _:
            code = "internal"
    statement = error.statement if isinstance(error, ToolError) else None
    observation = {"error": {"code": code, "message": str(error)}}
    return CallResult(observation, True, code, [], state_hash, state_hash, statement)


def _run(program: Program, args: dict[str, Any], state: State) -> Any:
    env: Env = [None] * program.num_slots
    env[:3] = args, state, MAX_STEPS
    for step in program.steps:
        step(env)
    answer = program.answer(env)
    if program.whole:
        check_listed(answer)
    return answer


def _filled(
    params: Mapping[str, ParamSpec], args: dict[str, Any], path: str = ""
) -> dict[str, Any]:
    """Every parameter present: as given, its default, or null. Dates must be days that exist."""
    return {
        name: _value(spec, args[name], f"{path}{name}") if name in args else spec.default
        for name, spec in params.items()
    }


def _value(spec: ParamSpec, value: Any, path: str) -> Any:
    if spec.type == "object":
        return _filled(spec.properties or {}, value, f"{path}.")
    if spec.type == "array" and spec.items is not None:
        return [_value(spec.items, item, f"{path}[{i}]") for i, item in enumerate(value)]
    if spec.type in EXAMPLES:
        fits = is_date if spec.type == "date" else is_datetime
        if not fits(value):
            raise _invalid(
                f"{path}: {show_value(value)} is not a {spec.type} such as {EXAMPLES[spec.type]}."
            )
    return value


def _apply(environment: DomainEnvironment, patch: SeedPatch) -> None:
    problems, state, domain = Problems(), environment.state, environment.domain
    for entity, rows in patch.items():
        path = f"initial_state.{entity}"
        if entity not in domain.entities:
            raise ConfigError(f"{path}: unknown entity; known: {', '.join(domain.entities)}")
        given = ((f"{path}[{key}]", row) for key, row in rows.items() if row is not None)
        fitting = checked_rows(given, domain.entities[entity], problems)
        for key, row in rows.items():
            if row is not None and key not in fitting:
                problems.add(f"{path}[{key}]", f"{domain.entities[entity].key} must be the key")
            state.put(entity, key, fitting.get(key))
    for entity, rows in patch.items():
        kept = [row for key in rows if (row := state.get(entity, key)) is not None]
        check_refs(state, entity, domain.entities[entity], "initial_state", kept, problems)
    if words := domain.dangling(state):
        problems.add("initial_state", words)
    if problems.found:
        raise refusal(domain.name, problems.found)
    state.commit()


def policy_violations(environment: DomainEnvironment, tool_name: str, arguments: Any) -> list[str]:
    """Ids of the policy rules that this call would violate at the moment when its statements run:
    after the wait, where it is one. The call is not made.

    A call that has no effect, since validation or the tool itself refuses it, violates nothing
    where a condition cannot be evaluated on it. On any other call that is a fault of the domain:
    ItemError `policy_fault` names the rule.
    """
    rules = environment.domain.rules.get(tool_name, ()) if isinstance(tool_name, str) else ()
    if not rules:
        return []
    try:
        program, args = environment._validated(tool_name, arguments)
        met = environment._met(program, args)
    except (ToolError, EvaluationError):
        return []
    found: list[str] = []
    for rule in rules:
        try:
            if rule.violated([args, met.state, MAX_STEPS]):
                found.append(rule.spec.id)
        except EvaluationError as error:
            if not environment.snapshot().call(tool_name, arguments).is_error:
                words = f"{environment.domain.name}: policy[{rule.spec.id}].forbids: {error}"
                raise ItemError("policy_fault", words) from None
    return found
