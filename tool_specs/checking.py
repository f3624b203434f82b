"""Proves a domain by running it: every tool works, every declared error happens, writes write.

A seeded walk: calls with arguments drawn from the schemas and the state, some of them spoilt on
purpose, against a world that the calls themselves change. What static checks cannot see (a
precondition that never fails, a rule that nothing can breach, an expression that meets a null)
shows here.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from records.seeds import rng_of
from tool_specs.domain import Domain
from tool_specs.domain_file import ParamSpec
from tool_specs.drawing import draw_arguments
from tool_specs.interpreter import CallResult, World, breaches
from tool_specs.schemas import Validator

MAX_CALLS = 20_000
"""Calls of one proof. A domain that needs more has an error that hardly ever happens."""

_EPISODE = 80
"""Calls before the walk starts again from the seed."""

_SPOILT = 0.35
"""Share of calls with one argument made unlikely: an unknown id, an extreme, an odd date."""


@dataclass
class ToolReport:
    """What the walk saw of one tool."""

    name: str
    read_only: bool
    calls: int = 0
    successes: int = 0
    writes: int = 0
    """Successful calls that changed the state."""
    errors: Counter[str] = field(default_factory=Counter)
    """By code, built-in codes included."""
    reached: set[int] = field(default_factory=set)
    """Indexes of the statements that failed as declared."""
    unreached: list[str] = field(default_factory=list)
    """Declared errors that never happened, as `semantics[2] not_open`."""
    problems: list[str] = field(default_factory=list)
    answers: set[str] = field(default_factory=set)
    """A few different answers of successful calls: one alone does not depend on the state."""
    example: dict[str, Any] | None = None
    """{"arguments", "observation", "diff"} of the first success."""


@dataclass
class DomainReport:
    domain: str
    calls: int
    tools: dict[str, ToolReport]
    rules: dict[str, bool]
    """Policy rules that code checks: whether a call that would have succeeded breached them."""

    @property
    def problems(self) -> list[str]:
        """What a person must fix, empty for a proved domain."""
        found = [f"tools[{t.name}]: {p}" for t in self.tools.values() for p in t.problems]
        found += [
            f"policy[{rule}].forbids: no successful call breached it in {self.calls} calls"
            for rule, breached in self.rules.items()
            if not breached
        ]
        return found


def check_domain(domain: Domain, *, seed: int = 0, max_calls: int = MAX_CALLS) -> DomainReport:
    """Walk until everything has been seen, or `max_calls` are spent. Deterministic by seed."""
    walk = _Walk(domain, rng_of(domain.name, "check_domain", seed))
    while walk.calls < max_calls and not walk.complete():
        walk.episode(min(_EPISODE, max_calls - walk.calls))
    return walk.report()


class _Walk:
    def __init__(self, domain: Domain, rng: Random) -> None:
        self.domain, self.rng, self.calls = domain, rng, 0
        self.tools = {n: ToolReport(n, p.read_only) for n, p in domain.programs.items()}
        self.outputs = {n: Validator(p.output_schema) for n, p in domain.programs.items()}
        self.rules = {r.spec.id: False for rules in domain.rules.values() for r in rules}

    def open_ends(self, name: str) -> bool:
        """Whether the tool has something left to show."""
        report, program = self.tools[name], self.domain.programs[name]
        declared = {index for index, _ in program.errors}
        unbroken = any(not self.rules[r.spec.id] for r in self.domain.rules.get(name, ()))
        shown = len(report.answers) > 1 if report.read_only else report.writes > 0
        return not shown or declared > report.reached or unbroken

    def complete(self) -> bool:
        return not any(self.open_ends(name) for name in self.tools)

    def episode(self, num_calls: int) -> None:
        """Half of the calls go to tools with something left to show; the others move the world."""
        world = World.of(self.domain)
        names = list(self.tools)
        wanted = [name for name in names if self.open_ends(name)] or names
        for _ in range(num_calls):
            self.calls += 1
            name = self.rng.choice(wanted if self.rng.random() < 0.5 else names)
            arguments = draw_arguments(world, name, self.rng)
            if arguments is None:
                continue
            if self.rng.random() < _SPOILT:
                _spoil(self.domain.programs[name].spec.params, arguments, self.rng)
            breached = breaches(world, name, arguments)
            result = world.call(name, arguments)
            self.note(name, arguments, result)
            if not result.is_error:
                self.rules.update(dict.fromkeys(breached, True))

    def note(self, name: str, arguments: dict[str, Any], result: CallResult) -> None:
        report = self.tools[name]
        report.calls += 1
        if result.error_code is not None:
            report.errors[result.error_code] += 1
            declared = dict(self.domain.programs[name].errors)
            if result.statement is not None and declared.get(result.statement) == result.error_code:
                report.reached.add(result.statement)
            if result.error_code == "internal":
                message = result.observation["error"]["message"]
                self.problem(report, f"fails with {message!r} on {json.dumps(arguments)}")
            return
        report.successes += 1
        report.writes += bool(result.diff)
        if len(report.answers) < 2:
            report.answers.add(json.dumps(result.observation, sort_keys=True))
        if report.example is None and (result.diff or report.read_only):
            report.example = {
                "arguments": arguments,
                "observation": result.observation,
                "diff": result.diff,
            }
        for problem in self.outputs[name].problems(result.observation):
            self.problem(report, f"answers what its output schema refuses: {problem}")

    def problem(self, report: ToolReport, text: str) -> None:
        if len(report.problems) < 3:
            report.problems.append(text)

    def report(self) -> DomainReport:
        for name, report in self.tools.items():
            self.conclude(report)
            missed = [e for e in self.domain.programs[name].errors if e[0] not in report.reached]
            report.unreached = [f"semantics[{index}] {code}" for index, code in missed]
            report.problems += [
                f"{error} never happened in {report.calls} calls" for error in report.unreached
            ]
        return DomainReport(self.domain.name, self.calls, self.tools, self.rules)

    def conclude(self, report: ToolReport) -> None:
        seen = ", ".join(f"{code} x{n}" for code, n in report.errors.most_common()) or "no errors"
        if not report.successes:
            report.problems.append(f"never succeeded in {report.calls} calls ({seen})")
        elif not report.read_only and not report.writes:
            report.problems.append(f"changed nothing in {report.successes} successful calls")
        elif report.read_only and len(report.answers) < 2:
            report.problems.append(f"gave one and the same answer in {report.successes} calls")


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
