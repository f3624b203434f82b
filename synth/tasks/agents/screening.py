"""Near-duplicates among agents and among personas: much the same words for much the same thing.

Prompts are compared by their word 3-grams, without those of the domain's own description and rules,
which all of its agents have; near is a Jaccard similarity of 0.8, of the tools as well. Personas
are compared by the 3-grams of background and sample where style, occupation and language are the
same; near is 0.5, for such texts are short. A row is compared with those planned before it and
kept, so what becomes of it hangs on nothing that a larger run adds. Pairs are found by prefixes:
two sets so alike share one of the first 3-grams in any fixed order, which an index of those finds.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from typing import NamedTuple

from records.tables.schemas import Row
from synth.tasks.agents.agents import AgentPlan, AgentSource
from synth.tasks.agents.personas import PersonaPlan
from tool_specs.coverage.duplicates import THRESHOLD, Shingles, jaccard, shingles_of

SCREEN_VERSION = 1
"""Raised when the same agents or personas would be told apart otherwise."""

PERSONA_THRESHOLD = 0.5
"""Jaccard similarity from which two personas of the same attributes are one."""


class Screened(NamedTuple):
    """A row as it is compared."""

    row_id: str
    key: Hashable
    """Rows of different keys are never alike."""
    grams: Shingles


def near_repeats(agents: Iterable[Row], sources: Iterable[AgentSource]) -> dict[str, str]:
    """agent_id -> the kept agent that it repeats. `agents` in the order in which they were planned;
    `sources` are those that they were made for."""
    source_of = {(source.domain_id, source.server): source for source in sources}
    rows = {row["agent_id"]: row for row in agents}
    shared: dict[str, Shingles] = {}
    screened: list[Screened] = []
    for agent_id, row in rows.items():
        source = source_of[row["domain_id"], row["server"]]
        key = source.key
        if key not in shared:
            shared[key] = _of_all(source)
        screened.append(Screened(agent_id, key, shingles_of([row["system_prompt"]]) - shared[key]))
    return _repeats(screened, THRESHOLD, lambda a, b: _same_tools(rows[a], rows[b]))


def near_personas(personas: Iterable[Row]) -> dict[str, str]:
    """persona_id -> the kept persona that it repeats. `personas` in the order in which they were
    planned."""
    screened = (
        Screened(
            row["persona_id"],
            (row["communication_style"], row["occupation"], row["language"]),
            shingles_of([row["background"], row["sample"] or ""]),
        )
        for row in personas
    )
    return _repeats(screened, PERSONA_THRESHOLD, lambda _one, _other: True)


def _repeats(
    rows: Iterable[Screened], threshold: float, alike: Callable[[str, str], bool]
) -> dict[str, str]:
    """row_id -> the first kept one before it that is near and, by their ids, `alike`."""
    found: dict[str, str] = {}
    kept: dict[Hashable, dict[tuple[str, ...], list[Screened]]] = {}
    for row in rows:
        index = kept.setdefault(row.key, {})
        size = len(row.grams)
        prefix = sorted(row.grams)[: size + int(-threshold * size) + 1]
        near = {other.row_id: other for gram in prefix for other in index.get(gram, ())}
        repeated = [
            other.row_id
            for other in near.values()
            if jaccard(row.grams, other.grams) >= threshold and alike(other.row_id, row.row_id)
        ]
        if repeated:
            found[row.row_id] = min(repeated)
            continue
        for gram in prefix:
            index.setdefault(gram, []).append(row)
    return found


def undecided(
    plans: Iterable[AgentPlan],
    agents: Iterable[Row],
    pending: Set[str],
    repeats: Mapping[str, str],
) -> set[str]:
    """Ids of agents of which nobody can say yet whether they repeat another: the `pending` ones,
    which have no row, those of `agents` that may turn out to repeat one of them, and those that
    `repeats` gives to such an agent. `plans` in their order."""
    rows = {row["agent_id"]: row for row in agents}
    found: set[str] = set()
    unseen: dict[str, list[Row]] = {}
    for plan in plans:
        others = unseen.setdefault(plan.source.key, [])
        planned = {"tool_ids": [tool["tool_id"] for tool in plan.tools]}
        if plan.item_id in pending:
            found.add(plan.item_id)
            others.append(planned)
        elif plan.item_id in rows and (
            any(_same_tools(other, planned) for other in others)
            or repeats.get(plan.item_id) in found
        ):
            found.add(plan.item_id)
    return found


def undecided_personas(
    plans: Iterable[PersonaPlan], pending: Set[str], repeats: Mapping[str, str]
) -> set[str]:
    """The same of personas: one may repeat any before it of the same attributes."""
    found: set[str] = set()
    unseen: set[Hashable] = set()
    for plan in plans:
        key = (plan.style, plan.attributes.occupation, plan.attributes.language)
        if plan.item_id in pending:
            unseen.add(key)
            found.add(plan.item_id)
        elif key in unseen or repeats.get(plan.item_id) in found:
            found.add(plan.item_id)
    return found


def _of_all(source: AgentSource) -> Shingles:
    """What every agent of the source has in its prompt."""
    return frozenset().union(
        *map(shingles_of, ([text] for text in (source.title, source.description, *source.policy)))
    )


def _same_tools(one: Row, other: Row) -> bool:
    own, others = set(one["tool_ids"]), set(other["tool_ids"])
    return len(own & others) >= THRESHOLD * len(own | others)
