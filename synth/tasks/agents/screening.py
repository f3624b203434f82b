"""Near-duplicates among agents and among personas: much the same words for much the same thing.

Prompts of one domain or server are compared by their skeletons (`skeletons.py`): two that differ in
names, numbers and words of tools alone are one prompt, whatever tools stand beside it; near is a
Jaccard similarity of 0.8. Personas are compared by the 3-grams of background and sample where
style, occupation and language are the same; near is 0.5, for such texts are short. A row is
compared with those planned before it and kept, so what becomes of it hangs on nothing that a larger
run adds. Pairs are found by prefixes: two sets so alike share one of the first grams in any fixed
order, which an index of those finds.
"""

from collections.abc import Hashable, Iterable, Mapping, Set
from typing import NamedTuple

from records.tables.schemas import Row
from synth.tasks.agents.agents import AgentPlan, AgentSource
from synth.tasks.agents.personas import PersonaPlan
from synth.tasks.agents.skeletons import skeleton_of, words_of
from tool_specs.coverage.duplicates import THRESHOLD, Shingles, jaccard, shingles_of

SCREEN_VERSION = 3
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
    words: dict[str, frozenset[str]] = {}
    screened: list[Screened] = []
    for row in agents:
        source = source_of[row["domain_id"], row["server"]]
        if source.key not in words:
            words[source.key] = _own_words(source)
        skeleton = skeleton_of(row["system_prompt"], words[source.key])
        screened.append(Screened(row["agent_id"], source.key, skeleton))
    return _repeats(screened, THRESHOLD)


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
    return _repeats(screened, PERSONA_THRESHOLD)


def _repeats(rows: Iterable[Screened], threshold: float) -> dict[str, str]:
    """row_id -> a kept one before it that is near."""
    found: dict[str, str] = {}
    kept: dict[Hashable, dict[tuple[str, ...], list[Screened]]] = {}
    for row in rows:
        index = kept.setdefault(row.key, {})
        size = len(row.grams)
        prefix = sorted(row.grams)[: size + int(-threshold * size) + 1]
        near = {other.row_id: other for gram in prefix for other in index.get(gram, ())}
        repeated = [
            other.row_id for other in near.values() if jaccard(row.grams, other.grams) >= threshold
        ]
        if repeated:
            found[row.row_id] = min(repeated)
            continue
        for gram in prefix:
            index.setdefault(gram, []).append(row)
    return found


def undecided(
    plans: Iterable[AgentPlan], pending: Set[str], repeats: Mapping[str, str]
) -> set[str]:
    """Ids of agents of which nobody can say yet whether they repeat another: the `pending` ones,
    which have no row, those after them of the same domain or server, which may turn out to repeat
    one of them, and those that `repeats` gives to such an agent. `plans` in their order."""
    return _undecided(((plan.item_id, plan.source.key) for plan in plans), pending, repeats)


def undecided_personas(
    plans: Iterable[PersonaPlan], pending: Set[str], repeats: Mapping[str, str]
) -> set[str]:
    """The same of personas: one may repeat any before it of the same attributes."""
    keys = (
        (plan.item_id, (plan.style, plan.attributes.occupation, plan.attributes.language))
        for plan in plans
    )
    return _undecided(keys, pending, repeats)


def _undecided(
    keys: Iterable[tuple[str, Hashable]], pending: Set[str], repeats: Mapping[str, str]
) -> set[str]:
    found: set[str] = set()
    unseen: set[Hashable] = set()
    for row_id, key in keys:
        if row_id in pending:
            unseen.add(key)
            found.add(row_id)
        elif key in unseen or repeats.get(row_id) in found:
            found.add(row_id)
    return found


def _own_words(source: AgentSource) -> frozenset[str]:
    """What the source's tools and its own description put into every prompt."""
    texts = [source.title, source.description, *source.policy]
    for tool in source.tools:
        texts += (tool["name"], tool["description"])
    return words_of(texts)
