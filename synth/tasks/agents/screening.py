"""Near-duplicates among agents: much the same prompt over much the same tools.

Prompts are compared by their word 3-grams, without those of the domain's own description and rules,
which all of its agents have; near is a Jaccard similarity of 0.8, of the tools as well. An agent is
compared with those planned before it and kept, so what becomes of it hangs on nothing that a larger
run adds. Pairs are found by prefixes: two sets so alike share one of the first fifth of their
3-grams in any fixed order, which an index of those finds.
"""

from collections.abc import Iterable, Mapping, Set

from records.tables.schemas import Row
from synth.tasks.agents.agents import AgentPlan, AgentSource
from tool_specs.coverage.duplicates import THRESHOLD, Shingles, is_near, shingles_of

SCREEN_VERSION = 1
"""Raised when the same agents would be told apart otherwise."""


def near_repeats(agents: Iterable[Row], sources: Iterable[AgentSource]) -> dict[str, str]:
    """agent_id -> the kept agent that it repeats. `agents` in the order in which they were planned;
    `sources` are those that they were made for."""
    source_of = {(source.domain_id, source.server): source for source in sources}
    rows = {row["agent_id"]: row for row in agents}
    found: dict[str, str] = {}
    shared: dict[str, Shingles] = {}
    kept: dict[str, dict[tuple[str, ...], list[tuple[str, Shingles]]]] = {}
    for agent_id, row in rows.items():
        source = source_of[row["domain_id"], row["server"]]
        key = source.key
        if key not in shared:
            shared[key] = _of_all(source)
        grams = shingles_of([row["system_prompt"]]) - shared[key]
        index = kept.setdefault(key, {})
        prefix = sorted(grams)[: len(grams) + int(-THRESHOLD * len(grams)) + 1]
        near = {pair for gram in prefix for pair in index.get(gram, ())}
        alike = [other for other, own in near if is_near(grams, own)]
        alike = [other for other in alike if _same_tools(rows[other], row)]
        if alike:
            found[agent_id] = min(alike)
            continue
        for gram in prefix:
            index.setdefault(gram, []).append((agent_id, grams))
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


def _of_all(source: AgentSource) -> Shingles:
    """What every agent of the source has in its prompt."""
    return frozenset().union(
        *map(shingles_of, ([text] for text in (source.title, source.description, *source.policy)))
    )


def _same_tools(one: Row, other: Row) -> bool:
    own, others = set(one["tool_ids"]), set(other["tool_ids"])
    return len(own & others) >= THRESHOLD * len(own | others)
