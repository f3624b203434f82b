"""What the seed rows of an entity have in common beyond the domain's rules: amounts that are
products or sums of others, values taken over from the row that a reference names, references that
no two rows share, and counts that a row keeps of the rows that refer to it.

A relation is believed where it holds in every seed row and would hardly do so by chance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, factorial
from typing import Any, NamedTuple

from tool_specs.execution.state import EntityRow
from tool_specs.growth.baskets import Basket, Rows, basket_of
from tool_specs.language.domain_file import DomainFile, EntitySpec

_FEWEST = 4
"""Rows that show a relation."""

_BY_CHANCE = 0.03
"""Most that the probability may be of no two rows sharing a reference, were they drawn freely."""

_MOST_STATUSES = 6
"""Members of an enum of which every subset is tried."""


class Operand(NamedTuple):
    """A number of the row, or with `ref` of the row that this field names."""

    ref: str | None
    field: str


class Derivation(NamedTuple):
    """`field` is `operation` of the two, to the cent."""

    field: str
    operation: str
    first: Operand
    second: Operand


class TakenOver(NamedTuple):
    """`field` is what the row that `ref` names has in one of `sources`."""

    field: str
    ref: str
    sources: tuple[str, ...]


class Tally(NamedTuple):
    """`field` of `entity` is the number of rows of `of` whose `ref` names it, or the sum of their
    `amount`; with `among` only of those whose `by` is one of it."""

    entity: str
    field: str
    of: str
    ref: str
    amount: str | None
    by: str | None
    among: frozenset[str]

    def share_of(self, row: EntityRow) -> float:
        """What the referring row adds."""
        if self.by is not None and row[self.by] not in self.among:
            return 0
        return 1 if self.amount is None else row[self.amount] or 0


class Relations(NamedTuple):
    derivations: tuple[Derivation, ...]
    taken_over: tuple[TakenOver, ...]
    unshared: frozenset[str]
    same_for: Mapping[str, str]
    """Text field -> reference with which it goes: whoever has the same has the same text."""
    basket: Basket | None


OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "product": lambda a, b: a * b,
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
}


def single_refs(entity: EntitySpec) -> dict[str, str]:
    """Field -> entity of references to one row."""
    return {n: f.to for n, f in entity.fields.items() if f.type == "ref" and f.to is not None}


def value_of(operand: Operand, row: EntityRow, entity: EntitySpec, rows: Rows) -> float | None:
    if operand.ref is None:
        return row[operand.field]
    to, key = entity.fields[operand.ref].to, row[operand.ref]
    target = rows[to].get(key) if to is not None and key is not None else None
    return None if target is None else target[operand.field]


def computed(
    derivation: Derivation, row: EntityRow, entity: EntitySpec, rows: Rows
) -> float | None:
    """What the derivation gives in the row; None where a part of it is missing."""
    first = value_of(derivation.first, row, entity, rows)
    second = value_of(derivation.second, row, entity, rows)
    if first is None or second is None:
        return None
    value = round(OPERATIONS[derivation.operation](first, second), 2)
    return int(value) if value == int(value) else value


def relations_of(name: str, file: DomainFile, seed: Rows) -> Relations:
    entity, rows = file.entities[name], list(seed[name].values())
    return Relations(
        tuple(_derivations(entity, rows, file, seed)),
        tuple(_taken_over(entity, rows, file, seed)),
        frozenset(f for f, to in single_refs(entity).items() if _is_unshared(f, rows, seed[to])),
        _same_for(entity, rows),
        basket_of(entity, rows, file, seed),
    )


def _same_for(entity: EntitySpec, rows: Sequence[EntityRow]) -> dict[str, str]:
    """References with at least two rows of the same target, and one text for each."""
    found: dict[str, str] = {}
    for field, spec in entity.fields.items():
        for ref in single_refs(entity) if spec.type == "string" else ():
            pairs = [
                (r[ref], r[field]) for r in rows if r[ref] is not None and r[field] is not None
            ]
            targets = len({target for target, _ in pairs})
            if 2 <= len(set(pairs)) == targets <= len(pairs) - 2:
                found.setdefault(field, ref)
    return found


def _numeric(entity: EntitySpec) -> list[str]:
    return [n for n, f in entity.fields.items() if f.type in ("integer", "number")]


def _derivations(
    entity: EntitySpec, rows: Sequence[EntityRow], file: DomainFile, seed: Rows
) -> Iterator[Derivation]:
    own = [Operand(None, field) for field in _numeric(entity)]
    others = [
        Operand(ref, field)
        for ref, to in single_refs(entity).items()
        for field in _numeric(file.entities[to])
    ]
    columns = {o: [value_of(o, row, entity, seed) for row in rows] for o in (*own, *others)}
    varied = [o for o in columns if len({v for v in columns[o] if v is not None}) >= 3]
    rests_on: dict[str, set[str]] = {}
    for target in own:
        if target not in varied or len({v for v in columns[target] if v}) < 3:
            continue
        for first, second, operation in _pairs([o for o in varied if o != target]):
            parts = {o.field for o in (first, second) if o.ref is None}
            if any(target.field in rests_on.get(part, {part}) for part in parts):
                continue
            derivation = Derivation(target.field, operation, first, second)
            if _holds(derivation, columns, columns[target]):
                rests_on[target.field] = {target.field, *parts}
                for part in parts:
                    rests_on[target.field] |= rests_on.get(part, set())
                yield derivation
                break


def _pairs(operands: Sequence[Operand]) -> Iterator[tuple[Operand, Operand, str]]:
    for first, second in combinations(operands, 2):
        if first.ref is not None and second.ref is not None:
            continue
        yield first, second, "product"
        yield first, second, "sum"
        yield first, second, "difference"
        yield second, first, "difference"


def _holds(
    derivation: Derivation,
    columns: Mapping[Operand, Sequence[float | None]],
    target: Sequence[float | None],
) -> bool:
    seen = 0
    for value, a, b in zip(
        target, columns[derivation.first], columns[derivation.second], strict=True
    ):
        if value is None or a is None or b is None:
            continue
        if abs(OPERATIONS[derivation.operation](a, b) - value) > 0.006:
            return False
        seen += 1
    return seen >= _FEWEST


def _taken_over(
    entity: EntitySpec, rows: Sequence[EntityRow], file: DomainFile, seed: Rows
) -> Iterator[TakenOver]:
    """At most one of each field and reference."""
    for ref, to in single_refs(entity).items():
        for field, spec in entity.fields.items():
            if field in (ref, entity.key) or spec.type in ("list", "object", "boolean"):
                continue
            alike = [
                name
                for name, other in file.entities[to].fields.items()
                if other.type == spec.type and other.to == spec.to and name != file.entities[to].key
            ]
            choices: list[tuple[str, ...]] = [(name,) for name in alike]
            if spec.type == "ref":
                choices += combinations(alike, 2)
            pairs = [
                (row[field], seed[to][row[ref]])
                for row in rows
                if row[ref] is not None and row[field] is not None
            ]
            if len(pairs) < _FEWEST or len({v for v, _ in pairs}) < (2 if spec.to else 3):
                continue
            for sources in choices:
                if all(any(value == target[s] for s in sources) for value, target in pairs):
                    yield TakenOver(field, ref, sources)
                    break


def _is_unshared(field: str, rows: Sequence[EntityRow], targets: Mapping[str, Any]) -> bool:
    """Whether no two rows name the same row, and hardly by chance."""
    named = [row[field] for row in rows if row[field] is not None]
    if len(set(named)) < len(named) or len(named) > len(targets):
        return False
    free = comb(len(targets), len(named)) * factorial(len(named)) / len(targets) ** len(named)
    return free < _BY_CHANCE


def tallies_of(file: DomainFile, seed: Rows) -> tuple[Tally, ...]:
    """What rows keep count of, the parent's field once each."""
    found: dict[tuple[str, str], Tally] = {}
    for name, entity in file.entities.items():
        for ref, to in single_refs(entity).items():
            if to == name:
                continue
            rows = [*seed[name].values()]
            given = {(t.field, *t.sources) for t in _taken_over(entity, rows, file, seed)}
            for field in _numeric(file.entities[to]):
                varied = len({r[field] for r in seed[to].values()}) >= 3
                if (
                    (to, field) in found
                    or not varied
                    or (file.entities[to].fields[field].min or 0) > 0
                ):
                    continue
                for tally in _tallies(name, entity, ref, to, field):
                    if (tally.amount, field) not in given and _counts(tally, seed):
                        found[to, field] = tally
                        break
    return tuple(found.values())


