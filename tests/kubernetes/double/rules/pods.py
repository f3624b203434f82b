"""Pods: their defaults, what they must have, and what of them may change."""

import copy
from typing import Any

from tests.kubernetes.double.errors import (
    ApiObject,
    FieldError,
    bad_value,
    duplicate,
    forbidden_field,
    not_there,
    required,
    unsupported,
)
from tests.kubernetes.double.rules.names import label_errors, subdomain_errors
from tests.kubernetes.double.rules.quantities import parse_quantity

CONTAINERS = ("initContainers", "containers")
_TOLERATED_S = 300
"""How long every Pod tolerates a lost node, by the admission plugin DefaultTolerationSeconds."""
_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def set_defaults(pod: ApiObject) -> None:
    spec = pod["spec"]
    _each_default(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
        enableServiceLinks=True,
        priority=0,
        preemptionPolicy="PreemptLowerPriority",
    )
    spec.setdefault("serviceAccountName", spec.get("serviceAccount") or "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    for group in CONTAINERS:
        for container in spec.get(group) or []:
            _container_defaults(container)
    for volume in spec.get("volumes") or []:
        _volume_defaults(volume)


def _each_default(target: ApiObject, **values: Any) -> None:
    for key, value in values.items():
        if target.get(key) is None:
            target[key] = value


def _container_defaults(container: ApiObject) -> None:
    image = str(container.get("image", ""))
    name = image.rpartition("/")[2]
    latest = "@" not in name and (":" not in name or name.endswith(":latest"))
    _each_default(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy="Always" if latest else "IfNotPresent",
        resources={},
    )
    for port in container.get("ports") or []:
        _each_default(port, protocol="TCP")
    limits = container["resources"].get("limits")
    if limits:  # what is limited and not requested is requested in full
        requests = container["resources"].setdefault("requests", {})
        for resource, amount in limits.items():
            requests.setdefault(resource, amount)


def _volume_defaults(volume: ApiObject) -> None:
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(source), dict):
            _each_default(volume[source], defaultMode=420)
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}


def admit(pod: ApiObject) -> None:
    """What admission adds: tolerations of nodes that are lost."""
    tolerations = pod["spec"].setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("key") in (key, None) and t.get("effect") in ("NoExecute", None)
            for t in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_S,
                }
            )


def qos_class(spec: ApiObject) -> str:
    resources = [c.get("resources") or {} for g in CONTAINERS for c in spec.get(g) or []]
    if not any(r.get("requests") or r.get("limits") for r in resources):
        return "BestEffort"
    for found in resources:
        requests, limits = found.get("requests") or {}, found.get("limits") or {}
        for name in ("cpu", "memory"):
            if name not in limits:
                return "Burstable"
            if parse_quantity(requests.get(name, limits[name])) != parse_quantity(limits[name]):
                return "Burstable"
    return "Guaranteed"


def complete_status(status: ApiObject) -> None:
    """Empty values that the API server writes where a kubelet wrote none."""
    for group in ("initContainerStatuses", "containerStatuses"):
        for state in status.get(group) or []:
            _each_default(state, ready=False, restartCount=0, image="", imageID="")
            for name in ("state", "lastState"):
                if terminated := (state.get(name) or {}).get("terminated"):
                    _each_default(terminated, exitCode=0)


def pod_errors(pod: ApiObject) -> list[FieldError]:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return [required("spec.containers")]
    found: list[FieldError] = []
    volumes = _volume_errors(spec, found)
    if not spec.get("containers"):
        found.append(required("spec.containers"))
    names: set[str] = set()
    for group in CONTAINERS:
        for at, container in enumerate(spec.get(group) or []):
            _container_errors(container, f"spec.{group}[{at}]", volumes, names, found)
    policy = spec.get("restartPolicy")
    if policy not in (allowed := ["Always", "OnFailure", "Never"]):
        found.append(unsupported("spec.restartPolicy", policy, allowed))
    if spec.get("dnsPolicy") not in (
        allowed := ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
    ):
        found.append(unsupported("spec.dnsPolicy", spec.get("dnsPolicy"), allowed))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        why = "must be between 1 and 2147483647, inclusive"
        found.append(bad_value("spec.activeDeadlineSeconds", deadline, why))
    if (grace := spec.get("terminationGracePeriodSeconds", 30)) < 0:
        why = "must be greater than or equal to 0"
        found.append(bad_value("spec.terminationGracePeriodSeconds", grace, why))
    for at, secret in enumerate(spec.get("imagePullSecrets") or []):
        if not secret.get("name"):
            found.append(required(f"spec.imagePullSecrets[{at}].name"))
    for name in ("nodeName", "runtimeClassName"):
        if spec.get(name):
            found += subdomain_errors(spec[name], f"spec.{name}")
    for at, toleration in enumerate(spec.get("tolerations") or []):
        _toleration_errors(toleration, f"spec.tolerations[{at}]", found)
    return found


def _toleration_errors(toleration: ApiObject, field: str, found: list[FieldError]) -> None:
    operator = toleration.get("operator", "Equal")
    if operator not in ("Equal", "Exists"):
        found.append(unsupported(f"{field}.operator", operator, ["Equal", "Exists"]))
    if operator == "Exists" and toleration.get("value"):
        why = "value must be empty when `operator` is 'Exists'"
        found.append(bad_value(f"{field}.operator", toleration["value"], why))
    if not toleration.get("key") and operator != "Exists":
        why = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        found.append(bad_value(f"{field}.operator", operator, why))
    effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
    if toleration.get("effect") and toleration["effect"] not in effects:
        found.append(unsupported(f"{field}.effect", toleration["effect"], effects))


