"""The plan of a domain's tools: what kind each is, of which entity, and which shape it has.

Shapes are drawn so that a whole catalogue comes near those of real servers (`REAL`); a model that
is left alone writes tools that are all alike.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from synth.catalogue.evolution.cells import EvolutionCell, cells_of, emptiest
from tool_specs.coverage.believability import REAL
from tool_specs.domains.domain import Domain

ORDER = (
    *("search", "move", "get", "create", "move", "report"),
    *("search", "update", "move", "get", "create", "bulk"),
    *("search", "move", "update", "report", "link", "delete"),
)
"""Kinds of tools in the order in which a domain gets them: those that people use every day first.
The order begins again where it ends."""

PARAMS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7)
"""Numbers of parameters to draw from, as real tools that have any."""

MOST = {"get": 2, "delete": 2, "move": 3, "link": 3, "update": 4, "bulk": 4, "report": 4}
"""Parameters of a kind of tool at most, where more would be made up."""

NEEDED = {"search": 0, "report": 0, "create": 2, "bulk": 2}
"""Parameters that a kind cannot do without, 1 of the others: the id of what it is about."""

OPTIONAL = 0.78
"""Share of the other parameters that are optional, so that it is a half of all."""

PAGED = 0.4
"""Share of lists that come in pages."""

SPECIAL = {
    "object_params": "an object",
    "object_list_params": "a list of objects",
    "enum_params": "an enum",
}
RARER = 1.6
"""Makes up for tools that have no room for a special parameter."""

_LISTING = ("search", "report")


class PlannedTool(NamedTuple):
    aim: str
    """Entity and kind, as evolution words them."""
    shape: str
    """In words for the model."""


def planned(
    domain: Domain, taken: Sequence[EvolutionCell], count: int, rng: Random
) -> list[PlannedTool]:
    """`count` tools that the domain lacks. `taken`: the cells of the tools that it has."""
    cells = cells_of(domain)
    kinds = {cell.kind for cell in cells}
    order = [kind for kind in ORDER if kind in kinds]
    have = list(taken)
    chosen: list[EvolutionCell] = []
    for place in range(len(have), len(have) + count):
        kind = order[place % len(order)]
        [cell] = emptiest([c for c in cells if c.kind == kind], have, 1, rng)
        have.append(cell)
        chosen.append(cell)
    bare = _bare(chosen, rng)
    return [
        PlannedTool(cell.aim, NO_PARAMS if n in bare else _shape(cell.kind, rng))
        for n, cell in enumerate(chosen)
    ]


NO_PARAMS = "no parameters"


def _bare(chosen: Sequence[EvolutionCell], rng: Random) -> set[int]:
    """Which tools take no parameters: those that list or sum up, as many as real ones."""
    listing = [n for n, cell in enumerate(chosen) if cell.kind in _LISTING]
    share = REAL["without_params"] * len(chosen)
    wanted = int(share) + (rng.random() < share % 1)
    return set(rng.sample(listing, min(wanted, len(listing))))


def _shape(kind: str, rng: Random) -> str:
    """Of one tool with parameters: how many, how many of them optional, and what is special."""
    needed = NEEDED.get(kind, 1)
    number = max(min(rng.choice(PARAMS), MOST.get(kind, max(PARAMS))), needed, 1)
    optional = sum(rng.random() < OPTIONAL for _ in range(number - needed))
    words = [_counted(number, "parameter")]
    if optional:
        given = REAL["default_params"] / REAL["optional_params"]
        defaults = sum(rng.random() < given for _ in range(optional))
        words.append(f"{optional} of them optional")
        words += [f"{defaults} of these with a default"] if defaults else []
    special = [s for name, s in SPECIAL.items() if rng.random() < REAL[name] * number * RARER]
    if special and number > needed:
        words.append(f"one is {rng.choice(special)}")
    if kind == "search" and rng.random() < PAGED:
        words.append("pages by limit and cursor beside them")
    return ", ".join(words)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number > 1 else "")
