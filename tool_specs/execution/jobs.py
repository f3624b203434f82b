"""Jobs: compiled once, and run in the order in which they fall due as time passes.

Time passes in steps (a call's duration, a wait, none at all after a call), and a step runs whatever
falls due in it with the clock at that very moment, so that it makes no difference how a wait is
cut. A job leaves no trace but the rows that it changes: a state is its rows and its clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tool_specs.execution.compiler import Compiler
from tool_specs.execution.programs import Entities, Problems
from tool_specs.execution.state import State, StateToken, token_of
from tool_specs.execution.statements import (
    MAX_STEPS,
    CompiledStep,
    PageRead,
    ToolError,
    candidates,
    spend,
)
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.evaluation import Env, Evaluator
from tool_specs.language.jobs import JobSpec, later
from tool_specs.language.statements import Read
from tool_specs.language.types import DATETIME, mismatch
from tool_specs.language.values import EvaluationError, is_datetime, show_value

MAX_RUNS = 1000
"""Jobs that may fall due in one step of time."""

JobChange = dict[str, Any]
"""A `RowChange` that a job made, with `job`, its name, and `at`, the moment."""

Dangling = Callable[[State], str | None]
"""Words for a row that refers to a deleted one."""


@dataclass(frozen=True, slots=True)
class CompiledJob:
    spec: JobSpec
    key: str
    """The key field of its entity."""
    read: PageRead
    """The rows that it concerns."""
    due: Evaluator
    row: int
    """Slot of the row that it runs on."""
    steps: tuple[CompiledStep, ...]
    num_slots: int
    rows: Mapping[str, str]
    """Name in its statements -> entity of the row, or the rows, that it stands for."""

    def due_rows(self, state: State, until: str) -> "list[_Due]":
        """The rows that are due by then."""
        env: Env = [None] * self.num_slots
        env[:3] = {}, state, MAX_STEPS
        found: list[_Due] = []
        for row in candidates(env, self.read):
            spend(env, 1)
            env[self.read.candidate] = row
            if self.read.where is not None and not self.read.where(env):
                continue
            due = self.due(env)
            if due is None:
                continue
            if not is_datetime(due):
                raise EvaluationError(f"due must be a date-time, got {show_value(due)}")
            if due <= until:
                found.append(_Due(due, self.spec.name, token_of(row[self.key])))
        return found

    def run(self, state: State, key: str) -> None:
        env: Env = [None] * self.num_slots
        env[:3] = {}, state, MAX_STEPS
        env[self.row] = state.get(self.spec.entity, key)
        for step in self.steps:
            step(env)


class _Due(NamedTuple):
    """In the order in which jobs run."""

    at: str
    job: str
    row: StateToken


def pass_time(
    jobs: Sequence[CompiledJob],
    state: State,
    seconds: int,
    dangling: Dangling,
    *,
    most: int = MAX_RUNS,
) -> list[JobChange]:
    """Move the clock on and run what falls due; what that changed, in order, committed.

    EvaluationError for a job that cannot run and for jobs without end; the state is then in the
    midst of it, and the caller goes back to a snapshot.
    """
    try:
        until = later(state.now, seconds) if seconds else state.now
    except OverflowError:
        raise EvaluationError("the clock has come to the end of the year 9999") from None
    changes = run_due(jobs, state, until, dangling, most=most)
    state.now = until
    return changes


def run_due(
    jobs: Sequence[CompiledJob], state: State, until: str, dangling: Dangling, *, most: int
) -> list[JobChange]:
    """Run what is due by `until`, leaving the clock at the last of it."""
    by_name = {job.spec.name: job for job in jobs}
    ran: set[_Due] = set()
    changes: list[JobChange] = []
    while (due := _next(jobs, state, until)) is not None:
        key = due.row[1]
        what = f"job {due.job} on {by_name[due.job].spec.entity} {show_value(key)}"
        if due in ran:
            raise EvaluationError(
                f"{what} is due at {due.at} again after it ran; let it change what its `where` or "
                "`due` reads"
            )
        if len(ran) == most:
            raise EvaluationError(
                f"{what} at {due.at}: more than {most} jobs fall due in one step of time; let less "
                "time pass at once, or let a job set no row due at a moment that has come"
            )
        ran.add(due)
        state.now = max(state.now, due.at)
        changes += _ran(by_name[due.job], state, key, what, dangling)
    return changes


def _next(jobs: Sequence[CompiledJob], state: State, until: str) -> _Due | None:
    first: _Due | None = None
    for job in jobs:
        try:
            found = min(job.due_rows(state, until), default=None)
        except EvaluationError as error:
            raise EvaluationError(f"job {job.spec.name}: {error}") from None
        if found is not None and (first is None or found < first):
            first = found
    return first


def _ran(
    job: CompiledJob, state: State, key: str, what: str, dangling: Dangling
) -> list[JobChange]:
    try:
        job.run(state, key)
    except (ToolError, EvaluationError) as error:
        raise EvaluationError(f"{what}: {error}") from None
    if words := dangling(state):
        raise EvaluationError(f"{what}: {words}")
    return [change | {"job": job.spec.name, "at": state.now} for change in state.commit()]


def compile_jobs(
    specs: Sequence[JobSpec], entities: Entities, problems: Problems
) -> tuple[CompiledJob, ...]:
    """A job with problems may be missing."""
    found: list[CompiledJob] = []
    for spec in specs:
        if spec.entity not in entities.types:
            known = ", ".join(entities.types)
            path = f"jobs[{spec.name}].entity"
            problems.add(path, f"unknown entity {spec.entity!r}; known: {known}")
        else:
            found.append(JobCompiler(spec, entities, problems).job())
    return tuple(found)


class JobCompiler(Compiler):
    """Statements without arguments and without an answer, over a row that is bound already."""

    def __init__(self, job: JobSpec, entities: Entities, problems: Problems) -> None:
        body = ToolSpec(name=job.name, description=job.text, semantics=job.do)
        super().__init__(body, entities, problems)
        self._job = job
        self.names = {}

    def job(self) -> CompiledJob:
        job, row = self._job, self.entities.types[self._job.entity]
        self.index = -1
        read = Read.model_validate(
            {"op": "read", "entity": job.entity, "where": job.where, "as": job.entity}
        )
        candidate, where, plan = self.filter(read)
        self.names = {job.entity: (candidate, row)}
        due = self.expression("due", job.due)
        if due.type.kind != "null" and (reason := mismatch(due.type, DATETIME)):
            self.problem("due", f"{job.due!r}: {reason}; add_minutes(day, 0) is a day's start")
        self.names = {}
        slot = self.bind(job.entity, row)
        self.bound[job.entity] = job.entity
        steps = self.block(list(enumerate(job.do)), None)
        self.unused_lets()
        page = PageRead(job.entity, candidate, where, plan, (), None, None, candidate, candidate)
        key = self.key_of(job.entity)
        return CompiledJob(
            job, key, page, due.run, slot, tuple(steps), self.num_slots, dict(self.bound)
        )

    def problem(self, where: str, message: str) -> None:
        path = f"jobs[{self._job.name}]"
        if self.index >= 0:
            path += f".do[{self.index}]"
        self.problems.add(f"{path}.{where}" if where else path, message)
