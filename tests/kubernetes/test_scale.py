"""Many simulated sandboxes are held at once, and a killed holder leaves none of them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.kubernetes.faults import backend
from tests.kubernetes.holding import holder
from tests.kubernetes.leaks import nothing_left
from tests.kubernetes.staging import Stage, staged

NODE_PODS = 512
LINGER_S = (10, 150)
"""A machine that is busy with so many may be late with the answer to a ping of the stream."""
STREAMS_OF_ONE = 5000
"""Each takes two descriptors of the double; a process often has 20,000 at most."""


@contextmanager
def cluster_for(count: int, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The one of all tests, as long as it has the nodes and the descriptors for so many."""
    if count < NODE_PODS:
        yield request.getfixturevalue("stage")
        return
    nodes = f"simulated={-(-count // NODE_PODS) + 2}"
    with staged(nodes=nodes, stream_workers=-(-count // STREAMS_OF_ONE)) as stage:
        yield stage


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [120, pytest.param(10_000, marks=pytest.mark.scale)], ids=["120", "10000"]
)
def test_many_are_held_at_once_and_none_is_left(count: int, request: pytest.FixtureRequest) -> None:
    with cluster_for(count, request) as stage:
        settings = stage.simulated(
            linger_s=LINGER_S[count > STREAMS_OF_ONE],
            stream_ping_s=50,
            warm=20,
            creations_per_s=500,
            creations_burst=200,
            heartbeat_s=5,
            owner_dead_s=60,
            ready_s=600,
        )
        process, found = holder(settings, count, idle_s=0)
        try:
            assert found["held"] == found["answered"] == count
            assert found["round_s"] < 60, "each has answered in the last minute"
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()

        async def cleared() -> None:
            async with backend(stage, heartbeat_s=1, owner_dead_s=60) as other:
                await other.held()
                await nothing_left(stage, found["owner"])

        assert process.stdout is not None
        process.stdout.close()
        asyncio.run(cleared())
