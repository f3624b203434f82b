"""Why a Pod is gone, or is not there yet, as its status tells it in the words of kubelets,
schedulers and controllers.

What a program does to its own sandbox is its act, and scored: it takes all memory of its container,
or fills the storage that is its own. All else is infrastructure: the node, its pressure, images,
deadlines, preemption, whoever deletes Pods. Where a status leaves it open it is infrastructure,
which costs another try and never a score.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from records.errors import SynthError, TransientError
from sandboxes.core.agent.main import OUT_OF_MEMORY
from sandboxes.core.body import (
    PROGRAMS_DOING,
    BackpressureError,
    InfrastructureError,
    ProgramEndedError,
    ended_with,
)

SANDBOX, STREAM = "sandbox", "stream"
"""Containers of a Pod: that of the programs, and the one in which streams to it end."""

BRING_PYTHON, FILL = "bring-python", "fill"
"""Init containers: one copies a Python, the other takes in what the template shows."""

KILLED = 137

OWN_STORAGE = (
    re.compile(r'Usage of EmptyDir volume "(workspace|tmp|shm)" exceeds the limit'),
    re.compile(rf"Container {SANDBOX} exceeded its local ephemeral storage limit"),
    re.compile(r"Pod ephemeral local storage usage exceeds the total limit of containers"),
)
"""As the kubelet's eviction manager says that a Pod went over limits of its own, in what programs
may fill. Volumes that we fill ourselves are none of theirs."""

IMAGE = (
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
    "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed",
)  # fmt: skip
NOT_STARTED = (
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
    "PostStartHookError", "PreStartHookError", "StartError",
)  # fmt: skip
"""Reasons of a container that waits and will not run without help."""

OF_PODS = {
    "Evicted": ("evicted", "its node evicted it"),
    "DeadlineExceeded": ("deadline", "it lived as long as `deadline_s` lets it"),
    "NodeLost": ("node_lost", "its node was lost"),
    "NodeShutdown": ("node_lost", "its node was shut down"),
    "Terminated": ("node_lost", "its node was shut down"),
    "Shutdown": ("node_lost", "its node was shut down"),
    "NodeAffinity": ("not_admitted", "its node does not take it"),
    "UnexpectedAdmissionError": ("not_admitted", "its node does not take it"),
    "Preempting": ("preempted", "a Pod of higher priority took its place"),
}
"""`status.reason` of a failed Pod -> what accounts call it, and in words. Those that start with
OutOf name what a node had no more of."""

OF_DISRUPTIONS = {
    "PreemptionByScheduler": ("preempted", "a Pod of higher priority took its place"),
    "DeletionByTaintManager": ("node_lost", "its node was tainted: it does not answer, or drains"),
    "EvictionByEvictionAPI": ("evicted", "somebody evicted it, as a node that is drained does"),
    "DeletionByPodGC": ("node_lost", "its node is no more"),
    "TerminationByKubelet": ("evicted", "its node ended it"),
}
"""Reasons of the condition DisruptionTarget."""


class EndCause(NamedTuple):
    """Why a Pod is over. `reason` is a word for accounts, "program" for the program's own act."""

    reason: str
    detail: str

    @property
    def error(self) -> SynthError:
        if self.reason == "program":
            return ProgramEndedError(f"the program ended its sandbox: {self.detail}")
        return InfrastructureError(self.reason, f"the sandbox ended: {self.detail}")

    @property
    def before_use(self) -> InfrastructureError:
        """Of a Pod in which no program has run yet, so that none has ended it."""
        why = f"the sandbox ended before any program ran in it: {self.detail}"
        return InfrastructureError(self.reason, why)


def program(detail: str) -> EndCause:
    return EndCause("program", detail)


def ended(pod: dict[str, Any]) -> EndCause | None:
    """Why no program runs in a Pod any more; None while one does, or may yet."""
    status = pod.get("status") or {}
    disruption = next(
        (each for each in status.get("conditions") or ()
         if each.get("type") == "DisruptionTarget" and each.get("status") == "True"), None,
    )  # fmt: skip
    over = terminated(status, SANDBOX)
    failed = status.get("phase") == "Failed"
    if failed and (reason := status.get("reason")):
        return of_pod(reason, status.get("message") or "", disruption)
    if over is not None:
        return of_container(pod, over, disruption)
    if failed or status.get("phase") == "Succeeded":
        return (
            failed_start(status) or of_disruption(disruption) or EndCause("lost", "its Pod is over")
        )
    if stream := terminated(status, STREAM):
        code = stream.get("exitCode")
        return EndCause("lost", f"the container of its streams ended with code {code}")
    if pod["metadata"].get("deletionTimestamp"):
        return of_disruption(disruption) or EndCause("deleted", "its Pod was deleted")
    return None


