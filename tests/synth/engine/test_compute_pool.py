"""Functions run in processes of their own; one that dies costs its own call and no more."""

import asyncio
import os
import signal
from contextlib import closing

import pytest

from records.errors import TransientError
from synth.engine.processes.compute_pool import ComputePool


def process_id(_: None) -> int:
    return os.getpid()


def end(_: None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_is_replaced() -> None:
    async def work() -> None:
        with closing(ComputePool(1)) as pool:
            first = await pool.run(process_id, None)
            with pytest.raises(TransientError, match="worker process died"):
                await pool.run(end, None)
            assert await pool.run(process_id, None) != first

    asyncio.run(work())
