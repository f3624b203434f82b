"""What a claim may ask for, and the sandbox that it makes of its template."""

from typing import Any

from tests.kubernetes.players.controllers.marks import (
    CLAIM_UID,
    CREATED_BY,
    LAUNCH_TYPE,
    TEMPLATE_REF,
    TEMPLATE_REF_HASH,
    blueprint,
    name_hash,
)
from tests.kubernetes.players.objects import CLAIMS, Obj, labels_of, reference_to, uid_of

LABEL_DOMAIN = "sandbox.users.io"
"""The one domain of labels that a claim may put on its Pod, as the controller is by default."""

RESTRICTED = ("kubernetes.io", "k8s.io", "agents.x-k8s.io")
"""Domains of annotations that it may not."""


class ClaimError(Exception):
    """Why a claim is not ready, as its condition says it."""

    def __init__(self, reason: str, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message
        self.missing = missing
        """Whether it is tried again once the pool or template is there."""


def within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def checked_metadata(claim: Obj) -> None:
    """Refuse labels and annotations for the Pod that are not a claim's to give."""
    asked = claim["spec"].get("additionalPodMetadata") or {}
    for key in asked.get("labels") or {}:
        domain, slash, _ = key.partition("/")
        if not slash:
            problem = f'label "{key}" must have a domain prefix'
        elif not within(domain, LABEL_DOMAIN):
            problem = f'label domain "{domain}" is not in the allowlist'
        else:
            continue
        raise ClaimError("InvalidMetadata", f"invalid additionalPodMetadata: {problem}")
    for key in asked.get("annotations") or {}:
        domain, slash, _ = key.partition("/")
        if slash and any(within(domain, each) for each in RESTRICTED):
            problem = f'restricted system domain: "{key}" is not allowed in AdditionalPodMetadata'
            raise ClaimError("InvalidMetadata", f"invalid additionalPodMetadata: {problem}")


def merged(claim: Obj, template: Obj) -> Obj:
    """The Pod's labels and annotations of the template and the claim, neither against the other."""
    meta = template["spec"]["podTemplate"].get("metadata") or {}
    asked = claim["spec"].get("additionalPodMetadata") or {}
    found = {}
    for kind in ("labels", "annotations"):
        own, wanted = meta.get(kind) or {}, asked.get(kind) or {}
        for key, value in wanted.items():
            if own.get(key, value) != value:
                said = f'{kind[:-1]} "{key}" is defined in template with value "{own[key]}"'
                raise ClaimError(
                    "ReconcilerError",
                    f'Error seen: metadata override conflict: {said}, but claim requests "{value}"',
                )
        found[kind] = {**own, **wanted}
    marks = {CLAIM_UID: uid_of(claim), TEMPLATE_REF_HASH: name_hash(template["metadata"]["name"])}
    if created_by := labels_of(claim).get(CREATED_BY):
        marks[CREATED_BY] = created_by
    found["labels"] = {**found["labels"], **marks}
    return found


def adopted_metadata(claim: Obj, template: Obj | None, sandbox: Obj) -> Obj:
    """The change that makes a warm sandbox's Pod metadata what the claim's would be; None for what
    goes."""
    if template is None:
        return {"labels": {CLAIM_UID: uid_of(claim)}}
    before = sandbox["spec"]["podTemplate"].get("metadata") or {}
    change: dict[str, Any] = {}
    for kind, wanted in merged(claim, template).items():
        change[kind] = {**dict.fromkeys(before.get(kind) or {}), **wanted}
    return change


def cold_sandbox(claim: Obj, template: Obj) -> Obj:
    """A sandbox of the claim's own, not yet made."""
    spec = blueprint(template)
    claims = spec.get("volumeClaimTemplates") or []
    if asked := claim["spec"].get("volumeClaimTemplates"):
        policy = template["spec"].get("volumeClaimTemplatesPolicy", "Disallowed")
        names = {each["metadata"]["name"] for each in claims}
        overridden = names & {each["metadata"]["name"] for each in asked}
        if policy == "Disallowed" or (policy == "Allowed" and overridden):
            said = "volume claim templates are disallowed by the template"
            if policy == "Allowed":
                said = "overriding volume claim templates is forbidden by the template"
            raise ClaimError("VolumeClaimTemplatesError", said)
        kept = [each for each in claims if each["metadata"]["name"] not in overridden]
        spec["volumeClaimTemplates"] = [*kept, *asked]
    pod = spec["podTemplate"]["spec"]
    if env := claim["spec"].get("env"):
        pod = with_env(pod, env, template["spec"].get("envVarsInjectionPolicy", "Disallowed"))
    spec["podTemplate"] = {"metadata": merged(claim, template), "spec": pod}
    reference = template["metadata"]["name"]
    labels = {
        CLAIM_UID: uid_of(claim),
        LAUNCH_TYPE: "cold",
        TEMPLATE_REF_HASH: name_hash(reference),
    }
    if created_by := labels_of(claim).get(CREATED_BY):
        labels[CREATED_BY] = created_by
    return {
        "metadata": {
            "name": claim["metadata"]["name"],
            "labels": labels,
            "annotations": {TEMPLATE_REF: reference},
            "ownerReferences": [reference_to(claim, CLAIMS)],
        },
        "spec": spec,
    }


def with_env(pod: Obj, env: list[Obj], policy: str) -> Obj:
    rejected = "environment variable injection rejected"
    if policy == "Disallowed":
        raise ClaimError(
            "EnvVarsInjectionRejected",
            f"{rejected}: environment variable injection is not allowed by the template policy",
        )
    containers = [dict(each) for each in pod["containers"]]
    by_name = {each["name"]: each for each in containers}
    for each in env:
        name = each.get("containerName") or containers[0]["name"]
        if name not in by_name:
            raise ClaimError(
                "ReconcilerError", f'Error seen: target container "{name}" not found in template'
            )
        own = by_name[name].get("env") or []
        if policy == "Allowed" and any(old["name"] == each["name"] for old in own):
            raise ClaimError(
                "ReconcilerError",
                "Error seen: environment variable override is not allowed by the template policy "
                f'for variable "{each["name"]}"',
            )
        kept = [old for old in own if old["name"] != each["name"]]
        by_name[name]["env"] = [*kept, {"name": each["name"], "value": each["value"]}]
    return pod | {"containers": containers}
