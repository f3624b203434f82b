"""Labels, annotations and digests by which agent-sandbox's controllers know their objects."""

import orjson

from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    Obj,
    controller_of,
    deleting,
    is_true,
    key_of,
    now,
)

NAME_HASH = "agents.x-k8s.io/sandbox-name-hash"
WARM_POOL = "agents.x-k8s.io/warm-pool-sandbox"
TEMPLATE_REF_HASH = "agents.x-k8s.io/sandbox-template-ref-hash"
TEMPLATE_HASH = "agents.x-k8s.io/sandbox-template-hash"
LAUNCH_TYPE = "agents.x-k8s.io/launch-type"
CREATED_BY = "agents.x-k8s.io/created-by"
CLAIM_UID = "agents.x-k8s.io/claim-uid"
POD_NAME = "agents.x-k8s.io/pod-name"
TEMPLATE_REF = "agents.x-k8s.io/sandbox-template-ref"
ASSIGNED = "agents.x-k8s.io/sandbox-name"
PROPAGATED = "agents.x-k8s.io/propagated-labels"

WARM_ONLY = (WARM_POOL, TEMPLATE_HASH)
"""Labels that a sandbox loses when it is claimed."""


def name_hash(text: str) -> str:
    """32-bit FNV-1a in eight digits."""
    found = 0x811C9DC5
    for byte in text.encode():
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{found:08x}"


def digest(obj: Obj) -> str:
    return name_hash(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS).decode())


def condition(kind: str, status: str, reason: str, message: str, generation: int) -> Obj:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": now(),
    }


def set_condition(conditions: list[Obj], new: Obj) -> list[Obj]:
    """Sorted by type; the time of a status that has not changed is kept."""
    kept = [each for each in conditions if each["type"] != new["type"]]
    old = next((each for each in conditions if each["type"] == new["type"]), None)
    if old is not None and old["status"] == new["status"]:
        new = new | {"lastTransitionTime": old["lastTransitionTime"]}
    return sorted([*kept, new], key=lambda each: each["type"])


def blueprint(template: Obj) -> Obj:
    """What a Sandbox takes over from its template."""
    spec = template["spec"]
    names = ("podTemplate", "volumeClaimTemplates", "service")
    found = {name: spec[name] for name in names if name in spec}
    pod = dict(found["podTemplate"]["spec"])
    pod.setdefault("automountServiceAccountToken", False)
    return found | {"podTemplate": found["podTemplate"] | {"spec": pod}}


class Members:
    """Sandboxes of warm pools that nobody has claimed, by their pool's uid and by readiness."""

    def __init__(self, sandboxes: Informer) -> None:
        self.ready: dict[str, dict[str, None]] = {}
        """Pool -> keys of its ready sandboxes, the oldest first."""
        self.waiting: dict[str, dict[str, None]] = {}
        self.ending: dict[str, dict[str, None]] = {}
        """Those that are being deleted and still take a place."""
        sandboxes.on_change(self._changed)

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        if old is not None and (pool := pool_uid(old)) is not None:
            for place in (self.ready, self.waiting, self.ending):
                place.get(pool, {}).pop(key_of(old), None)
        if new is not None and (pool := pool_uid(new)) is not None:
            place = self.ready if is_true(new, "Ready") else self.waiting
            place = self.ending if deleting(new) else place
            place.setdefault(pool, {})[key_of(new)] = None

    def drop(self, pool: str, key: str) -> None:
        """Not to be offered again, whatever the informer still shows."""
        for place in (self.ready, self.waiting):
            place.get(pool, {}).pop(key, None)

    def active(self, pool: str) -> list[str]:
        return [*self.ready.get(pool, {}), *self.waiting.get(pool, {})]


def pool_uid(sandbox: Obj) -> str | None:
    owner = controller_of(sandbox)
    return owner["uid"] if owner is not None and owner["kind"] == "SandboxWarmPool" else None


def owner_key(obj: Obj, kind: str) -> str | None:
    """The key of the object that controls `obj`, if it is of this kind."""
    owner = controller_of(obj)
    if owner is None or owner["kind"] != kind:
        return None
    return f"{obj['metadata']['namespace']}/{owner['name']}"
