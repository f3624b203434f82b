"""One batch of a domain: which operators are asked for how many tools, of which parents.

Batch 0 derives tools from the domain alone. Later batches go on with that, and mix in the
operators that make tools of tools. All draws hang on the item and on what the batch may see, never
on how many tools are wanted in all.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

from records.digest import digest
from records.seeds import rng_of, seed_of
from synth.catalogue.evolution.cells import EvolutionCell, cell_of, cells_of, emptiest
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.snapshot import KnownTool
from synth.catalogue.proposals.describing import PROMPT as DESCRIBED
from synth.catalogue.proposals.wire import ProposalWire, WireError, wire_of
from synth.prompts.templates import version_of
from tool_specs.domains.domain import Domain
from tool_specs.language.statements import WRITING_OPS

STAGE_VERSION = 4
"""Raised when the same answers would give other rows."""

EvolveOperator = Literal[
    "derive", "deepen", "broaden", "constrain", "compose", "write", "write_device"
]
"""The last two are those of `synth domain write`, whose requests plan the shapes of their tools."""

ON_TOOLS: tuple[EvolveOperator, ...] = ("deepen", "broaden", "constrain", "compose")
OPERATORS: tuple[EvolveOperator, ...] = ("derive", *ON_TOOLS)
IN_TIME: frozenset[EvolveOperator] = frozenset({"write_device"})
"""Operators whose tools may say how long a call takes."""
REPAIR = "tools_repair"

OFFERED = 2
"""Parents that are shown for each tool wanted."""

WAYS: dict[str, tuple[str, ...]] = {
    "deepen": (
        "optional parameters that change what it does",
        "an object parameter with several members",
        "an array parameter, each item checked",
        "a richer result with figures",
        "a further effect on a related row",
        "a part that is done only when asked for",
    ),
    "constrain": (
        "a rule of the domain as precondition",
        "a limit on an amount",
        "a limit on dates",
        "the state of a related row",
        "no second one of its kind",
        "only some kinds of rows",
    ),
    "compose": (
        "the second acts on what the first found",
        "the second acts on what the first changed",
        "both happen or neither does",
        "the second reports on what the first did",
    ),
}
"""What the tools of an operator should gain, besides the cells that they fall into."""


class RequestGroup(NamedTuple):
    """The tools of one request."""

    operator: EvolveOperator
    size: int
    aims: list[str]
    """One for each tool wanted."""
    parents: list[tuple[KnownTool, ...]]
    """What the tools may be made of: single tools, or pairs. More than are wanted, since not every
    one gives something new; empty for derive."""
    wires: list[tuple[ProposalWire, ...]]
    """The parents as the model reads them."""
    draw: int
    """For variety: another batch of the same domain has another."""
    shapes: Sequence[str] = ()
    """Of the operators that write: one for each tool wanted."""
    elsewhere: Sequence[str] = ()
    """Aims of the requests that are answered at the same time."""


class EvolutionBatch(NamedTuple):
    item_id: str
    domain: Domain
    domain_id: str
    number: int
    known: Sequence[KnownTool]
    """The domain's tools that the batch may see, in order of ids."""
    groups: Sequence[RequestGroup]


def prompt_of(operator: str) -> str:
    return f"tools_{operator}"


def prompt_version(operator: str) -> str:
    return digest(version_of(prompt_of(operator)), version_of(REPAIR))


def base_of(config: EvolveConfig) -> str:
    """What all item ids of a run hang on: models, sampling, prompts, seed and sizes, and of newer
    settings those that are not as they always were."""
    generator = config.roles["generator"]
    prompts = {operator: prompt_version(operator) for operator in OPERATORS}
    younger = config.ADDED_LATER.keys() - {"prompts"}  # whose versions are there already
    changed = {k: v for k, v in config.identity().items() if k in younger}
    if config.judges_descriptions:
        changed |= {"judge": config.roles["judge"].identity(), "described": version_of(DESCRIBED)}
    return digest(
        *("evolve", STAGE_VERSION, config.seed, config.batch_size, generator.identity(), prompts),
        *([changed] if changed else []),
    )


def item_id_of(base: str, domain_id: str, batch: int) -> str:
    return digest(base, domain_id, batch)


