"""Network policies of templates that leave them to agent-sandbox, and nothing for the others."""

from tests.kubernetes.players.api import Api, ApiError
from tests.kubernetes.players.controllers.marks import TEMPLATE_REF_HASH, name_hash
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import (
    POLICIES,
    TEMPLATES,
    Obj,
    deleting,
    key_of,
    reference_to,
)
from tests.kubernetes.players.work import WorkQueue

PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"]

DEFAULT: Obj = {
    "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "sandbox-router"}}}]}],
    "egress": [
        {
            "to": [
                {"ipBlock": {"cidr": "0.0.0.0/0", "except": PRIVATE}},
                {"ipBlock": {"cidr": "::/0", "except": ["fc00::/7"]}},
            ]
        }
    ],
}
"""What is let through where a template says nothing: in from the router, out to the internet."""


class PolicyController:
    def __init__(self, api: Api, templates: Informer) -> None:
        self._api, self._templates = api, templates
        self._made: dict[str, Obj] = {}
        self.queue = WorkQueue(self._look, workers=4)
        templates.on_change(self._changed)

    async def run(self) -> None:
        await self._templates.synced.wait()
        await self.queue.run()

    def _changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))

    async def _look(self, key: str) -> float | None:
        template = self._templates.get(key)
        if template is None or deleting(template):
            self._made.pop(key, None)
            return None
        meta, spec = template["metadata"], template["spec"]
        namespace, name = meta["namespace"], f"{meta['name']}-network-policy"
        if spec.get("networkPolicyManagement", "Managed") == "Unmanaged":
            if self._made.pop(key, None) is not None:
                await self._api.delete(POLICIES, namespace, name)
            return None
        rules = spec.get("networkPolicy") or DEFAULT
        wanted = {
            "podSelector": {"matchLabels": {TEMPLATE_REF_HASH: name_hash(meta["name"])}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": rules.get("ingress") or [],
            "egress": rules.get("egress") or [],
        }
        if self._made.get(key) == wanted:
            return None
        body = {
            "metadata": {"name": name, "ownerReferences": [reference_to(template, TEMPLATES)]},
            "spec": wanted,
        }
        try:
            await self._api.create(POLICIES, namespace, body)
        except ApiError as error:
            if error.status != 409:
                raise
            await self._api.patch(POLICIES, namespace, name, {"spec": wanted})
        self._made[key] = wanted
        return None
