"""Faults on request: `POST /players/faults` of the players' own endpoint, and what they are doing.

    {"fault": "lose_node", "node": NAME, "evict_after_s": 0}   silent, NotReady, its Pods deleted
    {"fault": "remove_node", "node": NAME}                     the Node object goes, and its Pods
    {"fault": "return_node", "node": NAME}
    {"fault": "evict", "namespace": NS, "pod": NAME, "resource": "memory"}   the node's pressure
    {"fault": "kill", "namespace": NS, "pod": NAME, "container": C, "reason": "OOMKilled"}
    {"fault": "freeze" | "thaw", "namespace": NS, "pod": NAME}
    {"fault": "drop_streams", "namespace": NS, "pod": NAME}
    {"fault": "missing_image" | "restore_image", "image": PART OF ITS NAME}
    {"fault": "slow_start", "seconds": S, "labels": {...}}     of Pods that start from now on
    {"fault": "clear"}                                         images and starts as they were

`evict_after_s` stands in for the tolerations of the Pods (five minutes by default). A `kill`
without a reason is a signal to the container's first process; with one it is told as the reason,
which only simulated Pods need: of real ones the kernel says it.

`GET /players/state` counts Pods, streams, requests and faults.
"""

from typing import Any

from aiohttp import web

from tests.kubernetes.players.api import Api, ApiError
from tests.kubernetes.players.controllers.lifecycle import NodeLifecycle
from tests.kubernetes.players.faults import Faults
from tests.kubernetes.players.kubelet import Kubelet
from tests.kubernetes.players.objects import NODES

SIGKILLED = 137


class Control:
    def __init__(
        self, api: Api, kubelet: Kubelet, faults: Faults, lifecycle: NodeLifecycle | None
    ) -> None:
        self._api, self._kubelet = api, kubelet
        self._faults, self._lifecycle = faults, lifecycle

    def add_to(self, app: web.Application) -> None:
        app.router.add_post("/players/faults", self.post)
        app.router.add_get("/players/state", self.state)

    async def post(self, request: web.Request) -> web.Response:
        asked = await request.json()
        try:
            answer = await self._do(asked)
        except (LookupError, ValueError, ApiError) as error:
            return web.json_response({"error": f"{asked}: {error!r}"}, status=400)
        self._faults.counts[asked["fault"]] += 1
        return web.json_response(answer)

    async def _do(self, asked: dict[str, Any]) -> dict[str, Any]:
        kubelet = self._kubelet
        match asked["fault"]:
            case "lose_node":
                kubelet.lose(self._node(asked))
                if self._lifecycle is not None:
                    self._lifecycle.notice(asked["node"], asked.get("evict_after_s"))
            case "remove_node":
                kubelet.lose(self._node(asked))
                await self._api.delete(NODES, None, asked["node"])
            case "return_node":
                if self._lifecycle is not None:
                    self._lifecycle.returned(self._node(asked))
                await kubelet.back(self._node(asked))
            case "evict":
                kubelet.evict(self._run(asked), asked.get("resource", "memory"))
            case "kill":
                run = self._run(asked)
                name = asked.get("container") or run.pod["spec"]["containers"][0]["name"]
                run.end_container(name, SIGKILLED, reason=asked.get("reason", ""))
            case "freeze" | "thaw" as which:
                self._run(asked).freeze(which == "freeze")
            case "drop_streams":
                key = f"{asked['namespace']}/{asked['pod']}"
                return {"dropped": kubelet.drop_streams(key)}
            case "missing_image":
                self._faults.missing_images.add(asked["image"])
            case "restore_image":
                self._faults.missing_images.discard(asked["image"])
            case "slow_start":
                self._faults.slow.append((asked.get("labels") or {}, float(asked["seconds"])))
            case "clear":
                self._faults.missing_images.clear()
                self._faults.slow.clear()
            case other:
                raise ValueError(f"there is no fault {other!r}")
        return {}

    def _node(self, asked: dict[str, Any]) -> str:
        name = asked["node"]
        if name not in self._kubelet.nodes.by_name:
            known = ", ".join(self._kubelet.nodes.by_name)
            raise LookupError(f"no node {name!r} is played, only {known}")
        return name

    def _run(self, asked: dict[str, Any]):
        return self._kubelet.run_of(asked["namespace"], asked["pod"])

    async def state(self, _request: web.Request) -> web.Response:
        runs = self._kubelet.runs.values()
        simulated = sum(self._kubelet.is_simulated(run.pod) for run in runs)
        return web.json_response(
            {
                "pods": {"simulated": simulated, "real": len(runs) - simulated},
                "streams": sum(map(len, self._kubelet.sessions.values())),
                "requests": self._api.requests,
                "faults": dict(self._faults.counts),
            }
        )
