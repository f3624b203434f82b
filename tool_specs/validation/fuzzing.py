"""Fuzzing of a domain: seeded calls that change its environment, and what each tool showed.

Arguments are drawn from the schemas and the state, some of them spoilt on purpose. Calls whose
outcome is new are kept as cases, with the environment before them, so that they can be made again.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.invariants import broken_in
from tool_specs.language.domain_file import ParamSpec
from tool_specs.language.schemas import Validator
from tool_specs.language.values import EvaluationError
from tool_specs.validation.drawing import draw_arguments
from tool_specs.validation.lifecycle_guard import LifecycleGuard
from tool_specs.validation.states.cases import FuzzCase

EPISODE = 80
"""Calls before fuzzing starts again from the seed."""

_SPOILT = 0.35
"""Share of calls with one argument made unlikely: an unknown id, an extreme, an odd date."""

IDLE = 0.25
"""Share of calls before which time passes, in a domain whose rows change by themselves."""

IDLE_MINUTES = (1, 5, 20, 45, 90, 240, 1440)

_SUCCESSES, _FAILURES = 6, 2
"""Cases kept of a tool's successes with different answers, and of each of its declared errors."""


class Defect(NamedTuple):
    reason: str
    """A snake_case word, which counts group by."""
    words: str
    """What is wrong, for the author to mend."""


@dataclass
class ToolReport:
    """What fuzzing saw of one tool."""

    name: str
    read_only: bool
    calls: int = 0
    successes: int = 0
    writes: int = 0
    """Successful calls that changed the state."""
    errors: Counter[str] = field(default_factory=Counter)
    """By code, built-in codes included."""
    reached: Counter[int] = field(default_factory=Counter)
    """How often a statement failed as declared, by its index."""
    cases: list[FuzzCase] = field(default_factory=list, compare=False)
    defects: list[Defect] = field(default_factory=list)
    answers: set[str] = field(default_factory=set)
    """A few different answers of successful calls: one alone does not depend on the state."""
    num_mutants: int = 0
    made: list[str] = field(default_factory=list)
    """Errors that only a state made for the purpose reaches; `a success` where it takes one."""
    survivors: list[str] = field(default_factory=list)
    unexamined: list[str] = field(default_factory=list)

    @property
    def example(self) -> dict[str, Any] | None:
        """{"arguments", "observation", "diff"} of a success that shows what the tool does."""
        for case in self.cases:
            if not case.result.is_error and (case.result.diff or self.read_only):
                result = case.result
                return {
                    "arguments": case.arguments,
                    "observation": result.observation,
                    "diff": result.diff,
                }
        return None

    def defect(self, reason: str, words: str) -> None:
        """At most three of one reason: they repeat."""
        if sum(found.reason == reason for found in self.defects) < 3:
            self.defects.append(Defect(reason, words))


