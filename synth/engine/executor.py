"""Where shards are made: what a run asks of an executor, and what an executor may ask of its run.

An executor makes rows and hands over the parts that hold them, by name. Only the run commits, and
only the run spends: whoever makes a shard elsewhere asks it for each reservation of the budget and
for each slot at an endpoint. Results do not depend on which executor made them.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from synth.engine.plans import MadeShard, ShardWork, StagePlan
from synth.engine.stages import Stage, StopReason
from synth.llm.budget import Budget
from synth.llm.endpoint.gate import Gate
from synth.llm.profiles import ModelAt
from synth.llm.settings.config import EndpointKey
from synth.llm.settings.profile import Profile

In = TypeVar("In")
Out = TypeVar("Out")


class RunGrants(Protocol):
    """What an executor may ask of the run that it works for."""

    @property
    def budget(self) -> Budget:
        """The run's one budget: reserve before a request, settle after it."""
        ...

    def gate(self, endpoint: EndpointKey) -> Gate:
        """The run's slots at an endpoint."""
        ...

    def progress(self, stage: str, items: int, total: int) -> None:
        """So many more items of a stage are finished; fewer, if they must be made again."""
        ...

    def learned(self, where: ModelAt, profile: Profile) -> None:
        """A request has brought a change of a profile, which holds for all from now on."""
        ...

    stop_reason: StopReason | None
    """Why nothing new may start."""

    def stop(self, error: StopReason) -> None:
        """Nothing new may start anywhere; what is in flight ends."""
        ...


class ShardExecutor(Protocol):
    """Makes the shards of a run, in whichever processes or machines it has."""

    shards_per_request: int
    """Shards that one call of `make` should be given; 1 where a request costs nothing."""

    def turn(
        self, stage: Stage, plan: StagePlan, indexes: Sequence[int]
    ) -> AbstractAsyncContextManager[None]:
        """Waits until these shards should be made, so that memory holds few of them and no slot is
        idle."""
        ...

    def make(
        self, stage: Stage, plan: StagePlan, works: Sequence[ShardWork]
    ) -> AsyncGenerator[MadeShard, None]:
        """Each shard's rows as it is done, in any order, written and not committed.

        TransientError if whoever made a shard died: it can be made again from its journal. Raises
        what stopped the run after the items in flight have ended.
        """
        ...

    async def compute(self, function: Callable[[In], Out], argument: In) -> Out:
        """`function(argument)` beside the event loop: a module's function, on values that pickle.
        TransientError if whoever computes dies."""
        ...

    def stop(self, error: Exception) -> None:
        """Nothing new starts anywhere."""
        ...

    def learned(self, where: ModelAt, profile: Profile) -> None:
        """What an endpoint turned out to want, for whoever sends it requests."""
        ...

    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, *details: object) -> None: ...
