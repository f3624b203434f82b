"""Mutants compiled: a mutant takes the same arguments as its tool, and need not read them all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tool_specs.execution.compiler import Compiler
from tool_specs.execution.durations import compile_duration
from tool_specs.execution.jobs import CompiledJob, JobCompiler
from tool_specs.execution.programs import Entities, Problems, Program
from tool_specs.execution.state import State
from tool_specs.execution.statements import CompiledStep
from tool_specs.language.evaluation import STATE, Env, Typed
from tool_specs.language.jobs import JobSpec
from tool_specs.language.schemas import SchemaError
from tool_specs.language.statements import AnyStatement, ForEach, Read, Statement
from tool_specs.language.types import ANY
from tool_specs.validation.mutation.mutants import Mutant, MutantPlace


def compiled_place(original: Program, place: MutantPlace, entities: Entities) -> Program | None:
    """The first mutant of the place that compiles; None where none does."""
    for mutant in place.mutants:
        if (program := compiled_mutant(original, mutant, entities)) is not None:
            return program
    return None


def compiled_mutant(original: Program, mutant: Mutant, entities: Entities) -> Program | None:
    problems = Problems()
    try:
        program = _MutantCompiler(original, mutant, entities, problems).program()
    except SchemaError:
        return None
    return None if problems.found else program


class _Mutating(Compiler):
    """Statements as a mutant has them."""

    mutant: Mutant
    copy_slot: int

    def step(self, statement: Statement) -> CompiledStep | None:
        step, index = super().step(statement), self.index
        if step is not None and index in self.mutant.detached:
            return self.detached(step)
        if step is not None and index in self.mutant.emptied and isinstance(statement, Read):
            return _finding_nothing(step, self.names, statement.bind)
        return step

    def for_each(self, s: ForEach, body: Sequence[tuple[int, AnyStatement]]) -> CompiledStep:
        index = self.index
        step = super().for_each(s, body)
        return self.detached(step) if index in self.mutant.detached else step

    def detached(self, step: CompiledStep) -> CompiledStep:
        rows = [slot for slots in self.row_slots.values() for slot in slots]
        return _detached(step, self.copy_slot, rows)

    def expression(self, where: str, text: str) -> Typed:
        typed = super().expression(where, text)
        if where == "over" and self.index in self.mutant.emptied:
            return Typed(lambda env: [], typed.type)
        return typed


class _MutantCompiler(_Mutating):
    """Compiles what runs, and leaves out what only those who read about a tool need."""

    def __init__(self, original: Program, mutant: Mutant, entities: Entities, problems: Problems):
        super().__init__(mutant.spec, entities, problems)
        self.original, self.mutant = original, mutant
        self.copy_slot = self.hidden(ANY)

    def program(self) -> Program:
        steps = self.block(list(enumerate(self.spec.semantics)), None)
        answer, _ = self.answer()
        return replace(
            self.original,
            spec=self.spec,
            steps=tuple(steps),
            answer=answer,
            num_slots=self.num_slots,
            errors=tuple(self.errors),
            takes=compile_duration(self.spec, self.entities, self.problems),
        )


class _MutantJobCompiler(_Mutating, JobCompiler):
    def __init__(self, job: JobSpec, mutant: Mutant, entities: Entities, problems: Problems):
        super().__init__(job, entities, problems)
        self.mutant, self.copy_slot = mutant, self.hidden(ANY)


def compiled_job(job: JobSpec, mutant: Mutant, entities: Entities) -> CompiledJob | None:
    """The job with the parts of its statements that the mutant names left out. None where it does
    not compile."""
    problems = Problems()
    compiled = _MutantJobCompiler(job, mutant, entities, problems).job()
    return None if problems.found else compiled


class _Aside(NamedTuple):
    """What the steps of one call that leave no trace work on."""

    state: State
    rows: dict[int, Any]
    """Slots that hold other rows there than outside."""


def _detached(step: CompiledStep, slot: int, rows: Iterable[int]) -> CompiledStep:
    """The step on a copy of the state, which all such steps of a call share and nobody keeps. What
    held rows before holds the same ones afterwards; what the step binds stays bound."""
    row_slots = tuple(rows)

    def run(env: Env) -> None:
        state, aside = env[STATE], env[slot]
        if aside is None:
            aside = env[slot] = _Aside(state.snapshot(), {})
        outside = {s: held for s in row_slots if (held := env[s]) is not None}
        for s, held in outside.items():  # lists are changed in place: those outside are put away
            env[s] = aside.rows.get(s, list(held) if type(held) is list else held)
        env[STATE] = aside.state
        try:
            step(env)
        finally:
            env[STATE] = state
            for s, held in outside.items():
                aside.rows[s], env[s] = env[s], held

    return run


def _finding_nothing(
    step: CompiledStep, names: Mapping[str, tuple[int, Any]], name: str
) -> CompiledStep:
    rows, following = names[name][0], names[f"{name}_next"][0]

    def run(env: Env) -> None:
        step(env)
        env[rows], env[following] = [], None

    return run
