"""Worker processes of this machine, and what they share with the run.

One process decides and commits; the others make rows. Each has its part of the run's concurrency;
the budget and the endpoints' slots stay the run's, which grants them one by one. A worker that
dies gives back what it held, its shards are made again from their journals. Results do not depend
on how many workers there are.
"""

import asyncio
import contextlib
import contextvars
import logging
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self

from records.errors import BudgetError, SynthError, TransientError, UnavailableError
from synth.engine.executor import In, Out, RunGrants
from synth.engine.plans import MadeShard, ShardWork, StagePlan
from synth.engine.processes.channel import Channel
from synth.engine.processes.compute_pool import ComputePool
from synth.engine.processes.worker import Setup
from synth.engine.run import Run
from synth.engine.shard_maker import ShardMaker
from synth.engine.shard_scheduler import ShardScheduler
from synth.engine.stages import Stage
from synth.llm.budget import Amount
from synth.llm.endpoint.gate import NO_OUTCOME, Ticket
from synth.llm.profiles import ModelAt
from synth.llm.settings.config import EndpointKey
from synth.llm.settings.profile import Profile

WORTH_IT = 200
"""Items of a stage from which on processes of their own pay for their start of two seconds."""

END_S = 10.0
"""How long a worker may take to end in good order."""

_COMMAND = "from synth.engine.processes.worker import main; main()"

log = logging.getLogger(__name__)


class _Job(NamedTuple):
    made: "asyncio.Future[MadeShard]"
    work: ShardWork
    around: contextvars.Context
    """Of who asked: its log records belong there."""


class LocalProcesses:
    """A `ShardExecutor`: the run's own process, and workers for stages that are worth them.

    Workers are started when the first shard asks for one and ended with the block. One event loop.
    """

    shards_per_request = 1

    def __init__(self, run: Run[Any], *, live_servers: int) -> None:
        """`live_servers`: of the whole run, alive at once."""
        config = run.config
        number = min(config.workers or len(os.sched_getaffinity(0)), config.concurrency)
        self._run = run
        self._maker = ShardMaker(run)
        self._concurrency = _parts(config.concurrency, number)
        self._live = [max(1, part) for part in _parts(live_servers, number)]
        self._workers: list[_Worker | None] = [None] * number
        self._starting = [asyncio.Lock() for _ in range(number)]
        """One of each lane: shards that are opened together share its process."""
        self.scheduler = ShardScheduler(self._concurrency, config.shard_size)
        self._pool: ComputePool | None = None

    def uses_workers(self, stage: Stage, plan: StagePlan) -> bool:
        """Whether the stage's shards are made in workers rather than in the run's own process."""
        if len(self._workers) < 2 or not getattr(stage, "runs_in_workers", False):
            return False
        items = sum(len(plan.shards[index]) for index in plan.open_shards)
        return self._run.config.workers > 1 or items >= WORTH_IT

    def turn(
        self, stage: Stage, plan: StagePlan, indexes: Sequence[int]
    ) -> AbstractAsyncContextManager[None]:
        """Of one shard: `shards_per_request` is 1."""
        [index] = indexes
        used = self.uses_workers(stage, plan)
        scheduler = self.scheduler if used else self._maker.scheduler
        return scheduler.turn((stage.name, index), len(plan.open_items(index)))

    async def make(
        self, stage: Stage, plan: StagePlan, works: Sequence[ShardWork]
    ) -> AsyncGenerator[MadeShard, None]:
        """As `ShardExecutor.make`."""
        for work in works:
            if self.uses_workers(stage, plan):
                yield await self._make_in_worker(stage, plan, work)
            else:
                yield await self._maker.make(stage, work)

    async def _make_in_worker(self, stage: Stage, plan: StagePlan, work: ShardWork) -> MadeShard:
        with self.scheduler.held(work.key, len(work.items)) as lane:
            async with self._starting[lane]:
                worker = self._workers[lane]
                if worker is None or worker.ended:
                    worker = self._workers[lane] = await _Worker.start(
                        self._run, self.scheduler, self._concurrency[lane], self._live[lane]
                    )
            return await worker.make(stage, plan, work)

    async def compute(self, function: Callable[[In], Out], argument: In) -> Out:
        """As `ShardExecutor.compute`, in a pool of processes that starts with the first call."""
        if self._pool is None:
            self._pool = ComputePool(self._run.config.workers)
        return await self._pool.run(function, argument)

    def stop(self, error: Exception) -> None:
        """Nothing new starts anywhere."""
        for worker in filter(None, self._workers):
            worker.channel.send("stop", error)

    def learned(self, where: ModelAt, profile: Profile) -> None:
        """As `ShardExecutor.learned`."""
        for worker in filter(None, self._workers):
            worker.channel.send("learned", where, profile)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        try:
            await asyncio.gather(*(worker.end() for worker in self._workers if worker is not None))
        finally:
            if self._pool is not None:
                await asyncio.to_thread(self._pool.close)


