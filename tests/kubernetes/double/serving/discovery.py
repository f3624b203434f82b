"""What clients ask first: versions, groups, resources, and as much OpenAPI as kubectl needs.

kubectl leaves validation to the server where the OpenAPI document of a group has PATCH operations
with the parameter `fieldValidation`; these documents have nothing else. For a `kind: List` it asks
for OpenAPI version 2, which is not served: several documents in one file need none.
"""

from typing import Any

from tests.kubernetes.double import errors
from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import Kind, Kinds

VERSION = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.0-double",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}
_SUB_KINDS = {
    "eviction": ("policy", "v1", "Eviction", ["create"]),
    "binding": ("", "v1", "Binding", ["create"]),
    "exec": ("", "v1", "PodExecOptions", ["create", "get"]),
    "attach": ("", "v1", "PodAttachOptions", ["create", "get"]),
    "log": ("", "v1", "Pod", ["get"]),
    "scale": ("autoscaling", "v1", "Scale", ["get", "patch", "update"]),
}


def discover(kinds: Kinds, parts: list[str], host: str) -> ApiObject:
    """The answer for a path that names no resource."""
    groups = kinds.groups()
    match parts:
        case ["api"]:
            served = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
            return {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": served,
            }
        case ["apis"]:
            listed = [_group(name, found) for name, found in groups.items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["api", "v1"]:
            return _resources("v1", kinds.of_group("", "v1"))
        case ["apis", group] if group in groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, groups[group])}
        case ["apis", group, version] if version in groups.get(group, []):
            return _resources(f"{group}/{version}", kinds.of_group(group, version))
        case ["version"]:
            return VERSION
        case ["openapi", "v3"]:
            paths = [_base(group, version) for group, found in groups.items() for version in found]
            return {"paths": {p: {"serverRelativeURL": f"/openapi/v3/{p}"} for p in paths}}
        case ["openapi", "v3", "api", "v1"]:
            return _openapi(kinds.of_group("", "v1"))
        case ["openapi", "v3", "apis", group, version] if version in groups.get(group, []):
            return _openapi(kinds.of_group(group, version))
    raise errors.no_such_path()


def _base(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _group(name: str, versions: list[str]) -> ApiObject:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(group_version: str, kinds: list[Kind]) -> ApiObject:
    found: list[ApiObject] = []
    for kind in kinds:
        entry: ApiObject = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": sorted(kind.verbs),
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        found.append(entry)
        found += [_subresource(kind, name) for name in kind.subresources]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": found,
    }


def _subresource(kind: Kind, name: str) -> ApiObject:
    entry: ApiObject = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": ["get", "patch", "update"],
    }
    if name in _SUB_KINDS:
        group, version, entry["kind"], entry["verbs"] = _SUB_KINDS[name]
        if name not in ("exec", "attach", "log"):
            entry["group"], entry["version"] = group, version
    if name == "finalize":
        entry["verbs"] = ["update"]
    return entry


def _openapi(kinds: list[Kind]) -> ApiObject:
    parameters: list[Any] = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    paths: ApiObject = {}
    for kind in kinds:
        middle = "/namespaces/{namespace}" if kind.namespaced else ""
        path = f"/{_base(kind.group, kind.version)}{middle}/{kind.plural}/{{name}}"
        named = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        paths[path] = {
            "patch": {
                "operationId": f"patch{kind.kind}",
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": "patch",
                "x-kubernetes-group-version-kind": named,
            }
        }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes API double", "version": VERSION["gitVersion"]},
        "paths": paths,
        "components": {"schemas": {}},
    }
