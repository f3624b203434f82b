"""A stage's plan, the work of one shard, and what came of both."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from records.errors import PendingError, SynthError
from records.store.dataset import ItemStatus, StagedCommit
from synth.engine.stages import Item

UNAVAILABLE = "endpoint_unavailable"
"""The item's last request was not answered."""

INFRA_ERROR = "infra_error"
"""Something else around the item failed: a sandbox, a server, a process."""

AROUND = frozenset({UNAVAILABLE, INFRA_ERROR})
"""Failures that no answer caused: the item stays pending, and what tries it again goes on from the
answers that were paid for."""


@dataclass(frozen=True, slots=True)
class CommittedItems:
    """What the commits of a stage say of items, whichever run made them."""

    done: dict[str, ItemStatus]
    """Those that nothing more is done for."""
    retry_numbers: Counter[str]
    """As in `StagePlan`."""
    vain_attempts: Counter[str]
    """As in `StagePlan`."""

    @classmethod
    def of(
        cls, commits: Iterable[Mapping[str, ItemStatus]], around_attempts: int
    ) -> "CommittedItems":
        """`commits`: item -> status of each commit, oldest first. What failed around an item counts
        as one attempt, whether a commit calls it pending or, as earlier versions did, failed; the
        item is open until there are `around_attempts` of them."""
        newest: dict[str, ItemStatus] = {}
        retries: Counter[str] = Counter()
        vain: Counter[str] = Counter()
        for statuses in commits:
            newest.update(statuses)
            for item_id, status in statuses.items():
                if status.reason in AROUND:
                    vain[item_id] += 1
                elif status.status == "failed":
                    retries[item_id] += 1
                    del vain[item_id]  # it got through: what is around it comes anew
        done = {
            i: status
            for i, status in newest.items()
            if status.reason not in AROUND
            or (status.status == "failed" and vain[i] >= around_attempts)
        }
        return cls(done, retries, vain)


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    planned: list[Item]
    """Every item of the stage, in the order of its plan."""
    items: dict[str, Item]
    """Those of them that are wanted, by id: all, but in a pilot."""
    shards: Mapping[int, list[str]]
    """By index, which is unique among the shards of the stage."""
    done: dict[str, ItemStatus]
    """Items that nothing more is done for, by commits before this plan, of this run or another."""
    vain: dict[str, ItemStatus]
    """Items that this invocation has tried in vain already: the next one tries them again."""
    retry_numbers: Mapping[str, int]
    """Items -> how often what models answered has failed them: they are asked anew, with another
    seed, since the same answers would come from the journal and fail again."""
    vain_attempts: Mapping[str, int]
    """Items -> invocations in which what is around them has failed them."""
    plan_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells one plan of a stage from the next: what a stage has read is as old as its plan."""
    open_shards: list[int] = field(init=False)
    """Indexes of the shards with an item to make."""

    def __post_init__(self) -> None:
        opened = [i for i, shard in self.shards.items() if any(map(self._is_open, shard))]
        object.__setattr__(self, "open_shards", opened)

    @property
    def num_items(self) -> int:
        return len(self.items)

    @property
    def num_reused(self) -> int:
        return sum(item_id in self.done for item_id in self.items)

    def open_items(self, index: int) -> list[Item]:
        """Those of the shard that are to be made."""
        return [self.items[i] for i in self.shards[index] if self._is_open(i)]

    def _is_open(self, item_id: str) -> bool:
        return item_id in self.items and item_id not in self.done and item_id not in self.vain

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
    vain_attempts: dict[str, int]
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
    """Of everything that is not kept, the most frequent first."""
    vain: dict[str, int]
    """Reason -> pending items that were tried in vain for it. The other pending ones were not."""
    troubles: dict[str, int]
    """Reason -> items that failed or were tried in vain for it, the most frequent first."""
    examples: dict[str, str]
    """Reason -> the words of one item that has it. Foreign text, on one line."""

    @classmethod
    def of(cls, stage: str, plan: StagePlan, made: Mapping[str, ItemStatus]) -> "StageReport":
        """Every item by its newest status; `made`: what became of those of this plan."""
        statuses = plan.done | plan.vain | dict(made)
        mine = [statuses[i] for i in plan.items if i in statuses]
        waiting = [
            f"waits_for_{item.waits_for}"
            for item in plan.items.values()
            if item.waits_for and item.item_id not in statuses
        ]
        counts = Counter(status.status for status in mine)
        troubles = Counter(s.reason for s in mine if s.reason and s.status in ("failed", "pending"))
        examples = {s.reason: s.detail for s in reversed(mine) if s.reason and s.detail}
        return cls(
            stage=stage,
            requested=plan.num_items,
            kept=counts["kept"],
            dropped=counts["dropped"],
            failed=counts["failed"],
            pending=plan.num_items - len(mine) + counts["pending"],
            reused=plan.num_reused,
            reasons=dict(Counter([*(s.reason for s in mine if s.reason), *waiting]).most_common()),
            vain=dict(Counter(s.reason for s in mine if s.reason and s.status == "pending")),
            troubles=dict(troubles.most_common()),
            examples=examples,
        )

    @classmethod
    def of_windows(cls, reports: Sequence["StageReport"]) -> "StageReport":
        """Of a stage, from those of its windows."""

        def total(name: str) -> int:
            return sum(getattr(report, name) for report in reports)

        def counts(name: str) -> dict[str, int]:
            found = sum((Counter(getattr(report, name)) for report in reports), Counter[str]())
            return dict(found.most_common())

        return cls(
            stage=reports[0].stage,
            requested=total("requested"),
            kept=total("kept"),
            dropped=total("dropped"),
            failed=total("failed"),
            pending=total("pending"),
            reused=total("reused"),
            reasons=counts("reasons"),
            vain=counts("vain"),
            troubles=counts("troubles"),
            examples={r: words for one in reversed(reports) for r, words in one.examples.items()},
        )

    def row(self) -> dict[str, str | int]:
        """For a table that people read: one row a stage."""
        counts = ("requested", "kept", "dropped", "failed", "pending", "reused")
        return {
            "stage": self.stage,
            **{name: getattr(self, name) for name in counts},
            "reasons": ", ".join(f"{reason} {n}" for reason, n in self.reasons.items()),
            "example": self.example,
        }

    @property
    def example(self) -> str:
        """One item's words about what most often went wrong, or nothing."""
        return next((self.examples[r] for r in self.troubles if r in self.examples), "")

    def summary(self) -> str:
        counts = ("kept", "dropped", "failed", "pending")
        said = ", ".join(f"{n} {name}" for name in counts if (n := getattr(self, name)))
        reused = f", {self.reused} of them done before" if self.reused else ""
        return f"{said or 'nothing'} of {self.requested} requested{reused}"

    def check(self, max_failed: float) -> None:
        """A stage must not end green on a broken endpoint. PendingError where the same command
        would try some of it again, else SynthError."""
        vain = sum(self.vain.values())
        if self.failed + vain <= max_failed * self.requested:
            return
        worst = next(iter(self.troubles))
        words = f" ({self.examples[worst]})" if worst in self.examples else ""
        left = f" and {vain} were left pending" if vain else ""
        kind = PendingError if vain else SynthError
        raise kind(
            f"{self.stage}: {self.failed} of {self.requested} items failed{left} "
            f"(max_failed = {max_failed:g}), most often by {worst}{words}; "
            "all reasons and words stand in the table `stages`"
        )


def left_pending(
    reports: Iterable[StageReport], around_attempts: int, waits: str | None = None
) -> PendingError:
    """What is said of items that were tried in vain; `waits`: what is left undone for them."""
    short = [report for report in reports if report.vain]
    number = sum(sum(report.vain.values()) for report in short)
    shown = "; ".join(
        f"{report.stage}: " + ", ".join(f"{n} {reason}" for reason, n in report.vain.items())
        for report in short
    )
    words = next((report.example for report in short if report.example), "")
    return PendingError(
        f"{number} items could not be made for what is around them, and stay pending ({shown})"
        f"{f', for example: {words}' if words else ''}. "
        f"{f'It waits for them: {waits}. ' if waits else ''}The same command tries them again; "
        f"an item that fails so in {around_attempts} invocations (around_attempts) counts as failed"
    )