def groups_of(
    item_id: str, domain: Domain, batch: int, known: Sequence[KnownTool], config: EvolveConfig
) -> list[RequestGroup]:
    """The requests of a batch. `known` is what the batch may see, in order of ids."""
    rng = rng_of(item_id, "groups")
    taken = [cell_of(domain, tool.semantics) for tool in known]
    parents = _parents(known, config.max_generation, rng)
    size = config.batch_size
    shares = _shares(batch, size, config.derived_share) if batch and parents else {}
    derived = size - sum(shares.values())
    aims = [cell.aim for cell in emptiest(cells_of(domain), taken, derived, rng)]
    groups = [RequestGroup("derive", derived, aims, [], [], _draw(item_id, "derive"))]
    for operator, count in shares.items():
        chosen = _chosen(operator, parents, count * OFFERED, rng)
        if not chosen:
            continue
        groups.append(
            RequestGroup(
                operator,
                count,
                _aims(operator, domain, taken, count, rng),
                [tuple(tool for tool, _ in some) for some in chosen],
                [tuple(wire for _, wire in some) for some in chosen],
                _draw(item_id, operator),
            )
        )
    return groups


_Parent = tuple[KnownTool, ProposalWire]


def _draw(item_id: str, operator: str) -> int:
    return seed_of(item_id, f"draw:{operator}") % 1_000_000


def _shares(batch: int, size: int, derived_share: float) -> dict[EvolveOperator, int]:
    """What the operators on tools get of a batch, the rest being derived: as evenly as it goes,
    what is left over goes round."""
    least, left = divmod(size - round(size * derived_share), len(ON_TOOLS))
    order: list[EvolveOperator] = [
        ON_TOOLS[(batch + i) % len(ON_TOOLS)] for i in range(len(ON_TOOLS))
    ]
    return {operator: least + (i < left) for i, operator in enumerate(order)}


def _parents(known: Sequence[KnownTool], max_generation: int, rng: Random) -> list[_Parent]:
    """Those that can be shown to a model: fewest children first, then young generations."""
    children = Counter(tool.row["parent_id"] for tool in known)
    order = {tool.tool_id: rng.random() for tool in known}
    ranked = sorted(
        (tool for tool in known if tool.row["generation"] < max_generation),
        key=lambda t: (children[t.tool_id] + t.row["generation"], order[t.tool_id]),
    )
    found: list[_Parent] = []
    for tool in ranked:
        try:
            found.append((tool, wire_of(tool.spec())))
        except WireError:
            continue
    return found


def _chosen(
    operator: EvolveOperator, parents: list[_Parent], count: int, rng: Random
) -> list[tuple[_Parent, ...]]:
    """`count` parents, or pairs of them, or as many as there are."""
    if operator == "compose":
        return _pairs(parents, count, rng)
    pool = parents
    if operator == "constrain":  # a reading tool has little to forbid
        pool = [p for p in parents if _writes(p[0])] or parents
    wide = pool[: count * 2]
    return [(parent,) for parent in rng.sample(wide, min(count, len(wide)))]


def _pairs(parents: list[_Parent], count: int, rng: Random) -> list[tuple[_Parent, ...]]:
    """Two tools that meet in an entity, the second of which writes or sums up."""
    found: list[tuple[_Parent, ...]] = []
    seen: set[tuple[str, str]] = set()
    for _ in range(count * 12):
        if len(found) == count or len(parents) < 2:
            break
        one, other = rng.sample(parents, 2)
        pair = (one[0].tool_id, other[0].tool_id)
        meets = _entities(one[0]) & _entities(other[0])
        if pair in seen or not meets or not (_writes(one[0]) or _writes(other[0])):
            continue
        seen.add(pair)
        found.append((one, other))
    return found


def _writes(tool: KnownTool) -> bool:
    return any(statement["op"] in WRITING_OPS for statement in tool.semantics)


def _entities(tool: KnownTool) -> set[str]:
    return {statement["entity"] for statement in tool.semantics if "entity" in statement}


def _aims(
    operator: EvolveOperator,
    domain: Domain,
    taken: Sequence[EvolutionCell],
    count: int,
    rng: Random,
) -> list[str]:
    if operator == "broaden":
        return [cell.aim for cell in emptiest(cells_of(domain), taken, count, rng)]
    ways = list(WAYS[operator])
    rng.shuffle(ways)
    return [ways[i % len(ways)] for i in range(count)]
