"""What objects of ours are called, and where in the API they are."""

import hashlib
import re
from typing import Any

from sandboxes.kubernetes.settings import PREFIX

OWNER, POOL, SANDBOX = f"{PREFIX}owner", f"{PREFIX}pool", f"{PREFIX}sandbox"
"""Labels: whose an object is, of which template, and which sandbox."""

EGRESS = f"{PREFIX}egress"
"""Label of Pods that the network policy lets reach the egress proxy."""

TEMPLATE, TOKEN, LINGER = f"{PREFIX}template", f"{PREFIX}token", f"{PREFIX}linger-s"
HOLDER, DEAD = f"{PREFIX}process", f"{PREFIX}dead"
"""Annotations: of a sandbox its template, token and how long it outlives its stream; of an owner
its process, and that it was found dead."""

MANAGED = {"app.kubernetes.io/managed-by": "agentic-synth"}

EXTENSIONS, CORE = "extensions.agents.x-k8s.io", "agents.x-k8s.io"
VERSION = "v1beta1"
API = f"{EXTENSIONS}/{VERSION}"

NAME = re.compile(r"synth-[0-9a-f]{12}-[0-9a-z]{1,16}")
"""Of a sandbox: of its first owner, and a number."""


class Folders:
    """Paths of the API, of one namespace."""

    def __init__(self, namespace: str) -> None:
        own = f"namespaces/{namespace}"
        self.namespace = f"/api/v1/{own}"
        self.pods = f"/api/v1/{own}/pods"
        self.config_maps = f"/api/v1/{own}/configmaps"
        self.quotas = f"/api/v1/{own}/resourcequotas"
        self.leases = f"/apis/coordination.k8s.io/v1/{own}/leases"
        self.policies = f"/apis/networking.k8s.io/v1/{own}/networkpolicies"
        self.claims = f"/apis/{API}/{own}/sandboxclaims"
        self.templates = f"/apis/{API}/{own}/sandboxtemplates"
        self.warm_pools = f"/apis/{API}/{own}/sandboxwarmpools"


def lease_name(owner: str) -> str:
    return f"synth-owner-{owner}"


def digest_of(*texts: str) -> str:
    """Short enough for a label and a name."""
    whole = "\0".join(texts).encode()
    return hashlib.sha256(whole).hexdigest()[:16]


def selecting(**selected: str) -> dict[str, Any]:
    """A query for objects with these labels of ours; an empty value asks for the label alone."""
    parts = [f"{PREFIX}{k}={v}" if v else f"{PREFIX}{k}" for k, v in selected.items()]
    return {"labelSelector": ",".join(parts)}


def annotation(made: dict[str, Any], name: str) -> str | None:
    return (made["metadata"].get("annotations") or {}).get(name)


def label(made: dict[str, Any], name: str) -> str | None:
    return (made["metadata"].get("labels") or {}).get(name)


def seconds_in(text: str | None) -> float:
    """Those of an annotation; 0 where there are none, or what is no number."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
