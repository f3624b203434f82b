"""Stages, items and the shard plan: what a run does, cut into units of commit.

A stage turns the committed rows of earlier stages into items, and an item into rows. Item i is the
same item whatever the count, the concurrency or the shard size, so a plan only ever grows: a
resumed run keeps the shards that were planned and cuts new ones from items not yet planned.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from records.errors import BudgetError, ConfigError, UnavailableError
from records.files import write_atomic
from records.store.dataset import ItemStatus
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.llm.client import LLM

WINDOW_SHARDS = 10_000_000
"""Indexes that the shards of one window of a stage may have."""

KEPT = ItemStatus("kept", None)

StopReason = BudgetError | ConfigError | UnavailableError
"""Why nothing new starts in a run: the budget is spent, an endpoint refuses us, one is gone."""


@dataclass(frozen=True, slots=True)
class Item:
    """One unit of work: an agent to write, a task to prove, an episode to roll out."""

    item_id: str
    """Digest of what decides the item: the key for commits, journals and random draws."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the stage needs to make it; recomputed on resume, never stored."""
    waits_for: str | None = None
    """The stage in which an item that it is made from was left pending: it is asked for, and nobody
    makes it yet. Its id may be another one then."""


@dataclass(frozen=True, slots=True)
class ItemResult:
    tables: Mapping[str, Sequence[Row]]
    status: ItemStatus = KEPT
    noted: Mapping[str, int] = field(default_factory=dict)
    """What is no failure and still worth counting, by name; summed over the shard in `timings`."""


def dropped(reason: str) -> ItemResult:
    """An item that was made and found unfit: counted by its reason, and no row is written."""
    return ItemResult({}, ItemStatus("dropped", reason))


@dataclass(frozen=True, slots=True)
class ShardContext:
    """What the maker of an item may use. One journal and one ledger a shard."""

    llm: LLM
    journal: ShardJournal


class Stage(Protocol):
    """What the runner needs to know of a stage. Versions are part of the item ids."""

    name: str
    """Kebab-case; names the tasks of the flow, the plan and the journals."""

    # A stage class with `runs_in_workers = True` may have its shards made in other processes. Each
    # makes a stage of its own from its context and is given the items with the shard, so items hold
    # ids and small values; `make` reads the rest.
    #
    # One with `needs_all = True` looks at everything that the stages before it made, so it waits
    # until no item of theirs is pending for what was around it: a decision over less would be
    # another one.
    #
    # One with a number `window` is a part of its stage, which is too large to be planned as a whole
    # (`synth.engine.windows`): it has a plan of its own, and shards that are numbered from
    # `window * WINDOW_SHARDS` on.
    #
    # One with `reopens = False` decides what all items after it are. What an earlier version of the
    # program committed as failed by what was around it stays so there: with it, whatever was made
    # since would be another.

    def plan(self) -> list[Item]:
        """Every item of the run, in a fixed order, from the config, committed rows and the ids that
        earlier stages planned. Called once an invocation, or once a round."""
        ...

    async def make(self, item: Item, shard: ShardContext) -> ItemResult:
        """Rows of one item. `ItemError` fails the item; `TransientError` has it tried again, as
        has a status "failed" with a reason in `plans.AROUND`."""
        ...


def plan_shards(
    path: Path, items: Sequence[Item], *, done: set[str], shard_size: int
) -> list[list[str]]:
    """The stage's shards as lists of item ids, written to `path` before any work.

    Shards planned earlier are kept as they are. Items neither planned nor committed (`done`) are
    cut into new shards of `shard_size`.
    """
    if shard_size < 1:
        raise ConfigError(f"shard_size must be at least 1, got {shard_size}")
    shards: list[list[str]] = json.loads(path.read_text()) if path.exists() else []
    planned = {item_id for shard in shards for item_id in shard}
    new = [i.item_id for i in items if i.item_id not in planned and i.item_id not in done]
    grown = shards + [new[at : at + shard_size] for at in range(0, len(new), shard_size)]
    if grown != shards:
        write_atomic(path, json.dumps(grown).encode())
    return grown


def write_planned(path: Path, ids: Sequence[str]) -> None:
    """Keep a stage's item ids in their order beside its shard plan, for the stages after it."""
    write_atomic(_planned_file(path), json.dumps(ids).encode())


def planned_before(path: Path, stage: str) -> list[str]:
    """The ids that `write_planned` kept. ConfigError where there are none."""
    try:
        return json.loads(_planned_file(path).read_text())
    except FileNotFoundError as error:
        raise ConfigError(
            f"this version has not planned the stage {stage!r} of this run in this dataset; "
            "`synth run` with the same settings plans every stage and makes nothing twice"
        ) from error


def _planned_file(path: Path) -> Path:
    return path.with_name(f"{path.stem}.items")
