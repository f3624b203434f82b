"""A process that makes shards for a run; `executor` starts it.

It has the run's configuration, endpoints and journals of the shards it is given, and writes their
parts. What must be one for the whole run it asks the run for, over a socket: room in the
budget, slots at the endpoints. It never commits, and ends the moment the run is gone.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from itertools import count
from typing import Any, NamedTuple

from offline_llm.app import create_app
from records.errors import SynthError
from records.store.dataset import Dataset
from sandboxes.mcp.warm import WarmServers
from synth.engine.context import RunContext
from synth.engine.job_config import JobConfig
from synth.engine.plans import ShardWork
from synth.engine.processes.channel import Channel
from synth.engine.shard_maker import ShardMaker
from synth.engine.shard_scheduler import ShardScheduler
from synth.engine.stages import Stage, StopReason
from synth.llm.budget import NOTHING, Amount, Budget
from synth.llm.endpoint.batch import Batches
from synth.llm.endpoint.batch_store import BatchStore
from synth.llm.endpoint.gate import NO_OUTCOME, Gate, Outcome, Ticket
from synth.llm.endpoint.limiter import Limiter
from synth.llm.gateway import Gateway
from synth.llm.profiles import ModelAt, Profiles
from synth.llm.settings.config import OFFLINE, EndpointKey
from synth.llm.settings.profile import Profile

OURS = ("records", "tool_specs", "sandboxes", "offline_llm", "synth")
"""Loggers whose records the run is sent."""

_shard: ContextVar[int | None] = ContextVar("shard", default=None)
"""Number of the job that the running code belongs to."""

log = logging.getLogger(__name__)


class Setup(NamedTuple):
    """The first message: what a worker is told of its run."""

    config: JobConfig
    """With this worker's part of the concurrency."""
    dataset: str
    invocation_id: str
    live_servers: int
    budget_limited: bool
    log_level: int
    profiles: dict[ModelAt, Profile]
    """What is known of the endpoints so far."""


class _Asking:
    """Questions to the run. Who is cancelled while waiting gives back what still comes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._numbers = count()
        self._waiting: dict[int, tuple[asyncio.Future[Any], Callable[[Any], None]]] = {}

    async def ask(self, what: str, *values: Any, give_back: Callable[[Any], None]) -> Any:
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer, give_back
        self._channel.send(what, number, *values)
        return await answer

    def answered(self, number: int, value: Any) -> None:
        answer, give_back = self._waiting.pop(number)
        if isinstance(value, Exception):
            if not answer.done():
                answer.set_exception(value)
        elif answer.done():
            give_back(value)
        else:
            answer.set_result(value)


class SharedBudget(Budget):
    """The run's budget, seen from a worker. Without limits nothing is asked, only reported."""

    def __init__(self, channel: Channel, asking: _Asking, *, limited: bool) -> None:
        super().__init__()
        self.limited = limited
        self._channel, self._asking = channel, asking
        self._unreported: dict[str, Amount] = {}

    async def reserve(self, stage: str, worst: Amount) -> None:
        if self.limited:
            back = (stage, worst, NOTHING)
            await self._asking.ask(
                "reserve", stage, worst, give_back=lambda _: self._channel.send("settle", *back)
            )

    def settle(self, stage: str, worst: Amount, used: Amount) -> None:
        if self.limited:
            self._channel.send("settle", stage, worst, used)
        else:
            self._unreported[stage] = self._unreported.get(stage, NOTHING).plus(used)

    def add(self, stage: str, used: Amount) -> None:
        self._channel.send("spent", stage, used)

    def report(self) -> None:
        """Tell the run what was spent since the last report."""
        for stage, used in self._unreported.items():
            self._channel.send("spent", stage, used)
        self._unreported.clear()


class SharedGate(Gate):
    """The run's gate of one endpoint, seen from a worker."""

    def __init__(self, channel: Channel, asking: _Asking, endpoint: EndpointKey) -> None:
        super().__init__(Limiter(1))
        self._channel, self._asking, self._endpoint = channel, asking, endpoint

    async def enter(self, model: str = "", tokens: int = 0) -> Ticket:
        return await self._asking.ask(
            "enter",
            self._endpoint,
            model,
            tokens,
            give_back=lambda ticket: self.leave(ticket, NO_OUTCOME),
        )

    def leave(self, ticket: Ticket, outcome: Outcome) -> None:
        self._channel.send("leave", self._endpoint, ticket, outcome)


