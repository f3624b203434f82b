"""create, update, patch, delete and deletecollection over HTTP."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.kubernetes.double import errors
from tests.kubernetes.double.applying import apply
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.deleting import DeleteOptions
from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import Kind
from tests.kubernetes.double.patches import json_patch, merge_patch
from tests.kubernetes.double.selectors import Selector
from tests.kubernetes.double.serving.reading import entry_response, json_response, list_body
from tests.kubernetes.double.serving.requests import (
    APPLY,
    PATCHES,
    Asked,
    body_of,
    is_dry,
    is_strict,
    object_of,
    selector_of,
)
from tests.kubernetes.double.strategic import keys_of, strategic_merge

Change = Callable[[ApiObject], ApiObject]


class Writing:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def create(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        item = await object_of(request, kind, asked)
        if kind.verbs == ("create",):
            return json_response(_reviewed(kind, item), status=201)
        query = request.query
        entry, unknown = self.cluster.create(
            kind, asked.namespace or "", item, dry=is_dry(query), strict=is_strict(query)
        )
        return entry_response(kind, entry, status=201, warnings=_warnings(query, unknown))

    async def update(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        item = await object_of(request, kind, asked)
        key = (asked.namespace or "", asked.name)
        if kind.create_on_update and self.cluster.store.get(kind.address, key) is None:
            item["metadata"].setdefault("name", asked.name)
            item["metadata"].pop("resourceVersion", None)
            entry, _ = self.cluster.create(kind, key[0], item, dry=is_dry(request.query))
            return entry_response(kind, entry, status=201)
        return self._changed(request, kind, asked, lambda old: item, patch=False)

    def _changed(
        self, request: web.Request, kind: Kind, asked: Asked, change: Change, *, patch: bool
    ) -> web.Response:
        query = request.query
        entry, unknown = self.cluster.change(
            kind,
            asked.namespace or "",
            asked.name,
            change,
            subresource=asked.subresource,
            patch=patch,
            dry=is_dry(query),
            strict=is_strict(query),
        )
        return entry_response(kind, entry, warnings=_warnings(query, unknown))

    async def patch(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        media = request.content_type
        if media not in PATCHES:
            raise errors.unsupported_media(media, list(PATCHES))
        body: Any = await body_of(request)
        if media == APPLY:
            return self._apply(request, kind, asked, body)
        if media == "application/strategic-merge-patch+json" and kind.custom is not None:
            raise errors.unsupported_media(media, [p for p in PATCHES if "strategic" not in p])
        return self._changed(request, kind, asked, patching(kind, media, body), patch=True)

    def _apply(self, request: web.Request, kind: Kind, asked: Asked, body: Any) -> web.Response:
        query = request.query
        manager = query.get("fieldManager")
        if not manager:
            wrong = errors.required("fieldManager", "is required for apply patch")
            raise errors.invalid("PatchOptions", "meta.k8s.io", "", [wrong])
        if not isinstance(body, dict):
            raise errors.bad_request("an apply patch is an object")
        given = (body.get("apiVersion"), body.get("kind"))
        if given != (kind.api_version, kind.kind):
            raise errors.bad_request(
                f"an apply patch names its kind: expected {kind.api_version} {kind.kind}, got "
                f"{given[0]} {given[1]}"
            )
        force = query.get("force") in ("1", "true")
        where = asked.subresource

        def change(old: ApiObject) -> ApiObject:
            return apply(kind, old, body, manager, force=force, subresource=where)

        key = (asked.namespace or "", asked.name)
        if self.cluster.store.get(kind.address, key) is None and not where:
            item = change({"metadata": {"name": asked.name}})
            entry, unknown = self.cluster.create(
                kind, key[0], item, dry=is_dry(query), strict=is_strict(query)
            )
            return entry_response(kind, entry, status=201, warnings=_warnings(query, unknown))
        return self._changed(request, kind, asked, change, patch=True)

    async def delete(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        options = options_of(await body_of(request), request.query)
        done = self.cluster.delete(kind, asked.namespace or "", asked.name, options)
        # Whatever runs is shown at its end; of other objects the API server says that they went.
        if not done.removed or kind.plural in ("pods", "services", "serviceaccounts"):
            return entry_response(kind, done.entry)
        name, group = done.entry.key[1], kind.group
        return json_response(
            errors.success(name=name, group=group, kind=kind.plural, uid=done.entry.uid)
        )

    async def deletecollection(
        self, request: web.Request, kind: Kind, asked: Asked
    ) -> web.Response:
        options = options_of(await body_of(request), request.query)
        selector: Selector = selector_of(request.query, kind)
        store = self.cluster.store
        found = [
            entry
            for entry in store.entries_of(kind.address, asked.namespace)
            if selector.empty or selector.takes(entry.labels, entry.fields)
        ]
        for entry in found:
            self.cluster.delete(kind, *entry.key, options)
        body = list_body(kind, found, {"resourceVersion": str(store.version)})
        return web.Response(body=body, content_type="application/json")


def patching(kind: Kind, media: str, body: Any) -> Change:
    """What a patch makes of an object."""

    def change(old: ApiObject) -> ApiObject:
        if media == "application/json-patch+json":
            changed = json_patch(old, body)
        elif media == "application/merge-patch+json":
            changed = merge_patch(old, body)
        else:
            changed = strategic_merge(old, body, keys_of(kind.kind))
        if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
            raise errors.bad_request(f"the patch leaves no {kind.kind}")
        return changed

    return change


def options_of(body: ApiObject | None, query: Any) -> DeleteOptions:
    """Options of a deletion, from the body and the query."""
    asked = dict(body or {})
    if "gracePeriodSeconds" in query:
        asked["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
    if "propagationPolicy" in query:
        asked["propagationPolicy"] = query["propagationPolicy"]
    if asked.get("orphanDependents") is not None and "propagationPolicy" not in asked:
        asked["propagationPolicy"] = "Orphan" if asked["orphanDependents"] else "Background"
    policy = asked.get("propagationPolicy")
    if policy not in (None, "Foreground", "Background", "Orphan"):
        wrong = errors.unsupported(
            "propagationPolicy", policy, ["Foreground", "Background", "Orphan"]
        )
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", [wrong])
    conditions = asked.get("preconditions") or {}
    return DeleteOptions(
        grace_s=asked.get("gracePeriodSeconds"),
        propagation=policy,
        uid=conditions.get("uid"),
        version=conditions.get("resourceVersion"),
        dry=is_dry(query, asked),
    )


def _warnings(query: Any, unknown: list[str]) -> list[str]:
    if query.get("fieldValidation", "Warn") != "Warn":
        return []
    return [f'unknown field "{path}"' for path in unknown]


def _reviewed(kind: Kind, item: ApiObject) -> ApiObject:
    """The answer to a review of access: nobody is refused anything here."""
    head = {"kind": kind.kind, "apiVersion": kind.api_version}
    return {**item, **head, "status": {"allowed": True, "reason": "no authorization in the double"}}
