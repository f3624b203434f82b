"""Arguments for a tool drawn from an environment: valid by its schema, and likely to mean
something.

Ids are of rows that exist; text that a tool looks up is text that some row has; dates lie near
the episode's now; numbers keep their bounds.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from tool_specs.domains.interpreter import CallResult, DomainEnvironment
from tool_specs.execution.state import EntityRow
from tool_specs.language.domain_file import MAX_ITEMS, ParamSpec
from tool_specs.language.parameters import Hint, Path

OPTIONAL_SHARE = 0.5
"""Probability that an optional parameter is given."""

_ATTEMPTS = 20
_ROWS_LOOKED_AT = 500
"""First rows of an entity, which are drawn from: drawing stays cheap in a large environment."""

_FRESH = 0.7
"""Share of new texts for a parameter whose value no row may have yet."""

_WORDS = ("blue", "spare", "north", "early", "second", "urgent", "quiet", "large")


class DrawnCall(NamedTuple):
    arguments: dict[str, Any]
    result: CallResult
    environment: DomainEnvironment
    """The environment after the call, a snapshot of its own."""


def draw_arguments(environment: DomainEnvironment, tool: str, rng: Random) -> dict[str, Any] | None:
    """Arguments that the tool's schema accepts; None where the environment has nothing to name.

    The call may still fail on a precondition: see `draw_success`.
    """
    program = environment.domain.programs[tool]
    for _ in range(_ATTEMPTS):
        arguments = _Drawing(environment, tool, rng).members(program.spec.params, ())
        if arguments is None:
            return None
        if program.validator.is_valid(arguments):
            return arguments
    return None


def draw_success(
    environment: DomainEnvironment, tool: str, rng: Random, *, tries: int = 60
) -> DrawnCall | None:
    """Arguments with which the call succeeds here; None if none of `tries` draws did.

    A call of a writing tool that changes nothing does not count. The environment itself is not
    changed.
    """
    reads = environment.domain.programs[tool].read_only
    for _ in range(tries):
        arguments = draw_arguments(environment, tool, rng)
        if arguments is None:
            return None
        trial = environment.snapshot()
        result = trial.call(tool, arguments)
        if not result.is_error and (reads or result.diff):
            return DrawnCall(arguments, result, trial)
    return None


class _Drawing:
    """One draw: values for every parameter of a tool."""

    def __init__(self, environment: DomainEnvironment, tool: str, rng: Random) -> None:
        self.environment, self.rng = environment, rng
        self.now = datetime.fromisoformat(environment.state.now)
        program = environment.domain.programs[tool]
        self.hints, self.cursors = program.hints.fields, program.hints.cursors
        self.unused = program.hints.unused

    def members(self, params: dict[str, ParamSpec], path: Path) -> dict[str, Any] | None:
        values: dict[str, Any] = {}
        for name, spec in params.items():
            if not path and name in self.cursors:
                continue
            if spec.optional and self.rng.random() >= OPTIONAL_SHARE:
                continue
            value = self.value(spec, (*path, name))
            if value is None and not spec.optional:
                return None
            if value is not None:
                values[name] = value
        return values

    def value(self, spec: ParamSpec, path: Path) -> Any:
        """None where there is nothing to choose from."""
        hints = [hint for hint in self.hints if hint.path == path]
        match spec.type:
            case "boolean":
                return self.rng.random() < 0.5
            case "enum":
                return self.rng.choice(spec.values)
            case "integer" | "number":
                return self.number(spec, hints)
            case "date" | "datetime":
                return self.moment(spec, hints)
            case "array":
                return self.array(spec, path)
            case "object":
                return self.members(spec.properties or {}, path)
        return self.key(spec.ref) if spec.ref is not None else self.text(spec, hints, path)

    def key(self, entity: str) -> str | None:
        rows = self.rows(entity)
        return self.rng.choice(rows)[self.environment.domain.entities[entity].key] if rows else None

    def rows(self, entity: str) -> list[EntityRow]:
        return list(islice(self.environment.state.tables[entity].rows(), _ROWS_LOOKED_AT))

    def array(self, spec: ParamSpec, path: Path) -> list[Any] | None:
        """A few elements, all different."""
        least, most = int(spec.min or 0), int(MAX_ITEMS if spec.max is None else spec.max)
        wanted = self.rng.randint(max(least, min(1, most)), max(least, min(most, 3)))
        items: list[Any] = []
        for _ in range(wanted * 4):
            if len(items) == wanted or spec.items is None:
                break
            item = self.value(spec.items, (*path, "items"))
            if item is not None and item not in items:
                items.append(item)
        return items if len(items) >= least else None

    def number(self, spec: ParamSpec, hints: Sequence[Hint]) -> float | int:
        least = spec.min if spec.min is not None else min(1, spec.max or 1)
        most = spec.max if spec.max is not None else least + 20
        found = self.existing(hints)
        if found and self.rng.random() < 0.6:
            value = self.rng.choice(found)
            if any(hint.relation != "==" for hint in hints):
                value += self.rng.choice((-1, 0, 0, 1)) * self.rng.randint(0, 3)
            return self.rounded(spec, min(max(value, least), most))
        # small numbers are what people ask for, whatever the maximum
        near = least + (most - least) * self.rng.random() ** 2
        return self.rounded(spec, near)

    def rounded(self, spec: ParamSpec, value: float) -> float | int:
        value = int(value) if spec.type == "integer" else round(value, 2)
        return int(value) if value == int(value) else value

    def moment(self, spec: ParamSpec, hints: Sequence[Hint]) -> str:
        """A day that some row has, or one from the next three weeks; office hours."""
        found = self.existing(hints)
        if found and self.rng.random() < 0.4:
            text = self.rng.choice(found)
            if spec.type == "date":
                return text[:10]
            if len(text) == 19:
                return text
            day = datetime.fromisoformat(text[:10])
        else:
            day = self.now + timedelta(days=self.rng.randint(0, 21))
        if spec.type == "date":
            return day.date().isoformat()
        hour, minute = self.rng.randint(9, 17), self.rng.choice((0, 30))
        return day.replace(hour=hour, minute=minute, second=0).isoformat()

    def text(self, spec: ParamSpec, hints: Sequence[Hint], path: Path) -> str:
        found = [value for value in self.existing(hints) if isinstance(value, str) and value]
        examples = examples_in(spec.description or "")
        fresh = path in self.unused and self.rng.random() < _FRESH
        if fresh:
            taken = set(found)
            examples = examples._replace(texts=[t for t in examples.texts if t not in taken])
        if examples.quoted or fresh:
            found = []  # whole texts as examples: new text is asked for, not some other row's
        least, most = int(spec.min or 1), int(200 if spec.max is None else spec.max)
        if found:
            text = self.rng.choice(found)
            if any(hint.relation == "contains" for hint in hints):
                text = self.rng.choice(
                    [word for word in text.split() if len(word) >= least] or [text]
                )
        elif examples.texts:
            text = self.rng.choice(examples.texts)
        else:
            text = " ".join(self.rng.sample(_WORDS, 2))
        return text[:most].ljust(least, "x")

    def existing(self, hints: Sequence[Hint]) -> list[Any]:
        """Values that rows have in the hinted fields; those that are looked up come first."""
        looked_up = [hint for hint in hints if hint.relation != "set"] or hints
        values: list[Any] = []
        for hint in looked_up:
            for row in self.rows(hint.entity):
                value = row.get(hint.field)
                values += value if isinstance(value, list) else [] if value is None else [value]
        return values


class Examples(NamedTuple):
    texts: list[str]
    quoted: bool
    """They stand in quotes, as whole texts do that a person would make up."""


def examples_in(description: str) -> Examples:
    """What stands after "such as": quoted texts, else what commas and "or" part."""
    _, _, after = description.partition("such as ")
    if quoted := re.findall(r"'([^']+)'", after):
        return Examples(quoted, quoted=True)
    words = re.split(r",? or |, ", re.split(r"\.(?:\s|$)", after)[0])
    return Examples([word.strip() for word in words if word.strip()], quoted=False)
