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
        return None if row is None else self.due_of(state, row)

    def due_of(self, state: State, row: EntityRow) -> str | None:
        """When a row is due that need not be in the state; None where it is not."""
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


class JobFault(NamedTuple):
    """A job that could not run: a fault of the domain, and nobody's call."""

    job: str
    words: str
    """On which row, and why."""


Faults = list[JobFault]


def pass_time(
    jobs: Sequence[CompiledJob],
    state: State,
    seconds: int,
    dangling: Dangling,
    faults: Faults,
) -> list[JobChange]:
    """Move the clock on and run what falls due; what that changed, in order, committed. A job that
    cannot run on a row leaves it as it is until time passes again, and is told in `faults`.

    EvaluationError past the year 9999 and for jobs without end; the state is then in the midst of
    it, and the caller goes back to a snapshot.
    """
    try:
        until = later(state.now, seconds) if seconds else state.now
    except OverflowError:
        raise EvaluationError("the clock has come to the end of the year 9999") from None
    changes = run_due(jobs, state, until, dangling, most=MAX_ALL_RUNS, faults=faults)
    state.now = until
    return changes


def run_due(
    jobs: Sequence[CompiledJob],
    state: State,
    until: str,
    dangling: Dangling,
    *,
    most: int,
    faults: Faults | None = None,
) -> list[JobChange]:
    """Run what is due by `until`, leaving the clock at the last of it. Without `faults` a job that
    cannot run is an EvaluationError."""
    by_name = {job.spec.name: job for job in jobs}
    agenda = _Agenda(jobs, state, until, faults)
    ran: set[_Due] = set()
    runs: Counter[tuple[str, StateToken]] = Counter()
    changes: list[JobChange] = []
    while (due := agenda.next()) is not None:
        key = due.row[1]
        what = f"job {due.job} on {by_name[due.job].spec.entity} {show_value(key)}"
        if due in ran:
            agenda.leave(
                due,
                f"{what} is due at {due.at} again after it ran; let it change what its `where` or "
                "`due` reads",
            )
            continue
        ran.add(due)
        runs[due.job, due.row] += 1
        endless = (
            f"{what} at {due.at}: jobs may run {MAX_RUNS} times on a row and {most} times in "
            "all in one step of time; let less time pass at once, or let a job set no row due "
            "at a moment that has come"
        )
        if len(ran) > most:
            raise EvaluationError(endless)
        if runs[due.job, due.row] > MAX_RUNS:
            agenda.leave(due, endless)
            continue
        state.now = max(state.now, due.at)
        try:
            made = _ran(by_name[due.job], state, key, what, dangling)
        except EvaluationError as error:
            state.rollback()
            agenda.leave(due, str(error))
            continue
        agenda.note(made)
        changes += made
    return changes


class _Agenda:
    """What is due in a step of time. Rows of jobs that read nothing else are looked at again only
    where they have changed; the other jobs look at all their rows after every run."""

    def __init__(
        self, jobs: Sequence[CompiledJob], state: State, until: str, faults: Faults | None
    ) -> None:
        self._state, self._until, self._faults = state, until, faults
        self._left: set[tuple[str, StateToken]] = set()
        self._blind: set[str] = set()
        """Jobs whose `where` or `due` cannot be told."""
        self._scanned = [job for job in jobs if not job.by_row]
        self._kept = [job for job in jobs if job.by_row]
        self._due: dict[tuple[str, StateToken], _Due] = {}
        for job in self._kept:
            for due in self._looked(job, job.due_rows, until, []):
                self._due[due.job, due.row] = due
        self._heap = list(self._due.values())
        heapq.heapify(self._heap)

    def next(self) -> "_Due | None":
        while self._heap and self._due.get(self._heap[0][1:]) != self._heap[0]:
            heapq.heappop(self._heap)  # the row has changed since
        found = [
            due
            for job in self._scanned
            for due in self._looked(job, job.due_rows, self._until, [])
            if (due.job, due.row) not in self._left
        ]
        return min([*found, *self._heap[:1]], default=None)

    def note(self, changes: Iterable[RowChange]) -> None:
        """Look again at the rows that a run has changed."""
        for entity, key in dict.fromkeys((c["entity"], c["id"]) for c in changes):
            for job in self._kept:
                if job.spec.entity == entity:
                    at = self._looked(job, job.due_at, key, None)
                    self._put(job, token_of(key), at)

    def leave(self, due: "_Due", words: str) -> None:
        """The job does not run on the row again in this step."""
        self._told(JobFault(due.job, words))
        self._left.add((due.job, due.row))
        self._due.pop((due.job, due.row), None)

    def _put(self, job: CompiledJob, row: StateToken, at: str | None) -> None:
        name = job.spec.name
        if at is None or at > self._until or (name, row) in self._left:
            self._due.pop((name, row), None)
            return
        due = _Due(at, name, row)
        if self._due.get((name, row)) != due:
            self._due[name, row] = due
            heapq.heappush(self._heap, due)

    def _looked(
        self,
        job: CompiledJob,
        look: Callable[[State, str], _Found],
        word: str,
        nothing: _Found,
    ) -> _Found:
        """What a look at rows finds; nothing where the job cannot tell."""
        if job.spec.name in self._blind:
            return nothing
        try:
            return look(self._state, word)
        except EvaluationError as error:
            self._told(JobFault(job.spec.name, f"job {job.spec.name}: {error}"))
            self._blind.add(job.spec.name)
            return nothing

    def _told(self, fault: JobFault) -> None:
        if self._faults is None:
            raise EvaluationError(fault.words)
        self._faults.append(fault)


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
