"""Search for the read calls that lead from what a user knows to a row's id.

A look-up is proved by executing it: its answer must show the row's id, and no other row of the
kind that agrees with what the user knows. References among the natural fields are looked up first
where a tool needs their ids, or where only they tell rows apart.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from synth.tasks.goals import Step
from synth.tasks.knowledge import MAX_DEPTH, Leaf, leaves, natural_refs
from tool_specs.domain import Domain
from tool_specs.domain_file import ParamSpec, ToolSpec
from tool_specs.interpreter import World

MAX_ASSIGNMENTS = 48
"""Ways to fill in one read tool that are tried; the tools of a domain have at most a few."""

_FREE_TEXT = frozenset({"query", "q", "text", "search", "keyword", "term"})


class Source(NamedTuple):
    """A value that may go into a parameter of a look-up."""

    value: Any
    steps: tuple[Step, ...]
    """What must be called before, to know the value."""


class Answer(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    steps: tuple[Step, ...]
    rows: list[dict[str, Any]]


class Lookups:
    """Look-ups in one state by the given read tools. Remembers what it found."""

    def __init__(self, world: World, domain: Domain, tools: Sequence[ToolSpec]) -> None:
        self._world = world
        self._domain = domain
        self._tools = tools
        self._found: dict[tuple[str, str], tuple[Step, ...] | None] = {}

    def find(self, entity: str, key: str, depth: int = 0) -> tuple[Step, ...] | None:
        """The shortest look-up of the row's id, or None when no read tool gives it away."""
        place = (entity, key)
        if place not in self._found:
            self._found[place] = None  # a row is not looked up by way of itself
            self._found[place] = self._search(entity, key, depth)
        return self._found[place]

    def _search(self, entity: str, key: str, depth: int) -> tuple[Step, ...] | None:
        known = leaves(self._world, self._domain, entity, key)
        if not known:
            return None
        refs: dict[str, tuple[str, tuple[Step, ...]]] = {}
        if depth < MAX_DEPTH:
            for field, to, ref in natural_refs(self._world, self._domain, entity, key):
                if (steps := self.find(to, ref, depth + 1)) is not None:
                    refs[field] = (ref, steps)
        plans = [
            plan
            for answer in self._answers(entity, known, refs)
            if (plan := self._plan(entity, key, known, refs, answer)) is not None
        ]
        return min(plans, key=_cost, default=None)

    def _answers(
        self, entity: str, known: list[Leaf], refs: dict[str, tuple[str, tuple[Step, ...]]]
    ) -> Iterator[Answer]:
        key_field = self._domain.entities[entity].key
        for tool in self._tools:
            options = [self._options(entity, n, p, known, refs) for n, p in tool.params.items()]
            combinations = itertools.product(*options)
            for chosen in itertools.islice(combinations, MAX_ASSIGNMENTS):
                pairs = zip(tool.params, chosen, strict=True)
                filled = {name: source for name, source in pairs if source is not None}
                arguments = {name: source.value for name, source in filled.items()}
                result = self._world.snapshot().call(tool.name, arguments)
                if result.is_error:
                    continue
                rows = list(rows_in(result.observation, key_field))
                before = itertools.chain.from_iterable(s.steps for s in filled.values())
                if rows:
                    yield Answer(tool.name, arguments, tuple(unique_steps(before)), rows)

    def _options(
        self,
        entity: str,
        name: str,
        param: ParamSpec,
        known: list[Leaf],
        refs: dict[str, tuple[str, tuple[Step, ...]]],
    ) -> list[Source | None]:
        """What may stand in a parameter; None where it may be left out."""
        options: list[Source | None] = []
        if param.ref:
            natural = self._domain.entities[entity].fields
            options += [
                Source(value, steps)
                for field, (value, steps) in refs.items()
                if natural[field].to == param.ref
            ]
        else:
            options += [
                Source(value, ())
                for leaf in known
                if (value := _as_argument(leaf, name, param)) is not None
            ]
        if param.optional:
            options.append(None)
        return options

    def _plan(
        self,
        entity: str,
        key: str,
        known: list[Leaf],
        refs: dict[str, tuple[str, tuple[Step, ...]]],
        answer: Answer,
    ) -> tuple[Step, ...] | None:
        """The steps when the answer singles the row out, with the ids that this takes."""
        key_field = self._domain.entities[entity].key
        own = {leaf.path[0]: leaf.value for leaf in known if len(leaf.path) == 1}
        last = Step(tool=answer.tool, arguments=answer.arguments)
        agreeing = [row for row in answer.rows if _agrees(row, own)]
        if {row[key_field] for row in agreeing} == {key}:
            return (*answer.steps, last)
        if not any(row[key_field] == key for row in agreeing):
            return None
        for count in range(1, len(refs) + 1):
            for fields in itertools.combinations(refs, count):
                ids = {field: refs[field][0] for field in fields}
                if {row[key_field] for row in agreeing if _agrees(row, ids)} == {key}:
                    before = [step for field in fields for step in refs[field][1]]
                    return tuple(unique_steps([*answer.steps, *before, last]))
        return None


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
