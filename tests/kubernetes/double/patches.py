"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396)."""

import copy
from typing import Any

from tests.kubernetes.double.errors import ApiObject, bad_request, unprocessable


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396: null removes, objects are merged, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(document: Any, operations: Any) -> Any:
    """RFC 6902, in place; 422 where an operation cannot be done or a `test` does not hold."""
    if not isinstance(operations, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request(f"a JSON patch has operations with a path; got {operation!r}")
        document = _applied(document, operation)
    return document


def _applied(document: Any, operation: ApiObject) -> Any:
    path = _steps(operation["path"])
    match operation.get("op"):
        case "add":
            return _add(document, path, copy.deepcopy(_value_of(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            value = copy.deepcopy(_value_of(operation))
            _at(document, path)
            if not path:
                return value
            _set(document, path, value)
            return document
        case "move":
            source = _steps(operation.get("from"))
            if path[: len(source)] == source and path != source:
                raise unprocessable(f"cannot move {operation['from']} into itself")
            value = _at(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_at(document, _steps(operation.get("from")))))
        case "test":
            if not same(_at(document, path), _value_of(operation)):
                raise unprocessable(
                    f"the server rejected our request due to an error in our request: "
                    f"testing value {operation['path']} failed"
                )
            return document
    raise bad_request(f"Unexpected kind: {operation.get('op')}")


def same(a: Any, b: Any) -> bool:
    """Equality of JSON: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


def _value_of(operation: ApiObject) -> Any:
    if "value" not in operation:
        raise unprocessable(f"missing value in {operation.get('op')} {operation['path']}")
    return operation["value"]


def _steps(pointer: Any) -> list[str]:
    """The parts of a JSON pointer (RFC 6901)."""
    if pointer == "":
        return []
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise unprocessable(f"not a JSON pointer: {pointer!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _index(items: list, step: str, *, end: bool = False) -> int:
    if end and step == "-":
        return len(items)
    if not step.isascii() or not step.isdigit() or (step != "0" and step.startswith("0")):
        raise unprocessable(f"not an index of a list: {step!r}")
    if int(step) >= len(items) + end:
        raise unprocessable(f"index {step} is beyond a list of {len(items)}")
    return int(step)


def _at(document: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(document, list):
            document = document[_index(document, step)]
        elif isinstance(document, dict) and step in document:
            document = document[step]
        else:
            raise unprocessable(
                f"the server rejected our request due to an error in our request: "
                f"nothing is at /{'/'.join(path)}"
            )
    return document


def _set(document: Any, path: list[str], value: Any) -> None:
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
        parent[_index(parent, path[-1])] = value
    else:
        parent[path[-1]] = value


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
        parent.insert(_index(parent, path[-1], end=True), value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise unprocessable(f"nothing can be added at /{'/'.join(path)}")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    _at(document, path)
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
        del parent[_index(parent, path[-1])]
    else:
        del parent[path[-1]]
    return document
