"""What the stages of one invocation share: settings, dataset, endpoints, servers, planned ids.

The run's own process has one, and so has every process that makes shards for it.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from records.store.dataset import Dataset
from sandboxes.mcp.warm import WarmServers
from synth.engine.job_config import JobConfig
from synth.engine.plans import CommittedItems
from synth.engine.stages import StopReason, planned_before
from synth.llm.gateway import Gateway

ConfigT = TypeVar("ConfigT", bound=JobConfig)
T = TypeVar("T")


@dataclass
class RunContext(Generic[ConfigT]):
    config: ConfigT
    dataset: Dataset
    invocation_id: str
    gateway: Gateway
    servers: WarmServers
    """Where live MCP servers come from."""
    on_progress: Callable[[str, int, int], None]
    """Called with (stage, items finished, items to do) as work goes on."""
    on_planned: Callable[[str, int], None] = lambda stage, items: None
    """Called with (stage, items) as more items to do of a stage in windows are planned."""
    on_waiting: Callable[[str, str | None], None] = lambda endpoint, words: None
    """Called with an endpoint and what the run waits for while it is gone, every few seconds; with
    None for the words once it is over."""
    retry_failed: bool = False
    """Make items again that failed in an earlier invocation; their new rows supersede."""
    stop_reason: StopReason | None = None
    """Why nothing new starts. What runs may end."""
    planned: dict[str, Sequence[str]] = field(default_factory=dict, init=False)
    """Stage -> ids of its items in their order, as this invocation planned them."""
    _kept: dict[str, tuple[Hashable, Any]] = field(default_factory=dict, init=False)
    """What -> what it was computed from, and the result."""

    def stop(self, error: StopReason) -> None:
        """Nothing new starts. The first reason counts."""
        self.stop_reason = self.stop_reason or error

    @cached_property
    def run_id(self) -> str:
        """A digest of all settings, asked for at every shard and request."""
        return self.config.run_id

    def ids_of(self, stage: str) -> Sequence[str]:
        """Ids of a stage's items in their order: as this invocation planned them, or the last one
        that did. ConfigError where the stage was never planned."""
        if stage not in self.planned:
            path = self.dataset.plan_path(self.run_id, stage)
            self.planned[stage] = planned_before(path, stage)
        return self.planned[stage]

    def committed_items(
        self, stage: str, *, reopens: bool = True, of: Collection[str] | None = None
    ) -> CommittedItems:
        """What became of a stage's items so far, in this run or another of the dataset; with `of`,
        of these items at least, without reading the commits that name none of them."""
        attempts = self.config.around_attempts if reopens else 1
        return CommittedItems.of(self.dataset.items_of(stage, of), attempts)

    def left_pending(self, stage: str) -> set[str]:
        """Items of a stage that were tried in vain for what is around them, and are not done."""
        known = self.committed_items(stage)
        return known.vain_attempts.keys() - known.done.keys()

    def once(self, what: str, of: Hashable, compute: Callable[[], T]) -> T:
        """The result of `compute`, kept until it is asked for `of` something else. The result is
        shared: nobody changes it."""
        known = self._kept.get(what)
        if known is None or known[0] != of:
            known = self._kept[what] = (of, compute())
        return known[1]
