"""Events, as nodes and controllers tell people what happens to an object."""

import asyncio
import logging

from tests.kubernetes.players.api import Api, ApiError
from tests.kubernetes.players.objects import EVENTS, Obj, now

log = logging.getLogger("players")


class Recorder:
    """Writes Events in the background; one that is refused is lost, as a real one is."""

    def __init__(self, api: Api, component: str) -> None:
        self._api, self._component = api, component
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: dict[tuple[str, str], str] = {}

    def warn(self, obj: Obj, reason: str, message: str) -> None:
        self.tell(obj, reason, message, kind="Warning")

    def tell(self, obj: Obj, reason: str, message: str, kind: str = "Normal") -> None:
        """The same words about the same object are not said again in a row."""
        uid = obj["metadata"]["uid"]
        if self._told.get((uid, reason)) == message:
            return
        self._told[uid, reason] = message
        task = asyncio.get_running_loop().create_task(self._write(obj, reason, message, kind))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def forget(self, uid: str) -> None:
        for known in [each for each in self._told if each[0] == uid]:
            del self._told[known]

    async def _write(self, obj: Obj, reason: str, message: str, kind: str) -> None:
        meta, time = obj["metadata"], now()
        namespace = meta.get("namespace", "default")
        body = {
            "metadata": {"generateName": f"{meta['name'][:200]}.", "namespace": namespace},
            "involvedObject": {
                "apiVersion": obj.get("apiVersion", "v1"),
                "kind": obj.get("kind", "Pod"),
                "name": meta["name"],
                "namespace": namespace,
                "uid": meta["uid"],
            },
            "reason": reason,
            "message": message,
            "type": kind,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        try:
            await self._api.create(EVENTS, namespace, body)
        except ApiError as error:
            log.debug("event %s of %s: %s", reason, meta["name"], error)
