"""One invocation of a run: its dataset, identity and shared gates, and the work of one shard.

The flows above only decide when a shard starts. A shard commits its rows together with each item's
status, so what is committed is done, and what is not is found again in the shard's journal, paid
answers included.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from records.errors import BudgetError, ConfigError, ItemError, SynthError, TransientError
from records.seeds import rng_of
from records.store.dataset import Dataset, ItemStatus, StagedCommit
from records.store.journal import ShardJournal, remove_journal
from records.tables.schemas import Row
from sandboxes.mcp.warm import WarmServers
from synth.engine.executor import ShardExecutor
from synth.engine.job_config import JobConfig
from synth.engine.plans import (
    AROUND,
    UNAVAILABLE,
    ShardMade,
    ShardReport,
    ShardWork,
    StagePlan,
    StageReport,
)
from synth.engine.shard_scheduler import Openings
from synth.engine.stages import Item, ItemResult, ShardContext, Stage, plan_shards
from synth.llm.client import LLM, Gateway

ConfigT = TypeVar("ConfigT", bound=JobConfig)
T = TypeVar("T")

ITEM_ATTEMPTS = 3
"""How often an item is tried when something outside it fails: endpoint down, sandbox lost."""
ITEM_RETRY_S = 0.5
"""First wait between attempts, doubled each time; an endpoint's own retries come on top."""

INTERNAL_ERROR = "internal_error"
"""A defect of the program, met on one item: the log has its traceback, the others go on."""

LEASES = "sandboxes:"
"""How names in `timings` begin that count leases: what the pool of the shard's process did since
that process wrote a shard before."""

log = logging.getLogger(__name__)


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
    workers: ShardExecutor | None = None
    """Makes shards elsewhere; without one all are made in this process."""
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
            shard = ShardContext(llm, journal)
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

    async def _make(
        self, stage: Stage, item: Item, shard: ShardContext, work: ShardWork
    ) -> ItemResult:
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
    ) -> StagedCommit:
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
