"""Pods and claims as their watches keep them: what decides something, and nothing else."""

import sys
from typing import NamedTuple

from sandboxes.kubernetes import causes
from sandboxes.kubernetes.api.connection import ApiObject
from sandboxes.kubernetes.causes import FILL, SANDBOX, STREAM, EndCause
from sandboxes.kubernetes.names import POOL, label


class PodState(NamedTuple):
    name: str
    uid: str
    pool: str
    node: str
    runs: bool
    """Whether both containers run: a stream can be opened."""
    fills: bool
    """Whether it waits for what its template shows."""
    over: EndCause | None
    hopeless: EndCause | None
    unschedulable: str | None


def running(statuses: list[ApiObject] | None, name: str) -> bool:
    return any(
        each.get("name") == name and "running" in (each.get("state") or {})
        for each in statuses or ()
    )


def controller_of(pod: ApiObject) -> str | None:
    """The Sandbox that controls a Pod of agent-sandbox; None for every other one."""
    for each in pod["metadata"].get("ownerReferences") or ():
        if each.get("controller") and each.get("kind") == "Sandbox":
            return str(each["name"])
    return None


def pod_key(pod: ApiObject) -> str:
    """A Pod of agent-sandbox goes by the Sandbox that controls it, any other by its own name."""
    return controller_of(pod) or pod["metadata"]["name"]


def pod_state(pod: ApiObject) -> tuple[str, PodState]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    both = status.get("containerStatuses")
    return pod_key(pod), PodState(
        name=metadata["name"],
        uid=metadata["uid"],
        # the same texts in thousands of objects
        pool=sys.intern(label(pod, POOL) or ""),
        node=sys.intern(pod["spec"].get("nodeName") or ""),
        runs=running(both, SANDBOX) and running(both, STREAM),
        fills=running(status.get("initContainerStatuses"), FILL),
        over=causes.ended(pod),
        hopeless=causes.hopeless(pod),
        unschedulable=causes.unschedulable(pod),
    )


class ClaimState(NamedTuple):
    ready: bool
    sandbox: str | None
    """The Sandbox that it got."""
    problem: str | None
    """The reason and message of a claim that is not ready."""
    refused: bool
    """Whether it never will be."""
    deleted: bool


HOPELESS = (
    "InvalidMetadata", "EnvVarsInjectionRejected", "VolumeClaimTemplatesError", "ClaimExpired",
    "SandboxExpired", "InvalidConfiguration", "PodFailed", "PodSucceeded",
)  # fmt: skip
"""Reasons of a claim that no waiting helps."""


def claim_state(claim: ApiObject) -> tuple[str, ClaimState]:
    status, metadata = claim.get("status") or {}, claim["metadata"]
    ready = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), {})
    reason = ready.get("reason") or ""
    problem = f"{reason}: {ready.get('message') or ''}" if ready.get("status") == "False" else None
    return metadata["name"], ClaimState(
        ready=ready.get("status") == "True",
        sandbox=(status.get("sandbox") or {}).get("name"),
        problem=problem,
        refused=problem is not None and reason in HOPELESS,
        deleted="deletionTimestamp" in metadata,
    )
