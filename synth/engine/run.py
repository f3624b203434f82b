"""One invocation of a run: it plans stages, has their shards made, and commits them.

The flows above only decide when a shard starts. A shard commits its rows together with each item's
status, so what is committed is done, and what is not is found again in the shard's journal, paid
answers included.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field

from records.store.dataset import ItemStatus
from records.store.journal import remove_journal
from synth.engine.context import ConfigT, RunContext
from synth.engine.executor import ShardExecutor
from synth.engine.plans import (
    MadeShard,
    ShardReport,
    ShardWork,
    StagePlan,
    StageReport,
    left_pending,
)
from synth.engine.stages import (
    WINDOW_SHARDS,
    Item,
    Stage,
    StopReason,
    plan_shards,
    write_planned,
)
from synth.llm.budget import Budget
from synth.llm.endpoint.gate import Gate
from synth.llm.profiles import ModelAt, write_profiles
from synth.llm.settings.config import EndpointKey
from synth.llm.settings.profile import Profile


@dataclass
class Run(RunContext[ConfigT]):
    """Shared by every stage of one invocation. Made by `open_run`, under the dataset's lease."""

    executor: ShardExecutor = field(init=False)
    """Set by `open_run` once there is one: an executor asks the run for budget and endpoints."""
    reports: dict[str, StageReport] = field(default_factory=dict, init=False)
    """Of the stages that this invocation has come to, by name; the newest of each."""
    _begun: dict[str, float] = field(default_factory=dict, init=False)
    """When the first window of a stage was begun, by the monotonic clock."""
    window_reports: dict[str, dict[int, StageReport]] = field(default_factory=dict, init=False)
    """Of stages that are run in windows, by window."""
    vain: dict[str, dict[str, ItemStatus]] = field(default_factory=dict, init=False)
    """Stage -> the items that this invocation has tried in vain for what is around them."""

    @property
    def budget(self) -> Budget:
        return self.gateway.budget

    def gate(self, endpoint: EndpointKey) -> Gate:
        return self.gateway.gate(endpoint)

    def learned(self, where: ModelAt, profile: Profile) -> None:
        """Kept with the dataset and told to whoever makes shards; of this process, or another."""
        self.gateway.profiles.learn(where, profile, tell=False)
        write_profiles(self.dataset.profiles_path(self.run_id), self.gateway.profiles.found)
        self.executor.learned(where, self.gateway.profiles.found[where])

    def progress(self, stage: str, items: int, total: int) -> None:
        self.on_progress(stage, items, total)

    def stop(self, error: StopReason) -> None:
        """Nothing new starts, in this process or elsewhere. The first reason counts."""
        super().stop(error)
        self.executor.stop(error)

    def plan(
        self, stage: Stage, *, only: Callable[[int, Item], bool] = lambda number, item: True
    ) -> StagePlan:
        """The stage's items and the shards that are left to make; of some items, by their number in
        the plan and what they are, if `only` those are wanted, as by a pilot."""
        if getattr(stage, "needs_all", False):
            self.require_all(stage.name)
        planned = stage.plan()
        window = _window_of(stage)
        path = self.dataset.plan_path(self.run_id, stage.name, window or 0)
        ids = [item.item_id for item in planned]
        if window is None:
            self.planned[stage.name] = ids
            write_planned(path, ids)
        items = {item.item_id: item for n, item in enumerate(planned) if only(n, item)}
        known = self.committed_items(
            stage.name,
            reopens=getattr(stage, "reopens", True),
            of=None if window is None else items.keys(),
        )
        done = known.done
        if self.retry_failed:
            done = {i: status for i, status in done.items() if status.status != "failed"}
        ready = [item for item in items.values() if item.waits_for is None]
        shards = plan_shards(path, ready, done=set(done), shard_size=self.config.shard_size)
        plan = StagePlan(
            planned=planned,
            items=items,
            shards=dict(enumerate(shards, (window or 0) * WINDOW_SHARDS)),
            done=done,
            vain=dict(self.vain.get(stage.name, {})),
            retry_numbers=known.retry_numbers,
            vain_attempts=known.vain_attempts,
        )
        if window is not None:
            self.on_planned(stage.name, sum(len(plan.open_items(i)) for i in plan.open_shards))
        return plan

    def begun_at(self, stage: Stage) -> float:
        """When the stage was begun, by the monotonic clock: now, or with its first window."""
        now = time.monotonic()
        return now if _window_of(stage) is None else self._begun.setdefault(stage.name, now)

    def require_all(self, what: str | None = None) -> None:
        """PendingError where this invocation has tried an item in vain. `what` comes next and would
        look at less than there will be; None at the end of the run."""
        if any(self.vain.values()):
            reports = self.reports.values()
            raise left_pending(reports, self.config.around_attempts, what)

    async def run_stage(self, stage: Stage) -> StageReport:
        """Plan a stage and have every open shard made, one after another: the stage runner of who
        runs no flow."""
        plan = await asyncio.to_thread(self.plan, stage)
        made = self.run_shards(stage, plan, plan.open_shards)
        return self.stage_report(stage, plan, [report async for report in made])

    def requests(self, plan: StagePlan) -> list[list[int]]:
        """The open shards, as many together as the executor wants to be given at once."""
        size = self.executor.shards_per_request
        return [plan.open_shards[at : at + size] for at in range(0, len(plan.open_shards), size)]

    def turn(
        self, stage: Stage, plan: StagePlan, indexes: Sequence[int]
    ) -> AbstractAsyncContextManager[None]:
        """Waits until these shards should be made."""
        return self.executor.turn(stage, plan, indexes)

    async def run_shards(
        self, stage: Stage, plan: StagePlan, indexes: Sequence[int]
    ) -> AsyncGenerator[ShardReport, None]:
        """Have every open item of the shards made, and commit each shard as it is done.

        Raises what stopped the run after the items in flight have ended; what is not committed
        then is in the journals.
        """
        works = [self._work(stage, plan, index) for index in indexes]
        async with aclosing(self.executor.make(stage, plan, works)) as shards:
            async for made in shards:
                yield await self._commit(stage, plan, made)

    async def _commit(self, stage: Stage, plan: StagePlan, made: MadeShard) -> ShardReport:
        await asyncio.to_thread(self.dataset.append, made.staged)
        vain = {i: status for i, status in made.statuses.items() if status.status == "pending"}
        self.vain.setdefault(stage.name, {}).update(vain)
        if plan.is_settled(made.index, made.statuses):
            remove_journal(self.dataset.journal_path(self.run_id, stage.name, made.index))
        return ShardReport(made.index, made.statuses, made.seconds)

    def _work(self, stage: Stage, plan: StagePlan, index: int) -> ShardWork:
        items = plan.open_items(index)
        ids = [item.item_id for item in items]
        return ShardWork(
            stage=stage.name,
            index=index,
            items=items,
            retry_numbers={i: n for i in ids if (n := plan.retry_numbers.get(i))},
            vain_attempts={i: n for i in ids if (n := plan.vain_attempts.get(i))},
            total=plan.num_items,
            # a shard comes twice where fewer items were asked for in between; the journal's part
            # of the ledger is then in both commits; and earlier versions committed rows of items
            # that failed by what was around them
            again=self.retry_failed
            or self.dataset.has_shard(self.run_id, stage.name, index)
            or any(map(plan.vain_attempts.get, ids)),
        )

    def stage_report(
        self, stage: Stage, plan: StagePlan, reports: Sequence[ShardReport]
    ) -> StageReport:
        """Every item of the stage by its newest status; of one that is run in windows, of all that
        were made so far."""
        made = {i: status for report in reports for i, status in report.statuses.items()}
        report = StageReport.of(stage.name, plan, made)
        if (window := _window_of(stage)) is not None:
            windows = self.window_reports.setdefault(stage.name, {})
            windows[window] = report
            report = StageReport.of_windows(list(windows.values()))
        self.reports[stage.name] = report
        return report


def _window_of(stage: Stage) -> int | None:
    return getattr(stage, "window", None)
