"""Server-side apply: who owns which field, and what one manager's intent makes of an object.

Fields are kept in metadata.managedFields in the form fieldsV1. Only managers that apply are
tracked: updates and other patches take over no field, so they cause no conflicts here.
Source: "Server-Side Apply" of Kubernetes' documentation.
"""

import copy
from datetime import UTC, datetime
from typing import Any

import orjson

from tests.kubernetes.double import errors
from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import Kind
from tests.kubernetes.double.strategic import PRIMITIVE_SETS, keys_of

Path = tuple[str, ...]
"""Steps as fieldsV1 writes them: `f:name`, `k:{"name":"a"}`, `v:"x"`."""

_NOT_OWNED = {
    *(("f:apiVersion",), ("f:kind",), ("f:metadata",), ("f:metadata", "f:name")),
    *(("f:metadata", "f:namespace"), ("f:metadata", "f:resourceVersion"), ("f:metadata", "f:uid")),
    *(("f:metadata", "f:creationTimestamp"), ("f:metadata", "f:managedFields")),
}
_ATOMIC = {"selector", "nodeSelector", "matchLabels"}


def apply(
    kind: Kind,
    old: ApiObject,
    intent: ApiObject,
    manager: str,
    *,
    force: bool,
    subresource: str = "",
) -> ApiObject:
    """`old`, changed to what the manager wants and not what it wanted; 409 for others' fields."""
    keys = _map_keys(kind)
    wanted = _fields(intent, keys, "")
    managed = copy.deepcopy(old["metadata"].get("managedFields") or [])
    mine = next((m for m in managed if _is_of(m, manager, subresource)), None)
    others = [m for m in managed if m is not mine]
    _refuse_conflicts(old, intent, wanted, others, keys, force)
    before = _paths(mine["fieldsV1"]) if mine else set()
    elsewhere: set[Path] = set().union(*(_paths(m["fieldsV1"]) for m in others))
    result = old
    for path in sorted(before - wanted - elsewhere, key=len, reverse=True):
        _drop(result, path)
    result = _merged(result, intent, keys, "")
    for other in others:
        left = _paths(other["fieldsV1"]) - (wanted if force else set())
        other["fieldsV1"] = _tree(left)
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": kind.api_version,
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fieldsType": "FieldsV1",
        "fieldsV1": _tree(wanted),
        **({"subresource": subresource} if subresource else {}),
    }
    if mine is not None and mine["fieldsV1"] == entry["fieldsV1"]:
        entry["time"] = mine["time"]  # applying the same again writes nothing
    result["metadata"]["managedFields"] = [*(m for m in others if m["fieldsV1"]), entry]
    given = intent.get("metadata", {}).get("resourceVersion")
    if given:
        result["metadata"]["resourceVersion"] = given
    return result


def _is_of(entry: ApiObject, manager: str, subresource: str) -> bool:
    named = (entry.get("manager"), entry.get("operation"), entry.get("subresource", ""))
    return named == (manager, "Apply", subresource)


def _map_keys(kind: Kind) -> dict[str, list[str]]:
    """Path -> the keys of lists that are maps; lists of plain values that are sets have none."""
    if kind.custom is None:
        found = {path: [key] for path, key in keys_of(kind.kind).items()}
        for path in [p for p in found if p.endswith("containers.ports")]:
            found[path] = ["containerPort", "protocol"]
        return {**found, **{path: [] for path in PRIMITIVE_SETS}}
    found = {"metadata.ownerReferences": ["uid"], "metadata.finalizers": []}
    _custom_keys(kind.custom.schema, "", found)
    return found


def _custom_keys(node: ApiObject, path: str, found: dict[str, list[str]]) -> None:
    if node.get("x-kubernetes-list-type") == "map":
        found[path] = node.get("x-kubernetes-list-map-keys", [])
    elif node.get("x-kubernetes-list-type") == "set":
        found[path] = []
    for key, below in (node.get("properties") or {}).items():
        _custom_keys(below, f"{path}.{key}" if path else key, found)
    if isinstance(node.get("items"), dict):
        _custom_keys(node["items"], path, found)


