"""A sandbox on a cluster as its owner holds it: a Pod, a stream to its agent, and its end."""

import asyncio
import contextlib
import random
from typing import Protocol

from records.errors import SynthError
from sandboxes.core.bare import BareBody, reach
from sandboxes.core.body import InfrastructureError, Streams
from sandboxes.core.channel import FrameChannel
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes import causes
from sandboxes.kubernetes.api import exec_stream
from sandboxes.kubernetes.api.watching import WatchedObjects
from sandboxes.kubernetes.causes import STREAM, EndCause
from sandboxes.kubernetes.claims import Placed
from sandboxes.kubernetes.names import OWNER, label
from sandboxes.kubernetes.session import Session
from sandboxes.kubernetes.states import PodState

TOLD_S = 5.0
"""For a Pod's status to tell what its stream's end has told already."""

AGAIN_S, LONGEST_AGAIN_S = 0.05, 5.0
"""Between two tries to open a stream; each time twice as long, and never all at once."""


class Placing(Protocol):
    """Where sandboxes come from: `claims.Claims` or `pods.PlainPods`."""

    @property
    def folder(self) -> str: ...
    def mine(self, name: str) -> bool: ...
    async def remove(self, name: str) -> bool: ...
    async def let_go(self, name: str) -> None: ...
    async def renew(self, name: str) -> None: ...
    def forget(self, placed: Placed) -> None: ...


class KubernetesBody(BareBody):
    """See `sandboxes.core.body.SandboxBody`."""

    backend = "kubernetes"

    def __init__(
        self, session: Session, placing: Placing, placed: Placed, template: SandboxTemplate,
        watched: WatchedObjects[PodState] | None = None,
    ) -> None:  # fmt: skip
        """`watched` shows its Pod, where the session's own watch does not."""
        self._session, self._placing, self._placed = session, placing, placed
        self.name, self.token = placed.name, placed.token
        self._template, self._watched = template, watched or session.pods
        self._linger_s = session.maker.linger_s(template)
        self._over: EndCause | None = None
        self._gone = self._closed = False
        self._failures = 0
        self._channel: FrameChannel | None = None
        self._removal: asyncio.Future[bool | None] | None = None
        self.renewed = asyncio.get_running_loop().time()
        session.holders[placed.key] = self
        self.saw(self._watched.objects.get(placed.key))

    @property
    def lingers(self) -> bool:
        """Whether it was left for others to adopt."""
        refused = self._channel is not None and self._channel.refused
        return self._template.linger_s > 0 and not (self._closed or self._gone or refused)

    def saw(self, state: PodState | None) -> None:
        """What becomes of its Pod; the first thing that ended it is why it is over."""
        if state is None or state.uid != self._placed.uid:
            self._gone = True
        elif self._over is None:
            self._over = state.over
            if state.over is not None and not self._closed:
                self._session.counts[f"over_{state.over.reason}"] += 1

    def ended(self) -> bool:
        return self._gone or self._over is not None

    async def connect(self) -> Streams:
        session = self._session
        session.check()
        if self.ended() and not await self._taken_away():
            raise await self.cause()
        if self._failures:
            longest = min(LONGEST_AGAIN_S, AGAIN_S * 2**self._failures)
            await asyncio.sleep(random.uniform(0.3, 1.0) * longest)
        self._failures += 1
        async with session.streams:
            streams = await exec_stream.opened(
                session.connection, session.folders.pods, self._placed.pod, STREAM,
                session.maker.join(), ping_s=session.settings.stream_ping_s,
            )  # fmt: skip
        self._failures = 0
        session.counts["streams"] += 1
        return streams

    async def _taken_away(self) -> bool:
        """Whether it is another owner's by now: then its agent says so."""
        if self._over is not None or self._placing.mine(self.name):
            return False
        item = await self._session.connection.get(f"{self._placing.folder}/{self.name}")
        if item is None or "deletionTimestamp" in item["metadata"]:
            return False
        return label(item, OWNER) != self._session.owner.name

    async def cause(self) -> SynthError:
        if not self.ended() and self._session.over is None:
            await self._watched.until(self._placed.key, self._told, within_s=TOLD_S)
        if self._over is not None:
            return self._over.error
        if self._gone:
            return causes.vanished()
        node = (found := self._watched.objects.get(self._placed.key)) and found.node
        return InfrastructureError(
            "unreachable",
            f"the sandbox ended: Pod {self._placed.pod} on node {node} cannot be reached any more",
        )

    def _told(self, _: PodState | None) -> bool | None:
        return True if self.ended() else None

    async def silence(self, why: str) -> SynthError:
        return self._over.error if self._over is not None else InfrastructureError("silent", why)

    def end(self) -> None:
        self._removing()

    def _removing(self) -> asyncio.Future[bool | None]:
        """Whether it was ours to end: not once another owner has it. None where that failed."""
        self._closed = True
        if self._removal is None:
            removal = self._placing.remove(self.name)
            self._removal = self._session.background(removal, removes=True)
        return self._removal

    async def close(self) -> None:
        """One that was left for others and whose session has ended is theirs, or the reaper's."""
        session, key = self._session, self._placed.key
        try:
            removal = self._removing()
            await asyncio.wait([removal])
            ours = None if removal.cancelled() else removal.result()
            if ours is None and not session.connection.closed:
                ours = await self._placing.remove(self.name)
            if ours and not self._gone and session.over is None:
                gone = await self._watched.until(
                    key, lambda _: True if self._gone else None, within_s=session.settings.gone_s
                )
                if gone is None:
                    session.counts["not_gone"] += 1
        finally:
            self.given_up()

    async def renew(self) -> None:
        """Let it live for longer. Nothing is said of one that is gone."""
        await self._placing.renew(self.name)
        self.renewed = asyncio.get_running_loop().time()

    def given_up(self) -> None:
        """Hold it no longer, whatever becomes of it."""
        self._closed = True
        self._placing.forget(self._placed)
        if self._session.holders.get(self._placed.key) is self:
            del self._session.holders[self._placed.key]
        self._session.stop_watching(self._watched)

    def channel(self, template: SandboxTemplate) -> FrameChannel:
        """To an agent that outlives its stream at least as long as the settings say."""
        self._channel = FrameChannel(
            self.connect, self.cause, self.silence, token=self.token, linger_s=self._linger_s
        )
        return self._channel

    async def opened(self) -> Sandbox:
        """The sandbox, once its agent has taken our token. TransientError where it does not; then
        nothing of it is left, unless its Pod is another one's."""
        channel = self.channel(self._template)
        try:
            await reach(channel, self._template.limits.start_timeout_s, self.ended)
        except BaseException as error:
            if channel.refused:
                self._session.counts["duplicate_claims"] += 1
                self.given_up()
                self._session.background(self._placing.let_go(self.name), removes=True)
                raise InfrastructureError(
                    "duplicate_claim", f"Pod {self._placed.pod} belongs to somebody else: {error}"
                ) from error
            with contextlib.suppress(SynthError):
                await asyncio.shield(self.close())
            if self._over is not None and isinstance(error, SynthError):
                raise self._over.before_use from error
            raise
        return Sandbox(self._template, self, channel)
