"""ConfigMaps and Secrets as Pods use them, and the variables that are made of them."""

import base64
import re

from tests.kubernetes.players.api import Api, ApiError
from tests.kubernetes.players.objects import (
    CONFIG_MAPS,
    SECRETS,
    Obj,
    annotations_of,
    labels_of,
)
from tests.kubernetes.players.statuses import HOST_IP

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class MissingError(Exception):
    """What a Pod needs is not there yet; a kubelet waits and says so."""


class Sources:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def files(
        self, kind: str, namespace: str, name: str, *, optional: bool
    ) -> dict[str, bytes]:
        """The keys of a ConfigMap (`configmap`) or Secret (`secret`) and their contents."""
        resource = CONFIG_MAPS if kind == "configmap" else SECRETS
        try:
            found = await self._api.get(resource, namespace, name)
        except ApiError as error:
            if error.status != 404:
                raise
            if optional:
                return {}
            raise MissingError(f'{kind} "{name}" not found') from error
        data = found.get("data") or {}
        if kind == "secret":
            return {key: base64.b64decode(value) for key, value in data.items()}
        binary = {k: base64.b64decode(v) for k, v in (found.get("binaryData") or {}).items()}
        return {key: value.encode() for key, value in data.items()} | binary

    async def environment(self, pod: Obj, container: Obj, ip: str) -> dict[str, str]:
        namespace = pod["metadata"]["namespace"]
        found = {"PATH": PATH, "HOSTNAME": pod["metadata"]["name"]}
        for source in container.get("envFrom") or []:
            for kind, field in (("configmap", "configMapRef"), ("secret", "secretRef")):
                if (reference := source.get(field)) is not None:
                    files = await self._of(kind, namespace, reference)
                    prefix = source.get("prefix", "")
                    found |= {prefix + key: value.decode() for key, value in files.items()}
        for each in container.get("env") or []:
            origin = each.get("valueFrom")
            if origin is None:
                found[each["name"]] = expanded(each.get("value", ""), found)
            elif (value := await self._value(pod, origin, ip)) is not None:
                found[each["name"]] = value
        return found

    async def _of(self, kind: str, namespace: str, reference: Obj) -> dict[str, bytes]:
        optional = bool(reference.get("optional"))
        return await self.files(kind, namespace, reference["name"], optional=optional)

    async def _value(self, pod: Obj, origin: Obj, ip: str) -> str | None:
        if (field := origin.get("fieldRef")) is not None:
            return pod_field(pod, field["fieldPath"], ip)
        for kind, name in (("configmap", "configMapKeyRef"), ("secret", "secretKeyRef")):
            if (reference := origin.get(name)) is not None:
                files = await self._of(kind, pod["metadata"]["namespace"], reference)
                if reference["key"] in files:
                    return files[reference["key"]].decode()
                if reference.get("optional"):
                    return None
                raise MissingError(f"couldn't find key {reference['key']} in {kind}")
        raise MissingError(f"a value from {', '.join(origin)} is not played")


def pod_field(pod: Obj, path: str, ip: str) -> str:
    meta = pod["metadata"]
    simple = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": pod["spec"]["nodeName"],
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
        "status.podIP": ip,
        "status.hostIP": HOST_IP,
    }
    if path in simple:
        return simple[path]
    if match := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        of = labels_of if match[1] == "labels" else annotations_of
        return of(pod).get(match[2], "")
    raise MissingError(f"the field {path} is not played")


def expanded(text: str, env: dict[str, str]) -> str:
    """`$(NAME)` replaced where NAME is known, `$$` by one dollar sign."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)", value, text)
