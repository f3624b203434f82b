"""What comes about by itself while an agent waits, and the tools that a domain has to wait with."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import NamedTuple

from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Step
from synth.tasks.goals.lookup import RowKey
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.language.values import EvaluationError

MAX_REFERRING = 8
"""Rows that refer to a changed one by one field and are near to it; of more, none is near: they
share no more than a customer or a building."""

NOT_DECLARED = frozenset({"internal", "invalid_arguments"})
"""Codes of errors that no tool declares."""

_MINUTE_S = 60


class DueMoment(NamedTuple):
    """A job runs, on one row or several."""

    minutes: int
    """Whole minutes after which it has run."""
    job: str
    rows: frozenset[RowKey]
    """That it changed."""


class WaitingTool(NamedTuple):
    """A tool whose calls wait for as many minutes as a parameter of theirs says."""

    tool: DomainTool
    minutes: str
    """The parameter."""
    least: int
    most: int

    def moments(self, environment: DomainEnvironment) -> list[DueMoment]:
        """When one call could have waited for what, in order. A minute in which two jobs run is
        none: nobody could say which of them was waited for."""
        begin = environment.snapshot()
        start = datetime.fromisoformat(begin.state.now)
        try:
            changes = begin.pass_time(self.most * _MINUTE_S)
        except EvaluationError:
            return []
        found: dict[int, dict[str, set[RowKey]]] = {}
        for change in changes:
            passed = datetime.fromisoformat(change["at"]) - start
            jobs = found.setdefault(-int(-passed.total_seconds() // _MINUTE_S), {})
            jobs.setdefault(change["job"], set()).add((change["entity"], change["id"]))
        return [
            DueMoment(minutes, job, frozenset(rows))
            for minutes, jobs in sorted(found.items())
            if self.least < minutes <= self.most and len(jobs) == 1
            for job, rows in jobs.items()
        ]

    def step(self, minutes: int, places: Sequence[Collection[RowKey]], rng: Random) -> Step | None:
        """A wait at a row of the first of the places that has one to wait at; None where the tool
        asks for others."""
        arguments: dict[str, object] = {}
        for name, param in self.tool.spec.params.items():
            if param.optional or name == self.minutes:
                continue
            fitting = [
                keys
                for rows in places
                if (keys := [key for entity, key in sorted(rows) if entity == param.ref])
            ]
            if not fitting:
                return None
            arguments[name] = rng.choice(fitting[0])
        return Step(tool=self.tool.name, arguments=arguments | {self.minutes: minutes})


def waiting_tools(tools: Iterable[DomainTool]) -> list[WaitingTool]:
    """Those that let as much time pass as their caller says, and change nothing."""
    found: list[WaitingTool] = []
    for tool in tools:
        name = (tool.spec.waits or "").strip().removeprefix("args.")
        param = tool.spec.params.get(name)
        is_told = tool.read_only and param is not None and param.type == "integer"
        if param is not None and is_told and param.max is not None:
            found.append(WaitingTool(tool, name, int(param.min or 0), int(param.max)))
    return found


def rows_near(
    environment: DomainEnvironment, domain: Domain, rows: Collection[RowKey]
) -> set[RowKey]:
    """The rows, those that they refer to, and those that refer to them where these are few."""
    near = set(rows)
    for entity, key in rows:
        row = environment.get(entity, key) or {}
        for name, field in domain.entities[entity].fields.items():
            if field.type == "ref" and field.to and row.get(name):
                near.add((field.to, row[name]))
        for other, spec in domain.entities.items():
            for name, field in spec.fields.items():
                if field.type == "ref" and field.to == entity:
                    found = list(environment.state.tables[other].matching({name: key}))
                    near |= {(other, r[spec.key]) for r in found if len(found) <= MAX_REFERRING}
    return near


def taken_back(
    domain: Domain,
    moment: DueMoment,
    before: DomainEnvironment,
    ready: DomainEnvironment,
    after: DomainEnvironment,
) -> bool:
    """Whether a call only undoes what was waited for: of every kind of row of which the job changed
    the status, one is again what it was before the wait. Nobody waits for a door to open so that
    it can be shut; but who waits for one run to end may begin the next one on the same machine."""
    undone: dict[str, list[bool]] = {}
    for entity, key in moment.rows:
        rows = [environment.get(entity, key) or {} for environment in (before, ready, after)]
        first, then, last = (_status(domain, entity, row) for row in rows)
        if first != then:
            undone.setdefault(entity, []).append(first == last)
    return bool(undone) and all(map(any, undone.values()))


def _status(domain: Domain, entity: str, row: Mapping[str, object]) -> list[object]:
    fields = domain.entities[entity].fields.items()
    return [row.get(name) for name, field in fields if field.type in ("enum", "boolean")]
