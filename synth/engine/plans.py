"""A stage's plan, the work of one shard, and what came of both."""

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from records.errors import SynthError
from records.store.dataset import ItemStatus, StagedCommit
from synth.engine.stages import Item

UNAVAILABLE = "endpoint_unavailable"
AROUND = frozenset({UNAVAILABLE, "infra_error"})
"""Failures that no answer caused: a retry goes on from the answers that were paid for."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    planned: list[Item]
    """Every item of the stage, in the order of its plan."""
    items: dict[str, Item]
    """Those of them that are wanted, by id: all, but in a pilot."""
    shards: list[list[str]]
    open_shards: list[int]
    """Indexes of the shards with an item that is not committed."""
    done: dict[str, ItemStatus]
    """Items committed before this invocation, by this run or an earlier one."""
    retry_numbers: dict[str, int]
    """Items -> how often what models answered has failed them: they are asked anew, with another
    seed, since the same answers would come from the journal and fail again."""
    plan_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells one plan of a stage from the next: what a stage has read is as old as its plan."""

    @property
    def num_items(self) -> int:
        return len(self.items)

    @property
    def num_reused(self) -> int:
        return sum(item_id in self.done for item_id in self.items)

    def open_items(self, index: int) -> list[Item]:
        """Those of the shard that are not committed."""
        ids = self.shards[index]
        return [self.items[i] for i in ids if i in self.items and i not in self.done]

    def is_settled(self, index: int, made: Mapping[str, ItemStatus]) -> bool:
        """Whether nothing can come of the shard's journal any more: with `made`, every item that
        was ever planned for it is committed, and none of them would go on from its answers."""
        statuses = [made.get(i) or self.done.get(i) for i in self.shards[index]]
        return all(status and status.reason not in AROUND for status in statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardWork:
    """One shard to be made, in whichever process."""

    stage: str
    index: int
    items: list[Item]
    retry_numbers: dict[str, int]
    """As in the plan, for these items."""
    total: int
    """Items of the stage, for who watches."""
    again: bool
    """Its rows replace committed ones with the same key."""

    @property
    def key(self) -> tuple[str, int]:
        return self.stage, self.index


@dataclass(frozen=True, slots=True)
class MadeShard:
    """What an executor hands over for a shard."""

    index: int
    statuses: dict[str, ItemStatus]
    seconds: float
    staged: StagedCommit
    """Its rows, written and not yet committed."""


@dataclass(frozen=True, slots=True)
class ShardReport:
    index: int
    statuses: dict[str, ItemStatus]
    seconds: float

    def summary(self) -> str:
        counts = Counter(status.status for status in self.statuses.values())
        return ", ".join(f"{n} {what}" for what, n in counts.items()) + f" in {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class StageReport:
    """Every item of a stage accounted for: requested = kept + dropped + failed + pending."""

    stage: str
    requested: int
    kept: int
    dropped: int
    failed: int
    pending: int
    reused: int
    reasons: dict[str, int]

    def row(self) -> dict[str, str | int]:
        """For a table that people read: one row a stage."""
        counts = ("requested", "kept", "dropped", "failed", "pending", "reused")
        return {
            "stage": self.stage,
            **{name: getattr(self, name) for name in counts},
            "reasons": ", ".join(f"{reason} {n}" for reason, n in self.reasons.items()),
        }

    def summary(self) -> str:
        counts = ("kept", "dropped", "failed", "pending")
        said = ", ".join(f"{n} {name}" for name in counts if (n := getattr(self, name)))
        reused = f", {self.reused} of them done before" if self.reused else ""
        return f"{said or 'nothing'} of {self.requested} requested{reused}"

    def check(self, max_failed: float) -> None:
        """A stage must not end green on a broken endpoint."""
        if self.failed > max_failed * self.requested:
            worst = max(self.reasons, key=lambda reason: self.reasons[reason])
            raise SynthError(
                f"{self.stage}: {self.failed} of {self.requested} items failed "
                f"(max_failed = {max_failed:g}), most often by {worst}; "
                "the reasons stand in the table `stages`"
            )
