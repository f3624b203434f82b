"""Jobs: compiled once, and run in the order in which they fall due as time passes.

Time passes in steps (a call's duration, a wait, none at all after a call), and a step runs whatever
falls due in it with the clock at that very moment, so that it makes no difference how a wait is
cut. A job leaves no trace but the rows that it changes: a state is its rows and its clock.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from tool_specs.execution.compiler import Compiler
from tool_specs.execution.programs import Entities, Problems
from tool_specs.execution.state import EntityRow, RowChange, State, StateToken, token_of
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
from tool_specs.language.expressions import parse, walk
from tool_specs.language.jobs import JobSpec, later
from tool_specs.language.paths import expanded
from tool_specs.language.statements import Read
from tool_specs.language.syntax.nodes import Call
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import DATETIME, Type, mismatch
from tool_specs.language.values import EvaluationError, is_datetime, show_value

MAX_RUNS = 1000
"""How often a job may run on one row in one step of time."""

MAX_ALL_RUNS = 100_000
"""Runs of all jobs on all rows in one step of time."""

_Found = TypeVar("_Found")

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
    by_row: bool
    """Whether `where` and `due` read nothing but their own row, neither others nor the clock."""

    def due_rows(self, state: State, until: str) -> "list[_Due]":
        """The rows that are due by then."""
        env: Env = [None] * self.num_slots
        env[:3] = {}, state, MAX_STEPS
        found: list[_Due] = []
        for row in candidates(env, self.read):
            spend(env, 1)
            due = self._due(env, row)
            if due is not None and due <= until:
                found.append(_Due(due, self.spec.name, token_of(row[self.key])))
        return found

    def due_at(self, state: State, key: str) -> str | None:
        """When one row is due; None where it is not, or is gone."""
        row = state.get(self.spec.entity, key)
        if row is None:
            return None
        env: Env = [None] * self.num_slots
        env[:3] = {}, state, MAX_STEPS
        return self._due(env, row)

    def _due(self, env: Env, row: EntityRow) -> str | None:
        env[self.read.candidate] = row
        if self.read.where is not None and not self.read.where(env):
            return None
        due = self.due(env)
        if due is not None and not is_datetime(due):
            raise EvaluationError(f"due must be a date-time, got {show_value(due)}")
        return due

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
    most: int = MAX_ALL_RUNS,
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
    agenda = _Agenda(jobs, state, until)
    ran: set[_Due] = set()
    runs: Counter[tuple[str, StateToken]] = Counter()
    changes: list[JobChange] = []
    while (due := agenda.next()) is not None:
        key = due.row[1]
        what = f"job {due.job} on {by_name[due.job].spec.entity} {show_value(key)}"
        if due in ran:
            raise EvaluationError(
                f"{what} is due at {due.at} again after it ran; let it change what its `where` or "
                "`due` reads"
            )
        ran.add(due)
        runs[due.job, due.row] += 1
        if len(ran) > most or runs[due.job, due.row] > MAX_RUNS:
            raise EvaluationError(
                f"{what} at {due.at}: jobs may run {MAX_RUNS} times on a row and {most} times in "
                "all in one step of time; let less time pass at once, or let a job set no row due "
                "at a moment that has come"
            )
        state.now = max(state.now, due.at)
        made = _ran(by_name[due.job], state, key, what, dangling)
        agenda.note(made)
        changes += made
    return changes


class _Agenda:
    """What is due in a step of time. Rows of jobs that read nothing else are looked at again only
    where they have changed; the other jobs look at all their rows after every run."""

    def __init__(self, jobs: Sequence[CompiledJob], state: State, until: str) -> None:
        self._state, self._until = state, until
        self._scanned = [job for job in jobs if not job.by_row]
        self._kept = [job for job in jobs if job.by_row]
        self._due: dict[tuple[str, StateToken], _Due] = {}
        for job in self._kept:
            for due in _told(job, job.due_rows, state, until):
                self._due[due.job, due.row] = due
        self._heap = list(self._due.values())
        heapq.heapify(self._heap)

    def next(self) -> "_Due | None":
        while self._heap and self._due.get(self._heap[0][1:]) != self._heap[0]:
            heapq.heappop(self._heap)  # the row has changed since
        found = [due for job in self._scanned for due in _first(job, self._state, self._until)]
        return min([*found, *self._heap[:1]], default=None)

    def note(self, changes: Iterable[RowChange]) -> None:
        """Look again at the rows that a run has changed."""
        for entity, key in dict.fromkeys((c["entity"], c["id"]) for c in changes):
            for job in self._kept:
                if job.spec.entity == entity:
                    at = _told(job, job.due_at, self._state, key)
                    self._put(job, token_of(key), at)

    def _put(self, job: CompiledJob, row: StateToken, at: str | None) -> None:
        name = job.spec.name
        if at is None or at > self._until:
            self._due.pop((name, row), None)
            return
        due = _Due(at, name, row)
        if self._due.get((name, row)) != due:
            self._due[name, row] = due
            heapq.heappush(self._heap, due)


def _first(job: CompiledJob, state: State, until: str) -> "list[_Due]":
    return [due] if (due := min(_told(job, job.due_rows, state, until), default=None)) else []


def _told(
    job: CompiledJob, look: Callable[[State, str], _Found], state: State, word: str
) -> _Found:
    """What a look at rows finds; an error names the job."""
    try:
        return look(state, word)
    except EvaluationError as error:
        raise EvaluationError(f"job {job.spec.name}: {error}") from None


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
            *(job, key, page, due.run, slot, tuple(steps), self.num_slots, dict(self.bound)),
            by_row=self._reads_its_row_alone(row),
        )

    def _reads_its_row_alone(self, row: Type) -> bool:
        types = {self._job.entity: row}
        texts = [text for text in (self._job.where, self._job.due) if text is not None]
        try:
            trees = [expanded(parse(t), types.get, self.entities.types).node for t in texts]
        except ExpressionError:  # which is a problem of the file already
            return False
        return not any(
            isinstance(node, Call) and node.function in ("lookup", "now")
            for tree in trees
            for node in walk(tree)
        )

    def problem(self, where: str, message: str) -> None:
        path = f"jobs[{self._job.name}]"
        if self.index >= 0:
            path += f".do[{self.index}]"
        self.problems.add(f"{path}.{where}" if where else path, message)
