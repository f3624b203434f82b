"""Validation of synthetic tools: semantics checked by execution, or refused with the reason.

Fuzzing of each tool alone shows that it runs, succeeds, writes or depends on the state, reaches
every error it declares, answers by its schema and keeps the domain's rules. Then every mutant of it
is made and run on the cases that fuzzing found: one that nothing tells from the tool shows a part
that does nothing. At last all tools that are sound are called in turn, since one may make a state
in which another breaks down.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from records.seeds import rng_of
from tool_specs.domains.domain import Domain, compile_tools
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.programs import Entities, Problems, Program
from tool_specs.execution.state import EntityRow
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.doubts import told_by_text
from tool_specs.validation.fuzzing import EPISODE, Defect, Fuzzer, ToolReport
from tool_specs.validation.reaching import note_made_success, past_lifecycles
from tool_specs.validation.results import idle_results
from tool_specs.validation.states.deciding import deciding
from tool_specs.validation.states.made_states import StateMaker
from tool_specs.validation.survivors import examined, fields_before, reads_asked

MAX_CALLS = 400
"""Of fuzzing, of one tool: one that needs more has an error that hardly ever happens."""

TOGETHER = 40
"""Calls per tool, of all tools of a domain in turn."""

MORE_CALLS = 100
"""Calls from the seed that look for a difference, beside those of made states."""

SEARCH_CALLS = 400
"""Made cases that look for an error which the seed does not reach."""


RESULT_CALLS = 200
"""Made cases that look for another value of a result that has not changed yet."""


class Validation(NamedTuple):
    reason: str | None
    """None for a valid tool; else does_not_compile, internal_error, bad_output, breaks_rule,
    lifecycle_bypassed, never_succeeds, changes_nothing, one_answer, error_not_reached,
    dead_statement, dead_filter, dead_term, dead_order, dead_field, constant_result, stale_result,
    misnamed_result or loose_alternative."""
    details: tuple[str, ...]
    """Sentences for whoever wrote the tool."""
    calls: int
    mutants: int
    example: dict[str, Any] | None
    """{"arguments", "observation", "diff"} of a success."""
    survivors: tuple[str, ...] = ()
    """Bounds, constants and names that no case told from their neighbours."""
    unexamined: tuple[str, ...] = ()
    """Places of which no mutant compiles."""
    made_for: tuple[str, ...] = ()
    """Errors that only a state made for the purpose reaches; `a success` where it takes one."""

    @classmethod
    def of(cls, report: ToolReport) -> "Validation":
        first = report.defects[0].reason if report.defects else None
        details = tuple(defect.words for defect in report.defects)
        return cls(
            first,
            details,
            report.calls,
            report.num_mutants,
            report.example,
            tuple(report.survivors),
            tuple(report.unexamined),
            tuple(report.made),
        )


def validate_tools(
    domain: Domain, specs: Sequence[ToolSpec], *, seed: int = 0
) -> dict[str, Validation]:
    """A validation per spec, by name. The domain's own tools take part where all are called
    together, and nowhere else."""
    compiled, validations = _compiled(specs, Entities.of(domain.file))
    reports = {p.spec.name: validated(domain, p, seed=seed) for p in compiled}
    good = [p for p in compiled if not reports[p.spec.name].defects]
    others = {n: p for n, p in domain.programs.items() if n not in validations | reports}
    around = domain.with_tools([*others.values(), *good])
    for name, defects in clashes(around, [p.spec.name for p in good], seed=seed).items():
        reports[name].defects += defects
    return validations | {name: Validation.of(report) for name, report in reports.items()}


def validated(domain: Domain, program: Program, *, seed: int = 0) -> ToolReport:
    """What one tool shows alone in the domain's environment. No other tool has a part in it, so
    that it is the same whatever tools stand beside it."""
    name = program.spec.name
    rng = rng_of(domain.name, f"validate:{name}", seed)
    fuzzer = Fuzzer(domain.with_tools([program]), rng, [name])
    fuzzer.run(MAX_CALLS)
    conclude(fuzzer, fuzzer.tools[name])
    return fuzzer.tools[name]


def clashes(domain: Domain, targets: Sequence[str], *, seed: int = 0) -> dict[str, list[Defect]]:
    """Defects of some tools in states that all tools of the domain make together, by name."""
    reports = together(domain, targets, seed=seed).tools
    return {name: report.defects for name, report in reports.items() if report.defects}


def together(domain: Domain, targets: Sequence[str], *, seed: int = 0) -> Fuzzer:
    """What calls of all tools in turn have shown of some tools, and of the jobs between them."""
    fuzzer = Fuzzer(domain, rng_of(domain.name, "together", seed), targets)
    for _ in range(0, TOGETHER * len(fuzzer.names) if targets else 0, EPISODE):
        fuzzer.episode(EPISODE)
    return fuzzer


def _compiled(
    specs: Sequence[ToolSpec], entities: Entities
) -> tuple[list[Program], dict[str, Validation]]:
    good: list[Program] = []
    refused: dict[str, Validation] = {}
    for spec in specs:
        problems = Problems()
        program = compile_tools([spec], entities, problems).get(spec.name)
        if program is None or problems.found:
            details = tuple(p.removeprefix(f"tools[{spec.name}].") for p in problems.found)
            refused[spec.name] = Validation("does_not_compile", details, 0, 0, None)
        else:
            good.append(program)
    return good, refused


def conclude(fuzzer: Fuzzer, report: ToolReport) -> None:
    """Add the defects that show only once fuzzing is over; mutants only of a sound tool."""
    program = fuzzer.domain.programs[report.name]
    rng = rng_of(fuzzer.domain.name, f"made_states:{report.name}")
    maker = StateMaker(fuzzer.domain, program, rng)
    if not report.successes:
        note_made_success(fuzzer, report, maker)
    seen = ", ".join(f"{code} x{n}" for code, n in report.errors.most_common()) or "no errors"
    if not report.successes:
        report.defect("never_succeeds", f"never succeeded in {report.calls} calls ({seen})")
    elif not report.read_only and not report.writes:
        report.defect("changes_nothing", f"changed nothing in {report.successes} successful calls")
    for defect in told_by_text(program.spec, fuzzer.domain.file):
        report.defect(*defect)
    if not report.cases:
        return
    for words in past_lifecycles(fuzzer, report, maker):
        report.defect("lifecycle_bypassed", words)
    if report.read_only and report.successes and not _depends_on_state(fuzzer, report, maker):
        report.defect("one_answer", "its answer does not depend on the state")
    for index, code in _unreached(fuzzer, report, maker):
        words = f"semantics[{index}] {code} never happened in {report.calls} calls"
        report.defect("error_not_reached", words)
    if not report.defects:
        for defect in _dead_parts(fuzzer, report, maker):
            report.defect(*defect)


def _depends_on_state(fuzzer: Fuzzer, report: ToolReport, maker: StateMaker) -> bool:
    """Whether the same arguments give another answer in another state: where rows have exchanged
    their values, where every second row is missing, or in a made one."""
    domain = fuzzer.domain
    others = (
        _with_values_moved_on(DomainEnvironment.of(domain)),
        _with_gaps(DomainEnvironment.of(domain)),
    )
    good = [case for case in report.cases if not case.result.is_error]
    if len(report.answers) > 1 and any(
        other.snapshot().call(report.name, case.arguments).observation != case.result.observation
        for case in good
        for other in others
    ):
        return True
    answers = {_shown(case.arguments): case.result.observation for case in good}
    return any(
        answers.get(_shown(case.arguments), case.result.observation) != case.result.observation
        for case in maker.cases(good, SEARCH_CALLS)
        if not case.result.is_error
    )


def _shown(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)


def _with_values_moved_on(environment: DomainEnvironment) -> DomainEnvironment:
    """Each row takes the values of the row after it, keys and references excepted."""
    for entity, spec in environment.domain.entities.items():
        rows = environment.rows(entity)
        kept = {n for n, f in spec.fields.items() if n == spec.key or f.to is not None}
        for row, following in zip(rows, rows[1:] + rows[:1], strict=True):
            moved: EntityRow = {n: row[n] if n in kept else following[n] for n in row}
            environment.state.put(entity, row[spec.key], moved)
    environment.state.commit()
    return environment


def _with_gaps(environment: DomainEnvironment) -> DomainEnvironment:
    for entity, spec in environment.domain.entities.items():
        for row in environment.rows(entity)[::2]:
            environment.state.put(entity, row[spec.key], None)
    environment.state.commit()
    return environment


def _unreached(fuzzer: Fuzzer, report: ToolReport, maker: StateMaker) -> Iterator[tuple[int, str]]:
    """Errors that no made state reaches either. Cases of those that are reached are kept."""
    program = fuzzer.domain.programs[report.name]
    for index, code in program.errors:
        if index in report.reached:
            continue
        about = fields_before(program, index)
        places = [*reads_asked(program, index), index]
        decided = chain.from_iterable(deciding(program, i, maker, report.cases) for i in places)
        for case in chain(decided, maker.cases(report.cases, SEARCH_CALLS, about)):
            if case.result.statement == index and case.result.error_code == code:
                report.reached[index] += 1
                report.made.append(f"semantics[{index}] {code}")
                report.cases.append(case)
                break
        else:
            yield index, code


def _dead_parts(fuzzer: Fuzzer, report: ToolReport, maker: StateMaker) -> Iterator[Defect]:
    program, domain = fuzzer.domain.programs[report.name], fuzzer.domain
    further = fuzzer.further(report.name, MORE_CALLS)
    found = examined(domain, program, report.cases, further, maker)
    report.num_mutants = found.num_mutants
    report.unexamined = [place.words for place in found.unexamined]
    for place in found.survivors:
        words = f"{place.words} it does the same in {len(found.cases)} cases"
        if place.grave:
            yield Defect(place.reason, f"{words}: is it needed?")
        else:
            report.survivors.append(words)
    more = chain(maker.cases(report.cases, RESULT_CALLS), further)
    yield from idle_results(program, domain.file, chain(found.cases, more))
