"""What can go wrong with a cluster, one by one, and what became of the sandboxes: `FAULTS`.

Each is asked of simulated Pods on the double unless it says that its Pods are real. It asserts what
must hold, and returns in words what happened, for a table.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from records.errors import ConfigError, ItemError, TransientError
from sandboxes.core.body import BackpressureError, InfrastructureError, ProgramEndedError
from sandboxes.core.sandbox import Sandbox, closing
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.kubernetes.backend import KubernetesBackend
from sandboxes.kubernetes.body import KubernetesBody
from sandboxes.kubernetes.claims import Placed
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from tests.kubernetes.staging import Stage

TEMPLATE = SandboxTemplate(limits=Limits(memory_mb=64, cpus=0.1))


Fault = Callable[[Stage], Coroutine[Any, Any, str]]


@asynccontextmanager
async def backend(stage: Stage, **settings: Any) -> AsyncIterator[KubernetesBackend]:
    made = KubernetesBackend(stage.simulated(**settings))
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def sandbox(
    stage: Stage, **settings: Any
) -> AsyncIterator[tuple[KubernetesBackend, Sandbox]]:
    async with backend(stage, **settings) as made, closing(await made.create(TEMPLATE)) as one:
        yield made, one


def pod_of(one: Sandbox) -> str:
    assert isinstance(one.body, KubernetesBody)
    return one.body._placed.pod


async def fault(stage: Stage, **asked: Any) -> Any:
    return await asyncio.to_thread(lambda: stage.fault(**asked))


async def until(true: Callable[[], bool]) -> None:
    """As long as it takes: what never comes true is stopped by whoever runs the tests."""
    while not true():  # noqa: ASYNC110  # nothing tells when
        await asyncio.sleep(0.05)


async def lost(one: Sandbox, wanted: type[Exception]) -> Exception:
    """How a sandbox that is about to be lost says so."""
    while True:
        try:
            await one.ping()
        except wanted as error:
            return error
        await asyncio.sleep(0.05)


async def served_again(made: KubernetesBackend) -> None:
    """A fresh sandbox, as a pool gets one for whoever lost theirs."""
    pool = Pool(PoolSettings(live=2, idle=0), backend=made)
    async with pool, pool.lease(TEMPLATE) as other:
        assert (await other.exec(["again"])).stdout == b"again\n"


async def watches_dropped(stage: Stage) -> str:
    async with sandbox(stage) as (made, one):
        await fault(stage, kind="drop_watches")
        async with closing(await made.create(TEMPLATE)) as other:
            await other.ping()
        await one.ping()
        counts = await made.figures()
        assert counts["watch_pods_listed"] == 1, "a watch that broke goes on from its last version"
    return "watches went on from where they were; nothing listed again"


async def history_forgotten(stage: Stage) -> str:
    async with sandbox(stage) as (made, one):
        ours = {"verb": "watch", "resource": "pods", "user_agent": "agentic-synth"}
        await fault(stage, kind="status", code=503, count=6, **ours)
        await fault(stage, kind="drop_watches")
        # what happens while nobody watches, and is forgotten before anybody does
        await asyncio.to_thread(stage.kubectl, "annotate", "pod", pod_of(one), "note=changed")
        await fault(stage, kind="compact")
        await until(lambda: made.counted()["watch_pods_forgotten"] >= 1)
        async with closing(await made.create(TEMPLATE)) as other:
            await other.ping()
        await one.ping()
        assert (await made.figures())["watch_pods_listed"] >= 2
    return "410: everything listed again, sandboxes not touched"


async def streams_dropped(stage: Stage) -> str:
    async with sandbox(stage) as (made, one):
        echo = await one.open_stdio(["cat"])
        for number in range(5):
            await echo.write(b"%d\n" % number)
            await fault(stage, kind="drop_streams")
        got = b""
        while len(got) < 10:
            got += await echo.read()
        assert got == b"0\n1\n2\n3\n4\n"
        counts = await made.figures()
        assert counts["streams"] >= 2
        assert counts["claimed"] == 1
    return f"the same sandbox over {counts['streams']} streams, every byte once"


async def server_restarted(stage: Stage) -> str:
    async with sandbox(stage) as (made, one):
        begun = time.monotonic()
        await fault(stage, kind="restart", seconds=1.0)
        assert (await one.exec(["still", "here"])).stdout == b"still here\n"
        took = time.monotonic() - begun
        async with closing(await made.create(TEMPLATE)) as other:
            await other.ping()
        assert (await made.figures())["claimed"] == 2
    return f"no sandbox lost; a command begun at its end was answered {took:.1f} s after"


async def throttled(stage: Stage) -> str:
    made_of = "sandboxclaims" if stage.claims else "pods"
    async with backend(stage) as made:
        await made.held()
        await fault(stage, kind="status", code=429, retry_after_s=1, count=2, verb="create",
                    resource=made_of)  # fmt: skip
        begun = time.monotonic()
        async with closing(await made.create(TEMPLATE)) as one:
            took = time.monotonic() - begun
            await one.ping()
        assert (await made.figures())["api_throttled"] == 2
        assert took >= 1.9, "each Retry-After is kept"
    return f"429 twice with Retry-After 1: made after {took:.1f} s, no error"


async def server_errors(stage: Stage) -> str:
    async with backend(stage) as made:
        await made.held()
        for code in (500, 503):
            await fault(stage, kind="status", code=code, count=1, verb="create")
        async with closing(await made.create(TEMPLATE)) as one:
            await one.ping()
        assert (await made.figures())["api_errors"] == 2
    return "500 and 503: asked again, no error"


async def answer_lost(stage: Stage) -> str:
    made_of = "sandboxclaims" if stage.claims else "pods"
    async with backend(stage) as made:
        await made.held()
        await fault(stage, kind="disconnect", count=1, verb="create", resource=made_of)
        async with closing(await made.create(TEMPLATE)) as one:
            await one.ping()
        assert (await made.figures())["api_unreached"] == 1
        assert not await made.list()
    return "a creation whose connection broke was asked again, one sandbox made"


async def forbidden(stage: Stage) -> str:
    async with backend(stage) as made:
        await made.held()
        await fault(stage, kind="status", code=403, count=1, verb="create", message="may not")
        with pytest.raises(ConfigError, match="kubectl apply -k deploy/kubernetes"):
            await made.create(TEMPLATE)
    return "ConfigError that names the right and the command that grants it"


async def quota_used_up(stage: Stage) -> str:
    quota = f"""{{"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {{"name": "few", "namespace": "{stage.namespace}"}},
        "spec": {{"hard": {{"pods": "0"}}}}}}"""
    path = stage.folder / "quota.json"
    path.write_text(quota)
    await asyncio.to_thread(stage.kubectl, "apply", "-f", str(path), "--validate=false")
    try:
        async with backend(stage, ready_s=3) as made:
            with pytest.raises(BackpressureError) as found:
                await made.create(TEMPLATE)
            assert found.value.reason == "quota"
    finally:
        await asyncio.to_thread(stage.kubectl, "delete", "resourcequota", "few")
    return "backpressure by name, with the quota's words"


async def no_node_fits(stage: Stage) -> str:
    async with backend(stage, ready_s=2, node_selector={"there": "is-none"}) as made:
        with pytest.raises(BackpressureError, match="nodes are available") as found:
            await made.create(TEMPLATE)
        assert found.value.reason == "unschedulable"
        assert (await made.figures())["waited_unschedulable"] == 1
    return "backpressure by name, with the scheduler's words"


async def image_missing(stage: Stage) -> str:
    async with backend(stage, image="missing/image:1") as made:
        with pytest.raises(InfrastructureError) as found:
            await made.create(TEMPLATE)
        assert found.value.reason == "image"
        assert not isinstance(found.value, BackpressureError)
    return "infrastructure, at once and not when the time is over"


async def node_lost(stage: Stage) -> str:
    async with backend(stage, linger_s=1, gone_s=5) as made:
        one = await made.create(TEMPLATE)
        state = (await made.held()).session.pods.objects
        node = next(each.node for each in state.values() if each.name == pod_of(one))
        await fault(stage, fault="lose_node", node=node, evict_after_s=0)
        try:
            error = await lost(one, InfrastructureError)
            with contextlib.suppress(TransientError):
                await one.close()
            await served_again(made)
        finally:
            await fault(stage, fault="return_node", node=node)
    assert isinstance(error, InfrastructureError)
    return f"infrastructure ({error.reason}); a fresh one on another node"


async def evicted(stage: Stage) -> str:
    async with sandbox(stage) as (made, one):
        await fault(
            stage, fault="evict", namespace=stage.namespace, pod=pod_of(one), resource="memory"
        )
        error = await lost(one, InfrastructureError)
        assert isinstance(error, InfrastructureError)
        assert error.reason == "evicted", error
        await served_again(made)
    return "infrastructure (evicted); a fresh one"


async def out_of_memory(stage: Stage) -> str:
    async with sandbox(stage) as (_, one):
        await fault(stage, fault="kill", namespace=stage.namespace, pod=pod_of(one),
                    container="sandbox", reason="OOMKilled")  # fmt: skip
        error = await lost(one, ProgramEndedError)
        assert "took all memory" in str(error)
    return "the program's act, scored"


async def container_killed(stage: Stage) -> str:
    async with sandbox(stage) as (made, one):
        await fault(stage, fault="kill", namespace=stage.namespace, pod=pod_of(one),
                    container="sandbox")  # fmt: skip
        error = await lost(one, InfrastructureError)
        assert isinstance(error, InfrastructureError)
        assert error.reason == "lost", error
        await served_again(made)
    return "infrastructure (lost); a fresh one"


async def pod_deleted(stage: Stage) -> str:
    async with sandbox(stage) as (made, one):
        await asyncio.to_thread(stage.kubectl, "delete", "pod", pod_of(one), "--wait=false")
        error = await lost(one, InfrastructureError)
        assert isinstance(error, InfrastructureError)
        await served_again(made)
    return f"infrastructure ({error.reason}); a fresh one"


async def claimed_twice(stage: Stage) -> str:
    async with sandbox(stage) as (_, one), backend(stage) as other:
        begun, placing = await other.held()
        assert isinstance(one.body, KubernetesBody)
        first = one.body._placed
        # what a controller would do that gives one Pod to two claims
        twice = Placed(begun.next_name(), first.key, first.pod, first.uid, "another token")
        body = KubernetesBody(begun, placing, twice, TEMPLATE)
        body._gone = False
        with pytest.raises(InfrastructureError) as found:
            await body.opened()
        assert found.value.reason == "duplicate_claim"
        await one.ping()
    return "infrastructure (duplicate_claim) for the second, nothing for the first"


async def owner_taken_for_dead(stage: Stage) -> str:
    async with backend(stage) as made:
        one = await made.create(TEMPLATE)
        first = (await made.held()).session
        lease = f"lease/synth-owner-{first.owner.name}"
        await asyncio.to_thread(stage.kubectl, "annotate", lease, "synth.dev/dead=now")
        await until(lambda: first.over is not None)
        error = await lost(one, TransientError)
        await served_again(made)
        assert (await made.held()).session is not first
    return f"its sandboxes are lost ({error}), the next one comes from a new session"[:120]


FILL = "for i in 1 2 3 4 5 6 7 8; do head -c 7000000 /dev/zero > /tmp/$i; done"


async def memory_filled(stage: Stage) -> str:
    """Of a real Pod: files in memory stay when the program that wrote them has been killed."""
    made = KubernetesBackend(stage.settings(stream_cpus=1))
    limits = {"memory_mb": 40, "disk_mb": 400}
    try:
        one = await made.create(SandboxTemplate.model_validate({"limits": limits}))
        error = await ended_by(one)
        assert "took all memory" in str(error)
    finally:
        await made.close()
    return "the program's act, scored"


async def storage_filled(stage: Stage) -> str:
    """Of a real Pod whose scratch is on the node's disk."""
    made = KubernetesBackend(stage.settings(stream_cpus=1, scratch_medium="disk"))
    limits = {"disk_mb": 8, "memory_mb": 64}
    try:
        one = await made.create(SandboxTemplate.model_validate({"limits": limits}))
        error = await ended_by(one)
        assert "more storage than is its own" in str(error)
    finally:
        await made.close()
    return "the program's act, scored"


async def ended_by(one: Sandbox) -> Exception:
    """How a sandbox says that its program ended it, which fills all it may."""
    while True:
        try:
            await one.exec(["sh", "-c", FILL])
            await one.write_file("more", bytes(4 << 20))
        except ProgramEndedError as error:
            return error
        except ItemError:  # the agent itself could not write
            await asyncio.sleep(0.1)


REAL_FAULTS: dict[str, Fault] = {
    "its memory filled": memory_filled,
    "its storage filled": storage_filled,
}

FAULTS: dict[str, Fault] = {
    "watches dropped": watches_dropped,
    "history forgotten (410)": history_forgotten,
    "streams dropped": streams_dropped,
    "API server restarted": server_restarted,
    "throttled (429)": throttled,
    "server errors (500, 503)": server_errors,
    "answer lost": answer_lost,
    "right missing (403)": forbidden,
    "quota used up": quota_used_up,
    "no node fits": no_node_fits,
    "image missing": image_missing,
    "node lost": node_lost,
    "evicted for the node's memory": evicted,
    "out of memory": out_of_memory,
    "container killed": container_killed,
    "Pod deleted": pod_deleted,
    "one Pod, two claims": claimed_twice,
    "owner taken for dead": owner_taken_for_dead,
}
