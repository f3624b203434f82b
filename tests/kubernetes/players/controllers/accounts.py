"""The service account `default` of every namespace, without which a real server takes no Pod."""

from tests.kubernetes.players.api import Api, ApiError
from tests.kubernetes.players.informer import Informer
from tests.kubernetes.players.objects import ACCOUNTS, Obj, deleting, key_of
from tests.kubernetes.players.work import WorkQueue


class AccountController:
    def __init__(self, api: Api, namespaces: Informer) -> None:
        self._api, self._namespaces = api, namespaces
        self.queue = WorkQueue(self._look, workers=2)
        namespaces.on_change(self._changed)

    async def run(self) -> None:
        await self.queue.run()

    def _changed(self, _old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))

    async def _look(self, key: str) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or deleting(namespace):
            return None
        try:
            await self._api.create(ACCOUNTS, key, {"metadata": {"name": "default"}})
        except ApiError as error:
            if error.status != 409:
                raise
        return None
