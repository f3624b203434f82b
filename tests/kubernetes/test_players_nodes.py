"""Played nodes and the scheduler: where Pods go, what their status says, and how they end."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from tests.kubernetes.asking import (
    Asking,
    Json,
    asking,
    condition,
    condition_of,
    phase,
    state_of,
    until,
)
from tests.kubernetes.players.controllers.scheduler import (
    AFFINITY,
    lacking,
    room_of,
    sentence,
    unfit,
)
from tests.kubernetes.players.quantities import amount, requests_of
from tests.kubernetes.players.statuses import quality
from tests.kubernetes.staging import Stage

SIMULATED = {"synth.dev/played": "simulated"}


def container(**more: Any) -> Json:
    return {"name": "sandbox", "image": "image:1", "command": ["sleep", "1000"], **more}


def pod_of(*containers: Json, **spec: Any) -> Json:
    return {"metadata": {"name": "pod"}, "spec": {"containers": list(containers), **spec}}


def name() -> str:
    return f"pod-{uuid.uuid4().hex[:8]}"


def with_stage(stage: Stage, test: Callable[[Asking], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asking(stage) as cluster:
            await test(cluster)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "value"),
    [("250m", "0.25"), ("1", "1"), ("512Mi", str(512 << 20)), ("1e3", "1000"), ("2E", "2e18")],
)
def test_quantities_are_numbers(text: str, value: str) -> None:
    assert amount(text) == amount(value)


def test_a_pod_asks_for_the_larger_of_its_phases_and_limits_stand_for_requests() -> None:
    small = {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}
    pod = pod_of(
        container(resources=small),
        container(resources={"requests": {"cpu": "500m"}}),
        initContainers=[container(resources={"limits": {"cpu": "4", "memory": "1Mi"}})],
        overhead={"memory": "1Mi"},
    )
    assert requests_of(pod) == {
        "cpu": 4, "memory": (1 << 30) + (1 << 20), "pods": 1,
    }  # fmt: skip


NODE: Json = {
    "metadata": {"name": "node", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "1"}},
}


UNTOLERATED = "node(s) had untolerated taint {gpu: yes}"
GPU = {"tolerations": [{"key": "gpu", "value": "yes"}]}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, UNTOLERATED),
        ({"tolerations": [{"operator": "Exists"}]}, ""),
        ({"tolerations": [{"key": "gpu", "value": "no"}]}, UNTOLERATED),
        ({"tolerations": [{"key": "gpu", "value": "yes", "effect": "NoExecute"}]}, UNTOLERATED),
        (GPU | {"nodeSelector": {"zone": "b"}}, AFFINITY),
        (GPU | {"nodeSelector": {"zone": "a"}}, ""),
    ],
)  # fmt: skip
def test_taints_come_before_selectors_as_kube_scheduler_has_it(spec: Json, why: str) -> None:
    assert unfit(pod_of(container(), **spec), NODE, simulated=False) == why


def test_what_a_node_lacks_is_named_resource_by_resource() -> None:
    wanted = {"cpu": amount("3"), "memory": amount("2Gi"), "pods": amount("1")}
    assert lacking(wanted, room_of(NODE), {}) == ["Insufficient cpu", "Insufficient memory"]
    full = {"pods": amount("1")}
    assert lacking({"pods": amount("1")}, room_of(NODE), full) == ["Too many pods"]


def test_the_message_is_kube_schedulers() -> None:
    reasons = Counter({"Insufficient cpu": 2, "node(s) had untolerated taint {a: b}": 1})
    assert sentence(3, reasons, 2) == (
        "0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: 2 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert sentence(0, Counter(), 0) == "no nodes available to schedule pods"


def test_limits_and_requests_that_are_equal_are_guaranteed() -> None:
    both = {"cpu": "1", "memory": "1Gi"}
    assert quality(pod_of(container(resources={"limits": both}))) == "Guaranteed"
    assert quality(pod_of(container(resources={"requests": both}))) == "Burstable"
    assert quality(pod_of(container())) == "BestEffort"


def test_a_simulated_pod_runs_is_ready_and_goes(stage: Stage) -> None:
    async def test(cluster: Asking) -> None:
        mine = name()
        await cluster.make_pod(mine, {"containers": [container()]}, labels=SIMULATED)
        pod = await cluster.running(mine)
        assert pod["spec"]["nodeName"].startswith("played-simulated-")
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
            assert condition(pod, kind) == "True", kind
        assert pod["status"]["podIP"]
        assert "running" in state_of(pod)
        await cluster.delete_pod(mine, grace_s=30)
        await cluster.gone(mine)

    with_stage(stage, test)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodeSelector": {"no": "where"}}, "didn't match Pod's node affinity/selector"),
        ({"containers": [container(resources={"requests": {"cpu": "100k"}})]}, "Insufficient cpu"),
    ],
)
def test_what_fits_nowhere_says_so_and_waits(stage: Stage, spec: Json, words: str) -> None:
    async def test(cluster: Asking) -> None:
        mine = name()
        await cluster.make_pod(mine, {"containers": [container()], **spec}, labels=SIMULATED)
        pod = await cluster.pod_when(mine, lambda pod: condition(pod, "PodScheduled") == "False")
        found = condition_of(pod, "PodScheduled")
        assert found is not None
        assert found["reason"] == "Unschedulable"
        assert words in found["message"]
        assert phase(pod) == "Pending"
        await cluster.delete_pod(mine)
        await cluster.gone(mine)

    with_stage(stage, test)


def test_a_pod_that_waits_goes_on_once_something_is_freed(stage: Stage) -> None:
    """A node takes what it has and no more: two simulated nodes, three Pods of most of one."""

    async def test(cluster: Asking) -> None:
        spec = {"containers": [container(resources={"requests": {"cpu": "3000"}})]}
        names = [name() for _ in range(3)]
        for mine in names:
            await cluster.make_pod(mine, spec, labels=SIMULATED)

        async def running() -> Json:
            pods = {pod["metadata"]["name"]: pod for pod in await cluster.pods()}
            return {"names": [mine for mine in names if phase(pods[mine]) == "Running"]}

        two = (await until(running, lambda found: len(found["names"]) == 2, "two Pods"))["names"]
        third = next(mine for mine in names if mine not in two)
        await cluster.pod_when(third, lambda pod: condition(pod, "PodScheduled") == "False")
        await cluster.delete_pod(two[0])
        await cluster.running(third)
        for mine in (two[1], third):
            await cluster.delete_pod(mine)

    with_stage(stage, test)


@pytest.mark.slow
def test_a_missing_image_is_told_and_ends_once_it_is_there(stage: Stage) -> None:
    async def test(cluster: Asking) -> None:
        mine, image = name(), f"lost-{name()}"
        stage.fault(fault="missing_image", image=image)
        await cluster.make_pod(mine, {"containers": [container(image=image)]}, labels=SIMULATED)

        def reason(pod: Json) -> str:
            return state_of(pod).get("waiting", {}).get("reason", "")

        pod = await cluster.pod_when(mine, lambda pod: reason(pod) == "ErrImagePull")
        assert image in state_of(pod)["waiting"]["message"]
        assert phase(pod) == "Pending"
        await cluster.pod_when(mine, lambda pod: reason(pod) == "ImagePullBackOff")
        stage.fault(fault="restore_image", image=image)
        await cluster.running(mine)
        await cluster.delete_pod(mine)

    with_stage(stage, test)


@pytest.mark.slow
def test_a_pod_that_lives_too_long_fails_by_its_deadline(stage: Stage) -> None:
    async def test(cluster: Asking) -> None:
        mine = name()
        spec = {"containers": [container()], "activeDeadlineSeconds": 1}
        await cluster.make_pod(mine, spec, labels=SIMULATED)
        status = (await cluster.over(mine))["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        await cluster.delete_pod(mine)

    with_stage(stage, test)


def test_eviction_by_pressure_says_what_the_node_lacked(stage: Stage) -> None:
    async def test(cluster: Asking) -> None:
        mine = name()
        await cluster.make_pod(mine, {"containers": [container()]}, labels=SIMULATED)
        await cluster.running(mine)
        stage.fault(fault="evict", namespace=cluster.namespace, pod=mine, resource="memory")
        pod = await cluster.over(mine)
        assert pod["status"]["reason"] == "Evicted"
        assert pod["status"]["message"].startswith("The node was low on resource: memory. ")
        found = condition_of(pod, "DisruptionTarget")
        assert found is not None
        assert found["reason"] == "TerminationByKubelet"
        await cluster.delete_pod(mine)

    with_stage(stage, test)


@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_a_killed_container_ends_its_pod_or_is_started_again(stage: Stage, policy: str) -> None:
    async def test(cluster: Asking) -> None:
        mine = name()
        spec = {"containers": [container()], "restartPolicy": policy}
        await cluster.make_pod(mine, spec, labels=SIMULATED)
        await cluster.running(mine)
        stage.fault(fault="kill", namespace=cluster.namespace, pod=mine, reason="OOMKilled")
        if policy == "Never":
            pod = await cluster.over(mine)
            ended = state_of(pod)["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
        else:
            pod = await cluster.pod_when(
                mine, lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 1
            )
            assert phase(pod) == "Running"
            last = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
            assert last["reason"] == "OOMKilled"
        await cluster.delete_pod(mine)

    with_stage(stage, test)


def test_the_eviction_subresource_deletes_a_pod(stage: Stage) -> None:
    async def test(cluster: Asking) -> None:
        mine = name()
        await cluster.make_pod(mine, {"containers": [container()]}, labels=SIMULATED)
        await cluster.running(mine)
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": mine, "namespace": cluster.namespace},
        }
        await cluster.core.create_namespaced_pod_eviction(mine, cluster.namespace, cast(Any, body))
        await cluster.gone(mine)

    with_stage(stage, test)


def test_pods_of_a_lost_node_are_not_ready_then_deleted_then_removed(stage: Stage) -> None:
    """The Pod is deleted by the controller, and stays until its node is gone or back."""

    async def test(cluster: Asking) -> None:
        mine, node = name(), "played-simulated-1"
        spec = {"containers": [container()], "nodeSelector": {"kubernetes.io/hostname": node}}
        await cluster.make_pod(mine, spec, labels=SIMULATED)
        await cluster.running(mine)
        stage.fault(fault="lose_node", node=node, evict_after_s=0)

        async def asked() -> Json:
            return cluster.plain(await cluster.core.read_node(node))

        await until(asked, lambda found: condition(found, "Ready") == "Unknown", f"node {node}")
        pod = await cluster.pod_when(mine, lambda pod: "deletionTimestamp" in pod["metadata"])
        assert condition(pod, "Ready") == "False"
        found = condition_of(pod, "DisruptionTarget")
        assert found is not None
        assert found["reason"] == "DeletionByTaintManager"
        stage.fault(fault="return_node", node=node)
        await cluster.gone(mine)

        def whole(found: Json) -> bool:
            keys = {taint["key"] for taint in found["spec"].get("taints", [])}
            return condition(found, "Ready") == "True" and keys == {"synth.dev/played"}

        await until(asked, whole, f"node {node}")

    with_stage(stage, test)
