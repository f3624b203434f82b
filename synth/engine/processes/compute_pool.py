"""Processes that run plain functions, so that the event loop keeps talking to models meanwhile."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from records.errors import TransientError
from records.processes import end_with_parent

# each process imports this module, and so nothing of the engine, whose client takes a second
T = TypeVar("T")
U = TypeVar("U")


class ComputePool:
    """A pool that outlives a worker which dies. Results do not depend on how many there are."""

    def __init__(self, processes: int = 0) -> None:
        """As many processes as there are cores for this one if the number is not given."""
        self._processes = processes or len(os.sched_getaffinity(0))
        self._pool = self._new_pool()

    async def run(self, work: Callable[[T], U], given: T) -> U:
        """`work(given)` in one of the processes. Raises TransientError if that dies."""
        pool = self._pool
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work, given)
        except BrokenProcessPool as error:
            if pool is self._pool:  # the first of those who waited on it makes another
                self._pool = self._new_pool()
                pool.shutdown(wait=False)
            raise TransientError(f"a worker process died: {error}") from error

    def _new_pool(self) -> ProcessPoolExecutor:
        # spawn: a fork would copy the threads' locks of Arrow and SQLite in whatever state
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin)

    def close(self) -> None:
        """Forget what waits, and end the processes once what they do is done."""
        self._pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Ctrl-C is the parent's to act on; and a worker does not outlive a parent that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
