"""Cells of a domain: what kind of thing its tools do to which entity, and which are empty.

Evolution asks for the emptiest cells first, so that a domain's tools cover it before they crowd.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.language.statements import WRITING_OPS

KINDS = {
    "get": "look one up",
    "search": "search or list",
    "report": "figures over many",
    "create": "make one",
    "update": "change one",
    "move": "move one on",
    "bulk": "change many in one call",
    "link": "add to or take out of a list",
    "delete": "remove one",
}
"""Kind of tool -> the words in which a generator is asked for it."""

_FIGURES = re.compile(r"\b(?:count|sum|min|max)\(")


class EvolutionCell(NamedTuple):
    entity: str
    kind: str
    move: str = ""
    """Of kind `move`: which of the lifecycle."""

    @property
    def aim(self) -> str:
        """For the model: `booking: move one on (check_in)`."""
        return f"{self.entity}: {KINDS[self.kind]}" + (f" ({self.move})" if self.move else "")


def cells_of(domain: Domain) -> list[EvolutionCell]:
    """Every cell that the domain has, in order of its entities."""
    found = []
    for name, entity in domain.entities.items():
        kinds = ["get", "search", "report", "create", "update", "bulk"]
        if any(spec.type == "list" for spec in entity.fields.values()):
            kinds.append("link")
        if not domain.referrers[name]:  # a row that others refer to can hardly ever be removed
            kinds.append("delete")
        found += [EvolutionCell(name, kind) for kind in kinds]
        moves = entity.lifecycle.moves if entity.lifecycle else ()
        found += [EvolutionCell(name, "move", move.name) for move in moves]
    return found


def cell_of(domain: Domain, semantics: Sequence[Mapping[str, Any]]) -> EvolutionCell:
    """The cell of a tool, from its semantics as rows hold them."""
    bound = {s["as"]: s["entity"] for s in semantics if "as" in s and "entity" in s}
    writes = [s for s in semantics if s["op"] in WRITING_OPS]
    if not writes:
        return _reading(semantics)
    main = next((s for s in writes if s["op"] == "create"), writes[0])
    entity = main.get("entity") or bound.get(main["target"]) or next(iter(domain.entities))
    if any("in" in s for s in writes):
        return EvolutionCell(entity, "bulk")
    match main["op"]:
        case "update":
            return _changing(domain, entity, main["set"])
        case "link" | "unlink":
            return EvolutionCell(entity, "link")
    return EvolutionCell(entity, main["op"])


def _reading(semantics: Sequence[Mapping[str, Any]]) -> EvolutionCell:
    reads = [s for s in semantics if s["op"] == "read"]
    main = next((s for s in reads if "key" not in s), reads[0] if reads else None)
    if main is None:
        return EvolutionCell("", "report")
    if _FIGURES.search(str(semantics[-1].get("value"))):
        return EvolutionCell(main["entity"], "report")
    return EvolutionCell(main["entity"], "get" if "key" in main else "search")


def _changing(domain: Domain, entity: str, values: Mapping[str, str]) -> EvolutionCell:
    lifecycle = domain.entities[entity].lifecycle
    if lifecycle is None or lifecycle.field not in values:
        return EvolutionCell(entity, "update")
    to = values[lifecycle.field].strip("'")
    moves = [move.name for move in lifecycle.moves if move.to == to]
    return EvolutionCell(entity, "move", moves[0] if moves else "")


def emptiest(
    cells: Sequence[EvolutionCell], taken: Iterable[EvolutionCell], count: int, rng: Random
) -> list[EvolutionCell]:
    """`count` cells to fill next: those with the fewest tools first, each counted as it is given
    out; ties by draw."""
    tools = dict.fromkeys(cells, 0)
    for cell in taken:
        if cell in tools:
            tools[cell] += 1
    order = {cell: rng.random() for cell in cells}
    chosen = []
    for _ in range(count):
        cell = min(tools, key=lambda c: (tools[c], order[c]))
        tools[cell] += 1
        chosen.append(cell)
    return chosen