def of_pod(reason: str, message: str, disruption: dict[str, Any] | None) -> EndCause:
    if reason == "Evicted" and any(each.search(message) for each in OWN_STORAGE):
        return program(f"it used more storage than is its own ({message.strip()[:300]})")
    if reason not in OF_PODS and (found := of_disruption(disruption)):
        return found
    word, detail = OF_PODS.get(reason, ("lost", "its Pod failed"))
    if reason.startswith("OutOf"):
        word, detail = "not_admitted", "its node had no room for it"
    return EndCause(word, f"{detail} ({reason}: {message.strip()[:300]})")


def of_disruption(condition: dict[str, Any] | None) -> EndCause | None:
    if condition is None:
        return None
    reason = condition.get("reason", "")
    word, detail = OF_DISRUPTIONS.get(reason, ("evicted", "it was disrupted"))
    return EndCause(word, f"{detail} ({reason}: {(condition.get('message') or '').strip()[:300]})")


def of_container(
    pod: dict[str, Any], over: dict[str, Any], disruption: dict[str, Any] | None
) -> EndCause:
    """Of the sandbox's own container, whose first process is the agent. A kubelet says OOMKilled
    of a container in which any process was killed for memory, however it ended itself; and one
    that was told to end is killed with the same code."""
    code, by_us = over.get("exitCode"), told_to_end(pod, over)
    if code in PROGRAMS_DOING and not by_us:
        return program(PROGRAMS_DOING[code])
    if over.get("reason") == "OOMKilled" and code == KILLED and not by_us:
        return program(PROGRAMS_DOING[OUT_OF_MEMORY])
    if found := of_disruption(disruption):
        return found
    if by_us:
        return EndCause("deleted", "its Pod was deleted")
    if code == 0:
        return EndCause("unheld", "its agent waited in vain for its owner")
    said = (over.get("message") or "").strip()[:300]
    words = f"its container ended with code {code} ({over.get('reason')})"
    return EndCause("lost", f"{words}: {said}" if said else words)


def told_to_end(pod: dict[str, Any], over: dict[str, Any]) -> bool:
    """Whether somebody had the Pod deleted before its container ended."""
    metadata = pod["metadata"]
    if not (deadline := metadata.get("deletionTimestamp")):
        return False
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    at, end = seconds(over.get("finishedAt")), seconds(deadline)
    return at is None or end is None or at >= end - grace


def seconds(time: str | None) -> float | None:
    try:
        return datetime.fromisoformat(str(time)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def terminated(status: dict[str, Any], container: str) -> dict[str, Any] | None:
    """How a container ended; None while it runs, waits or is unknown."""
    for each in status.get("containerStatuses") or ():
        if each.get("name") == container:
            if found := (each.get("state") or {}).get("terminated"):
                return found
            # restarted, which policy Never rules out, it has lost what ran in it
            return (each.get("lastState") or {}).get("terminated")
    return None


def containers(status: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def failed_start(status: dict[str, Any]) -> EndCause | None:
    """Of a Pod whose init container failed."""
    for each in status.get("initContainerStatuses") or ():
        over = (each.get("state") or {}).get("terminated")
        if over and over.get("exitCode"):
            said = (over.get("message") or "").strip()[:300]
            detail = f"init container {each['name']} ended with code {over['exitCode']} {said}"
            return EndCause("not_started", detail.strip())
    return None


def hopeless(pod: dict[str, Any]) -> EndCause | None:
    """Why a Pod that is not over will not start either: its image, its configuration."""
    for each in containers(pod.get("status") or {}):
        waits = (each.get("state") or {}).get("waiting") or {}
        reason, said = waits.get("reason"), (waits.get("message") or "").strip()[:300]
        if reason in IMAGE:
            return EndCause("image", f"image {each.get('image')} cannot be had ({reason}: {said})")
        if reason in NOT_STARTED:
            return EndCause("not_started", f"{each.get('name')} does not start ({reason}: {said})")
    return None


def unschedulable(pod: dict[str, Any]) -> str | None:
    """What the scheduler says of a Pod for which it has no node."""
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return str(each.get("message") or each.get("reason") or "no node")[:500]
    return None


def late(within_s: float, scheduler: str | None, what: str) -> InfrastructureError:
    """The error for a Pod that did not become ready in time."""
    if scheduler is not None:
        return BackpressureError(
            "unschedulable", f"no node takes {what}, for {within_s:g} s: {scheduler}"
        )
    return InfrastructureError("slow", f"{what} was not ready within {within_s:g} s")


def vanished() -> SynthError:
    """Of a Pod that is gone, with whatever it could have told."""
    error = ended_with(None)
    assert isinstance(error, TransientError)
    return InfrastructureError("deleted", f"{error}: its Pod is gone")
