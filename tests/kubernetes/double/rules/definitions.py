"""Custom resource definitions: what they must be, and the kinds that come of them."""

from typing import Any

from tests.kubernetes.double.errors import ApiObject, FieldError, bad_value, required
from tests.kubernetes.double.kinds import Column, Kind
from tests.kubernetes.double.rules.structural import Structural

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer of a definition: its objects go before it does."""


def definition_errors(item: ApiObject) -> list[FieldError]:
    spec = item.get("spec") or {}
    names = spec.get("names") or {}
    found = [
        required(f"spec.{field}")
        for field in ("group", "scope", "versions", "names")
        if not spec.get(field)
    ]
    found += [
        required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)
    ]
    if found:
        return found
    expected = f"{names['plural']}.{spec['group']}"
    if item["metadata"].get("name") != expected:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(bad_value("metadata.name", item["metadata"].get("name"), why))
    if spec["scope"] not in ("Namespaced", "Cluster"):
        found.append(bad_value("spec.scope", spec["scope"], "must be Namespaced or Cluster"))
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    if len(stored) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(bad_value("spec.versions", stored, why))
    for at, version in enumerate(spec["versions"]):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            why = "schemas are required"
            found.append(required(f"spec.versions[{at}].schema.openAPIV3Schema", why))
    group = spec["group"]
    approval = "api-approved.kubernetes.io"
    if group.endswith((".k8s.io", ".kubernetes.io")) and group not in ("k8s.io",):
        annotations = item["metadata"].get("annotations") or {}
        if approval not in annotations and not group.endswith(".x-k8s.io"):
            why = f'protected groups must have approval annotation "{approval}"'
            found.append(required(f"metadata.annotations[{approval}]", why))
    return found


def set_defaults(item: ApiObject) -> None:
    names = item["spec"].setdefault("names", {})
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    item["spec"].setdefault("conversion", {"strategy": "None"})


def accepted(item: ApiObject, now: str) -> ApiObject:
    """The status of a definition that is served."""
    spec = item["spec"]
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    earlier = (item.get("status") or {}).get("storedVersions") or []
    conditions = [
        {
            "type": type,
            "status": "True",
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
        for type, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    return {
        "conditions": conditions,
        "acceptedNames": spec["names"],
        "storedVersions": [*earlier, *([] if stored in earlier else [stored])],
    }


def kinds_of(item: ApiObject) -> list[Kind]:
    """The kinds that a definition serves, the stored version first."""
    spec = item["spec"]
    versions = [version for version in spec["versions"] if version.get("served")]
    versions.sort(key=lambda version: not version.get("storage"))
    return [_kind(spec, version) for version in versions]


def _kind(spec: ApiObject, version: ApiObject) -> Kind:
    names = spec["names"]
    title = f"{names['plural']}.{spec['group']}/{version['name']}"
    converts = spec.get("conversion", {}).get("strategy") == "Webhook"
    subresources = version.get("subresources") or {}
    return Kind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("status", "scale") if name in subresources),
        fields=tuple(f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or []),
        unconditional_update=False,
        generation=True,
        columns=_columns(version),
        custom=Structural(version["schema"]["openAPIV3Schema"], title),
        scale=subresources.get("scale"),
        refusal=""
        if version.get("storage") or not converts
        else f"conversion webhook for {spec['group']}/{version['name']}, Kind={names['kind']} "
        "failed: this server runs no webhooks",
    )


def _columns(version: ApiObject) -> tuple[Column, ...]:
    listed: list[Any] = version.get("additionalPrinterColumns") or []
    return tuple(
        Column(
            column["name"],
            column["type"],
            column["jsonPath"],
            column.get("priority", 0),
            column.get("format", ""),
            column.get("description", ""),
        )
        for column in listed
    )
