"""Subresources that have objects of their own: binding, eviction, scale; and what finalizes."""

from typing import Any

from aiohttp import web

from tests.kubernetes.double import errors
from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import NAMESPACES, Kind
from tests.kubernetes.double.rules.strategies import now
from tests.kubernetes.double.serving.reading import entry_response, json_response
from tests.kubernetes.double.serving.requests import Asked, body_of, is_dry
from tests.kubernetes.double.serving.tables import value_at
from tests.kubernetes.double.serving.writing import Writing, options_of, patching


class Subresources:
    def __init__(self, writing: Writing) -> None:
        self.writing, self.cluster = writing, writing.cluster

    async def serve(self, request: web.Request, kind: Kind, asked: Asked) -> web.StreamResponse:
        match asked.subresource, asked.verb:
            case "status", "get":
                return entry_response(kind, self._entry(kind, asked))
            case "status", "update":
                return await self.writing.update(request, kind, asked)
            case "status", "patch":
                return await self.writing.patch(request, kind, asked)
            case "finalize", "update" if kind.address == NAMESPACES:
                return await self._finalize(request, kind, asked)
            case "binding", "create":
                return await self._bind(request, kind, asked)
            case "eviction", "create":
                return await self._evict(request, kind, asked)
            case "scale", "get":
                return json_response(_scale_of(kind, self._entry(kind, asked).item(kind)))
            case "scale", "update" | "patch":
                return await self._scale(request, kind, asked)
        raise errors.not_allowed("the requested resource")

    def _entry(self, kind: Kind, asked: Asked) -> Any:
        return self.cluster.entry(kind, asked.namespace or "", asked.name)

    async def _finalize(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        """Replace a namespace's spec.finalizers; the last one gone, a namespace on its end goes."""
        item = await body_of(request) or {}
        finalizers = (item.get("spec") or {}).get("finalizers") or []

        def change(old: ApiObject) -> ApiObject:
            return {**old, "spec": {**(old.get("spec") or {}), "finalizers": finalizers}}

        entry, _ = self.cluster.change(
            kind, "", asked.name, change, subresource="finalize", patch=True
        )
        return entry_response(kind, entry)

    async def _bind(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        body = await body_of(request) or {}
        node = (body.get("target") or {}).get("name")
        if not node:
            raise errors.invalid("Binding", "", asked.name, [errors.required("target.name")])
        metadata = body.get("metadata") or {}

        def change(old: ApiObject) -> ApiObject:
            why = ""
            if metadata.get("uid") not in (None, "", old["metadata"]["uid"]):
                why = f"Precondition failed: UID in precondition: {metadata['uid']}"
            elif old["metadata"].get("deletionTimestamp"):
                why = f"pod {asked.name} is being deleted, cannot be assigned to a host"
            elif bound := old["spec"].get("nodeName"):
                why = f'pod {asked.name} is already assigned to node "{bound}"'
            if why:
                raise errors.conflict("pods/binding", "", asked.name, why)
            old["spec"]["nodeName"] = node
            old["metadata"]["annotations"] = {
                **(old["metadata"].get("annotations") or {}),
                **(metadata.get("annotations") or {}),
            }
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()}
            rest = (old["status"].get("conditions") or []) if old.get("status") else []
            conditions = [c for c in rest if c["type"] != "PodScheduled"]
            old["status"] = {**(old.get("status") or {}), "conditions": [*conditions, scheduled]}
            return old

        self.cluster.change(
            *(kind, asked.namespace or "", asked.name, change),
            subresource="binding",
            patch=True,
            dry=is_dry(request.query),
        )
        return json_response(errors.success(), status=201)

    async def _evict(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        """A deletion; there are no disruption budgets here that could refuse it."""
        body = await body_of(request) or {}
        options = options_of(body.get("deleteOptions"), request.query)
        self.cluster.delete(kind, asked.namespace or "", asked.name, options)
        return json_response(errors.success(), status=201)

    async def _scale(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        body: Any = await body_of(request)
        media = request.content_type

        def change(old: ApiObject) -> ApiObject:
            scale = _scale_of(kind, old)
            if asked.verb == "patch":
                scale = patching(kind, media, body)(scale)
            else:
                scale = {**scale, **body}
            replicas = (scale.get("spec") or {}).get("replicas", 0)
            if not isinstance(replicas, int) or replicas < 0:
                why = errors.bad_value("spec.replicas", replicas, "must be 0 or more")
                raise errors.invalid("Scale", "autoscaling", asked.name, [why])
            given = (scale.get("metadata") or {}).get("resourceVersion")
            if given:
                old["metadata"]["resourceVersion"] = given
            _set_at(old, (kind.scale or {})["specReplicasPath"], replicas)
            return old

        entry, _ = self.cluster.change(
            kind, asked.namespace or "", asked.name, change, patch=True, dry=is_dry(request.query)
        )
        return json_response(_scale_of(kind, entry.item(kind)))


def _set_at(item: ApiObject, path: str, value: Any) -> None:
    *above, last = path.lstrip(".").split(".")
    for name in above:
        item = item.setdefault(name, {})
    item[last] = value


def _scale_of(kind: Kind, item: ApiObject) -> ApiObject:
    paths = kind.scale or {}
    metadata = item["metadata"]
    selector = value_at(item, paths.get("labelSelectorPath", ".none"))
    if isinstance(selector, dict):
        pairs = (selector.get("matchLabels") or {}).items()
        selector = ",".join(f"{key}={value}" for key, value in pairs)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": value_at(item, paths["specReplicasPath"]) or 0},
        "status": {
            "replicas": value_at(item, paths["statusReplicasPath"]) or 0,
            **({"selector": selector} if selector else {}),
        },
    }