def _tallies(name: str, entity: EntitySpec, ref: str, to: str, field: str) -> Iterator[Tally]:
    amounts = [None, *_numeric(entity)]
    for amount in amounts:
        yield Tally(to, field, name, ref, amount, None, frozenset())
    enums = [n for n, f in entity.fields.items() if f.type == "enum"]
    for by in enums:
        for among in _subsets(entity.fields[by].values):
            for amount in amounts:
                yield Tally(to, field, name, ref, amount, by, among)


def _subsets(values: Sequence[str]) -> Iterable[frozenset[str]]:
    if len(values) > _MOST_STATUSES:
        return
    for size in range(1, len(values)):
        yield from map(frozenset, combinations(values, size))


def _counts(tally: Tally, seed: Rows) -> bool:
    """Whether every row has the count, at least two of them one that is not nothing."""
    totals = dict.fromkeys(seed[tally.entity], 0.0)
    for row in seed[tally.of].values():
        if row[tally.ref] is not None:
            totals[row[tally.ref]] += tally.share_of(row)
    held = {key: row[tally.field] for key, row in seed[tally.entity].items()}
    if len(held) < _FEWEST or sum(bool(total) for total in totals.values()) < 2:
        return False
    return all(v is not None and abs(v - totals[k]) < 0.006 for k, v in held.items())
