"""Statuses as kubelets, schedulers and controllers write them, and whose doing each is."""

from typing import Any

import pytest

from records.errors import TransientError
from sandboxes.core.agent.main import OUT_OF_MEMORY, OUTRUN, UNDYING
from sandboxes.core.body import BackpressureError, InfrastructureError, ProgramEndedError
from sandboxes.kubernetes import causes

Json = dict[str, Any]

START, END = "2026-11-29T12:00:00Z", "2026-11-29T12:10:00Z"


def over(code: int, reason: str = "Error", *, at: str = END, name: str = "sandbox") -> Json:
    state = {"exitCode": code, "reason": reason, "startedAt": START, "finishedAt": at}
    return {"name": name, "image": "image:1", "state": {"terminated": state}}


def runs(name: str = "sandbox") -> Json:
    return {"name": name, "image": "image:1", "state": {"running": {"startedAt": START}}}


def waits(reason: str, message: str = "", *, name: str = "sandbox") -> Json:
    waiting = {"reason": reason, "message": message}
    return {"name": name, "image": "image:1", "state": {"waiting": waiting}}


def pod(phase: str, *containers: Json, metadata: Json | None = None, **status: Any) -> Json:
    return {
        "metadata": {"name": "pod", "uid": "1"} | (metadata or {}),
        "spec": {"nodeName": "node-1"},
        "status": {"phase": phase, "containerStatuses": list(containers)} | status,
    }


def disrupted(reason: str, message: str = "said so") -> list[Json]:
    return [
        {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message},
        {"type": "Ready", "status": "False"},
    ]


def evicted(message: str) -> Json:
    return pod("Failed", over(137), reason="Evicted", message=message)


DELETED = {"deletionTimestamp": "2026-11-29T12:10:01Z", "deletionGracePeriodSeconds": 1}

ACTS = {
    "out of memory": pod("Failed", over(137, "OOMKilled")),
    "the agent has no memory left": pod("Failed", over(OUT_OF_MEMORY)),
    "faster than it can be killed": pod("Running", over(OUTRUN), runs("stream")),
    "what does not die": pod("Failed", over(UNDYING)),
    "out of memory, then deleted": pod(
        "Failed", over(137, "OOMKilled", at="2026-11-29T12:05:00Z"), metadata=DELETED
    ),
    "its volume": evicted('Usage of EmptyDir volume "workspace" exceeds the limit "64Mi". '),
    "its container's storage": evicted(
        'Container sandbox exceeded its local ephemeral storage limit "64Mi". '
    ),
    "its storage altogether": evicted(
        "Pod ephemeral local storage usage exceeds the total limit of containers 128Mi. "
    ),
}
"""What only the program in it can have done."""

AROUND = {
    "node's memory": (
        evicted(
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 40Mi. "
            "Container sandbox was using 300Mi, request is 512Mi, has larger consumption of memory."
        ),
        "evicted",
    ),
    "node's disk": (
        evicted("The node was low on resource: ephemeral-storage. Container sandbox was using 9Mi"),
        "evicted",
    ),
    "the streams' container fills its storage": (
        evicted('Container stream exceeded its local ephemeral storage limit "64Mi". '), "evicted"
    ),
    "deadline": (
        pod("Failed", over(137), reason="DeadlineExceeded", message="Pod was active on the node"),
        "deadline",
    ),
    "node lost": (pod("Failed", runs(), reason="NodeLost", message="Node is lost"), "node_lost"),
    "node shut down": (
        pod("Failed", over(137), reason="Terminated", message="Pod was terminated in response to "
            "imminent node shutdown."), "node_lost",
    ),
    "no room on its node": (
        pod("Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu"),
        "not_admitted",
    ),
    "admission": (pod("Failed", reason="UnexpectedAdmissionError", message=""), "not_admitted"),
    "preempted": (
        pod("Running", runs(), metadata=DELETED, conditions=disrupted("PreemptionByScheduler")),
        "preempted",
    ),
    "tainted node": (
        pod("Running", runs(), metadata=DELETED, conditions=disrupted("DeletionByTaintManager")),
        "node_lost",
    ),
    "drained node": (
        pod("Running", over(137), metadata=DELETED, conditions=disrupted("EvictionByEvictionAPI")),
        "evicted",
    ),
    "collected": (pod("Failed", conditions=disrupted("DeletionByPodGC")), "node_lost"),
    "deleted": (pod("Running", runs(), runs("stream"), metadata=DELETED), "deleted"),
    "deleted and killed": (pod("Running", over(137), metadata=DELETED), "deleted"),
    "deleted, of which a part was out of memory before": (
        pod("Running", over(137, "OOMKilled"), metadata=DELETED), "deleted"
    ),
    "a part was out of memory, then its owner was gone": (
        pod("Succeeded", over(0, "OOMKilled")), "unheld"
    ),
    "nobody came back": (pod("Succeeded", over(0, "Completed")), "unheld"),
    "killed by somebody": (pod("Failed", over(137)), "lost"),
    "the agent failed": (pod("Failed", over(1)), "lost"),
    "the streams' container is out of memory": (
        pod("Running", runs(), over(137, "OOMKilled", name="stream")), "lost"
    ),
    "an init container failed": (
        pod("Failed", waits("PodInitializing"),
            initContainerStatuses=[over(1, name="fill")]), "not_started",
    ),
    "started again": (
        pod("Running", runs() | {"lastState": over(2)["state"], "restartCount": 1}), "lost"
    ),
    "failed without a word": (pod("Failed"), "lost"),
}  # fmt: skip
"""What is nobody's act inside -> what accounts call it."""


