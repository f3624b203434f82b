"""Grow a domain's seed to a number of rows, entity by entity, those that others refer to first.

Every row is checked as it is taken: its fields, the domain's rules, the names of the seed's rows,
and what the seed's rows have in common. A rule that no candidate keeps is an error that names it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from random import Random
from typing import Any

from records.errors import ConfigError
from records.seeds import seed_of
from records.tables.splits import Split
from tool_specs.execution.fields import RowCheck
from tool_specs.execution.invariants import Invariants, broken_in
from tool_specs.execution.jobs import compile_jobs
from tool_specs.execution.programs import Entities, Problems
from tool_specs.execution.state import EntityRow, State
from tool_specs.growth.candidates import FREEDOM, RowSource
from tool_specs.growth.kin import Kin
from tool_specs.growth.relations import Tally, relations_of, single_refs, tallies_of
from tool_specs.growth.texts import NoValueError
from tool_specs.language.domain_file import DomainFile
from tool_specs.language.values import EvaluationError

PATTERNS_TRIED = 6
"""Seed rows that are taken as the pattern of one row before it is left out."""

IN_VAIN = 8
"""Rows in succession for which nothing was found before an entity stops growing."""

PER_LEVEL = 2.5
"""How many times faster an entity grows than those that it refers to."""

FIRST_NUMBER = 1001
"""Of ids, where no row of the seed has a number."""

_GAP_SHARE = 0.03
"""How often ids skip a few numbers, as they do where rows were deleted."""


@dataclass
class GrownRows:
    """What has grown, and what did not."""

    rows: dict[str, dict[str, EntityRow]]
    partitioned: dict[str, frozenset[str]] = field(default_factory=dict)
    """Entity -> fields whose new values belong to one split each."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Entity -> rows that were wanted and for which no free name or partner was left."""


def grow(
    file: DomainFile,
    seed: State,
    invariants: Invariants,
    *,
    rows: int,
    number: int,
    split: Split,
) -> GrownRows:
    """The seed's rows, unchanged, and as many further ones as make `rows` of them, or fewer where
    an entity runs out of rows that people could tell apart. The same arguments give the same rows.

    Raises ConfigError that names a rule of the domain which no candidate keeps.
    """
    return _Growth(file, seed, invariants, rows, number, split).run()


