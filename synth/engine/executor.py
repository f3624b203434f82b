"""Where shards are made: what a run needs of whoever makes them, in whichever process."""

from typing import Protocol

from synth.engine.plans import ShardMade, ShardWork, StagePlan
from synth.engine.shard_scheduler import Openings
from synth.engine.stages import Stage


class ShardExecutor(Protocol):
    """Makes shards for a run and hands over their parts, written and not committed."""

    openings: Openings

    def take(self, stage: Stage, plan: StagePlan) -> bool:
        """Whether the stage's shards are made here rather than in the run's own process."""
        ...

    async def make(self, stage: Stage, plan: StagePlan, work: ShardWork) -> ShardMade:
        """TransientError if whoever made the shard died; else as `Run.make_shard`."""
        ...
