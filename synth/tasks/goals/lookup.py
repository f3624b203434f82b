"""Search for the read calls that lead from what a user knows to a row's id.

A look-up is proved by executing it: its answer must show the row's id, and no other row of the
kind that agrees with what the user knows. References among the natural fields are looked up first
where a tool needs their ids, or where only they tell rows apart.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.equal_rows import equals_of
from synth.tasks.goals.goals import Step
from synth.tasks.goals.knowledge import MAX_DEPTH, Leaf, leaves, natural_refs
from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.language.domain_file import ParamSpec, ToolSpec

MAX_ASSIGNMENTS = 48
"""Ways to fill in one read tool that are tried; the tools of a domain have at most a few."""

_FREE_TEXT = frozenset({"query", "q", "text", "search", "keyword", "term"})


RowKey = tuple[str, str]
"""(entity, key) of a row."""

Needs = frozenset[RowKey]
"""Rows whose ids must be known beforehand."""


class LookupSource(NamedTuple):
    """A value that may go into a parameter of a look-up."""

    value: Any
    needs: Needs


class LookupAnswer(NamedTuple):
    step: Step
    needs: Needs
    observation: Any


class Lookups:
    """Look-ups in one state by the given read tools. Remembers what it found."""

    def __init__(
        self, environment: DomainEnvironment, domain: Domain, tools: Sequence[ToolSpec]
    ) -> None:
        self._environment = environment
        self._domain = domain
        self._tools = tools
        self._found: dict[RowKey, tuple[Step, ...] | None] = {}
        self._made: dict[RowKey, list[LookupAnswer]] = {}
        self._known: dict[RowKey, list[Leaf]] = {}
        self._equal: dict[RowKey, frozenset[str]] = {}

    def find(self, place: RowKey, depth: int = 0) -> tuple[Step, ...] | None:
        """The shortest look-up of the row's id, or None when no read tool gives it away."""
        if place not in self._found:
            self._found[place] = None  # a row is not looked up by way of itself
            plans = [
                plan
                for answer in self.answers(place)
                if (plan := self._plan(place, answer, depth)) is not None
            ]
            self._found[place] = min(plans, key=_cost, default=None)
        return self._found[place]

    def _plan(self, place: RowKey, answer: LookupAnswer, depth: int) -> tuple[Step, ...] | None:
        """The steps when the answer singles the row out, with the ids that this takes."""
        for extra in self.discloses(answer, place):
            before: list[Step] = []
            for need in sorted(answer.needs | extra):
                steps = self.find(need, depth + 1) if depth < MAX_DEPTH else None
                if steps is None:
                    break
                before += steps
            else:
                return tuple(unique_steps([*before, answer.step]))
        return None

    def answers(self, place: RowKey) -> list[LookupAnswer]:
        """What read tools say when they are given what people know of the row, and the ids of the
        rows that it names."""
        if place not in self._made:
            known = self._leaves(place)
            self._made[place] = list(self._ask(place, known)) if known else []
        return self._made[place]

    def _leaves(self, place: RowKey) -> list[Leaf]:
        if place not in self._known:
            self._known[place] = leaves(self._environment, self._domain, *place)
        return self._known[place]

    def _equals(self, place: RowKey) -> frozenset[str]:
        if place not in self._equal:
            self._equal[place] = equals_of(self._environment, self._domain, *place)
        return self._equal[place]

    def _ask(self, place: RowKey, known: list[Leaf]) -> Iterator[LookupAnswer]:
        refs = list(natural_refs(self._environment, self._domain, *place))
        for tool in self._tools:
            options = [_options(name, param, known, refs) for name, param in tool.params.items()]
            combinations = itertools.product(*options)
            for chosen in itertools.islice(combinations, MAX_ASSIGNMENTS):
                pairs = zip(tool.params, chosen, strict=True)
                filled = {name: source for name, source in pairs if source is not None}
                arguments = {name: source.value for name, source in filled.items()}
                result = self._environment.look(tool.name, arguments)
                if not result.is_error:
                    needs = frozenset().union(*(source.needs for source in filled.values()))
                    yield LookupAnswer(Step(tool=tool.name, arguments=arguments), needs, result[0])

    def discloses(self, answer: LookupAnswer, place: RowKey) -> Iterator[Needs]:
        """Which further ids tell the row from the others in the answer, the fewest first; nothing
        when the answer does not show it. An answer that was not asked for by what people know of
        the row must show all of that."""
        if not any(own.step == answer.step for own in self.answers(place)):
            yield from self._shown_whole(answer, place)
            return
        entity, key = place
        key_field = self._domain.entities[entity].key
        known = self._leaves(place)
        own = {leaf.path[0]: leaf.value for leaf in known if len(leaf.path) == 1}
        agreeing = [r for r in rows_in(answer.observation, key_field) if _agrees(r, own)]
        if not known or not any(row[key_field] == key for row in agreeing):
            return
        shown = {row[key_field] for row in agreeing}
        if shown == {key} or shown <= self._equals(place):
            yield frozenset()
            return
        refs = list(natural_refs(self._environment, self._domain, entity, key))
        for count in range(1, len(refs) + 1):
            for chosen in itertools.combinations(refs, count):
                ids = {field: ref for field, _, ref in chosen}
                fitting = {row[key_field] for row in agreeing if _agrees(row, ids)}
                if fitting == {key} or fitting <= self._equals(place):
                    yield frozenset((to, ref) for _, to, ref in chosen)

    def _shown_whole(self, answer: LookupAnswer, place: RowKey) -> Iterator[Needs]:
        entity, key = place
        spec, row = self._domain.entities[entity], self._environment.get(entity, key) or {}
        if spec.natural and any(
            shown[spec.key] == key
            and all(field in shown and shown[field] == row.get(field) for field in spec.natural)
            for shown in rows_in(answer.observation, spec.key)
        ):
            refs = natural_refs(self._environment, self._domain, entity, key)
            yield frozenset((to, ref) for _, to, ref in refs)