class _Growth:
    def __init__(
        self,
        file: DomainFile,
        seed: State,
        invariants: Invariants,
        rows: int,
        number: int,
        split: Split,
    ) -> None:
        self.file, self.invariants = file, invariants
        self.split: Split = split
        self._item = f"{file.domain}\x1f{rows}\x1f{number}\x1f{split}"
        self.seed = {
            name: {row[file.entities[name].key]: row for row in table.rows()}
            for name, table in seed.tables.items()
        }
        self.grown = GrownRows({name: dict(table) for name, table in self.seed.items()})
        self.state = seed.snapshot()
        self.tallies = tallies_of(file, self.seed)
        self.kin = Kin(self.seed, self.grown.rows, self._rng("kin"))
        self.levels = _levels(file)
        self.checks = {name: RowCheck(entity).fields for name, entity in file.entities.items()}
        self.rows = rows
        jobs = compile_jobs(file.jobs, Entities.of(file), Problems())  # a domain has checked them
        self.jobs = {
            name: [job for job in jobs if job.spec.entity == name] for name in file.entities
        }

    def _rng(self, purpose: str) -> Random:
        return Random(seed_of(self._item, purpose))

    def run(self) -> GrownRows:
        sources = {name: self._source(name, 1.0) for name in self.levels}
        weights = _weights(self.seed, self.levels, sources)
        takers: dict[str, _Taker] = {}
        for name, count in _shares(self._missing(), weights).items():
            factor = 1 + count / max(len(self.seed[name]), 1)
            takers[name] = _Taker(self, name, self._source(name, factor))
            self._grow_entity(takers[name], count)
            self.kin.close(name)
        before = self.rows + 1
        while 0 < self._missing() < before:
            # what one entity could not take goes to others, some of which make room in it
            before = self._missing()
            for only_free in (True, False):
                full = self.grown.left_out if only_free else {}
                free = {n: w for n, w in weights.items() if w and not full.get(n)}
                for name, count in _shares(self._missing(), free).items():
                    self._grow_entity(takers[name], count)
        self._complain()
        return self.grown

    def _missing(self) -> int:
        return max(self.rows - sum(map(len, self.grown.rows.values())), 0)

    def _source(self, name: str, factor: float) -> RowSource:
        return RowSource(
            name,
            self.file,
            self.seed,
            self.grown.rows,
            relations=relations_of(name, self.file, self.seed),
            levels=self.levels,
            split=self.split,
            factor=factor,
            rng=self._rng(name),
        )

    def _grow_entity(self, taker: "_Taker", count: int) -> None:
        taken = in_vain = 0
        while taken < count and in_vain < IN_VAIN:
            found = taker.take()
            taken, in_vain = taken + found, 0 if found else in_vain + 1
        if taken < count:
            left_out = self.grown.left_out.get(taker.name, 0)
            self.grown.left_out[taker.name] = left_out + count - taken

    def new_keys(self, name: str) -> Iterator[str]:
        prefix, rng = self.file.entities[name].prefix, self._rng(f"ids of {name}")
        number = self.state.tables[name].last_number(prefix or f"{name}-") or FIRST_NUMBER - 1
        while True:
            number += 1 if rng.random() >= _GAP_SHARE else rng.randint(2, 5)
            yield f"{prefix or f'{name}-'}{number}"

    def unfit(self, name: str, row: EntityRow) -> str:
        """Which field cannot hold its value, and why; empty where all can."""
        for field_name, check in self.checks[name].items():
            try:
                check(row[field_name])
            except EvaluationError as error:
                return f"{field_name}: {error}"
        return ""

    def _complain(self) -> None:
        """Whatever a later row did to an earlier one, no rule is broken in the end."""
        for path, words in broken_in(self.state, self.file, self.invariants):
            raise ConfigError(f"{self.file.domain}: grown to {self.rows} rows, {path} {words}")

    def is_overdue(self, name: str, row: EntityRow) -> bool:
        """Whether a job is due on the row from the start, or cannot tell."""
        try:
            due = [job.due_of(self.state, row) for job in self.jobs[name]]
        except EvaluationError:
            return True
        return any(moment is not None and moment <= self.file.now for moment in due)


