"""What each kind adds to a create and an update: what is reset, defaulted, kept and checked."""

import base64
import re
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.double.errors import (
    ApiObject,
    FieldError,
    bad_request,
    bad_value,
    forbidden_field,
    required,
)
from tests.kubernetes.double.kinds import (
    DEFINITIONS,
    NAMESPACES,
    NODES,
    PODS,
    Address,
    Kind,
)
from tests.kubernetes.double.rules import definitions, pods
from tests.kubernetes.double.rules.names import metadata_errors
from tests.kubernetes.double.rules.quantities import parse_quantity

_RBAC = "rbac.authorization.k8s.io"
DEPLOYMENTS: Address = ("apps", "deployments")
SECRETS: Address = ("", "secrets")
LEASES: Address = ("coordination.k8s.io", "leases")
KEEPS_STATUS = (NODES,)
"""Kinds that take a status at their creation."""


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
MOST_DATA_BYTES = 1024 * 1024
DATA_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def _micro_times(item: ApiObject) -> None:
    """Times of a lease in UTC; 400 for one without exactly six digits behind the second.

    Go reads them with the layout 2006-01-02T15:04:05.000000Z07:00: Python's isoformat leaves the
    fraction out where it is zero, and such a lease is refused.
    """
    spec = item.get("spec") or {}
    for name in ("acquireTime", "renewTime"):
        text = spec.get(name)
        if text is None:
            continue
        if not isinstance(text, str) or not MICRO_TIME.fullmatch(text):
            raise bad_request(
                f'Lease in version "v1" cannot be handled as a Lease: parsing time "{text}" as '
                '"2006-01-02T15:04:05.000000Z07:00": cannot parse it'
            )
        moment = datetime.fromisoformat(text).astimezone(UTC)
        spec[name] = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def prepare_create(kind: Kind, item: ApiObject) -> None:
    """Reset what a client may not set, and set what it left out."""
    if kind.has_status and kind.address not in KEEPS_STATUS:
        item.pop("status", None)
    if kind.generation:
        item["metadata"]["generation"] = 1
    match kind.address:
        case ("", "pods"):
            if isinstance(item.get("spec"), dict):
                pods.set_defaults(item)
            item["status"] = {"phase": "Pending"}
        case ("coordination.k8s.io", "leases"):
            _micro_times(item)
        case ("", "namespaces"):
            item.setdefault("spec", {})["finalizers"] = ["kubernetes"]
            item["status"] = {"phase": "Active"}
            labels = item["metadata"].get("labels") or {}
            item["metadata"]["labels"] = {
                **labels,
                "kubernetes.io/metadata.name": item["metadata"]["name"],
            }
        case ("", "secrets"):
            _string_data(item)
            item["type"] = item.get("type") or "Opaque"
        case ("", "services"):
            spec = item.setdefault("spec", {})
            spec.setdefault("type", "ClusterIP")
            spec.setdefault("sessionAffinity", "None")
            for port in spec.get("ports") or []:
                port.setdefault("protocol", "TCP")
                port.setdefault("targetPort", port.get("port"))
            item["status"] = {"loadBalancer": {}}
        case ("apps", "deployments"):
            _deployment_defaults(item)
            item["status"] = {}
        case ("networking.k8s.io", "networkpolicies"):
            spec = item.setdefault("spec", {})
            if not spec.get("policyTypes"):
                spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        case ("apiextensions.k8s.io", "customresourcedefinitions"):
            if isinstance(item.get("spec"), dict):
                definitions.set_defaults(item)
            item["metadata"]["finalizers"] = [definitions.CLEANUP]


def _string_data(item: ApiObject) -> None:
    """stringData is written to data, in base64, and never shown."""

    for key, text in (item.pop("stringData", None) or {}).items():
        item.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _deployment_defaults(item: ApiObject) -> None:
    spec = item.get("spec")
    if not isinstance(spec, dict):
        return
    for key, value in (
        ("replicas", 1),
        ("revisionHistoryLimit", 10),
        ("progressDeadlineSeconds", 600),
    ):
        spec.setdefault(key, value)
    bounds = {"maxUnavailable": "25%", "maxSurge": "25%"}
    spec.setdefault("strategy", {"type": "RollingUpdate", "rollingUpdate": bounds})
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        given = set(template["spec"])
        pods.set_defaults(template)
        for name in {"enableServiceLinks", "priority", "preemptionPolicy"} - given:
            template["spec"].pop(name)  # those are set on Pods alone


