"""Sandboxes in containers of any image that has a Python: the agent as the container's program.

The agent's source and settings come with the command and by stdin, so that nothing is added to an
image. A stream to it is a `podman exec` of a relay to the agent's socket, which needs nothing of
the machine but podman; the socket has a name that programs inside cannot take, and greeting on it
needs the token. The relay is root's inside and the agent is not, so that what the agent kills at a
command's end is not its own stream.
"""

import asyncio
import contextlib
import itertools
import json
import secrets
import socket
import subprocess
from collections.abc import Set
from typing import Any

from records.errors import SynthError, TransientError
from sandboxes.core.agent.main import OUT_OF_MEMORY
from sandboxes.core.agent_code import agent_source
from sandboxes.core.backend import Capability, SandboxInfo
from sandboxes.core.bare import BareBody, refuse, settings_of
from sandboxes.core.body import Snapshot, Streams, ended_with
from sandboxes.core.owners import owner_is_dead, owner_name
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import PROGRAM_ID, WORKSPACE, SandboxTemplate
from tests.sandboxes.conformance import image

PREFIX, LABEL = "agentic-synth.", "agentic-synth"
SOCKET = "\0agent"
"""A name in the container's own network namespace."""

RELAY = f"""
import os, select, socket
agent = socket.socket(socket.AF_UNIX)
agent.connect({SOCKET!r})
ways = {{0: agent.sendall, agent.fileno(): lambda data: os.writev(1, [data]) == len(data) or 1 / 0}}
while True:
    for fd in select.select(list(ways), [], [])[0]:
        data = os.read(fd, 65536)
        if not data:
            raise SystemExit
        ways[fd](data)
"""

_numbers = itertools.count()


class PodmanBody(BareBody):
    backend = "podman"

    def __init__(self, podman: "PodmanBackend", name: str, token: str) -> None:
        self.podman, self.name, self.token = podman, name, token
        self.container = PREFIX + name
        self._there = False
        self._clients: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """Of a client that runs on its own."""
        self._clients = [each for each in self._clients if each.poll() is None]
        client = subprocess.Popen[bytes](
            [*self.podman.command, *arguments],
            stderr=subprocess.DEVNULL, start_new_session=True, **streams,
        )  # fmt: skip
        self._clients.append(client)
        return client

    async def state(self) -> dict[str, Any] | None:
        """As podman tells it; None once it is removed."""
        done = await self.podman.ask("container", "inspect", self.container)
        return None if done is None else json.loads(done)[0]["State"]

    async def connect(self) -> Streams:
        state = await self.state()
        if state is None and not self._there:
            raise OSError(f"there is no container {self.container} yet")
        if state is None or state["Status"] in ("exited", "stopped"):
            raise await self.cause()
        self._there = True
        ours, theirs = socket.socketpair()
        run = ("exec", "-i", "--user", "0", self.container, self.podman.python)
        with theirs:
            self.start(*run, "-I", "-S", "-c", RELAY, stdin=theirs, stdout=theirs)
        return await asyncio.open_connection(sock=ours, limit=1 << 20)

    async def cause(self) -> SynthError:
        state = await self.state()
        for _ in range(50):
            if state is None or not state["Running"]:
                break
            await asyncio.sleep(0.02)  # its stream ends a moment before it does
            state = await self.state()
        code = None if state is None else int(state["ExitCode"])
        return ended_with(OUT_OF_MEMORY if state and state["OOMKilled"] else code)

    def end(self) -> None:
        self.start("kill", self.container, stdout=subprocess.DEVNULL)

    async def close(self) -> None:
        await self.podman.ask("rm", "--force", "--time=0", "--ignore", self.container)
        for client in self._clients:
            await asyncio.to_thread(client.wait)


class PodmanBackend:
    """See `sandboxes.core.backend.Backend`."""

    name = PodmanBody.backend
    capabilities: Set[Capability] = frozenset()

    def __init__(self, image: str, python: str, options: tuple[str, ...] = ()) -> None:
        """`python` is the image's; `options` are podman's own, before its command."""
        self.image, self.python, self.command = image, python, ["podman", *options]

    async def ask(self, *arguments: str) -> str | None:
        """What podman says, None where it refuses."""
        client = await asyncio.create_subprocess_exec(
            *self.command, *arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        said, _ = await client.communicate()
        return None if client.returncode else said.decode()

    def unavailable(self) -> str | None:
        if (reason := image.made(self.command)) is not None:
            return reason
        run = ["run", "--rm", "--network=none", *limits_of(SandboxTemplate()), self.image]
        done = subprocess.run(
            [*self.command, *run, self.python, "-c", ""], capture_output=True, check=False
        )
        return done.stderr.decode(errors="replace").strip() if done.returncode else None

    async def create(self, template: SandboxTemplate, snapshot: Snapshot | None = None) -> Sandbox:
        refuse(self, template, snapshot)
        body = PodmanBody(self, f"{owner_name()}.{next(_numbers)}", secrets.token_hex(16))
        label = json.dumps({"token": body.token, "template": template.model_dump(mode="json")})
        client = body.start(
            "run", "--interactive", f"--name={body.container}", f"--label={LABEL}={label}",
            "--network=none", f"--hostname={template.hostname}", "--workdir=/",
            f"--user={PROGRAM_ID}:{PROGRAM_ID}", "--security-opt=no-new-privileges",
            *limits_of(template), self.image, self.python, "-I", "-S", "-c", agent_source(),
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        assert client.stdin is not None
        client.stdin.write(settings_of(template, body.token, SOCKET))
        client.stdin.close()
        return await body.greeted(template, lambda: client.poll() is not None)

    async def _described(self) -> dict[str, tuple[PodmanBody, SandboxTemplate, str]]:
        """By name, each with what podman says of its state."""
        found = {}
        said = await self.ask("ps", "--all", f"--filter=label={LABEL}", "--format=json")
        for each in json.loads(said or "[]"):
            kept, name = json.loads(each["Labels"][LABEL]), each["Names"][0].removeprefix(PREFIX)
            template = SandboxTemplate.model_validate(kept["template"])
            found[name] = (PodmanBody(self, name, kept["token"]), template, each["State"])
        return found

    async def adopt(self, name: str) -> Sandbox:
        body, template, _ = (await self._described()).get(name, (None, None, None))
        if body is None or template is None:
            raise TransientError(f"there is no sandbox {name}")
        return await body.adopted(template)

    async def list(self) -> list[SandboxInfo]:
        """As well removes what sandboxes of dead owners left."""
        found = []
        for name, (body, template, state) in (await self._described()).items():
            if state == "running":
                found.append(SandboxInfo(name, not owner_is_dead(name), template.linger_s > 0))
            elif state == "exited" and owner_is_dead(name):
                await body.close()
        return found

    async def destroy(self, name: str) -> None:
        with contextlib.suppress(KeyError):
            body, *_ = (await self._described())[name]
            await body.close()


def limits_of(template: SandboxTemplate) -> list[str]:
    limits = template.limits
    size = f"rw,exec,mode=1777,size={limits.disk_mb}m"  # of a folder in the image, its own mode
    return [
        f"--memory={limits.memory_mb}m", f"--pids-limit={limits.processes}",
        f"--cpus={limits.cpus:g}", f"--tmpfs={WORKSPACE}:{size}", f"--tmpfs=/tmp:{size}",
        f"--ulimit=nofile={limits.open_files}:{limits.open_files}", "--ulimit=nproc=512:512",
    ]  # fmt: skip
