"""Deletion: grace of Pods, finalizers, what becomes of dependents, namespaces and definitions."""

import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.kubernetes.double import errors
from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import DEFINITIONS, NAMESPACES, PODS, Address, Kind, Kinds
from tests.kubernetes.double.rules import definitions, strategies
from tests.kubernetes.double.store import Entry, Store

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


@dataclass(frozen=True)
class DeleteOptions:
    """What a deletion asks for; None where it leaves the choice to the kind."""

    grace_s: int | None = None
    propagation: str | None = None
    """Foreground, Background or Orphan."""
    uid: str | None = None
    version: str | None = None
    dry: bool = False


@dataclass
class Deleted:
    entry: Entry
    """The last state, or the present one where the object waits for its end."""
    removed: bool


class Deletions:
    def __init__(self, store: Store, kinds: Kinds) -> None:
        self.store, self.kinds = store, kinds
        self._ending: set[Address] = set()
        """Of definitions that wait for the finalizers of their last objects."""

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        found = self.store.get(kind.address, (namespace, name))
        if found is None:
            raise errors.not_found(kind.plural, kind.group, name)
        return found

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> Deleted:
        entry = self.entry(kind, namespace, name)
        item = entry.item(kind)
        metadata = item["metadata"]
        if options.uid not in (None, metadata["uid"]):
            why = (
                f"Precondition failed: UID in precondition: {options.uid}, "
                f"UID in object meta: {metadata['uid']}"
            )
            raise errors.conflict(kind.plural, kind.group, name, why)
        if options.version not in (None, metadata["resourceVersion"]):
            why = (
                f"Precondition failed: ResourceVersion in precondition: {options.version}, "
                f"ResourceVersion in object meta: {metadata['resourceVersion']}"
            )
            raise errors.conflict(kind.plural, kind.group, name, why)
        if options.dry:
            return Deleted(entry, removed=False)
        if kind.address == NAMESPACES:
            return self._end_namespace(kind, item)
        grace_s = self._grace(kind, item, options)
        before = copy.deepcopy(metadata)
        _note_propagation(metadata, options.propagation)
        if grace_s > 0 or metadata.get("finalizers"):
            self._mark(metadata, grace_s, kind)
            if metadata == before:
                return Deleted(entry, removed=False)
            if kind.address == DEFINITIONS:
                return self._end_definition(kind, item)
            return Deleted(self.store.put(kind, item, entry.charge), removed=False)
        return Deleted(self.remove(kind, item), removed=True)

    def _grace(self, kind: Kind, item: ApiObject, options: DeleteOptions) -> int:
        """Seconds that a Pod has for its end; none for what runs nowhere."""
        if kind.address != PODS:
            return 0
        grace_s = options.grace_s
        if grace_s is None:
            grace_s = item["spec"].get("terminationGracePeriodSeconds", 30)
        bound = item["spec"].get("nodeName")
        over = (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        return max(grace_s, 0) if bound and not over else 0

    def _mark(self, metadata: ApiObject, grace_s: int, kind: Kind) -> None:
        """Note that an object is on its end; a later deletion can only bring it nearer."""
        earlier = metadata.get("deletionGracePeriodSeconds")
        if metadata.get("deletionTimestamp") and (earlier is None or earlier <= grace_s):
            return
        end = datetime.now(UTC) + timedelta(seconds=grace_s)
        metadata["deletionTimestamp"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["deletionGracePeriodSeconds"] = grace_s
        if kind.generation:
            metadata["generation"] = metadata.get("generation", 0) + 1

    def remove(self, kind: Kind, item: ApiObject) -> Entry:
        entry = self.store.remove(kind, item)
        if kind.address == DEFINITIONS:
            spec = item["spec"]
            self.kinds.remove((spec["group"], spec["names"]["plural"]))
        if kind.address in self._ending and not self.store.bucket(kind.address).entries:
            definitions_kind = self.kinds.at(DEFINITIONS)
            name = f"{kind.plural}.{kind.group}"
            definition = self.entry(definitions_kind, "", name).item(definitions_kind)
            self._finish_definition(definitions_kind, definition)
        return entry

    def _end_namespace(self, kind: Kind, item: ApiObject) -> Deleted:
        """A namespace ends once whoever empties it takes `kubernetes` from spec.finalizers."""
        if not item["metadata"].get("deletionTimestamp"):
            item["metadata"]["deletionTimestamp"] = strategies.now()
            item["status"] = {**item.get("status", {}), "phase": "Terminating"}
            if is_over(item, kind):
                return Deleted(self.remove(kind, item), removed=True)
            return Deleted(self.store.put(kind, item), removed=False)
        if is_over(item, kind):
            return Deleted(self.remove(kind, item), removed=True)
        key = ("", item["metadata"]["name"])
        return Deleted(self.store.bucket(NAMESPACES).entries[key], removed=False)

    def _end_definition(self, kind: Kind, item: ApiObject) -> Deleted:
        """The API server itself deletes the objects of a definition, and then the definition."""
        address = (item["spec"]["group"], item["spec"]["names"]["plural"])
        entry = self.store.put(kind, item)
        served = [known for known in self.kinds if known.address == address]
        for found in list(self.store.entries_of(address)):
            self.delete(served[0], *found.key, DeleteOptions())
        if self.store.bucket(address).entries:
            self._ending.add(address)
            return Deleted(entry, removed=False)
        return self._finish_definition(kind, item)

    def _finish_definition(self, kind: Kind, item: ApiObject) -> Deleted:
        self._ending.discard((item["spec"]["group"], item["spec"]["names"]["plural"]))
        held = item["metadata"].get("finalizers") or []
        item["metadata"]["finalizers"] = [name for name in held if name != definitions.CLEANUP]
        if item["metadata"]["finalizers"]:
            return Deleted(self.store.put(kind, item), removed=False)
        return Deleted(self.remove(kind, item), removed=True)


def _note_propagation(metadata: ApiObject, policy: str | None) -> None:
    """Finalizers tell a collector what becomes of an object's dependents."""
    if policy is None:
        return
    kept = [f for f in metadata.get("finalizers") or [] if f not in (FOREGROUND, ORPHAN)]
    wanted = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    if kept + wanted:
        metadata["finalizers"] = kept + wanted
    else:
        metadata.pop("finalizers", None)


def is_over(item: ApiObject, kind: Kind) -> bool:
    """Whether nothing holds an object that is on its end."""
    metadata = item["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if kind.address == NAMESPACES and (item.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")
