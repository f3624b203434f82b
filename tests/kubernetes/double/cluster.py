"""The verbs that write, apart from HTTP: create and update, with what each kind adds.

Everything here runs between two awaits, so no write sees half of another.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.kubernetes.double import errors
from tests.kubernetes.double.deleting import Deleted, DeleteOptions, Deletions, is_over
from tests.kubernetes.double.errors import ApiError, ApiObject, FieldError
from tests.kubernetes.double.kinds import (
    DEFINITIONS,
    NAMESPACES,
    PODS,
    QUOTAS,
    RUNTIME_CLASSES,
    Kind,
    Kinds,
)
from tests.kubernetes.double.rules import definitions, pods, quotas, schemas, strategies
from tests.kubernetes.double.rules.names import generated, name_errors
from tests.kubernetes.double.store import Entry, Store

FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_NOT_TAKEN = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT = (
    *("name", "namespace", "uid", "creationTimestamp", "generateName"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "generation"),
)


@dataclass
class Cluster:
    store: Store
    kinds: Kinds
    usage: quotas.Usage = field(default_factory=quotas.Usage)

    def __post_init__(self) -> None:
        self.deletions = Deletions(self.store, self.kinds)
        self.store.listeners.append(self.usage.follow)

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        return self.deletions.entry(kind, namespace, name)

    def _plain(self, kind: Kind, item: ApiObject) -> ApiObject:
        """An object as it is after decoding: no nulls where Go has none."""
        plain = _plain_go(item) if kind.custom is None else dict(item)
        metadata = _plain_go(plain.get("metadata") or {})
        for key in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
            if key in metadata and not metadata[key]:
                del metadata[key]
        rest = {k: v for k, v in plain.items() if k not in ("kind", "apiVersion", "metadata")}
        return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, **rest}

    def create(
        self,
        kind: Kind,
        namespace: str,
        item: ApiObject,
        *,
        dry: bool = False,
        strict: bool = False,
    ) -> tuple[Entry, list[str]]:
        """Store a new object; also the unknown fields that were dropped."""
        item = self._plain(kind, item)
        metadata = item["metadata"]
        if metadata.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        for name in (*_NOT_TAKEN, "resourceVersion"):
            metadata.pop(name, None)
        if kind.namespaced:
            metadata["namespace"] = namespace
            self._namespace_takes(kind, namespace, metadata.get("name", ""))
        else:
            metadata.pop("namespace", None)
        self._name(kind, metadata)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = strategies.now()
        if wrong := name_errors(kind, metadata.get("name")):
            raise errors.invalid(kind.kind, kind.group, metadata.get("name", ""), wrong)
        unknown, missing = schemas.read(kind, item)
        strategies.prepare_create(kind, item)
        if kind.custom is not None:
            unknown = kind.custom.complete(item)
        if strict and unknown:
            raise strict_refusal(kind, unknown)
        self._admit(kind, item)
        self._check(kind, item, None, missing)
        if self.store.get(kind.address, (namespace, metadata["name"])) is not None:
            raise errors.already_exists(kind.plural, kind.group, metadata["name"])
        charge = quotas.charge(kind.address, item)
        self._keep_quota(kind, namespace, metadata["name"], item, charge, dry)
        if kind.address == DEFINITIONS and not dry:
            item["status"] = definitions.accepted(item, strategies.now())
        return self._write(kind, item, charge, dry=dry), unknown

    def _name(self, kind: Kind, metadata: ApiObject) -> None:
        if metadata.get("name") or not (prefix := metadata.get("generateName")):
            return
        for _ in range(8):
            metadata["name"] = generated(prefix)
            key = (metadata.get("namespace", ""), metadata["name"])
            if self.store.get(kind.address, key) is None:
                return

    def _namespace_takes(self, kind: Kind, namespace: str, name: str) -> None:
        found = self.store.get(NAMESPACES, ("", namespace))
        if found is None:
            raise errors.not_found("namespaces", "", namespace)
        if found.fields["status.phase"] == "Terminating":
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            refusal = errors.forbidden(kind.plural, kind.group, name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            refusal.status["details"]["causes"] = [cause]
            raise refusal

    def _admit(self, kind: Kind, item: ApiObject) -> None:
        if kind.address != PODS or not isinstance(item.get("spec"), dict):
            return
        spec, name = item["spec"], item["metadata"].get("name", "")
        if runtime := spec.get("runtimeClassName"):
            found = self.store.get(RUNTIME_CLASSES, ("", runtime))
            if found is None:
                why = f'pod rejected: RuntimeClass "{runtime}" not found'
                raise errors.forbidden("pods", "", name, why)
            runtime_class = found.item(self.kinds.at(RUNTIME_CLASSES))
            if overhead := (runtime_class.get("overhead") or {}).get("podFixed"):
                spec["overhead"] = overhead
            scheduling = runtime_class.get("scheduling") or {}
            if scheduling.get("nodeSelector"):
                spec["nodeSelector"] = {
                    **(spec.get("nodeSelector") or {}),
                    **scheduling["nodeSelector"],
                }
            spec.setdefault("tolerations", []).extend(scheduling.get("tolerations") or [])
        pods.admit(item)

    def _check(
        self, kind: Kind, item: ApiObject, old: ApiObject | None, missing: list[FieldError]
    ) -> None:
        try:
            found: list[FieldError] = strategies.errors(kind, item, old)
        except (AttributeError, TypeError, KeyError) as e:
            raise errors.bad_request(
                f"{kind.kind} in version {kind.version!r} cannot be handled as a {kind.kind}: "
                f"json: cannot unmarshal: {e}"
            ) from e
        known = {error.field for error in found}
        found += [error for error in missing if error.field not in known]
        if found:
            raise errors.invalid(kind.kind, kind.group, item["metadata"].get("name", ""), found)
        if kind.address == PODS and old is None:
            item["status"]["qosClass"] = pods.qos_class(item["spec"])

    def _keep_quota(
        self, kind: Kind, namespace: str, name: str, item: ApiObject, charge: Any, dry: bool
    ) -> None:
        """Refuse what is over a quota, and note in the quota what it then has used."""
        held = list(self.store.entries_of(QUOTAS, namespace)) if kind.namespaced else []
        if not held:
            return
        quota_kind = self.kinds.at(QUOTAS)
        for entry in held:
            quota = entry.item(quota_kind)
            why, used = quotas.judge(quota, self.usage.of(namespace), kind.address, item, charge)
            if why:
                raise errors.forbidden(kind.plural, kind.group, name, why)
            if used is not None and not dry:
                quota["status"] = {"hard": quota["spec"]["hard"], "used": used}
                self.store.put(quota_kind, quota)

    def _write(self, kind: Kind, item: ApiObject, charge: Any, *, dry: bool) -> Entry:
        if dry:
            item["metadata"].pop("resourceVersion", None)
            return Entry(kind, {**item, "metadata": {**item["metadata"], "resourceVersion": "0"}})
        entry = self.store.put(kind, item, charge)
        if kind.address == DEFINITIONS:
            self.serve(item)
        return entry

    def serve(self, definition: ApiObject) -> None:
        """Serve, or serve anew, what a definition defines."""
        spec = definition["spec"]
        self.kinds.remove((spec["group"], spec["names"]["plural"]))
        for kind in definitions.kinds_of(definition):
            self.kinds.add(kind)

    def change(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        changed: Callable[[ApiObject], ApiObject],
        *,
        subresource: str = "",
        patch: bool = False,
        dry: bool = False,
        strict: bool = False,
    ) -> tuple[Entry, list[str]]:
        """Write what `changed` makes of the present object; also the unknown fields it dropped.

        A patch that names no resourceVersion is one of the present version, and so never stale.
        """
        entry = self.entry(kind, namespace, name)
        old = entry.item(kind)
        item = self._plain(kind, changed(entry.item(kind)))
        self._preconditions(kind, name, item["metadata"], old["metadata"], patch)
        if "managedFields" in old["metadata"]:
            item["metadata"].setdefault("managedFields", old["metadata"]["managedFields"])
        for key in _KEPT:
            if key in old["metadata"]:
                item["metadata"][key] = old["metadata"][key]
            else:
                item["metadata"].pop(key, None)
        unknown, missing = schemas.read(kind, item)
        if subresource == "status":
            item = strategies.prepare_status(kind, item, old)
        elif not subresource:
            strategies.prepare_update(kind, item, old)
        if kind.custom is not None:
            unknown = kind.custom.complete(item)
        if strict and unknown:
            raise strict_refusal(kind, unknown)
        self._finalizers(kind, name, item["metadata"], old["metadata"])
        if kind.custom is not None or not subresource:
            self._check(kind, item, old, missing)
        # Else the spec is the old one, or changes as the subresource has it: a Pod is bound.
        if kind.generation and strategies.spec_of(kind, item) != strategies.spec_of(kind, old):
            item["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        item["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if item == old:
            return entry, unknown
        if is_over(item, kind) and not dry:
            return self.deletions.remove(kind, item), unknown
        charge = entry.charge if subresource else quotas.charge(kind.address, item)
        return self._write(kind, item, charge, dry=dry), unknown

    def _preconditions(
        self, kind: Kind, name: str, given: ApiObject, present: ApiObject, patch: bool
    ) -> None:
        if given.get("name", name) != name:
            raise errors.bad_request(
                f"the name of the object ({given['name']}) does not match the name on the URL "
                f"({name})"
            )
        if given.get("uid") not in (None, "", present["uid"]):
            why = (
                f"Precondition failed: UID in precondition: {given['uid']}, "
                f"UID in object meta: {present['uid']}"
            )
            raise errors.conflict(kind.plural, kind.group, name, why)
        version = given.get("resourceVersion")
        if not version and not patch and not kind.unconditional_update:
            why = errors.bad_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(kind.kind, kind.group, name, [why])
        if version and version != present["resourceVersion"]:
            raise errors.conflict(kind.plural, kind.group, name, errors.MODIFIED_SINCE)

    def _finalizers(self, kind: Kind, name: str, new: ApiObject, old: ApiObject) -> None:
        added = set(new.get("finalizers") or []) - set(old.get("finalizers") or [])
        if added and old.get("deletionTimestamp"):
            why = (
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers {sorted(added)}"
            )
            wrong = errors.forbidden_field("metadata.finalizers", why)
            raise errors.invalid(kind.kind, kind.group, name, [wrong])

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Deleted:
        return self.deletions.delete(kind, namespace, name, options or DeleteOptions())

    def begin(self) -> None:
        """The namespaces that an API server makes at its first start."""
        kind = self.kinds.at(NAMESPACES)
        for name in FIRST_NAMESPACES:
            if self.store.get(NAMESPACES, ("", name)) is None:
                self.create(kind, "", {"metadata": {"name": name}})


def strict_refusal(kind: Kind, unknown: list[str]) -> ApiError:
    listed = ", ".join(f'unknown field "{path}"' for path in unknown)
    return errors.bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        f"strict decoding error: {listed}"
    )


def _plain_go(value: ApiObject) -> ApiObject:
    """`value` without nulls; most objects hold none, which their text shows at once."""
    return _without_nulls(value) if b"null" in orjson.dumps(value) else dict(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(v) for key, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value
