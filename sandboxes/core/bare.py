"""What sandboxes have in common that are an agent and a stream to it, and nothing of the machine:
how the agent is started, found again, and what all of them refuse.

That is every sandbox but those of this machine, which its own backend sees from outside as well.
"""

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from records.errors import ConfigError, SynthError, TransientError
from sandboxes.core.backend import Backend, Capability
from sandboxes.core.body import Snapshot, Streams
from sandboxes.core.channel import FrameChannel
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate


def lacking(backend: str, capability: Capability) -> ConfigError:
    return ConfigError(f"sandboxes of {backend} cannot do this: {capability}")


def refuse(backend: Backend, template: SandboxTemplate, snapshot: Snapshot | None) -> None:
    """ConfigError for the first thing that is asked for and that the backend cannot do."""
    asked = {
        Capability.BINDS: template.binds or template.files or template.programs or template.links,
        Capability.NETWORK: template.network,
        Capability.EGRESS: template.egress,
        Capability.SNAPSHOTS: snapshot is not None,
        Capability.CONTAINED: template.limits.strict,
    }
    for capability, wanted in asked.items():
        if wanted and capability not in backend.capabilities:
            raise lacking(backend.name, capability)


def settings_of(template: SandboxTemplate, token: str | None, listen: str, **others: Any) -> bytes:
    """What the agent reads at its start, where whoever runs it holds most limits. With a token of
    None it takes that of its first greeting; `others` replace what would be set."""
    settings: dict[str, Any] = {
        "token": token,
        "listen": listen,
        "start_s": template.limits.start_timeout_s,
        "linger_s": template.linger_s,
        "rlimits": {"RLIMIT_NOFILE": template.limits.open_files},
        "scores": False,
        "users_fd": None,
        "calls": "",
        "hidden": False,
        "terminals": False,
        "kills_leftovers": True,
    }
    return json.dumps(settings | others).encode()


class BareBody(ABC):
    """See `sandboxes.core.body.SandboxBody`. Of what is inside it knows what the agent says."""

    backend: ClassVar[str]
    name: str
    token: str

    @abstractmethod
    async def connect(self) -> Streams: ...

    @abstractmethod
    async def cause(self) -> SynthError: ...

    @abstractmethod
    def end(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def silence(self, why: str) -> SynthError:
        return TransientError(why)

    def memory_kills(self) -> int:
        return 0

    async def snapshot(self, template: SandboxTemplate) -> Snapshot:
        raise lacking(self.backend, Capability.SNAPSHOTS)

    async def remember(self) -> None:
        raise lacking(self.backend, Capability.RECYCLING)

    async def changes(self) -> list[str]:
        raise lacking(self.backend, Capability.RECYCLING)

    async def greeted(self, template: SandboxTemplate, ended: Callable[[], bool]) -> Sandbox:
        """The sandbox of an agent that was just started, as soon as it listens. TransientError
        where it never does; then nothing of it is left."""
        channel = self.channel(template)
        try:
            await reach(channel, template.limits.start_timeout_s, ended)
        except BaseException:
            await asyncio.shield(self.close())
            raise
        return Sandbox(template, self, channel)

    async def adopted(self, template: SandboxTemplate) -> Sandbox:
        """The sandbox of an agent that somebody else has started."""
        channel = self.channel(template)
        try:
            await channel.open(adopted=True)
        except (OSError, EOFError) as error:
            raise TransientError(f"sandbox {self.name} does not answer: {error!r}") from error
        return Sandbox(template, self, channel)

    def channel(self, template: SandboxTemplate) -> FrameChannel:
        return FrameChannel(
            self.connect, self.cause, self.silence, token=self.token, linger_s=template.linger_s
        )


async def reach(channel: FrameChannel, within_s: float, ended: Callable[[], bool]) -> None:
    """Open the channel as soon as the agent listens. TransientError where it never does."""
    end = time.monotonic() + within_s
    while True:
        try:  # an agent whose node is lost takes the stream and is silent
            async with asyncio.timeout(max(0.1, end - time.monotonic())):
                return await channel.open()
        except (OSError, EOFError) as error:
            if ended() or time.monotonic() > end:
                raise TransientError(f"the agent does not answer: {error!r}") from error
        await asyncio.sleep(0.01)