def _key_step(element: ApiObject, names: list[str]) -> str:
    defaults = {"protocol": "TCP"}
    key = {name: element.get(name, defaults.get(name)) for name in names}
    return "k:" + orjson.dumps(key, option=orjson.OPT_SORT_KEYS).decode()


def _fields(value: Any, keys: dict[str, list[str]], path: str, at: Path = ()) -> set[Path]:
    """The paths that an intent owns: leaves, elements of keyed lists, values of sets."""
    found: set[Path] = set()
    if isinstance(value, dict) and (value or not at):
        if path.rpartition(".")[2] in _ATOMIC:
            return {at}
        for key, below in value.items():
            step = (*at, f"f:{key}")
            if step in _NOT_OWNED and step != ("f:metadata",):
                continue
            found |= _fields(below, keys, f"{path}.{key}" if path else key, step)
        return found
    if isinstance(value, list) and path in keys:
        if not keys[path]:
            return {(*at, "v:" + orjson.dumps(element).decode()) for element in value}
        for element in value:
            step = (*at, _key_step(element, keys[path]))
            found |= {(*step, "."), *_fields(element, keys, path, step)}
        return found
    return {at}


def _tree(paths: set[Path]) -> ApiObject:
    tree: ApiObject = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def _paths(tree: ApiObject, at: Path = ()) -> set[Path]:
    if not tree:
        return {at} if at else set()
    return set().union(*(_paths(below, (*at, step)) for step, below in tree.items()))


def _find(value: Any, path: Path) -> Any:
    """What is at a path, None for nothing."""
    for step in path:
        value = _below(value, step)
        if value is None:
            return None
    return value


def _below(value: Any, step: str) -> Any:
    kind, _, text = step.partition(":")
    if step == ".":
        return value
    if kind == "f":
        return value.get(text) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    wanted = orjson.loads(text)
    if kind == "v":
        return wanted if wanted in value else None
    for element in value:
        if isinstance(element, dict) and _key_step(element, list(wanted)) == step:
            return element
    return None


def _refuse_conflicts(
    old: ApiObject,
    intent: ApiObject,
    wanted: set[Path],
    others: list[ApiObject],
    keys: dict[str, list[str]],
    force: bool,
) -> None:
    if force:
        return
    causes = []
    for other in others:
        for path in sorted(_paths(other["fieldsV1"]) & wanted):
            if path[-1] != "." and _find(old, path) != _find(intent, path):
                text = f'conflict with "{other["manager"]}" using {other["apiVersion"]}'
                causes.append(
                    {"reason": "FieldManagerConflict", "message": text, "field": _dotted(path)}
                )
    if causes:
        raise errors.apply_conflict(causes)


def _dotted(path: Path) -> str:
    """`.spec.containers[name="a"].image`."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "k":
            pairs = orjson.loads(rest).items()
            text += "[" + ",".join(f"{k}={orjson.dumps(v).decode()}" for k, v in pairs) + "]"
        else:
            text += f".{rest}" if kind == "f" else f"[={rest}]"
    return text


def _drop(value: Any, path: Path) -> None:
    """Take out what is at a path, and the element itself where its key is dropped."""
    if path[-1] == ".":
        path = path[:-1]
    parent, step = _find(value, path[:-1]), path[-1]
    kind, _, text = step.partition(":")
    if isinstance(parent, dict) and kind == "f":
        parent.pop(text, None)
    elif isinstance(parent, list) and (element := _below(parent, step)) is not None:
        parent.remove(element)


def _merged(old: Any, new: Any, keys: dict[str, list[str]], path: str) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        if path.rpartition(".")[2] in _ATOMIC:
            return copy.deepcopy(new)
        merged = dict(old)
        for key, value in new.items():
            below = f"{path}.{key}" if path else key
            merged[key] = _merged(merged.get(key), value, keys, below)
        return merged
    if isinstance(new, list) and isinstance(old, list) and path in keys:
        merged_list = list(old)
        for element in new:
            if not keys[path]:
                merged_list += [] if element in merged_list else [element]
                continue
            step = _key_step(element, keys[path])
            known = _below(merged_list, step)
            if known is None:
                merged_list.append(copy.deepcopy(element))
            else:
                at = merged_list.index(known)
                merged_list[at] = _merged(known, element, keys, path)
        return merged_list
    return copy.deepcopy(new)