def _volume_errors(spec: ApiObject, found: list[FieldError]) -> set[str]:
    names: set[str] = set()
    for at, volume in enumerate(spec.get("volumes") or []):
        field = f"spec.volumes[{at}]"
        name = volume.get("name")
        found += label_errors(name, f"{field}.name")
        if name in names:
            found.append(duplicate(f"{field}.name", name))
        names.add(name)
        sources = [key for key in volume if key != "name" and volume[key] is not None]
        if len(sources) > 1:
            why = "may not specify more than 1 volume type"
            found.append(forbidden_field(f"{field}.{sources[1]}", why))
        if isinstance(volume.get("secret"), dict) and not volume["secret"].get("secretName"):
            found.append(required(f"{field}.secret.secretName"))
        if isinstance(volume.get("configMap"), dict) and not volume["configMap"].get("name"):
            found.append(required(f"{field}.configMap.name"))
        if isinstance(volume.get("emptyDir"), dict) and "sizeLimit" in volume["emptyDir"]:
            _quantity(volume["emptyDir"]["sizeLimit"], f"{field}.emptyDir.sizeLimit", found)
    return names


def _quantity(value: Any, field: str, found: list[FieldError]) -> None:
    try:
        if parse_quantity(value) < 0:
            found.append(bad_value(field, value, "must be greater than or equal to 0"))
    except ValueError as e:
        found.append(bad_value(field, value, str(e)))


def _container_errors(
    container: ApiObject, field: str, volumes: set[str], names: set[str], found: list[FieldError]
) -> None:
    name = container.get("name")
    found += label_errors(name, f"{field}.name")
    if name and name in names:
        found.append(duplicate(f"{field}.name", name))
    names.add(str(name))
    if not container.get("image"):
        found.append(required(f"{field}.image"))
    if container.get("imagePullPolicy") not in (allowed := ["Always", "IfNotPresent", "Never"]):
        found.append(
            unsupported(f"{field}.imagePullPolicy", container.get("imagePullPolicy"), allowed)
        )
    mounted: set[str] = set()
    for at, mount in enumerate(container.get("volumeMounts") or []):
        below = f"{field}.volumeMounts[{at}]"
        if not mount.get("name"):
            found.append(required(f"{below}.name"))
        elif mount["name"] not in volumes:
            found.append(not_there(f"{below}.name", mount["name"]))
        if not (path := mount.get("mountPath")):
            found.append(required(f"{below}.mountPath"))
        elif path in mounted:
            found.append(bad_value(f"{below}.mountPath", path, "must be unique"))
        mounted.add(str(path))
    for at, variable in enumerate(container.get("env") or []):
        if not variable.get("name"):
            found.append(required(f"{field}.env[{at}].name"))
        if variable.get("value") and variable.get("valueFrom"):
            why = "may not be specified when `value` is not empty"
            found.append(bad_value(f"{field}.env[{at}].valueFrom", "", why))
    _resource_errors(container.get("resources") or {}, f"{field}.resources", found)


def _resource_errors(resources: ApiObject, field: str, found: list[FieldError]) -> None:
    before = len(found)
    for side in ("limits", "requests"):
        for name, value in (resources.get(side) or {}).items():
            _quantity(value, f"{field}.{side}[{name}]", found)
    if len(found) > before:
        return
    limits = resources.get("limits") or {}
    for name, value in (resources.get("requests") or {}).items():
        if name in limits and parse_quantity(value) > parse_quantity(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(bad_value(f"{field}.requests", value, why))


def update_errors(new: ApiObject, old: ApiObject) -> list[FieldError]:
    """What of a Pod's spec may not change."""
    changed, was = copy.deepcopy(new["spec"]), copy.deepcopy(old["spec"])
    found = []
    for group in CONTAINERS:
        theirs, ours = changed.get(group) or [], was.get(group) or []
        if len(theirs) != len(ours):
            return [forbidden_field("spec", "pod updates may not add or remove containers")]
        for container, known in zip(theirs, ours, strict=True):
            container["image"] = known["image"]
            container["imagePullPolicy"] = known.get("imagePullPolicy")
            known.setdefault("imagePullPolicy", None)
    deadline, earlier = (
        changed.pop("activeDeadlineSeconds", None),
        was.pop("activeDeadlineSeconds", None),
    )
    if earlier is not None and (deadline is None or deadline > earlier):
        why = "must be less than or equal to previous value"
        found.append(bad_value("spec.activeDeadlineSeconds", deadline, why))
    tolerations, before = changed.pop("tolerations", None) or [], was.pop("tolerations", None) or []
    if any(t not in tolerations for t in before):
        why = "existing toleration can not be modified except its tolerationSeconds"
        found.append(forbidden_field("spec.tolerations", why))
    grace = changed.get("terminationGracePeriodSeconds")
    if was.get("terminationGracePeriodSeconds", 0) < 0 and grace == 1:
        was["terminationGracePeriodSeconds"] = 1
    if changed != was:
        names = sorted(k for k in {*changed, *was} if changed.get(k) != was.get(k))
        found.append(forbidden_field("spec", f"{_MUTABLE}\n(changed: {', '.join(names)})"))
    return found
