"""Strategic merge patch: lists whose elements have a key are merged by it.

Which lists these are says Go's `patchMergeKey` in Kubernetes' types; the table below repeats it
for what is served. Source: "Update API Objects in Place Using kubectl patch" and the directives
in "strategic-merge-patch.md" of Kubernetes' community repository.
"""

import copy
from typing import Any

from tests.kubernetes.double.errors import bad_request

_POD: dict[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
}
_CONTAINER: dict[str, str] = {
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}
MERGE_KEYS: dict[str, str] = {
    **{f"spec.{name}": key for name, key in _POD.items()},
    **{
        f"spec.{kind}.{name}": key
        for kind in ("containers", "initContainers", "ephemeralContainers")
        for name, key in _CONTAINER.items()
    },
    "metadata.ownerReferences": "uid",
    "status.conditions": "type",
    "status.podIPs": "ip",
    "status.hostIPs": "ip",
    "status.addresses": "type",
}
"""Path without indices -> the key of its elements, for Pods, Nodes and what holds conditions."""

SERVICE_KEYS = {**MERGE_KEYS, "spec.ports": "port"}
TEMPLATE_KEYS = {
    **MERGE_KEYS,
    **{f"spec.template.{path}": key for path, key in MERGE_KEYS.items()},
}
ACCOUNT_KEYS = {"metadata.ownerReferences": "uid", "secrets": "name", "imagePullSecrets": "name"}
PRIMITIVE_SETS = frozenset({"metadata.finalizers", "spec.template.metadata.finalizers"})
"""Lists of plain values that are merged as sets."""


def keys_of(kind: str) -> dict[str, str]:
    """The merge keys of a built-in kind."""
    special = {
        "Service": SERVICE_KEYS,
        "Deployment": TEMPLATE_KEYS,
        "ServiceAccount": ACCOUNT_KEYS,
    }
    return special.get(kind, MERGE_KEYS)


def strategic_merge(target: Any, patch: Any, keys: dict[str, str], path: str = "") -> Any:
    """`patch` on a copy of `target`."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    directive = patch.get("$patch")
    if directive == "replace":
        return copy.deepcopy({k: v for k, v in patch.items() if k != "$patch"})
    if directive == "delete":
        return {}
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            merged[name] = [v for v in merged.get(name, []) if v not in value]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        below = f"{path}.{key}" if path else key
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, list):
            order = patch.get(f"$setElementOrder/{key}")
            merged[key] = _merged_list(merged.get(key) or [], value, order, keys, below)
        elif isinstance(value, dict):
            merged[key] = strategic_merge(merged.get(key), value, keys, below)
        else:
            merged[key] = value
    for key, order in patch.items():
        if key.startswith("$setElementOrder/") and (name := key.partition("/")[2]) not in patch:
            below = f"{path}.{name}" if path else name
            merged[name] = _ordered(merged.get(name) or [], order, keys.get(below))
        elif key == "$retainKeys":
            merged = {name: value for name, value in merged.items() if name in order}
    return merged


def _merged_list(
    old: list, patch: list, order: list | None, keys: dict[str, str], path: str
) -> list:
    if path in PRIMITIVE_SETS:
        return _ordered([*old, *(v for v in patch if v not in old)], order, None)
    key = keys.get(path)
    if key is None:
        return copy.deepcopy([item for item in patch if not _is_directive(item)])
    if any(_is_directive(item) and item.get("$patch") == "replace" for item in patch):
        return copy.deepcopy([item for item in patch if not _is_directive(item)])
    merged = list(old)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item!r} does not contain declared merge key: {key}")
        at = next((i for i, known in enumerate(merged) if known.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del merged[at]
        elif at is None:
            merged.append(strategic_merge({}, item, keys, path))
        else:
            merged[at] = strategic_merge(merged[at], item, keys, path)
    return _ordered(merged, order, key)


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and set(item) == {"$patch"}


def _ordered(items: list, order: list | None, key: str | None) -> list:
    """`items` in the order that the patch names; what it does not name follows."""
    if not order:
        return items
    names = [entry.get(key) if isinstance(entry, dict) else entry for entry in order]

    def place(item: Any) -> int:
        name = item.get(key) if isinstance(item, dict) else item
        return names.index(name) if name in names else len(names)

    return sorted(items, key=place)
