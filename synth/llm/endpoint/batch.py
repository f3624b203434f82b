"""Requests that nobody waits for, sent in batches: collected, uploaded, and waited for together.

What is asked while a batch with the same request is under way, or has ended and was not read, waits
for that one. A batch is of one model, because servers want it so.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple

from records.errors import ConfigError
from synth.llm.endpoint.batch_api import UNDER_WAY, BatchApi, BatchLine, BatchState
from synth.llm.endpoint.batch_store import BatchedRequest, BatchStore
from synth.llm.endpoint.connection import Endpoint

log = logging.getLogger(__name__)

POLL_GROWTH = 1.5
"""From each wait to the next."""


class BatchPace(NamedTuple):
    quiet_s: float = 3.0
    """A batch is sent when nobody new has come for so long."""
    longest_s: float = 60.0
    """Or when its first request has waited so long."""
    first_poll_s: float = 1.0
    longest_poll_s: float = 60.0
    most_requests: int = 10_000
    """And when it holds so many requests; servers take 50,000."""
    most_bytes: int = 64 * 2**20
    """Of bodies; servers take 200 MB."""


class BatchQuestion(NamedTuple):
    model: str
    request: BatchedRequest
    raw: bytes
    """Its body."""
    on_sending: Callable[[], None]
    """Called when it may be charged for from now on."""


class _Sent(NamedTuple):
    """A batch that the server knows."""

    name: str
    batch_id: str


class _Waiting(NamedTuple):
    question: BatchQuestion
    sent: "asyncio.Future[_Sent]"


class _Collection:
    """Requests that will be sent together."""

    def __init__(self, api: BatchApi, ends_at: float) -> None:
        self.api = api
        self.waiting: list[_Waiting] = []
        self.bytes = 0
        self.ends_at = ends_at
        """On the loop's clock, however many still come."""
        self.timer: asyncio.TimerHandle | None = None


class _Results(NamedTuple):
    state: BatchState
    lines: dict[str, BatchLine]


class _Followed:
    """A batch that somebody here waits for."""

    def __init__(self, results: "asyncio.Task[_Results]") -> None:
        self.results = results
        self.waiters = 0


class Batches:
    """Of one process; others of the same run have the same store. One event loop."""

    def __init__(self, store: BatchStore, pace: BatchPace = BatchPace()) -> None:
        self.store = store
        self._pace = pace
        self._open: dict[tuple[Endpoint, str], _Collection] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._followed: dict[str, _Followed] = {}

    async def ask(self, api: BatchApi, question: BatchQuestion) -> bytes:
        """The body of the answer. Raises SendError for what came of this request, ConfigError for
        an endpoint that has no batches, UnavailableError for one that is gone too long."""
        key = question.request.key
        sent = await self._sent_before(api, key)
        if sent is None:
            sent = await self._collected(api, question)
        state, lines = await self._results_of(api, sent)
        line = lines.get(key)
        if line is None or line.code != 200:
            raise api.failure(line, state)
        return line.body

    async def close(self) -> None:
        """What is under way goes on at the server."""
        for collection in self._open.values():
            if collection.timer is not None:
                collection.timer.cancel()
        tasks = [*self._sending, *(followed.results for followed in self._followed.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.store.close()

    async def _sent_before(self, api: BatchApi, key: str) -> _Sent | None:
        url = api.endpoint.url
        found = self.store.batch_of(key, url)
        if found is not None and found[0].batch_id is None:
            async with self.store.alone(url):  # who creates it may be about to write it down
                found = self.store.batch_of(key, url)
                if found is not None and found[0].batch_id is None:
                    name, file_id, _ = found[0]
                    batch_id = await api.find(file_id, name)
                    if batch_id is None:
                        self.store.forget(name)
                        return None
                    self.store.created(name, batch_id)
                    return _Sent(name, batch_id)
        if found is None or found[0].batch_id is None:
            return None
        return _Sent(found[0].name, found[0].batch_id)

    async def _collected(self, api: BatchApi, question: BatchQuestion) -> _Sent:
        loop = asyncio.get_running_loop()
        pace, where = self._pace, (api.endpoint, question.model)
        collection = self._open.get(where)
        if collection is None:
            collection = self._open[where] = _Collection(api, loop.time() + pace.longest_s)
        waiting = _Waiting(question, loop.create_future())
        collection.waiting.append(waiting)
        collection.bytes += len(question.raw)
        is_full = (
            len(collection.waiting) >= pace.most_requests or collection.bytes >= pace.most_bytes
        )
        if collection.timer is not None:
            collection.timer.cancel()
        if is_full:
            self._send_soon(where)
        else:
            at = min(loop.time() + pace.quiet_s, collection.ends_at)
            collection.timer = loop.call_at(at, self._send_soon, where)
        return await waiting.sent

    def _send_soon(self, where: tuple[Endpoint, str]) -> None:
        collection = self._open.pop(where)
        task = asyncio.create_task(self._send(collection, model=where[1]))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, collection: _Collection, *, model: str) -> None:
        try:
            async with self.store.alone(collection.api.endpoint.url):
                await self._send_alone(collection, model)
        except Exception as error:
            for waiting in _still(collection.waiting):
                waiting.sent.set_exception(error)

    async def _send_alone(self, collection: _Collection, model: str) -> None:
        api, url = collection.api, collection.api.endpoint.url
        going: list[_Waiting] = []
        file_id = ""
        while (still := _still(collection.waiting)) != going:  # some were cancelled meanwhile
            going = still
            file_id = await api.upload((w.question.request.key, w.question.raw) for w in going)
        if not going:
            return
        name = secrets.token_hex(8)
        self.store.uploaded(name, url, file_id, [w.question.request for w in going])
        for waiting in going:
            waiting.question.on_sending()
        try:
            batch_id = await api.create(file_id, name)
        except ConfigError:  # refused, so that it was never created
            self.store.forget(name)
            raise
        self.store.created(name, batch_id)
        log.info("%s: sent batch %s (%s, requests: %d)", url, batch_id, model, len(going))
        for waiting in _still(going):
            waiting.sent.set_result(_Sent(name, batch_id))

    async def _results_of(self, api: BatchApi, sent: _Sent) -> _Results:
        followed = self._followed.get(sent.name)
        if followed is None:
            results = asyncio.create_task(self._follow(api, sent.batch_id))
            followed = self._followed[sent.name] = _Followed(results)
        followed.waiters += 1
        try:
            return await asyncio.shield(followed.results)
        finally:
            followed.waiters -= 1
            if followed.waiters == 0:  # its answers may be large
                del self._followed[sent.name]
                followed.results.cancel()

    async def _follow(self, api: BatchApi, batch_id: str) -> _Results:
        wait_s = self._pace.first_poll_s
        # a status of a vendor's own ends it too: nobody waits for what nobody knows
        while (state := await api.state(batch_id)).status in UNDER_WAY:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * POLL_GROWTH, self._pace.longest_poll_s)
        lines = await api.lines(state.files)
        answered = sum(line.code == 200 for line in lines.values())
        said = f": {state.words}" if state.words else ""
        log.info(
            "%s: batch %s is %s (answers: %d)%s",
            *(api.endpoint.url, batch_id, state.status, answered, said),
        )
        return _Results(state, lines)


def _still(waiting: Sequence[_Waiting]) -> list[_Waiting]:
    """Without those that nobody waits for any longer."""
    return [one for one in waiting if not one.sent.done()]
