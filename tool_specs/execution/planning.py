"""Which hash indexes serve a `where`: equalities that must hold for the condition to hold.

The whole condition is still evaluated on what an index gives, so a plan changes cost and never
the answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from tool_specs.language.domain_file import EntitySpec
from tool_specs.language.evaluation import Env, Scope, compile_expression
from tool_specs.language.expressions import children_of, names_in, rebuilt, terms
from tool_specs.language.syntax.nodes import Access, Binary, Literal, Name, Node
from tool_specs.language.types import NUMBER_KINDS, TEXT_KINDS

_INDEXABLE = TEXT_KINDS | NUMBER_KINDS | {"boolean"}


class Probe(NamedTuple):
    field: str
    value: Callable[[Env], Any]
    unique: bool
    """The field is the key: at most one row."""
    optional: bool
    """`x == null or row.field == x`: no restriction when the value is null."""


ProbePlan = tuple[Probe, ...]


class Planned(NamedTuple):
    plan: ProbePlan
    covers: bool
    """The indexes let through just the rows that match, so that a page costs a page however many
    rows there are. Otherwise rows may be looked at that do not match, at worst all of them."""


def plan_of(
    where: Node, entity: EntitySpec, name: str, outer: Scope, keys: Mapping[str, str]
) -> Planned:
    """Probes of the terms joined by `and`; `outer` is the scope without the candidate row, `keys`
    the key field of each entity."""
    probes: dict[str, Probe] = {}
    covers, lists = True, 0
    for term in map(partial(_at_row, entity=entity, name=name, keys=keys), terms(where)):
        found = _equality(term, name)
        optional = False
        if found is None:
            found, optional = _optional_equality(term, name), True
        if found is None or found[0] in probes or not _indexable(entity, *found):
            covers = False
            continue
        field, value, element = found
        if element and lists:
            covers = False  # an index of two lists would hold each row under every pair
            continue
        lists += element
        run = compile_expression(value, outer).run
        probes[field] = Probe(field, run, field == entity.key, optional)
    return Planned(tuple(probes.values()), covers)


def _at_row(node: Node, entity: EntitySpec, name: str, keys: Mapping[str, str]) -> Node:
    """The term with `ticket.showing.showing_id` as the `ticket.showing_id` that it equals."""
    match node:
        case Access(base=Access(base=Name(name=row) as base, field=step), field=key) if row == name:
            for field in (step, f"{step}_id"):
                ref = entity.fields.get(field)
                if ref is not None:
                    same = ref.type == "ref" and keys.get(ref.to or "") == key
                    return replace(node, base=base, field=field) if same else node
    inner = [_at_row(child, entity, name, keys) for child in children_of(node)]
    return rebuilt(node, inner)


def _equality(term: Node, name: str) -> tuple[str, Node, bool] | None:
    """(field, the other side, whether it asks for an element of a list field)."""
    if not isinstance(term, Binary) or term.operator not in ("==", "in"):
        return None
    sides = [(term.right, term.left)]
    if term.operator == "==":
        sides.append((term.left, term.right))
    for field, value in sides:
        if isinstance(field, Access) and field.base == Name(name) and name not in names_in(value):
            return field.field, value, term.operator == "in"
    return None


def _optional_equality(term: Node, name: str) -> tuple[str, Node, bool] | None:
    """`x == null or <equality with x>`, the idiom of an optional filter."""
    if not isinstance(term, Binary) or term.operator != "or":
        return None
    found = _equality(term.right, name)
    if found is None:
        return None
    null, value = Literal(None), found[1]
    tests = (Binary("==", value, null), Binary("==", null, value))
    return found if term.left in tests else None


def _indexable(entity: EntitySpec, field: str, value: Node, element: bool) -> bool:
    spec = entity.fields.get(field)
    if spec is None or (spec.type == "list") != element:
        return False
    return (spec.of if element else spec.type) in _INDEXABLE
