"""How much of the scored tasks stands in the training tasks: what a sceptic asks first."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.digest import canonical_json
from records.store.dataset import Dataset
from records.tables.schemas import Row
from records.tables.splits import SPLITS
from trainer.evaluation.playing import EpisodeScore


class KindOverlap(NamedTuple):
    """Of the scored tasks of a kind."""

    tasks: int
    goals: Counter[str]
    """Complexity -> tasks."""
    plans: int
    """Whose reference plan, tools and arguments, is a training task's."""
    calls: int
    """Calls of the reference plans."""
    calls_seen: int
    """Those that stand word for word in a training task's."""
    known_tools: int
    """Tasks that take tools, all of which are in a training task's plan."""


def overlap_of(dataset: Dataset, episodes: Iterable[EpisodeScore]) -> dict[str, KindOverlap]:
    """Split -> what its scored tasks share with the training split, for every split. A task without
    calls shares no plan."""
    columns = ("task_id", "domain_id", "split", "complexity", "reference_plan")
    tasks = {row["task_id"]: row for row in dataset.rows("tasks", columns)}
    trained = [row for row in tasks.values() if row["split"] == "train"]
    plans = {_plan(row) for row in trained}
    calls = {call for row in trained for call in _calls(row)}
    found: dict[str, list[tuple[Row, EpisodeScore]]] = {split: [] for split in SPLITS}
    for one in episodes:
        found[one.split].append((tasks[one.task_id], one))
    return {split: _of_kind(rows, plans, calls) for split, rows in found.items()}


def _of_kind(
    rows: Sequence[tuple[Row, EpisodeScore]], plans: set[str], calls: set[str]
) -> KindOverlap:
    made = [call for row, _ in rows for call in _calls(row)]
    return KindOverlap(
        tasks=len(rows),
        goals=Counter(row["complexity"] for row, _ in rows),
        plans=sum(bool(row["reference_plan"]) and _plan(row) in plans for row, _ in rows),
        calls=len(made),
        calls_seen=sum(call in calls for call in made),
        known_tools=sum(bool(row["reference_plan"]) and one.known_tools for row, one in rows),
    )


def _plan(row: Row) -> str:
    return json.dumps(sorted(_calls(row)))


def _calls(row: Row) -> list[str]:
    return [_call(row["domain_id"], call) for call in row["reference_plan"]]


def _call(domain: str | None, call: Mapping[str, Any]) -> str:
    return canonical_json([domain, call["tool"], call["arguments"]])
