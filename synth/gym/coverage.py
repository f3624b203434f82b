"""What tasks are about, by their tags, and weights that raise what few of them are about.

A tag is FACET:VALUE. Within a facet each value would have the same share if all were covered alike;
a task's weight is the mean over its facets of how far its values are below that.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from records.config import Config
from records.seeds import share_of
from synth.gym.core.environment import GymTask

UNTAGGED = "(none)"
"""Value of a facet that a task has no tag of."""


class CoverageSettings(Config):
    """How far tasks of under-covered tags are raised."""

    facets: tuple[str, ...] = ("kind", "category", "domain", "level")
    """Parts of tags before the colon that count; one that no task has counts nothing."""
    strength: float = Field(default=0.5, ge=0, le=1)
    """0 leaves every task alike; 1 gives every value of a lone facet the same share. Ours."""
    most: float = Field(default=8.0, ge=1)
    """Times the smallest weight that the largest may be. Ours."""


class TagCoverage(NamedTuple):
    """A row of the table."""

    facet: str
    value: str
    tasks: int
    share: float
    """Of the tasks."""
    weighted: float
    """Of the weights."""
    drawn: int
    """Tasks among those that were drawn."""


def weights(tasks: Sequence[GymTask], settings: CoverageSettings) -> dict[str, float]:
    """Task id -> weight, 1 on average. The same for the same tasks in any order."""
    if not tasks:
        return {}
    values = {task.task_id: _values(task, settings) for task in tasks}
    facets = [f for f in settings.facets if any(own[f] != [UNTAGGED] for own in values.values())]
    raised = dict.fromkeys(values, 1.0)
    if facets:
        rarity = {facet: _rarity(values, facet, settings.strength) for facet in facets}
        for task_id, own in values.items():
            by_facet = [
                math.fsum(rarity[facet][value] for value in own[facet]) / len(own[facet])
                for facet in facets
            ]
            raised[task_id] = math.fsum(by_facet) / len(facets)
    cap = min(raised.values()) * settings.most
    capped = {task_id: min(weight, cap) for task_id, weight in raised.items()}
    mean = math.fsum(sorted(capped.values())) / len(capped)
    return {task_id: weight / mean for task_id, weight in capped.items()}


def drawn(
    tasks: Sequence[GymTask], weight: Mapping[str, float], count: int, seed: int
) -> list[str]:
    """Ids of `count` different tasks, each as likely as its weight, in the order in which they were
    drawn (Efraimidis and Spirakis 2006). The same for the same tasks in any order. ValueError for
    more than there are."""
    if not 0 <= count <= len(tasks):
        raise ValueError(f"{count} of {len(tasks)} tasks cannot be drawn without repeating any")
    keys = {
        task.task_id: math.log(share_of(f"{seed}:{task.task_id}", "gym_coverage") or 2**-64)
        / weight[task.task_id]
        for task in tasks
    }
    return sorted(keys, key=lambda task_id: (-keys[task_id], task_id))[:count]


def coverage(
    tasks: Sequence[GymTask],
    weight: Mapping[str, float],
    settings: CoverageSettings,
    taken: Sequence[str] = (),
) -> list[TagCoverage]:
    """A row for each value of each facet, the rarest of a facet first. `taken`: ids that were
    drawn. Shares of a facet add up to more than 1 where tasks have several of its values."""
    total, chosen = math.fsum(weight.values()), Counter(taken)
    counted: Counter[tuple[str, str]] = Counter()
    weighed: defaultdict[tuple[str, str], float] = defaultdict(float)
    picked: Counter[tuple[str, str]] = Counter()
    for task in tasks:
        for facet, values in _values(task, settings).items():
            for value in values:
                counted[facet, value] += 1
                weighed[facet, value] += weight[task.task_id]
                picked[facet, value] += chosen[task.task_id]
    known = {facet for facet, value in counted if value != UNTAGGED}
    rows = [
        TagCoverage(
            *(facet, value, count, count / len(tasks)),
            *(weighed[facet, value] / total, picked[facet, value]),
        )
        for (facet, value), count in counted.items()
        if facet in known
    ]
    order = {facet: place for place, facet in enumerate(settings.facets)}
    return sorted(rows, key=lambda row: (order[row.facet], row.tasks, row.value))


def coverage_table(rows: Sequence[TagCoverage]) -> str:
    """The rows in Markdown."""
    lines = ["| facet | value | tasks | share | weighted | drawn |", "|---|---|--:|--:|--:|--:|"]
    lines += [
        f"| {row.facet} | {row.value} | {row.tasks} | {row.share:.1%} | {row.weighted:.1%} "
        f"| {row.drawn} |"
        for row in rows
    ]
    return "\n".join(lines)


def _values(task: GymTask, settings: CoverageSettings) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {facet: [] for facet in settings.facets}
    for tag in dict.fromkeys(task.tags):
        facet, _, value = tag.partition(":")
        if facet in found:
            found[facet].append(value)
    return {facet: own or [UNTAGGED] for facet, own in found.items()}


def _rarity(
    values: Mapping[str, Mapping[str, Sequence[str]]], facet: str, strength: float
) -> dict[str, float]:
    """Value -> (the count that an even cover gives / its own count) to the power of `strength`."""
    counts = Counter(value for own in values.values() for value in own[facet])
    even = sum(counts.values()) / len(counts)
    return {value: (even / count) ** strength for value, count in counts.items()}
