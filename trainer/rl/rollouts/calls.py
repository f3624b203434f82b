"""Calls to environments that may raise, hang, or answer after their time."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from synth.gym.core.environment import RewardError
from trainer.rl.rollouts.outcomes import LostEpisodeError

T = TypeVar("T")

EnvironmentCall = Callable[[], Coroutine[Any, Any, T]]
"""Makes the coroutine, which is made where it runs."""


async def in_time(call: EnvironmentCall[T], limit_s: float, *, grace_s: float, what: str) -> T:
    """What `call` returns. LostEpisodeError where it raises, where it has no answer after
    `limit_s` and `grace_s` more (then it is cancelled), and where the answer came in between.
    `what` names the call in messages."""
    work = asyncio.ensure_future(_timed(call))
    try:
        await asyncio.wait({work}, timeout=limit_s)
        if not work.done():
            await asyncio.wait({work}, timeout=grace_s)
    except asyncio.CancelledError:
        work.cancel()
        raise
    if not work.done():
        work.cancel()
        work.add_done_callback(_look_away)
        raise LostEpisodeError(
            "environment_timeout", f"{what} has no answer after {limit_s + grace_s:g} s"
        )
    if work.cancelled():
        raise LostEpisodeError("environment_error", f"{what} cancelled itself")
    error = work.exception()
    if isinstance(error, RewardError):
        raise no_reward(error) from error
    if error is not None:
        raise LostEpisodeError("environment_error", f"{what}: {told(error)}") from error
    value, took_s = work.result()
    if took_s > limit_s:
        raise LostEpisodeError("late", f"{what} took {took_s:.3g} s, and had {limit_s:g}")
    return value


def in_own_thread(call: EnvironmentCall[T]) -> EnvironmentCall[T]:
    """The same call, on a loop of its own in a thread of its own: one that computes for long, or
    for ever, keeps nobody waiting but who called. Nothing stops such a thread; it ends with the
    process."""

    async def run() -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def put(give: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(lambda: None if answer.done() else give())

        def work() -> None:
            try:
                value = asyncio.run(_alone(call))
            except asyncio.CancelledError:
                failure = RuntimeError("the environment cancelled itself")
                put(lambda: answer.set_exception(failure))
            except Exception as error:
                failure = error
                put(lambda: answer.set_exception(failure))
            else:
                put(lambda: answer.set_result(value))

        # sandboxes are leased from where they are for the caller, so its context goes along
        context = copy_context()
        threading.Thread(target=context.run, args=(work,), daemon=True, name="environment").start()
        return await answer

    return run


def no_reward(error: RewardError) -> LostEpisodeError:
    """The end of an episode whose reward is none."""
    number = error.reason == "reward_no_number"
    return LostEpisodeError("reward_no_number" if number else "reward_out_of_range", str(error))


def told(error: BaseException) -> str:
    """The error in one line of bounded length."""
    return plain(f"{type(error).__name__}: {error}")


def plain(text: str) -> str:
    """In one line of bounded length, without what UTF-8 cannot hold."""
    return " ".join(text[:300].encode(errors="replace").decode().split())


async def _timed(call: EnvironmentCall[T]) -> tuple[T, float]:
    began = time.monotonic()
    return await _alone(call), time.monotonic() - began


async def _alone(call: EnvironmentCall[T]) -> T:
    """The call, which cannot end the process: an environment may be a program that exits."""
    try:
        return await call()
    except SystemExit as error:
        raise RuntimeError(f"the environment wanted to exit with {error.code!r}") from error
    except StopIteration as error:  # which a future cannot hold
        raise RuntimeError("the environment's iterator ended") from error


def _look_away(work: asyncio.Future[Any]) -> None:
    """What comes of a call that nobody waits for is no warning either."""
    if not work.cancelled():
        work.exception()
