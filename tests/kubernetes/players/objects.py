"""The API's objects as the players see them: plain dictionaries, named by resource and key."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

Obj = dict[str, Any]
"""An object of the API as JSON."""


class Resource(NamedTuple):
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        parts = [f"/apis/{self.group}" if self.group else "/api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICES = Resource("", "v1", "services", "Service")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = Resource("", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
SANDBOXES = Resource("agents.x-k8s.io", "v1beta1", "sandboxes", "Sandbox")
EXTENSIONS = "extensions.agents.x-k8s.io"
TEMPLATES = Resource(EXTENSIONS, "v1beta1", "sandboxtemplates", "SandboxTemplate")
POOLS = Resource(EXTENSIONS, "v1beta1", "sandboxwarmpools", "SandboxWarmPool")
CLAIMS = Resource(EXTENSIONS, "v1beta1", "sandboxclaims", "SandboxClaim")

PLAYED = "synth.dev/played"
"""Label of Pods and Nodes, and taint of Nodes, whose value is `simulated` or `real`."""


def key_of(obj: Obj) -> str:
    """namespace/name, or the name alone of what has no namespace."""
    meta = obj["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else meta["name"]


def split(key: str) -> tuple[str | None, str]:
    namespace, _, name = key.rpartition("/")
    return namespace or None, name


def uid_of(obj: Obj) -> str:
    return obj["metadata"]["uid"]


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def deleting(obj: Obj) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def owners_of(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("ownerReferences") or []


def controller_of(obj: Obj) -> Obj | None:
    return next((owner for owner in owners_of(obj) if owner.get("controller")), None)


def controlled_by(obj: Obj, owner: Obj) -> bool:
    found = controller_of(obj)
    return found is not None and found["uid"] == uid_of(owner)


def reference_to(owner: Obj, resource: Resource) -> Obj:
    """An owner reference as a controller writes it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def phase_of(pod: Obj) -> str:
    return (pod.get("status") or {}).get("phase") or "Pending"


def finished(pod: Obj) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def now() -> str:
    """As metav1.Time: whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now_micro() -> str:
    """As metav1.MicroTime."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_until(time: str) -> float:
    return (datetime.fromisoformat(time) - datetime.now(UTC)).total_seconds()


def condition_of(obj: Obj, kind: str) -> Obj | None:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), None)


def is_true(obj: Obj, kind: str) -> bool:
    found = condition_of(obj, kind)
    return found is not None and found["status"] == "True"


def with_condition(conditions: list[Obj], new: Obj) -> list[Obj]:
    """The list with `new` in its place; its time is kept where its status has not changed."""
    old = next((each for each in conditions if each["type"] == new["type"]), None)
    same = old is not None and old["status"] == new["status"]
    time = old.get("lastTransitionTime") if same and old is not None else None
    new = {"lastTransitionTime": time or now(), **new}
    if old is None:
        return [*conditions, new]
    return [new if each is old else each for each in conditions]


def all_containers(pod: Obj) -> Iterator[Obj]:
    yield from pod["spec"].get("initContainers") or []
    yield from pod["spec"]["containers"]