class Fuzzer:
    """Over all tools of a domain; `targets` are those that have to show everything they declare."""

    def __init__(self, domain: Domain, rng: Random, targets: Collection[str]) -> None:
        self.domain, self.rng, self.calls = domain, rng, 0
        self.names = sorted(domain.programs)
        self.tools = {n: ToolReport(n, domain.programs[n].read_only) for n in targets}
        self.outputs = {n: Validator(domain.programs[n].output_schema) for n in targets}
        self.guard = LifecycleGuard(domain)
        self.job_faults: dict[str, None] = {}
        """What went wrong while time passed, in calls and between them."""

    def run(self, max_calls: int) -> None:
        """Until everything has been seen, or `max_calls` are spent."""
        while self.calls < max_calls and any(map(self.open_ends, self.tools)):
            self.episode(min(EPISODE, max_calls - self.calls))

    def open_ends(self, name: str) -> bool:
        """Whether the tool has something left to show."""
        report, program = self.tools[name], self.domain.programs[name]
        declared = {index for index, _ in program.errors}
        shown = len(report.answers) > 1 if report.read_only else report.writes > 0
        return not shown or not declared <= report.reached.keys()

    def episode(self, num_calls: int) -> None:
        """Half of the calls go to tools with something left to show; the others move the
        environment."""
        environment = DomainEnvironment.of(self.domain)
        wanted = [name for name in self.tools if self.open_ends(name)] or list(self.tools)
        for _ in range(num_calls):
            self.calls += 1
            environment = self.rested(environment)
            name = self.rng.choice(wanted if self.rng.random() < 0.5 else self.names)
            arguments = self.drawn(environment, name)
            if arguments is None:
                continue
            before = environment.snapshot()
            result = environment.call(name, arguments)
            self.job_faults |= {fault.words: None for fault in environment.job_faults}
            if name in self.tools:
                case = FuzzCase(before, arguments, result)
                if not self.note(name, case, environment):
                    # or others would be blamed for what this tool broke
                    environment = DomainEnvironment.of(self.domain)

    def further(self, name: str, num_calls: int) -> Iterator[FuzzCase]:
        """More cases of one tool, made as they are asked for, in environments that other calls
        move."""
        environment = DomainEnvironment.of(self.domain)
        for i in range(num_calls):
            if i % (EPISODE // 4) == 0:
                environment = DomainEnvironment.of(self.domain)
            environment = self.rested(environment)
            other = self.rng.choice(self.names)
            if (moving := self.drawn(environment, other)) is not None:
                environment.call(other, moving)
            if (arguments := self.drawn(environment, name)) is not None:
                before = environment.snapshot()
                yield FuzzCase(before, arguments, environment.call(name, arguments))

    def rested(self, environment: DomainEnvironment) -> DomainEnvironment:
        """The environment, now and then some time later; a new one where a job goes wrong."""
        if not self.domain.jobs or self.rng.random() >= IDLE:
            return environment
        try:
            changes = environment.pass_time(60 * self.rng.choice(IDLE_MINUTES))
        except EvaluationError as error:
            self.job_faults[str(error)] = None
            return DomainEnvironment.of(self.domain)
        self.job_faults |= {fault.words: None for fault in environment.job_faults}
        file, invariants = self.domain.file, self.domain.invariants
        broken = list(broken_in(environment.state, file, invariants)) if changes else []
        names = ", ".join(dict.fromkeys(change["job"] for change in changes))
        self.job_faults |= {
            f"{path.removeprefix('seed.')} {words}, after {names}": None for path, words in broken
        }
        return DomainEnvironment.of(self.domain) if broken else environment

    def drawn(self, environment: DomainEnvironment, name: str) -> dict[str, Any] | None:
        arguments = draw_arguments(environment, name, self.rng)
        if arguments is not None and self.rng.random() < _SPOILT:
            _spoil(self.domain.programs[name].spec.params, arguments, self.rng)
        return arguments

    def note(self, name: str, case: FuzzCase, after: DomainEnvironment) -> bool:
        """False when the call left a state in which a rule does not hold."""
        report, result = self.tools[name], case.result
        report.calls += 1
        if result.error_code is not None:
            self.note_error(report, case)
            return True
        report.successes += 1
        report.writes += bool(result.diff)
        if len(report.answers) < _SUCCESSES:
            answer = json.dumps(result.observation, sort_keys=True)
            if answer not in report.answers or report.successes <= _SUCCESSES:
                report.answers.add(answer)
                report.cases.append(case)
        for problem in self.outputs[name].problems(result.observation):
            report.defect("bad_output", f"answers what its output schema refuses: {problem}")
        if not result.diff:
            return True
        broken = list(broken_in(after.state, self.domain.file, self.domain.invariants))
        for path, words in broken:
            shown = json.dumps(case.arguments)
            place = path.removeprefix("seed.")
            report.defect("breaks_rule", f"{place} {words}, after a call with {shown}")
        for words in self.guard.bypassed(
            case.environment, after.state, name, case.arguments, result
        ):
            report.defect("lifecycle_bypassed", words)
        return not broken

    def note_error(self, report: ToolReport, case: FuzzCase) -> None:
        result, code = case.result, case.result.error_code or ""
        report.errors[code] += 1
        declared = dict(self.domain.programs[report.name].errors)
        if result.statement is not None and declared.get(result.statement) == code:
            report.reached[result.statement] += 1
            if report.reached[result.statement] <= _FAILURES:
                report.cases.append(case)
        if code == "internal":
            message, shown = result.observation["error"]["message"], json.dumps(case.arguments)
            report.defect("internal_error", f"fails with {message!r} on {shown}")


def _spoil(params: dict[str, ParamSpec], arguments: dict[str, Any], rng: Random) -> None:
    """Make one argument unlikely but still valid by the schema, in place."""
    names = [name for name in arguments if params[name].type not in ("boolean", "enum")]
    if names:
        name = rng.choice(names)
        arguments[name] = _odd(params[name], arguments[name], rng)


def _odd(spec: ParamSpec, value: Any, rng: Random) -> Any:
    match spec.type:
        case "integer" | "number":
            return _extreme(spec, rng)
        case "date":
            return rng.choice(("1999-12-31", "2019-06-15", "2099-01-01"))
        case "datetime":
            return rng.choice(("1999-12-31T23:59:59", "2019-06-15T03:00:00", "2099-01-01T12:00:00"))
        case "array" if value and spec.items is not None:
            odd = _odd(spec.items, value[0], rng) if spec.items.type != "enum" else value[0]
            return rng.choice(([odd, *value[1:]], [*value, value[0]]))
        case "object":
            changed = dict(value)
            _spoil(spec.properties or {}, changed, rng)
            return changed
        case "string":
            return rng.choice(("XX-0", "zzzz", "Nobody Atall"))[: int(spec.max or 200)]
    return value


def _extreme(spec: ParamSpec, rng: Random) -> float | int:
    least = spec.min if spec.min is not None else 0
    most = spec.max if spec.max is not None else 1_000_000
    return rng.choice((least, most, int((least + most) / 2)))