@pytest.mark.parametrize("status", ACTS.values(), ids=ACTS)
def test_what_the_program_did_is_scored(status: Json) -> None:
    cause = causes.ended(status)
    assert cause is not None
    assert cause.reason == "program"
    assert isinstance(cause.error, ProgramEndedError)


@pytest.mark.parametrize(("status", "reason"), AROUND.values(), ids=AROUND)
def test_what_happened_around_it_is_infrastructure(status: Json, reason: str) -> None:
    cause = causes.ended(status)
    assert cause is not None
    assert cause.reason == reason
    error = cause.error
    assert isinstance(error, InfrastructureError)
    assert isinstance(error, TransientError)
    assert error.reason == reason
    assert str(error).startswith("the sandbox ended")


ALIVE = {
    "both run": pod("Running", runs(), runs("stream")),
    "it starts": pod("Pending", waits("ContainerCreating"), waits("PodInitializing")),
    "nothing is told yet": {"metadata": {"name": "pod"}, "spec": {}},
    "its image cannot be had, as yet": pod("Pending", waits("ErrImagePull")),
}


@pytest.mark.parametrize("status", ALIVE.values(), ids=ALIVE)
def test_what_may_yet_run_is_not_over(status: Json) -> None:
    assert causes.ended(status) is None


STUCK = {
    "ErrImagePull": "image",
    "ImagePullBackOff": "image",
    "InvalidImageName": "image",
    "ErrImageNeverPull": "image",
    "CreateContainerConfigError": "not_started",
    "CreateContainerError": "not_started",
    "RunContainerError": "not_started",
}


@pytest.mark.parametrize(("told", "reason"), STUCK.items())
@pytest.mark.parametrize("where", ["initContainerStatuses", "containerStatuses"])
def test_what_will_not_start_is_named(told: str, reason: str, where: str) -> None:
    status = {where: [waits(told, 'failed to pull image "image:1": not found')]}
    cause = causes.hopeless(pod("Pending") | {"status": status})
    assert cause is not None
    assert cause.reason == reason
    assert "not found" in cause.detail
    assert isinstance(cause.error, InfrastructureError)


def test_a_pod_for_which_there_is_no_room_is_backpressure() -> None:
    said = "0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available"
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said
    }  # fmt: skip
    found = causes.unschedulable(pod("Pending", conditions=[condition]))
    error = causes.late(60, found, "Pod p")
    assert isinstance(error, BackpressureError)
    assert error.reason == "unschedulable"
    assert said in str(error)
    assert not isinstance(causes.late(60, None, "Pod p"), BackpressureError)


def test_what_ends_a_pod_before_its_first_program_is_no_programs_act() -> None:
    cause = causes.program("it took all memory of its limit")
    assert isinstance(cause.error, ProgramEndedError)
    assert isinstance(cause.before_use, InfrastructureError)


def test_a_volume_that_we_fill_ourselves_is_not_the_programs() -> None:
    pod = evicted('Usage of EmptyDir volume "fill" exceeds the limit "64Mi". ')
    cause = causes.ended(pod)
    assert cause is not None
    assert cause.reason == "evicted"
