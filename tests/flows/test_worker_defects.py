"""A worker process that says what nobody understands: the run ends with words, and never hangs."""

import asyncio
import pickle
import socket
import struct
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from flows.runtime.open_run import open_run
from records.errors import SynthError, TransientError
from synth.engine.plans import MadeShard, ShardWork
from synth.engine.processes.channel import Channel
from synth.engine.processes.executor import _Worker
from synth.engine.shard_maker import ShardMaker
from synth.engine.shard_scheduler import ShardScheduler
from synth.llm.settings.config import EndpointKey
from synth.pipeline.stages import CatalogueStage
from tests.flows.pipeline_work import SMALL

WORK = ShardWork(
    stage="tools", index=0, items=[], retry_numbers={}, vain_attempts={}, total=1, again=False
)
IDLE = [sys.executable, "-c", "import time; time.sleep(600)"]


def with_peer(
    folder: Path,
    test: Callable[[socket.socket, Channel, "asyncio.Task[MadeShard]"], Awaitable[None]],
) -> None:
    """`test` plays the worker's end of the socket for a run that waits for one shard."""

    async def go() -> None:
        async with open_run(SMALL, str(folder), command="test") as run:
            process = subprocess.Popen(IDLE)  # noqa: ASYNC220  it is there to be killed
            mine, theirs = socket.socketpair()
            worker = _Worker(run, ShardScheduler([1], 1), process, await Channel.over(mine))
            stage = CatalogueStage(run)
            waiting = asyncio.create_task(worker.make(stage, run.plan(stage), WORK))
            channel = await Channel.over(theirs)
            try:
                async with asyncio.timeout(20):
                    assert (await channel.receive() or ("",))[0] == "make"
                    await test(theirs, channel, waiting)
                    process.kill()
                    await asyncio.wait([worker._listening])
            finally:
                process.kill()
                process.wait()
                channel.close()
                await worker.end()

    asyncio.run(go())


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(("what is this", 1)),
        pickle.dumps(("settle",)),
        pickle.dumps(("leave", ("http://nowhere.example/v1", None), 1, "ok")),
        b"no pickle at all",
    ],
    ids=["unknown word", "too few values", "of no endpoint", "no message"],
)
def test_a_message_that_cannot_be_used_fails_the_shards_that_wait(
    data: bytes, tmp_path: Path
) -> None:
    async def test(end: socket.socket, _: Channel, waiting: "asyncio.Task[MadeShard]") -> None:
        end.send(struct.pack("!Q", len(data)) + data)
        with pytest.raises(SynthError, match="sent what the run cannot use") as failed:
            await waiting
        assert not isinstance(failed.value, TransientError)  # it would only happen again

    with_peer(tmp_path / "d", test)


def test_who_asks_for_what_is_not_there_is_told(tmp_path: Path) -> None:
    async def test(_: socket.socket, peer: Channel, waiting: "asyncio.Task[MadeShard]") -> None:
        peer.send("enter", 7, EndpointKey("http://nowhere.example/v1"), "m", 100)
        what, number, value = await peer.receive() or ("", 0, None)
        assert (what, number) == ("answer", 7)
        assert "cannot give" in str(value)
        peer.send("failed", 0, SynthError("given up"), False)
        with pytest.raises(SynthError, match="given up"):
            await waiting
        peer.close()

    with_peer(tmp_path / "d", test)


def test_a_shard_whose_rows_cannot_be_sent_fails_with_words(tmp_path: Path) -> None:
    from synth.engine.processes.worker import SharedBudget, Worker

    async def go() -> None:
        mine, theirs = socket.socketpair()
        ours, worker_end = await Channel.over(mine), await Channel.over(theirs)

        async with open_run(SMALL, str(tmp_path / "d"), command="test") as run:

            async def unsendable(*_: Any) -> Any:
                return lambda: None

            maker = ShardMaker(run)
            maker.make = unsendable  # type: ignore[method-assign]
            budget = SharedBudget(worker_end, None, limited=False)  # type: ignore[arg-type]
            Worker(worker_end, run, maker, budget).begin(3, CatalogueStage, "plan", WORK)
            async with asyncio.timeout(20):
                what, number, error, is_stop = await ours.receive() or ("", 0, None, True)
            assert (what, number, is_stop) == ("failed", 3, False)
            assert "pickle" in str(error)
        ours.close()
        worker_end.close()

    asyncio.run(go())
