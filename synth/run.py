"""One invocation of a run: its dataset, identity and shared gates, and the work of one shard.

The flows above only decide when a shard starts. A shard commits its rows together with each item's
status, so what is committed is done, and what is not is found again in the shard's journal, paid
answers included.
"""

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from records.errors import BudgetError, ConfigError, ItemError, SynthError, TransientError
from records.journal import ShardJournal, remove_journal
from records.schemas import Row
from records.seeds import rng_of
from records.store import Dataset, Draft, ItemStatus
from sandboxes.warm import WarmServers
from synth.config import JobConfig
from synth.llm.client import LLM, Gateway
from synth.openings import Openings
from synth.stages import Item, ItemResult, Stage, plan_shards

if TYPE_CHECKING:
    from synth.workers import Workers

ConfigT = TypeVar("ConfigT", bound=JobConfig)
T = TypeVar("T")

ITEM_ATTEMPTS = 3
"""How often an item is tried when something outside it fails: endpoint down, sandbox lost."""
ITEM_RETRY_S = 0.5
"""First wait between attempts, doubled each time; an endpoint's own retries come on top."""

UNAVAILABLE = "endpoint_unavailable"
AROUND = frozenset({UNAVAILABLE, "infra_error"})
"""Failures that no answer caused: a retry goes on from the answers that were paid for."""

INTERNAL_ERROR = "internal_error"
"""A defect of the program, met on one item: the log has its traceback, the others go on."""

