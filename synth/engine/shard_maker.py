"""Makes the items of a shard in this process: with the same code in a run and in its workers.

An item's own failure becomes its status; a failure around it is tried again, some times here and
then by later invocations, for which the item stays pending. What was answered is
journalled before it is used, so a shard that is made again pays for none of it.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from records.errors import (
    BudgetError,
    ConfigError,
    ItemError,
    SynthError,
    TransientError,
    UnavailableError,
)
from records.seeds import rng_of
from records.store.commits import failed
from records.store.dataset import StagedCommit
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.engine.context import RunContext
from synth.engine.plans import AROUND, INFRA_ERROR, UNAVAILABLE, MadeShard, ShardWork
from synth.engine.shard_scheduler import ShardScheduler
from synth.engine.stages import Item, ItemResult, ShardContext, Stage
from synth.llm.client import LLM

ITEM_ATTEMPTS = 3
"""How often an item is tried when something outside it fails: endpoint down, sandbox lost."""
ITEM_RETRY_S = 0.5
"""First wait between attempts, doubled each time; an endpoint's own retries come on top."""

INTERNAL_ERROR = "internal_error"
"""A defect of the program, met on one item: the log has its traceback, the others go on."""

LEASES, CLUSTER = "sandboxes:", "cluster:"
"""How names in `timings` begin that count leases: what the pool of the shard's process did since
that process wrote a shard before; and, where sandboxes are Pods of a cluster, what happened there
since then."""

log = logging.getLogger(__name__)


class ShardMaker:
    """Works on as many items at once as the run's settings say. One event loop."""

    def __init__(self, run: RunContext[Any], scheduler: ShardScheduler | None = None) -> None:
        concurrency = run.config.concurrency
        self._run = run
        self._slots = asyncio.Semaphore(concurrency)
        self.scheduler = scheduler or ShardScheduler([concurrency], run.config.shard_size)

    async def make(self, stage: Stage, work: ShardWork) -> MadeShard:
        """The shard's rows, written and not committed.

        Raises what stopped the run after the items in flight have ended; the journal keeps what was
        paid for.
        """
        begun = time.monotonic()
        path = self._run.dataset.journal_path(self._run.run_id, work.stage, work.index)
        with self.scheduler.held(work.key, len(work.items)), ShardJournal(path) as journal:
            llm = LLM(
                self._run.gateway,
                journal,
                stage=work.stage,
                invocation_id=self._run.invocation_id,
                retry_numbers=work.retry_numbers,
            )
            shard = ShardContext(llm, journal)
            made = await asyncio.gather(
                *(self._make(stage, item, shard, work) for item in work.items),
                return_exceptions=True,
            )
            if broken := [m for m in made if isinstance(m, BaseException)]:
                raise self._run.stop_reason or broken[0]
            results = {
                item.item_id: result
                for item, result in zip(work.items, made, strict=True)
                if isinstance(result, ItemResult)
            }
            seconds = time.monotonic() - begun
            servers = self._run.servers
            counted = [(LEASES + what, n) for what, n in sorted(servers.newly_counted().items())]
            counted += [(CLUSTER + what, n) for what, n in sorted(servers.newly_there().items())]
            staged = await asyncio.to_thread(
                self._staged, work, results, llm.rows(), seconds, counted
            )
        return MadeShard(work.index, {i: r.status for i, r in results.items()}, seconds, staged)

    async def _make(
        self, stage: Stage, item: Item, shard: ShardContext, work: ShardWork
    ) -> ItemResult:
        """One item: failures of its own become its status, failures around it are tried again."""
        async with self._slots:
            self.scheduler.started(work.key)
            words = ""
            for attempt in range(ITEM_ATTEMPTS):
                if self._run.stop_reason is not None:
                    raise self._run.stop_reason
                try:
                    result = await stage.make(item, shard)
                    break
                except (BudgetError, ConfigError, UnavailableError) as error:
                    self._run.stop(error)
                    raise
                except ItemError as error:
                    result = ItemResult({}, failed(error.reason, error.detail))
                    break
                except TransientError as error:
                    words = str(error)
                    jitter = rng_of(item.item_id, "item_retry", attempt).uniform(0.5, 1.0)
                    await asyncio.sleep(ITEM_RETRY_S * 2**attempt * jitter)
                except (OSError, SynthError):
                    raise  # a full disk, a damaged journal: no item's fault
                except Exception as error:
                    log.exception("%s: item %s met a defect", stage.name, item.item_id)
                    defect = f"{type(error).__name__}: {error}"
                    result = ItemResult({}, failed(INTERNAL_ERROR, defect))
                    break
            else:
                result = ItemResult({}, failed(_cause(shard.llm, item), words))
        self._run.on_progress(work.stage, 1, work.total)
        return self._pending(item, result, work)

    def _pending(self, item: Item, result: ItemResult, work: ShardWork) -> ItemResult:
        """The result, but for what failed around the item: that is left to the next invocation,
        until so many have tried in vain that it counts as failed."""
        status = result.status
        attempts = work.vain_attempts.get(item.item_id, 0) + 1
        last = attempts >= self._run.config.around_attempts
        if status.status != "failed" or status.reason not in AROUND or last:
            return result
        return ItemResult({}, status._replace(status="pending"))

    def _staged(
        self,
        work: ShardWork,
        results: dict[str, ItemResult],
        llm_calls: list[Row],
        seconds: float,
        counted: Sequence[tuple[str, int]],
    ) -> StagedCommit:
        tables: dict[str, list[Row]] = {"llm_calls": llm_calls}
        for result in results.values():
            for table, rows in result.tables.items():
                tables.setdefault(table, []).extend(rows)
        statuses = {item_id: result.status for item_id, result in results.items()}
        counts = Counter(status.status for status in statuses.values())
        place = {"invocation_id": self._run.invocation_id, "stage": work.stage, "shard": work.index}
        tables["stages"] = [
            place
            | {
                "requested": len(statuses),
                "kept": counts["kept"],
                "dropped": counts["dropped"],
                "failed": counts["failed"],
                "reasons": dict(Counter(s.reason for s in statuses.values() if s.reason)),
                "items": {i: s.reason for i, s in statuses.items() if s.status != "kept"},
                "pending": counts["pending"],
                "details": {i: s.detail for i, s in statuses.items() if s.detail},
            }
        ]
        noted = sum((Counter(result.noted) for result in results.values()), Counter[str]())
        tables["timings"] = [
            place | {"name": "shard", "seconds": seconds, "count": len(statuses)},
            *(place | {"name": what, "seconds": 0.0, "count": n} for what, n in noted.items()),
            *(place | {"name": what, "seconds": 0.0, "count": n} for what, n in counted),
        ]
        return self._run.dataset.prepare(
            run_id=self._run.run_id,
            stage=work.stage,
            shard=work.index,
            tables=tables,
            items=statuses,
            supersedes=work.again,
        )


def _cause(llm: LLM, item: Item) -> str:
    """Of a failure around an item: the endpoint, if the last request for it was not answered."""
    asked = [row["status"] for row in llm.rows() if row["item_id"] == item.item_id]
    return UNAVAILABLE if asked and asked[-1] != "ok" else INFRA_ERROR