class _Taker:
    """Takes the rows of one entity, each after its checks."""

    def __init__(self, growth: _Growth, name: str, source: RowSource) -> None:
        self._growth, self.name, self._source = growth, name, source
        self._keys = growth.new_keys(name)
        self._spec = growth.file.entities[name]
        self._rules = growth.invariants.get(name, ())
        self._of_seed = {self._known_by(row) for row in growth.seed[name].values()}
        self._names = set(self._of_seed)
        self._referred = {
            ref: {row[ref] for row in growth.seed[name].values()}
            for ref in source.relations.unshared
        }
        self._adds = [t for t in growth.tallies if t.of == name]
        self._counted = [t.field for t in growth.tallies if t.entity == name]
        growth.grown.partitioned[name] = source.partitioned - frozenset(self._counted)
        self._single = all(self._spec.fields[f].type == "string" for f in self._spec.natural)

    def take(self) -> bool:
        """Whether a further row was found. ConfigError where rules alone were in the way."""
        key, problem, broken = next(self._keys), "", True
        for _ in range(PATTERNS_TRIED):
            pattern = self._source.pattern()
            for attempt in range(len(FREEDOM)):
                try:
                    row, days = self._source.candidate(pattern, key, attempt, self._growth.kin)
                except NoValueError as error:
                    problem = str(error)
                    continue
                problem = self._problem(row)
                if not problem:
                    self._keep(row, key, pattern, days)
                    return True
            # the last candidate is little but the pattern itself, which keeps every rule
            broken = broken and problem.startswith("rule ")
        if broken:
            raise ConfigError(
                f"{self._growth.file.domain}: no {self.name} could be grown that keeps {problem}"
            )
        return False

    def _problem(self, row: EntityRow) -> str:
        """What is wrong with the candidate, in a few words; empty where nothing is."""
        for counted in self._counted:
            row[counted] = 0
        if not self._source.in_order(row):
            return "the order of its dates"
        if words := self._growth.unfit(self.name, row):
            return f"the bounds of {words}"
        for rule in self._rules:
            if not rule.holds(row, self._growth.state):
                return f"rule {rule.spec.id}: {rule.spec.that}"
        if self._growth.is_overdue(self.name, row):
            return "a moment at which no job is due yet"
        # last, or a rule that nothing keeps would hide behind names that are taken
        if self._spec.natural and not self._is_free(self._known_by(row)):
            return "a name of its own"
        for ref, taken in self._referred.items():
            if row[ref] is not None and row[ref] in taken:
                return "a partner of its own"
        return self._miscount(row)

    def _miscount(self, row: EntityRow) -> str:
        for tally, parent in self._counts(row):
            entity = tally.entity
            if parent[self._growth.file.entities[entity].key] in self._growth.seed[entity]:
                return f"the {tally.field} of a {entity} of the seed"
            if words := self._growth.unfit(entity, parent):
                return f"the bounds of {words}"
            for rule in self._growth.invariants.get(entity, ()):
                if not rule.holds(parent, self._growth.state):
                    return f"room in a {entity}: {rule.spec.that}"
        return ""

    def _counts(self, row: EntityRow) -> Iterator[tuple[Tally, EntityRow]]:
        """The rows that keep count of this one, as they are with it."""
        for tally in self._adds:
            share = tally.share_of(row) if row[tally.ref] is not None else 0
            if share:
                parent = self._growth.grown.rows[tally.entity][row[tally.ref]]
                total = round(parent[tally.field] + share, 2)
                total = int(total) if total == int(total) else total
                yield tally, parent | {tally.field: total}

    def _known_by(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(str(row[f]) for f in self._spec.natural)

    def _is_free(self, names: tuple[Any, ...]) -> bool:
        """Rows that grow may share a name of people, and none has that of a row of the seed."""
        if names in self._of_seed:
            return False
        return names not in self._names or (self._single and self._source.may_repeat(names))

    def _keep(self, row: EntityRow, key: str, pattern: str, days: int) -> None:
        growth, name = self._growth, self.name
        for tally, parent in list(self._counts(row)):
            parent_key = parent[growth.file.entities[tally.entity].key]
            current = growth.grown.rows[tally.entity][parent_key]
            changed = current | {tally.field: parent[tally.field]}
            growth.grown.rows[tally.entity][parent_key] = changed
            growth.state.put(tally.entity, parent_key, changed)
        growth.grown.rows[name][key] = row
        growth.state.put(name, key, row)
        growth.kin.add(name, key, pattern, days)
        self._names.add(self._known_by(row))
        self._source.keep(row, pattern)
        for ref, taken in self._referred.items():
            taken.add(row[ref])


def _levels(file: DomainFile) -> dict[str, int]:
    """Entities in the order of growth, each with the length of its longest chain of references.
    References that close a circle count for nothing, and stay within the seed where they must."""
    needs = {
        name: {to for to in single_refs(entity).values() if to != name}
        for name, entity in file.entities.items()
    }
    while True:
        try:
            order = list(TopologicalSorter(needs).static_order())
            break
        except CycleError as error:
            circle = error.args[1]
            needs[circle[1]].discard(circle[0])
    levels: dict[str, int] = {}
    for name in order:
        levels[name] = 1 + max((levels[to] for to in needs[name]), default=-1)
    return levels


def _weights(
    seed: Mapping[str, Mapping[str, EntityRow]],
    levels: Mapping[str, int],
    sources: Mapping[str, RowSource],
) -> dict[str, float]:
    """Of each entity in the order of growth: its share of the new rows, before they are made to add
    up. What only one row each can refer to bounds those that refer to it."""
    weights = {
        name: len(seed[name]) * PER_LEVEL**level if sources[name].can_grow else 0.0
        for name, level in levels.items()
    }
    for name in levels:
        for ref in sources[name].relations.unshared:
            to = sources[name].spec.fields[ref].to
            if to is not None and to != name:
                share = len(seed[name]) / len(seed[to])
                weights[name] = min(weights[name], share * weights[to])
    return weights


def _shares(rows: int, weights: Mapping[str, float]) -> dict[str, int]:
    """The rows by weight; what rounding leaves over goes to the heaviest."""
    total = sum(weights.values())
    if not total:
        return dict.fromkeys(weights, 0)
    counts = {name: int(rows * weight / total) for name, weight in weights.items()}
    counts[max(weights, key=lambda name: weights[name])] += rows - sum(counts.values())
    return counts