class ReportingScheduler(ShardScheduler):
    """The run opens the shards; it is told what becomes of their items."""

    def __init__(self, channel: Channel, run: RunContext[Any]) -> None:
        super().__init__([run.config.concurrency], run.config.shard_size)
        self._channel = channel

    def started(self, shard: Hashable) -> None:
        super().started(shard)
        self._channel.send("started", shard)


class _Forward(logging.Handler):
    """Log records go to the run, which shows them where the shard's own are shown."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        message = self.format(record)  # with the traceback, which does not travel
        values = _shard.get(), record.name, record.levelno, message
        self._loop.call_soon_threadsafe(self._channel.send, "log", *values)


class Worker:
    def __init__(
        self, channel: Channel, run: RunContext[Any], maker: ShardMaker, budget: SharedBudget
    ) -> None:
        self._channel, self._run, self._maker, self._budget = channel, run, maker, budget
        self._stage: tuple[str, Stage] | None = None
        """Of the last shard, with the plan it belongs to."""
        self._jobs: set[asyncio.Task[None]] = set()

    def begin(self, number: int, kind: type, plan_id: str, work: ShardWork) -> None:
        job = asyncio.create_task(self._make(number, kind, plan_id, work))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def stop(self, error: StopReason) -> None:
        self._run.stop(error)

    async def end(self) -> None:
        """Cancel what is in flight and wait until it has written down what it may have paid."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        await self._channel.flush()

    async def _make(self, number: int, kind: type, plan_id: str, work: ShardWork) -> None:
        _shard.set(number)
        try:
            with self._run.config.prompts_in_use():
                if self._stage is None or self._stage[0] != plan_id:
                    self._stage = plan_id, kind(self._run)
                made = await self._maker.make(self._stage[1], work)
            self._budget.report()
            self._channel.send("made", number, made)
        except Exception as error:  # of sending, too: the run waits for one of the two
            self._budget.report()
            self._channel.send("failed", number, _sendable(error), error is self._run.stop_reason)


def _sendable(error: Exception) -> Exception:
    """The error itself where it survives the journey."""
    if type(error) in SynthError.__subclasses__() and len(error.args) == 1:
        with contextlib.suppress(TypeError):
            return type(error)(*error.args)
    if isinstance(error, OSError):
        return error
    log.exception("a worker process met a defect", exc_info=error)
    return SynthError(f"{type(error).__name__}: {error}")


async def _serve(end: socket.socket) -> None:
    channel = await Channel.over(end)
    first = await channel.receive()
    if first is None:
        return
    setup: Setup = first[0]
    _send_logs(channel, setup.log_level)
    asking = _Asking(channel)
    budget = SharedBudget(channel, asking, limited=setup.budget_limited)
    config = setup.config
    app = create_app(config.offline.settings())

    def gate_of(endpoint: EndpointKey) -> Gate | None:
        return None if endpoint.base_url == OFFLINE else SharedGate(channel, asking, endpoint)

    dataset = Dataset.open(setup.dataset)
    profiles = Profiles(
        setup.profiles, on_learned=lambda where, profile: channel.send("learned", where, profile)
    )
    async with (
        config.sandboxes_in_use(),
        Gateway(
            config.roles,
            budget=budget,
            offline_app=lambda: app,
            gate_of=gate_of,
            profiles=profiles,
            batches=Batches(BatchStore(dataset.batches_path(config.run_id))),
        ) as gateway,
        WarmServers(setup.live_servers) as servers,
    ):
        run = RunContext(
            config,
            dataset,
            setup.invocation_id,
            gateway,
            servers,
            lambda stage, n, total: channel.send("finished", _shard.get(), stage, n, total),
        )
        maker = ShardMaker(run, ReportingScheduler(channel, run))
        worker = Worker(channel, run, maker, budget)
        while message := await channel.receive():
            match message:
                case ("make", *given):
                    worker.begin(*given)
                case ("answer", number, value):
                    asking.answered(number, value)
                case ("stop", error):
                    worker.stop(error)
                case ("learned", where, profile):
                    profiles.learn(where, profile, tell=False)
                case ("end",):
                    await worker.end()
                    return
                case _:
                    raise RuntimeError(f"a run sent {message!r}")
        os._exit(1)  # the run was killed: nothing here may go on


def _send_logs(channel: Channel, level: int) -> None:
    handler = _Forward(channel)
    for name in OURS:
        ours = logging.getLogger(name)
        ours.addHandler(handler)
        ours.setLevel(level)


def main() -> None:
    """The socket's number is the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the run's to act on
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    os._exit(0)  # everything is closed; the interpreter's own end takes its time over libraries
