"""Cases with more rows than the one that they are made of: pages fill up, orders and sums get ties,
and a list of ids gets one more."""

from collections.abc import Collection, Iterator, Sequence

from tool_specs.execution.state import EntityRow
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.made_states import FIRST_ROWS, StateMaker
from tool_specs.validation.states.near_values import neighbours_of


def with_copies(
    maker: StateMaker, base: FuzzCase, entity: str, num_copies: int, rows: Sequence[EntityRow]
) -> Iterator[FuzzCase]:
    """For each of the rows of the entity, the case with so many more like it."""
    for row in rows:
        environment = base.environment.snapshot()
        made = maker.copy(entity, row, environment.state, num_copies)
        case = maker.called(environment, base.arguments, [(entity, key) for key in made])
        if case is not None:
            yield case


def twins(
    maker: StateMaker, base: FuzzCase, entity: str, field: str, first: Collection[str]
) -> Iterator[FuzzCase]:
    """For some rows, those with the keys in `first` before others, the case with one more that
    differs from it in the field alone: an order by it shows."""
    key = maker.domain.entities[entity].key
    rows = sorted(base.environment.rows(entity), key=lambda row: row[key] not in first)
    values = list(dict.fromkeys(row[field] for row in rows))[:FIRST_ROWS]
    for row in rows[:FIRST_ROWS]:
        others = [value for value in values if value != row[field]][:2]
        for value in [*others, *neighbours_of(row[field])]:
            yield from with_row(maker, base, entity, {**row, field: value})


def with_row(maker: StateMaker, base: FuzzCase, entity: str, row: EntityRow) -> Iterator[FuzzCase]:
    """The case with one more row, whatever its key is; none where that is not allowed."""
    environment = base.environment.snapshot()
    [key] = maker.copy(entity, row, environment.state, 1)
    case = maker.called(environment, base.arguments, [(entity, key)])
    if case is not None:
        yield case


def lonely(maker: StateMaker, base: FuzzCase) -> Iterator[FuzzCase]:
    """For each id among the arguments, the case with that of a row just like it, to which
    nothing else refers."""
    for name, spec in maker.program.spec.params.items():
        key = base.arguments.get(name)
        row = base.environment.state.get(spec.ref, key) if spec.ref and key else None
        if spec.ref is not None and row is not None:
            environment = base.environment.snapshot()
            [own] = maker.copy(spec.ref, row, environment.state, 1)
            arguments = {**base.arguments, name: own}
            if (case := maker.called(environment, arguments, [(spec.ref, own)])) is not None:
                yield case


def longer_lists(maker: StateMaker, base: FuzzCase) -> Iterator[FuzzCase]:
    """The case with one more id in a list of ids, of a row like one that the list names: what
    holds for the first holds for it. Elements that are objects get another id likewise."""
    for name, spec in maker.program.spec.params.items():
        items, item = base.arguments.get(name), spec.items
        if spec.type != "array" or item is None or not items:
            continue
        members = {"": item} if item.type != "object" else item.properties or {}
        for member, own in members.items():
            old = items[0].get(member) if member else items[0]
            row = base.environment.state.get(own.ref, old) if own.ref and old else None
            if own.ref is None or row is None:
                continue
            environment = base.environment.snapshot()
            [key] = maker.copy(own.ref, row, environment.state, 1)
            longer = [*items, {**items[0], member: key} if member else key]
            arguments = {**base.arguments, name: longer}
            if (case := maker.called(environment, arguments, [(own.ref, key)])) is not None:
                yield case
