"""Arguments of a call out of a conversation: values that the user said, ids that a tool found."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.proof.slots_text import (
    Fact,
    Schemas,
    Tool,
    converted,
    described,
    example_of,
    prefix,
    properties,
    spoken,
    stems,
    wants_id,
)
from benchmarks.proof.slots_wishes import Record, Wish, alike, records_of

FITS = 1.0
"""Score from which a fact fills a required parameter, and twice that for another: see `_suits`."""


class Filled(NamedTuple):
    arguments: dict[str, Any]
    missing: list[str]
    """Required parameters without a value."""
    used: frozenset[Fact]
    score: float


class _Form(NamedTuple):
    """An object to be filled: a tool's arguments, or an object in them."""

    tool: str
    words: frozenset[str]
    schemas: Schemas
    required: Sequence[str]
    pointing: Sequence[Fact]
    """Facts that may tell which record an id is taken from."""
    records: Sequence[Record]


class Slots:
    """Where arguments stand: behind such words as in the examples, else behind the schema's."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, str], set[frozenset[str]]] = defaultdict(set)
        self._keys: dict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, wish: Wish) -> None:
        """Note behind which words, or under which keys, the arguments of an example stood."""
        before = list(wish.earlier)
        for call in wish.calls:
            given = call.arguments.items() if isinstance(call.arguments, dict) else ()
            records = records_of(before)
            for name, value in () if call.failed else given:
                for fact in wish.facts:
                    if fact.label and alike(fact.value) == alike(value):
                        self._labels[call.tool, name].add(fact.label)
                for record in records:
                    keys = (key for key, held in record.fields.items() if held == value)
                    self._keys[call.tool, name].update(keys)
            before.append(call)

    def fill(self, tool: Tool, wish: Wish, facts: Sequence[Fact]) -> Filled:
        """Arguments out of `facts`; ids also out of results, where the wish points at a record."""
        required = list((tool.get("parameters") or {}).get("required") or ())
        records = records_of([*wish.earlier, *wish.calls])
        schemas = properties(tool.get("parameters") or {})
        words = described(tool)
        return self._fill(_Form(tool["name"], words, schemas, required, wish.facts, records), facts)

    def _fill(self, form: _Form, facts: Sequence[Fact]) -> Filled:
        kept = _without_twins(form.schemas, facts)
        arguments, used, score = self._values(form, kept)
        for name, schema in form.schemas.items():
            if name not in arguments and (
                found := self._found(form, name, schema, facts, kept, used)
            ):
                arguments[name], more = found
                used |= more
        ordered = {name: arguments[name] for name in form.schemas if name in arguments}
        missing = [name for name in form.required if name not in arguments]
        return Filled(ordered, missing, frozenset(used), score)

    def _values(
        self, form: _Form, facts: Sequence[Fact]
    ) -> tuple[dict[str, Any], set[Fact], float]:
        """Each fact fills at most one parameter, the best pairs first."""
        pairs: list[tuple[float, int, str, Fact, Any]] = []
        for name, schema in form.schemas.items():
            for fact in facts:
                if (value := converted(fact.value, schema)) is not None:
                    score = self._suits(form, name, schema, fact)
                    if score >= (FITS if name in form.required else 2 * FITS):
                        pairs.append((score, len(pairs), name, fact, value))
        arguments: dict[str, Any] = {}
        used: set[Fact] = set()
        total = 0.0
        for score, _, name, fact, value in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
            if name not in arguments and fact not in used:
                arguments[name] = value
                used.add(fact)
                total += score
        return arguments, used, total

    def _suits(self, form: _Form, name: str, schema: Mapping[str, Any], fact: Fact) -> float:
        """How well the words before a value name the parameter: by its name most of all."""
        words, label = stems(spoken(name)), fact.label
        about = stems((schema.get("description") or "").split("such as")[0])
        score = 3 * len(label & words) / max(1, len(words))
        score += (len(label & words) + len(label & about)) / max(1, len(label))
        score += 0.5 * bool(label & form.words - words)
        score += 2.0 * (label in self._labels[form.tool, name])
        if "enum" in schema:
            return score + 1.5
        if wants_id(schema) or schema.get("format") == "date":
            return score + 0.5
        return score + (not label and schema.get("type") == "string")

    def _found(
        self,
        form: _Form,
        name: str,
        schema: Mapping[str, Any],
        facts: Sequence[Fact],
        kept: Sequence[Fact],
        used: set[Fact],
    ) -> tuple[Any, set[Fact]] | None:
        """An id, a list or an object, with the facts that it took."""
        target = stems(spoken(name))
        named = [fact for fact in form.pointing if fact.label & target]
        free = [fact for fact in facts if fact not in used]
        items = schema.get("items") or {}
        if schema.get("type") == "object":
            return self._inner(form, schema, free)
        if schema.get("type") == "array" and items.get("type") == "object":
            mine = [fact for fact in free if fact.label & target]
            rows = [
                self._inner(form, items, [fact for fact in mine if fact.nth == nth])
                for nth in sorted({fact.nth for fact in mine})
            ]
            made = [row for row in rows if row is not None]
            whole = made and len(made) == len(rows)
            return ([row for row, _ in made], set(mine)) if whole else None
        keys = [name, *sorted(self._keys[form.tool, name])]
        if schema.get("type") == "array":
            like = {"description": schema.get("description"), **items, "title": name}
            values = [
                value if value is not None else _resolved(like, [fact], keys, form.records)
                for fact in named
                if fact not in used
                for value in [converted(fact.value, like)]
            ]
            good = values and None not in values
            return (list(dict.fromkeys(values)), set(named)) if good else None
        if not wants_id(schema):
            return None
        named = [fact for fact in named if fact in facts and fact not in kept] or named
        others = {w for other in form.schemas if other != name for w in stems(spoken(other))}
        pointing = named or [fact for fact in form.pointing if not fact.label & others]
        value = _resolved(schema, pointing, keys, form.records)
        return None if value is None else (value, set())

    def _inner(
        self, form: _Form, schema: Mapping[str, Any], facts: Sequence[Fact]
    ) -> tuple[Any, set[Fact]] | None:
        required = list(schema.get("required") or ())
        inner = form._replace(schemas=properties(schema), required=required, pointing=facts)
        made = self._fill(inner, facts)
        whole = made.arguments and not made.missing
        return (made.arguments, set(made.used)) if whole else None


def _without_twins(schemas: Schemas, facts: Sequence[Fact]) -> list[Fact]:
    """Of two facts with one label the first tells which record is meant, where an id is wanted of
    what the label names: "The list name is A, the list name is B" is of list A."""
    targets = [stems(spoken(name)) for name, schema in schemas.items() if wants_id(schema)]
    return [
        fact
        for at, fact in enumerate(facts)
        if not any(
            later.label == fact.label and later.nth == fact.nth and fact.label & target
            for later in facts[at + 1 :]
            for target in targets
        )
    ]


def _resolved(
    schema: Mapping[str, Any],
    facts: Sequence[Fact],
    keys: Sequence[str],
    records: Iterable[Record],
) -> str | None:
    """The id in the record that most facts point at, the newest of equals; None for none."""
    kind = re.compile(rf"{re.escape(prefix(example_of(schema)))}[-_]?\d")
    best, most = None, 0
    for record in records:
        points = sum(alike(fact.value) in record.known_by for fact in facts)
        if points > most:
            held = [record.fields[key] for key in keys if key in record.fields]
            held += record.fields.values()
            ids = (value for value in held if isinstance(value, str) and kind.match(value))
            if fit := next(ids, None):
                best, most = fit, points
    return best