class Views:
    """Look-ups by the state that they are made in, so that nothing is asked twice."""

    def __init__(self, domain: Domain, tools: Iterable[DomainTool]) -> None:
        self._domain = domain
        self._reads = [tool.spec for tool in tools if tool.read_only and not tool.waits]
        self._views: dict[str, Lookups] = {}

    def of(self, environment: DomainEnvironment) -> Lookups:
        """The environment must not be changed any more."""
        if environment.state_hash not in self._views:
            self._views[environment.state_hash] = Lookups(environment, self._domain, self._reads)
        return self._views[environment.state_hash]


def _options(
    name: str, param: ParamSpec, known: list[Leaf], refs: list[tuple[str, str, str]]
) -> list[LookupSource | None]:
    """What may stand in a parameter; None where it may be left out."""
    options: list[LookupSource | None] = []
    if param.ref:
        options += [
            LookupSource(ref, frozenset([(to, ref)])) for _, to, ref in refs if to == param.ref
        ]
    else:
        options += [
            LookupSource(value, frozenset())
            for leaf in known
            if (value := _as_argument(leaf, name, param)) is not None
        ]
    if param.optional:
        options.append(None)
    return options


def _cost(plan: tuple[Step, ...]) -> tuple[int, int, str]:
    """Fewest calls, then most arguments given (they narrow the answer), then by name."""
    return len(plan), -sum(len(step.arguments) for step in plan), plan[-1].tool


def _agrees(row: dict[str, Any], values: dict[str, Any]) -> bool:
    """Whether no field that the row shows contradicts the values."""
    return all(field not in row or row[field] == value for field, value in values.items())


def unique_steps(steps: Any) -> list[Step]:
    """Each step once, in order of first appearance."""
    unique: list[Step] = []
    for step in steps:
        if step not in unique:
            unique.append(step)
    return unique


def rows_in(observation: Any, key_field: str) -> Iterator[dict[str, Any]]:
    """Every object in an answer, at any depth, that shows the key of the wanted kind of row."""
    if isinstance(observation, dict):
        if isinstance(observation.get(key_field), str):
            yield observation
        for value in observation.values():
            yield from rows_in(value, key_field)
    elif isinstance(observation, list):
        for item in observation:
            yield from rows_in(item, key_field)


def _as_argument(leaf: Leaf, name: str, param: ParamSpec) -> Any:
    """The leaf's value as an argument of the parameter, or None where it does not belong there."""
    field = leaf.path[-1]
    related = field in name or name in field or name in _FREE_TEXT
    related = related or any(word in name.split("_") for word in leaf.entity.split("_"))
    match param.type:
        case "date" if isinstance(leaf.value, str) and leaf.value[4:5] == "-":
            return leaf.value[:10]
        case "datetime" if isinstance(leaf.value, str) and "T" in leaf.value:
            return leaf.value
        case "enum":
            return leaf.value if field == name and leaf.value in param.values else None
        case "string":
            return leaf.value if related and isinstance(leaf.value, str) else None
        case "integer" | "number":
            is_number = isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool)
            return leaf.value if is_number and field == name else None
    return None
