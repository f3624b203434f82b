"""What a cluster has of what sandboxes need, asked once at the start.

agent-sandbox in version v1beta1 makes pools and claims; without it sandboxes are plain Pods. What
stands between a program and the node's kernel is the RuntimeClass: gVisor or Kata, or nothing, and
then nothing runs that nobody trusts unless the settings say so.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from records.errors import ConfigError
from sandboxes.kubernetes.api.connection import ApiObject, Connection
from sandboxes.kubernetes.names import (
    CORE,
    EXTENSIONS,
    MANAGED,
    OWNER,
    POOL,
    VERSION,
    Folders,
)
from sandboxes.kubernetes.settings import KubernetesSettings

GVISOR = ("runsc", "gvisor")
KATA = "kata"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"

INSTALL = (
    "kubectl apply -f a release manifest of kubernetes-sigs/agent-sandbox, v0.5 or later, with its "
    "extensions"
)


class Cluster(NamedTuple):
    server: str
    version: str
    """Of Kubernetes."""
    claims: bool
    """Whether sandboxes are claims of agent-sandbox; else plain Pods."""
    runtime_class: str | None
    handler: str | None
    """Of the runtime class; None where Pods run bare."""

    @property
    def apart(self) -> bool:
        """Whether something stands between a program and the node's kernel."""
        return self.handler is not None and is_apart(self.handler)

    @property
    def counts_processes(self) -> bool:
        """Whether a limit of processes by user bounds one sandbox alone: a kernel of its own."""
        return self.handler is not None and self.handler.startswith(KATA)


def is_apart(handler: str) -> bool:
    return handler in GVISOR or handler.startswith(KATA)


async def probed(connection: Connection, folders: Folders, settings: KubernetesSettings) -> Cluster:
    """ConfigError where sandboxes cannot run there as the settings want them."""
    version = (await connection.ask("GET", "/version")).get("gitVersion", "unknown")
    claims = await has_claims(connection, settings.agent_sandbox)
    name, handler = await runtime(connection, settings)
    found = Cluster(connection.server, version, claims, name, handler)
    if not found.apart and not settings.allow_bare_runtime:
        classes = (
            f"RuntimeClass {name} has handler {handler}" if name else "no RuntimeClass of them"
        )
        raise ConfigError(
            f"{connection.server} has neither gVisor nor Kata for sandboxes ({classes}): programs "
            "that nobody trusts would share the nodes' kernel. Install one of them and its "
            "RuntimeClass, or set `allow_bare_runtime` in the settings of Kubernetes"
        )
    return found


async def served(connection: Connection) -> dict[str, list[str]]:
    """API group -> its versions."""
    groups = (await connection.ask("GET", "/apis")).get("groups") or []
    return {each["name"]: [v["version"] for v in each["versions"]] for each in groups}


async def has_claims(connection: Connection, wanted: str) -> bool:
    if wanted == "off":
        return False
    groups = await served(connection)
    for group in (EXTENSIONS, CORE):
        if group in groups and VERSION not in groups[group]:
            raise ConfigError(
                f"agent-sandbox of {connection.server} serves {group} in "
                f"{', '.join(groups[group])} and not in {VERSION}: it is too old. Upgrade it "
                f'({INSTALL}), or set `agent_sandbox = "off"` in the settings of Kubernetes to '
                "use plain Pods"
            )
    missing = [group for group in (EXTENSIONS, CORE) if group not in groups]
    if missing and wanted == "require":
        raise ConfigError(
            f"{connection.server} has no agent-sandbox (no {', '.join(missing)}). Install it "
            f'({INSTALL}), or set `agent_sandbox = "auto"` in the settings of Kubernetes'
        )
    return not missing


async def runtime_classes(connection: Connection) -> dict[str, str]:
    """Name -> handler."""
    found = await connection.ask("GET", CLASSES)
    return {each["metadata"]["name"]: each["handler"] for each in found["items"] or ()}


async def runtime(
    connection: Connection, settings: KubernetesSettings
) -> tuple[str | None, str | None]:
    """Name and handler of the RuntimeClass to use; None where Pods run bare."""
    found = await runtime_classes(connection)
    if (named := settings.runtime_class) is not None:
        if named not in found:
            there = ", ".join(sorted(found)) or "none at all"
            raise ConfigError(
                f"{connection.server} has no RuntimeClass {named}, it has {there}; change "
                "`runtime_class` in the settings of Kubernetes"
            )
        return named, found[named]
    apart = sorted(name for name, handler in found.items() if is_apart(handler))
    return (apart[0], found[apart[0]]) if apart else (None, None)


Labels = Mapping[str, str | None]
"""Of a sandbox's Pod; None where it is there, and nobody knows its value before."""

EVERY: Labels = {**MANAGED, OWNER: None, POOL: None}
"""Those of every sandbox."""


async def walled(connection: Connection, folders: Folders, settings: KubernetesSettings) -> None:
    """ConfigError unless a network policy keeps everything from sandboxes, and them from all, and
    no other one opens what it closes: what policies let through adds up."""
    policies = (await connection.ask("GET", folders.policies))["items"] or ()
    namespace = folders.policies.split("/")[-2]
    labels = {**settings.labels, **EVERY}
    if not any(denies_all(each, labels) for each in policies):
        raise ConfigError(
            f"no network policy of {namespace} keeps sandboxes from the network (one without "
            f"rules, of types Ingress and Egress, for all Pods or those with label {OWNER}); make "
            "it: kubectl apply -k deploy/kubernetes"
        )
    if opening := [each["metadata"]["name"] for each in policies if opens(each, labels)]:
        raise ConfigError(
            f"network policies of {namespace} let sandboxes reach the network or be reached: "
            f"{', '.join(opening)}; remove them (kubectl -n {namespace} delete networkpolicy "
            f"NAME), or keep their podSelector from Pods with the labels of every sandbox: "
            f"{', '.join(labels)}"
        )


def denies_all(policy: ApiObject, labels: Labels = EVERY) -> bool:
    """Whether it lets nothing in or out of any sandbox."""
    spec = policy["spec"]
    closed = not spec.get("ingress") and not spec.get("egress")
    both = set(spec.get("policyTypes") or ()) == {"Ingress", "Egress"}
    return closed and both and selects(spec.get("podSelector") or {}, labels)


def opens(policy: ApiObject, labels: Labels = EVERY) -> bool:
    """Whether it lets something in or out of every sandbox. Those for sandboxes with further
    labels, as those of servers that declare hosts, are made for that."""
    spec = policy["spec"]
    opened = bool(spec.get("ingress") or spec.get("egress"))
    return opened and selects(spec.get("podSelector") or {}, labels)


def selects(selector: ApiObject, labels: Labels) -> bool:
    """Whether it selects a Pod that has these labels alone, whatever their values are that nobody
    knows before."""
    named: dict[str, str] = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in named.items()) and all(
        _holds(each["operator"], each["key"], each.get("values") or (), labels)
        for each in selector.get("matchExpressions") or ()
    )


def _holds(operator: str, key: str, values: Sequence[str], labels: Labels) -> bool:
    match operator:
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "In":
            return labels.get(key) in values
        case _:
            return labels.get(key) not in values
