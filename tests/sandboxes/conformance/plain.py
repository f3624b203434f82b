"""The control of the suite: the agent as a plain program of this machine, with nothing around it.

It shares the files, the network and the user of whoever starts it, and has only its own processes.
What the suite asks of every backend is thus shown to come from the agent and its stream, not from
the walls of the local backend. The agent is run from its source, by any Python.
"""

import asyncio
import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from records.errors import SynthError, TransientError
from records.processes import ProcessId, is_alive
from sandboxes.core.agent_code import agent_source
from sandboxes.core.backend import Capability, SandboxInfo
from sandboxes.core.bare import BareBody, refuse, settings_of
from sandboxes.core.body import Snapshot, Streams, ended_with
from sandboxes.core.owners import owner_is_dead, owner_name
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import BASE_ENV, SandboxTemplate

DESCRIPTION, SOCKET = "sandbox.json", "socket"

_numbers = itertools.count()


def folder() -> Path:
    """Of all such sandboxes of this user."""
    found = Path(tempfile.gettempdir()) / f"agentic-synth-plain-{os.geteuid()}"
    found.mkdir(mode=0o700, exist_ok=True)
    return found


def own_processes() -> list[str]:
    """The command in front of the agent that makes it the first of its processes."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return ["unshare", *user, "--pid", "--fork", "--mount-proc", "--kill-child"]


def started(
    python: str, place: Path, template: SandboxTemplate, token: str
) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [*own_processes(), python, "-I", "-S", str(place / "agent.py")],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=BASE_ENV, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(settings_of(template, token, str(place / SOCKET)))
    process.stdin.close()
    return process


@dataclass(eq=False)
class PlainBody(BareBody):
    backend = "plain"
    name: str
    token: str
    process: subprocess.Popen[bytes] | ProcessId

    @property
    def folder(self) -> Path:
        return folder() / self.name

    def ended(self) -> bool:
        if isinstance(self.process, ProcessId):
            return not is_alive(self.process)
        return self.process.poll() is not None

    async def connect(self) -> Streams:
        if self.ended():
            raise await self.cause()
        return await asyncio.open_unix_connection(str(self.folder / SOCKET), limit=1 << 20)

    async def cause(self) -> SynthError:
        for _ in range(500):
            if self.ended():
                break
            await asyncio.sleep(0.002)
        return ended_with(None if isinstance(self.process, ProcessId) else self.process.returncode)

    def end(self) -> None:
        if not self.ended():
            os.kill(self.process.pid, signal.SIGKILL)

    async def close(self) -> None:
        self.end()
        await asyncio.to_thread(self._wait)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        while not self.ended():
            time.sleep(0.001)


class PlainBackend:
    """See `sandboxes.core.backend.Backend`."""

    name = PlainBody.backend
    capabilities: Set[Capability] = frozenset()

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python

    def unavailable(self) -> str | None:
        done = subprocess.run([*own_processes(), "true"], capture_output=True, check=False)
        return done.stderr.decode(errors="replace").strip() if done.returncode else None

    async def create(self, template: SandboxTemplate, snapshot: Snapshot | None = None) -> Sandbox:
        refuse(self, template, snapshot)
        token, name = secrets.token_hex(16), f"{owner_name()}.{next(_numbers)}"
        place = folder() / name
        (place / "work").mkdir(parents=True)
        template = template.model_copy(update={"workdir": str(place / "work")})
        (place / "agent.py").write_text(agent_source())
        body = PlainBody(name, token, started(self._python, place, template, token))
        sandbox = await body.greeted(template, body.ended)
        me = ProcessId.of(body.process.pid)
        found = {"token": token, "pid": me.pid, "started": me.started}
        found["template"] = template.model_dump(mode="json")
        (place / DESCRIPTION).write_text(json.dumps(found))
        return sandbox

    def _described(self, name: str) -> tuple[PlainBody, SandboxTemplate]:
        try:
            found = json.loads((folder() / name / DESCRIPTION).read_text())
        except (OSError, ValueError) as error:
            raise TransientError(f"there is no sandbox {name}: {error}") from error
        process = ProcessId(found["pid"], found["started"])
        template = SandboxTemplate.model_validate(found["template"])
        return PlainBody(name, found["token"], process), template

    async def adopt(self, name: str) -> Sandbox:
        body, template = self._described(name)
        return await body.adopted(template)

    async def list(self) -> list[SandboxInfo]:
        """As well removes what sandboxes of dead owners left."""
        found = []
        for path in folder().glob(f"*/{DESCRIPTION}"):
            body, template = self._described(path.parent.name)
            dead = owner_is_dead(body.name)
            if not body.ended():
                found.append(SandboxInfo(body.name, not dead, template.linger_s > 0))
            elif dead:
                await body.close()
        return found

    async def destroy(self, name: str) -> None:
        try:
            body, _ = self._described(name)
        except TransientError:
            return
        await body.close()