class _Worker:
    """One process, its jobs, and what it holds of the run's budget and slots."""

    def __init__(
        self,
        grants: RunGrants,
        scheduler: ShardScheduler,
        process: subprocess.Popen[bytes],
        end: Channel,
    ) -> None:
        self._run, self._scheduler, self._process, self.channel = grants, scheduler, process, end
        self._numbers = count()
        self._jobs: dict[int, _Job] = {}
        self._finished: Counter[int] = Counter()
        """Items by job, as far as they were shown."""
        self._reserved: Counter[tuple[str, Amount]] = Counter()
        self._slots: Counter[tuple[EndpointKey, Ticket]] = Counter()
        self._asked: set[asyncio.Task[None]] = set()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(
        cls, run: Run[Any], scheduler: ShardScheduler, concurrency: int, live_servers: int
    ) -> "_Worker":
        process, end = _spawned()
        channel = await Channel.over(end)
        level = logging.getLogger("synth").getEffectiveLevel()
        config = run.config.model_copy(update={"concurrency": concurrency})
        limited = run.budget.limited
        folder = str(run.dataset.root)
        known = run.gateway.profiles.found
        channel.send(Setup(config, folder, run.invocation_id, live_servers, limited, level, known))
        return cls(run, scheduler, process, channel)

    @property
    def ended(self) -> bool:
        return self._listening.done()

    async def make(self, stage: Stage, plan: StagePlan, work: ShardWork) -> MadeShard:
        made: asyncio.Future[MadeShard] = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        self._jobs[number] = _Job(made, work, contextvars.copy_context())
        try:
            self.channel.send("make", number, type(stage), plan.plan_id, work)
            if self._run.stop_reason is not None:
                self.channel.send("stop", self._run.stop_reason)
            with contextlib.suppress(ConnectionError):  # it has just died: `made` will say so
                await self.channel.flush()
            return await made
        finally:
            del self._jobs[number]

    async def end(self) -> None:
        self.channel.send("end")
        await asyncio.wait([self._listening], timeout=END_S)  # which cancels nothing
        if not self.ended:
            self._process.kill()
        await self._listening
        self.channel.close()

    async def _listen(self) -> None:
        """Until the process is gone. Whatever happens here, no job is left waiting."""
        defect: SynthError | None = None
        try:
            while message := await self.channel.receive():
                self._hear(*message)
        except Exception as error:
            defect = _defect("a worker process sent what the run cannot use", error)
            self._process.kill()
        for asked in self._asked:
            asked.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)
        status = await asyncio.to_thread(self._process.wait)
        try:
            self._give_back()
        except Exception as error:
            defect = _defect("what a worker process held could not be given back", error)
        left = [(number, job) for number, job in self._jobs.items() if not job.made.done()]
        for _, job in left:
            died = f"the worker process of {job.work.stage} shard {job.work.index} ended"
            job.made.set_exception(defect or TransientError(f"{died} with status {status}"))
        for number, job in left:
            self._run.progress(job.work.stage, -self._finished[number], job.work.total)

    def _hear(self, what: str, *values: Any) -> None:
        match what, *values:
            case "started", shard:
                self._scheduler.started(shard)
            case "finished", number, stage, n, total:
                self._finished[number] += n
                self._run.progress(stage, n, total)
            case "made", number, made:
                self._resolve(number, made)
            case "failed", number, error, is_stop:
                if is_stop:
                    self._stop(error)
                self._resolve(number, error)
            case "enter", number, endpoint, model, tokens:
                self._grant(number, self._enter(endpoint, model, tokens))
            case "leave", endpoint, ticket, outcome:
                self._slots[endpoint, ticket] -= 1
                self._run.gate(endpoint).leave(ticket, outcome)
            case "learned", where, profile:
                self._run.learned(where, profile)
            case "reserve", number, stage, worst:
                self._grant(number, self._reserve(stage, worst))
            case "settle", stage, worst, used:
                self._reserved[stage, worst] -= 1
                self._run.budget.settle(stage, worst, used)
            case "spent", stage, used:
                self._run.budget.add(stage, used)
            case "log", number, name, level, text:
                self._log(number, name, level, text)
            case _:
                raise RuntimeError(f"a worker sent {what!r} with {len(values)} values")

    def _resolve(self, number: int, outcome: MadeShard | Exception) -> None:
        job = self._jobs.get(number)
        if job is None or job.made.done():  # nobody waits any more
            return
        if isinstance(outcome, Exception):
            job.made.set_exception(outcome)
        else:
            job.made.set_result(outcome)

    def _log(self, number: int | None, name: str, level: int, text: str) -> None:
        job = None if number is None else self._jobs.get(number)
        around = job.around.copy() if job else contextvars.copy_context()
        around.run(logging.getLogger(name).log, level, "%s", text)

    def _stop(self, error: Any) -> None:
        self._run.stop(error)

    def _grant(self, number: int, answer: Any) -> None:
        async def grant() -> None:
            try:
                value = await answer
            except (BudgetError, UnavailableError) as error:
                self._stop(error)
                value = error
            except Exception as error:  # who asked must hear of it, or its item waits for ever
                value = _defect("a worker process asked for what the run cannot give", error)
            self.channel.send("answer", number, value)

        asked = asyncio.create_task(grant())
        self._asked.add(asked)
        asked.add_done_callback(self._asked.discard)

    async def _enter(self, endpoint: EndpointKey, model: str, tokens: int) -> Ticket:
        ticket = await self._run.gate(endpoint).enter(model, tokens)
        self._slots[endpoint, ticket] += 1
        return ticket

    async def _reserve(self, stage: str, worst: Amount) -> None:
        await self._run.budget.reserve(stage, worst)
        self._reserved[stage, worst] += 1

    def _give_back(self) -> None:
        """What the process held when it ended; its requests may have been billed."""
        for (endpoint, ticket), number in self._slots.items():
            for _ in range(number):
                self._run.gate(endpoint).leave(ticket, NO_OUTCOME)
        for (stage, worst), number in self._reserved.items():
            for _ in range(number):
                self._run.budget.settle(stage, worst, worst)
        self._slots.clear()
        self._reserved.clear()


def _defect(what: str, error: Exception) -> SynthError:
    """Of this program: the log has the traceback. Trying again would meet it again."""
    log.error("%s", what, exc_info=error)
    return SynthError(f"{what}: {type(error).__name__}: {error}")


def _spawned() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A worker process, and our end of the socket to it."""
    mine, theirs = socket.socketpair()
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path},
        )
    return process, mine


def _parts(whole: int, number: int) -> Sequence[int]:
    """`whole` in `number` parts that differ by at most 1."""
    return [whole // number + (index < whole % number) for index in range(number)]
