"""Tables: what `kubectl get` prints, made by the server (`Accept: ...;as=Table`)."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import Column, Kind
from tests.kubernetes.double.store import Entry

_AGE = Column("Age", "date", ".metadata.creationTimestamp")
_NAME = Column("Name", "string", ".metadata.name", format="name")

COLUMNS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "namespaces"): (Column("Status", "string", ".status.phase"), _AGE),
    ("", "services"): (
        Column("Type", "string", ".spec.type"),
        Column("Cluster-IP", "string", ".spec.clusterIP"),
        _AGE,
    ),
    ("coordination.k8s.io", "leases"): (
        Column("Holder", "string", ".spec.holderIdentity"),
        _AGE,
    ),
    ("node.k8s.io", "runtimeclasses"): (Column("Handler", "string", ".handler"), _AGE),
    ("networking.k8s.io", "networkpolicies"): (
        Column("Pod-Selector", "string", ".spec.podSelector.matchLabels"),
        _AGE,
    ),
    ("apps", "deployments"): (
        Column("Ready", "string", ".status.readyReplicas"),
        Column("Available", "integer", ".status.availableReplicas"),
        _AGE,
    ),
    ("", "events"): (
        Column("Last Seen", "date", ".lastTimestamp"),
        Column("Type", "string", ".type"),
        Column("Reason", "string", ".reason"),
        Column("Object", "string", ".involvedObject.name"),
        Column("Message", "string", ".message"),
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (
        Column("Created At", "string", ".metadata.creationTimestamp"),
    ),
}
"""Columns of built-in kinds beside the name; Pods and Nodes have rows of their own."""

_POD_COLUMNS = (
    Column("Ready", "string", ""),
    Column("Status", "string", ""),
    Column("Restarts", "string", ""),
    _AGE,
    Column("IP", "string", "", 1),
    Column("Node", "string", "", 1),
    Column("Nominated Node", "string", "", 1),
    Column("Readiness Gates", "string", "", 1),
)
_NODE_COLUMNS = (
    Column("Status", "string", ""),
    Column("Roles", "string", ""),
    _AGE,
    Column("Version", "string", ""),
    Column("Internal-IP", "string", "", 1),
)


def wants_table(request: web.Request) -> bool:
    return "as=Table" in request.headers.get("Accept", "")


def human_age(text: Any) -> str:
    """The time since `text` as kubectl writes it: 5s, 3m20s, 4h, 2d."""
    try:
        passed = datetime.now(UTC) - datetime.fromisoformat(str(text))
    except ValueError:
        return "<unknown>"
    seconds = max(int(passed.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def value_at(item: Any, path: str) -> Any:
    """The value at a simple JSONPath: names, and `[?(@.type=="Ready")]` filters on lists."""
    steps = path.removeprefix("{").removesuffix("}").lstrip(".")
    for step in _steps(steps):
        name, _, test = step.partition("[")
        if name:
            item = item.get(name) if isinstance(item, dict) else None
        if test and isinstance(item, list):
            item = _chosen(item, test.rstrip("]"))
    return item


def _steps(path: str) -> Iterable[str]:
    depth, word = 0, ""
    for letter in path:
        depth += (letter == "[") - (letter == "]")
        if letter == "." and not depth:
            yield word
            word = ""
        else:
            word += letter
    yield word


def _chosen(items: list, test: str) -> Any:
    if test.isdigit():
        return items[int(test)] if int(test) < len(items) else None
    if test == "*":
        return ",".join(map(str, items))
    name, _, wanted = test.removeprefix("?(@.").removesuffix(")").partition("==")
    text = wanted.strip().strip("'\"")
    for item in items:
        if isinstance(item, dict) and str(item.get(name.strip())) == text:
            return item
    return None


class Table:
    """The table of a list, or of each event of a watch, whose first one has the columns."""

    def __init__(self, kind: Kind, query: Any) -> None:
        self._kind = kind
        self._object = query.get("includeObject", "Metadata")
        self._cells: Callable[[ApiObject], list[Any]]
        if kind.address == ("", "pods"):
            self._columns, self._cells = _POD_COLUMNS, _pod_cells
        elif kind.address == ("", "nodes"):
            self._columns, self._cells = _NODE_COLUMNS, _node_cells
        else:
            self._columns = kind.columns or COLUMNS.get(kind.address, (_AGE,))
            self._cells = self._path_cells
        self._told = False

    def _path_cells(self, item: ApiObject) -> list[Any]:
        return [_cell(value_at(item, column.path), column) for column in self._columns]

    def _definitions(self) -> list[ApiObject]:
        return [
            {
                "name": column.name,
                "type": "string" if column.type == "date" else column.type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            }
            for column in (_NAME, *self._columns)
        ]

    def _row(self, entry: Entry) -> ApiObject:
        item = entry.item(self._kind)
        row: ApiObject = {"cells": [item["metadata"]["name"], *self._cells(item)]}
        if self._object == "Object":
            row["object"] = item
        elif self._object == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": item["metadata"],
            }
        return row

    def of(
        self, entries: Iterable[Entry], version: int, metadata: ApiObject | None = None
    ) -> ApiObject:
        columns = [] if self._told else self._definitions()
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata or {"resourceVersion": str(version)},
            "columnDefinitions": columns,
            "rows": [self._row(entry) for entry in entries],
        }

    def line(self, type: str, entry: Entry) -> bytes:
        """An event of a watch."""
        table = self.of([entry], entry.version)
        self._told = True
        return orjson.dumps({"type": type, "object": table}) + b"\n"


def _cell(value: Any, column: Column) -> Any:
    if column.type == "date":
        return human_age(value) if value else "<unknown>"
    if value is None:
        return None
    if column.type in ("integer", "number", "boolean"):
        return value
    if isinstance(value, dict):
        return ",".join(f"{k}={v}" for k, v in value.items()) or "<none>"
    return str(value)


def _pod_cells(item: ApiObject) -> list[Any]:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    running = status.get("containerStatuses") or []
    ready = sum(bool(state.get("ready")) for state in running)
    restarts = sum(state.get("restartCount", 0) for state in running)
    return [
        f"{ready}/{len(spec.get('containers') or [])}",
        _pod_reason(item),
        str(restarts),
        human_age(item["metadata"].get("creationTimestamp")),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    ]


def _pod_reason(item: ApiObject) -> str:
    """The word in the column STATUS."""
    status = item.get("status") or {}
    if item["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    if status.get("reason"):
        return status["reason"]
    first = status.get("initContainerStatuses") or []
    for at, state in enumerate(first):
        terminated = (state.get("state") or {}).get("terminated")
        if terminated and terminated.get("exitCode") == 0:
            continue
        waiting = (state.get("state") or {}).get("waiting") or {}
        reason = (terminated or {}).get("reason") or waiting.get("reason")
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"
        return f"Init:{at}/{len(first)}"
    for state in reversed(status.get("containerStatuses") or []):
        for word in ("waiting", "terminated"):
            if reason := ((state.get("state") or {}).get(word) or {}).get("reason"):
                return reason
    return status.get("phase") or "Unknown"


def _node_cells(item: ApiObject) -> list[Any]:
    status = item.get("status") or {}
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or []}
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    if (item.get("spec") or {}).get("unschedulable"):
        ready += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    labels = item["metadata"].get("labels") or {}
    roles = sorted(k.removeprefix(prefix) for k in labels if k.startswith(prefix))
    addresses = {a["type"]: a["address"] for a in status.get("addresses") or []}
    return [
        ready,
        ",".join(roles) or "<none>",
        human_age(item["metadata"].get("creationTimestamp")),
        (status.get("nodeInfo") or {}).get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
    ]
