"""The kinds that are served: built-in ones, and those that custom resource definitions add."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.kubernetes.double.errors import ApiObject

Address = tuple[str, str]
"""Group and plural: under this the objects of all versions are stored."""

READ = ("get", "list", "watch")
WRITE = ("create", "delete", "deletecollection", "patch", "update")


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    path: str
    """A JSONPath as in additionalPrinterColumns: `.spec.replicas`."""
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, eq=False)
class Kind:
    """One resource in one version, with what is known of it before any object is seen."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """Paths beside name and namespace that field selectors take."""
    verbs: tuple[str, ...] = (*READ, *WRITE)
    categories: tuple[str, ...] = ()
    unconditional_update: bool = True
    """Whether an update may leave out resourceVersion."""
    create_on_update: bool = False
    generation: bool = False
    """Whether metadata.generation counts changes of what is neither metadata nor status."""
    columns: tuple[Column, ...] = ()
    custom: Any = None
    """The `Structural` schema of a custom resource's version; None for built-in kinds."""
    scale: ApiObject | None = None
    """Paths of the scale subresource."""
    refusal: str = ""
    """Why requests for this version fail: a conversion that nobody serves."""
    prefix: bytes = field(init=False)
    """How every encoded object of this kind begins."""

    def __post_init__(self) -> None:
        start = f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'
        object.__setattr__(self, "prefix", start.encode())

    @property
    def address(self) -> Address:
        return (self.group, self.plural)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def selectable(self) -> frozenset[str]:
        names = ("metadata.name", "metadata.namespace") if self.namespaced else ("metadata.name",)
        return frozenset((*names, *self.fields))

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


_POD_FIELDS = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
    *("status.phase", "status.podIP", "status.nominatedNodeName"),
)
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = (
    *(f"involvedObject.{name}" for name in _INVOLVED),
    *("reason", "reportingComponent", "type"),
)
_RBAC = "rbac.authorization.k8s.io"
_ALL = ("all",)

BUILT_IN = [
    Kind(
        *("", "v1", "pods", "Pod"),
        short_names=("po",),
        subresources=("status", "exec", "eviction", "log", "binding", "attach"),
        fields=_POD_FIELDS,
        categories=_ALL,
        generation=True,
    ),
    Kind(
        *("", "v1", "namespaces", "Namespace", False),
        short_names=("ns",),
        subresources=("status", "finalize"),
        fields=("status.phase",),
        verbs=tuple(v for v in (*READ, *WRITE) if v != "deletecollection"),
    ),
    Kind(
        *("", "v1", "nodes", "Node", False),
        short_names=("no",),
        subresources=("status",),
        fields=("spec.unschedulable",),
    ),
    Kind("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Kind("", "v1", "secrets", "Secret", fields=("type",)),
    Kind(
        *("", "v1", "services", "Service"),
        short_names=("svc",),
        subresources=("status",),
        fields=("spec.clusterIP", "spec.type"),
        categories=_ALL,
    ),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", short_names=("sa",)),
    Kind("", "v1", "events", "Event", short_names=("ev",), fields=_EVENT_FIELDS),
    Kind(
        *("", "v1", "resourcequotas", "ResourceQuota"),
        short_names=("quota",),
        subresources=("status",),
    ),
    Kind("", "v1", "limitranges", "LimitRange", short_names=("limits",)),
    Kind(
        *("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
        short_names=("pvc",),
        subresources=("status",),
    ),
    Kind("events.k8s.io", "v1", "events", "Event", short_names=("ev",)),
    Kind(
        *("coordination.k8s.io", "v1", "leases", "Lease"),
        unconditional_update=False,
        create_on_update=True,
    ),
    Kind(
        *("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
        short_names=("netpol",),
        generation=True,
    ),
    Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False),
    Kind(_RBAC, "v1", "roles", "Role"),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding"),
    Kind(_RBAC, "v1", "clusterroles", "ClusterRole", False),
    Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Kind(
        *("apps", "v1", "deployments", "Deployment"),
        short_names=("deploy",),
        subresources=("status", "scale"),
        categories=_ALL,
        generation=True,
        scale={
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".spec.selector",
        },
    ),
    Kind(
        *("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        *("CustomResourceDefinition", False),
        short_names=("crd", "crds"),
        subresources=("status",),
        unconditional_update=False,
        generation=True,
    ),
]
"""Events of events.k8s.io are kept apart from those of the core group, which are the same objects
in a cluster: nothing here writes the newer ones."""

PODS: Address = ("", "pods")
NAMESPACES: Address = ("", "namespaces")
NODES: Address = ("", "nodes")
QUOTAS: Address = ("", "resourcequotas")
RUNTIME_CLASSES: Address = ("node.k8s.io", "runtimeclasses")
DEFINITIONS: Address = ("apiextensions.k8s.io", "customresourcedefinitions")

VIRTUAL = [
    Kind(
        *("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        namespaced=False,
        verbs=("create",),
    )
]
"""Answered and never stored."""


class Kinds:
    """The registry. `changed` counts, so that discovery can be cached."""

    def __init__(self) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self.changed = 0
        for kind in (*BUILT_IN, *VIRTUAL):
            self.add(kind)

    def add(self, kind: Kind) -> None:
        self._by_path[(kind.group, kind.version, kind.plural)] = kind
        self.changed += 1

    def remove(self, address: Address) -> None:
        for key in [k for k in self._by_path if (k[0], k[2]) == address]:
            del self._by_path[key]
        self.changed += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_path.get((group, version, plural))

    def at(self, address: Address) -> Kind:
        """The stored version of what is at an address: the first that was added."""
        return next(kind for kind in self._by_path.values() if kind.address == address)

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._by_path.values()))

    def groups(self) -> dict[str, list[str]]:
        """Each group's versions, the preferred one first; the core group is ''."""
        found: dict[str, list[str]] = {}
        for kind in self._by_path.values():
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return found

    def of_group(self, group: str, version: str) -> list[Kind]:
        return [k for k in self._by_path.values() if (k.group, k.version) == (group, version)]