def prepare_update(kind: Kind, item: ApiObject, old: ApiObject) -> None:
    """An update of the object itself: its status stays."""
    if kind.has_status:
        if "status" in old:
            item["status"] = old["status"]
        else:
            item.pop("status", None)
    if kind.address == LEASES:
        _micro_times(item)
    if kind.address == SECRETS:
        _string_data(item)
        item.setdefault("type", old.get("type"))
    if kind.address == PODS and isinstance(item.get("spec"), dict):
        pods.set_defaults(item)
    if kind.address == DEPLOYMENTS:
        _deployment_defaults(item)
    if kind.address == NAMESPACES:
        item["spec"] = old.get("spec", {})
    if kind.address == DEFINITIONS and isinstance(item.get("spec"), dict):
        definitions.set_defaults(item)


def prepare_status(kind: Kind, item: ApiObject, old: ApiObject) -> ApiObject:
    """An update of the status subresource: the old object with the new status.

    Of built-in kinds labels and annotations may change with it, as kubelets change those of nodes.
    """
    result = {**old, "status": item.get("status")}
    if result["status"] is None:
        del result["status"]
    if kind.address == PODS:
        pods.complete_status(result.get("status") or {})
    if kind.custom is None:
        changed = item["metadata"]
        metadata = {k: v for k, v in old["metadata"].items() if k not in ("labels", "annotations")}
        for key in ("labels", "annotations"):
            if changed.get(key):
                metadata[key] = changed[key]
        result["metadata"] = metadata
    return result


def spec_of(kind: Kind, item: ApiObject) -> Any:
    """What metadata.generation counts the changes of."""
    if kind.custom is None:
        return item.get("spec")
    left_out = ("metadata", "status") if kind.has_status else ("metadata",)
    return {key: value for key, value in item.items() if key not in left_out}


def errors(kind: Kind, item: ApiObject, old: ApiObject | None) -> list[FieldError]:
    """All that is wrong with an object, field by field."""
    found = metadata_errors(kind, item)
    if kind.custom is not None:
        return found + kind.custom.errors(item, old)
    match kind.address:
        case ("", "pods"):
            found += pods.pod_errors(item)
            if old is not None and not found:
                found += pods.update_errors(item, old)
        case ("", "configmaps" | "secrets"):
            found += _data_errors(item, old)
        case ("coordination.k8s.io", "leases"):
            found += _lease_errors(item.get("spec") or {})
        case ("apps", "deployments"):
            found += _deployment_errors(item)
        case ("apiextensions.k8s.io", "customresourcedefinitions"):
            found += definitions.definition_errors(item)
        case ("node.k8s.io", "runtimeclasses"):
            if not item.get("handler"):
                found.append(required("handler"))
            elif old is not None and item["handler"] != old["handler"]:
                found.append(bad_value("handler", item["handler"], "field is immutable"))
        case ("", "resourcequotas"):
            for name, value in ((item.get("spec") or {}).get("hard") or {}).items():
                try:
                    parse_quantity(value)
                except ValueError as e:
                    found.append(bad_value(f"spec.hard[{name}]", value, str(e)))
        case ("networking.k8s.io", "networkpolicies"):
            if not isinstance((item.get("spec") or {}).get("podSelector"), dict):
                found.append(required("spec.podSelector"))
        case (group, "rolebindings" | "clusterrolebindings") if group == _RBAC:
            if not item.get("roleRef"):
                found.append(required("roleRef.name"))
            elif old is not None and item["roleRef"] != old["roleRef"]:
                found.append(bad_value("roleRef", item["roleRef"], "cannot change roleRef"))
    return found


def _data_errors(item: ApiObject, old: ApiObject | None) -> list[FieldError]:
    """Of config maps and secrets: keys, size, and what is immutable."""
    data = {**(item.get("data") or {}), **(item.get("binaryData") or {})}
    found = [
        bad_value(f"data[{key}]", key, "a valid config key must consist of alphanumeric characters")
        for key in data
        if not DATA_KEY.fullmatch(key)
    ]
    if sum(len(str(value).encode()) for value in data.values()) > MOST_DATA_BYTES:
        why = f"Too long: may not be more than {MOST_DATA_BYTES} bytes"
        found.append(FieldError("FieldValueTooLong", "", why))
    if old is not None and old.get("immutable"):
        names = ("data", "binaryData", "immutable")
        if any(item.get(name) != old.get(name) for name in names):
            found.append(forbidden_field("data", "field is immutable when `immutable` is set"))
    return found


def _lease_errors(spec: ApiObject) -> list[FieldError]:
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        return [bad_value("spec.leaseDurationSeconds", duration, "must be greater than 0")]
    return []


def _deployment_errors(item: ApiObject) -> list[FieldError]:
    spec = item.get("spec") or {}
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    found = []
    if not spec.get("selector"):
        found.append(required("spec.selector"))
    elif any(labels.get(key) != value for key, value in selector.items()):
        why = "`selector` does not match template `labels`"
        found.append(bad_value("spec.template.metadata.labels", str(labels), why))
    below = pods.pod_errors({"spec": template.get("spec")})
    return found + [FieldError(e.reason, f"spec.template.{e.field}", e.message) for e in below]