LEASES = "sandboxes:"
"""How names in `timings` begin that count leases: what the pool of the shard's process did since
that process wrote a shard before."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shard:
    """What the maker of an item may use. One journal and one ledger a shard."""

    run: "Run[Any]"
    llm: LLM
    journal: ShardJournal


@dataclass(frozen=True, slots=True)
class StagePlan:
    items: dict[str, Item]
    shards: list[list[str]]
    open_shards: list[int]
    """Indexes of the shards with an item that is not committed."""
    done: dict[str, ItemStatus]
    """Items committed before this invocation, by this run or an earlier one."""
    rounds: dict[str, int]
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
    rounds: dict[str, int]
    """As in the plan, for these items."""
    total: int
    """Items of the stage, for who watches."""
    again: bool
    """Its rows replace committed ones with the same key."""

    @property
    def key(self) -> tuple[str, int]:
        return self.stage, self.index


class ShardMade(NamedTuple):
    statuses: dict[str, ItemStatus]
    seconds: float
    draft: Draft
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


@dataclass
class Run(Generic[ConfigT]):
    """Shared by every stage of one invocation. Made by `open_run`, under the dataset's lease."""

    config: ConfigT
    dataset: Dataset
    invocation_id: str
    gateway: Gateway
    servers: WarmServers
    """Where live MCP servers come from."""
    on_progress: Callable[[str, int, int], None]
    """Called with (stage, items finished, items to do) as work goes on."""
    retry_failed: bool = False
    """Make items again that failed in an earlier invocation; their new rows supersede."""
    stop: BudgetError | ConfigError | None = None
    """Why nothing new starts: the budget is spent, or an endpoint refuses us. What runs may end."""
    workers: "Workers | None" = None
    """Processes that make shards; without them all are made in this one."""
    slots: asyncio.Semaphore = field(init=False)
    openings: Openings = field(init=False)
    _worked_out: dict[str, tuple[Hashable, Any]] = field(default_factory=dict, init=False)
    """What -> what it was worked out of, and what came of it."""

    def __post_init__(self) -> None:
        concurrency = self.config.concurrency
        self.slots = asyncio.Semaphore(concurrency)
        self.openings = Openings([concurrency], self.config.shard_size)

    @property
    def run_id(self) -> str:
        return self.config.run_id

    def once(self, what: str, of: Hashable, work_out: Callable[[], T]) -> T:
        """What `work_out` gives, kept until it is asked for `of` something else: a stage plans
        anew what those before it have planned. Shared: do not change it."""
        known = self._worked_out.get(what)
        if known is None or known[0] != of:
            known = self._worked_out[what] = (of, work_out())
        return known[1]

    def plan(self, stage: Stage) -> StagePlan:
        items = {item.item_id: item for item in stage.plan()}
        done: dict[str, ItemStatus] = {}
        rounds: Counter[str] = Counter()
        for statuses in self.dataset.items_of(stage.name):
            done.update(statuses)
            rounds.update(
                i for i, s in statuses.items() if s.status == "failed" and s.reason not in AROUND
            )
        if self.retry_failed:
            done = {i: status for i, status in done.items() if status.status != "failed"}
        path = self.dataset.plan_path(self.run_id, stage.name)
        shards = plan_shards(
            path, list(items.values()), done=set(done), shard_size=self.config.shard_size
        )
        open_shards = [
            index
            for index, shard in enumerate(shards)
            if any(item_id in items and item_id not in done for item_id in shard)
        ]
        return StagePlan(items, shards, open_shards, done, rounds)

    def turn(self, stage: Stage, plan: StagePlan, index: int) -> AbstractAsyncContextManager[None]:
        """Waits until the shard should be opened, so that memory holds few and no slot is idle."""
        taken = self.workers is not None and self.workers.take(stage, plan)
        openings = self.workers.openings if self.workers is not None and taken else self.openings
        return openings.turn((stage.name, index), len(plan.open_items(index)))

    async def run_shard(self, stage: Stage, plan: StagePlan, index: int) -> ShardReport:
        """Make every open item of the shard, then commit them all at once.

        Raises what stopped the run after the items in flight have ended; nothing is committed
        then, and the journal keeps what was paid for.
        """
        items = plan.open_items(index)
        # a shard comes twice where fewer items were asked for in between; the journal's part of
        # the ledger is then in both commits
        again = self.retry_failed or self.dataset.has_shard(self.run_id, stage.name, index)
        rounds = {i.item_id: n for i in items if (n := plan.rounds.get(i.item_id))}
        work = ShardWork(
            stage=stage.name,
            index=index,
            items=items,
            rounds=rounds,
            total=plan.num_items,
            again=again,
        )
        if self.workers is not None and self.workers.take(stage, plan):
            made = await self.workers.make(stage, plan, work)
        else:
            made = await self.make_shard(stage, work)
        await asyncio.to_thread(self.dataset.append, made.draft)
        if plan.is_settled(index, made.statuses):
            remove_journal(self.dataset.journal_path(self.run_id, stage.name, index))
        return ShardReport(index, made.statuses, made.seconds)

    async def make_shard(self, stage: Stage, work: ShardWork) -> ShardMade:
        """The shard's rows, written and not committed. Raises as `run_shard` does."""
        begun = time.monotonic()
        path = self.dataset.journal_path(self.run_id, work.stage, work.index)
        with self.openings.held(work.key, len(work.items)), ShardJournal(path) as journal:
            llm = LLM(
                self.gateway,
                journal,
                stage=work.stage,
                invocation_id=self.invocation_id,
                rounds=work.rounds,
            )
            shard = Shard(self, llm, journal)
            made = await asyncio.gather(
                *(self._make(stage, item, shard, work) for item in work.items),
                return_exceptions=True,
            )
            if broken := [m for m in made if isinstance(m, BaseException)]:
                raise self.stop or broken[0]
            results = {
                item.item_id: result
                for item, result in zip(work.items, made, strict=True)
                if isinstance(result, ItemResult)
            }
            seconds = time.monotonic() - begun
            leases = self.servers.newly_counted()
            draft = await asyncio.to_thread(self._draft, work, results, llm.rows(), seconds, leases)
        return ShardMade({i: r.status for i, r in results.items()}, seconds, draft)

    async def _make(self, stage: Stage, item: Item, shard: Shard, work: ShardWork) -> ItemResult:
        """One item: failures of its own become its status, failures around it are tried again."""
        async with self.slots:
            self.openings.started(work.key)
            for attempt in range(ITEM_ATTEMPTS):
                if self.stop is not None:
                    raise self.stop
                try:
                    result = await stage.make(item, shard)
                    break
                except (BudgetError, ConfigError) as error:
                    self.stop = error
                    raise
                except ItemError as error:
                    result = ItemResult({}, ItemStatus("failed", error.reason))
                    break
                except TransientError:
                    jitter = rng_of(item.item_id, "item_retry", attempt).uniform(0.5, 1.0)
                    await asyncio.sleep(ITEM_RETRY_S * 2**attempt * jitter)
                except (OSError, SynthError):
                    raise  # a full disk, a damaged journal: no item's fault
                except Exception:
                    log.exception("%s: item %s met a defect", stage.name, item.item_id)
                    result = ItemResult({}, ItemStatus("failed", INTERNAL_ERROR))
                    break
            else:
                result = ItemResult({}, ItemStatus("failed", UNAVAILABLE))
        self.on_progress(work.stage, 1, work.total)
        return result

    def _draft(
        self,
        work: ShardWork,
        results: dict[str, ItemResult],
        llm_calls: list[Row],
        seconds: float,
        leases: Mapping[str, int],
    ) -> Draft:
        tables: dict[str, list[Row]] = {"llm_calls": llm_calls}
        for result in results.values():
            for table, rows in result.tables.items():
                tables.setdefault(table, []).extend(rows)
        statuses = {item_id: result.status for item_id, result in results.items()}
        counts = Counter(status.status for status in statuses.values())
        place = {"invocation_id": self.invocation_id, "stage": work.stage, "shard": work.index}
        tables["stages"] = [
            place
            | {
                "requested": len(statuses),
                "kept": counts["kept"],
                "dropped": counts["dropped"],
                "failed": counts["failed"],
                "reasons": dict(Counter(s.reason for s in statuses.values() if s.reason)),
                "items": {i: s.reason for i, s in statuses.items() if s.status != "kept"},
            }
        ]
        noted = sum((Counter(result.noted) for result in results.values()), Counter[str]())
        tables["timings"] = [
            place | {"name": "shard", "seconds": seconds, "count": len(statuses)},
            *(place | {"name": what, "seconds": 0.0, "count": n} for what, n in noted.items()),
            *(
                place | {"name": LEASES + what, "seconds": 0.0, "count": n}
                for what, n in sorted(leases.items())
            ),
        ]
        return self.dataset.prepare(
            run_id=self.run_id,
            stage=work.stage,
            shard=work.index,
            tables=tables,
            items=statuses,
            supersedes=work.again,
        )

    def stage_report(
        self, stage: Stage, plan: StagePlan, reports: list[ShardReport]
    ) -> StageReport:
        statuses = plan.done | {i: s for report in reports for i, s in report.statuses.items()}
        mine = [statuses[i] for i in plan.items if i in statuses]
        counts = Counter(status.status for status in mine)
        return StageReport(
            stage=stage.name,
            requested=plan.num_items,
            kept=counts["kept"],
            dropped=counts["dropped"],
            failed=counts["failed"],
            pending=plan.num_items - len(mine),
            reused=plan.num_reused,
            reasons=dict(Counter(s.reason for s in mine if s.reason).most_common()),
        )
