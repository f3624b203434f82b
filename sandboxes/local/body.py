"""A sandbox of this machine as its owner holds it: processes, socket, control groups, users.

Its folder, in the closed one of its owner, has the socket on which the agent listens and, for
whoever adopts it, a file that says what it is. Its two processes, bubblewrap outside and the agent
inside, die with their owner: the kernel sees to it, unless the template lets the sandbox linger.
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from records.errors import SynthError, TransientError
from records.processes import ProcessId, is_alive
from sandboxes.core.agent.main import OUT_OF_MEMORY
from sandboxes.core.body import ProgramEndedError, Streams, ended_with
from sandboxes.core.owners import root_folder
from sandboxes.core.template import WORKSPACE, SandboxTemplate
from sandboxes.local import clean, snapshots
from sandboxes.local.cgroups import ControlGroups
from sandboxes.local.snapshots import WorkspaceSnapshot
from sandboxes.local.users import USERS, Users

log = logging.getLogger(__name__)

SOCKET, DESCRIPTION = "socket", "sandbox.json"
STREAM_BYTES = 1 << 20
GONE_S = 10.0
"""For a killed sandbox to be gone."""

FOLLOWS_S = 1.0
"""For bubblewrap to end after its agent; then it is killed."""

KILLED = 128 + signal.SIGKILL


@dataclass(eq=False)
class LocalBody:
    """See `sandboxes.core.body.SandboxBody`."""

    name: str
    token: str
    process: subprocess.Popen[bytes] | ProcessId
    """bubblewrap, outside: our child, or an adopted sandbox's."""
    group: ControlGroups
    users: Users | None = None
    agent: ProcessId | None = None
    """The agent as the host sees it, once it has answered. Without it there is no sandbox."""
    kills: int = 0
    """Kills for memory when that was last asked."""
    end_began: float | None = None
    """When it was first told to end, on the monotonic clock."""
    before: clean.SandboxTraces | None = field(default=None, repr=False)

    @property
    def folder(self) -> Path:
        return folder_of(self.name)

    @property
    def pid(self) -> int:
        """The host's id of the outermost process, above all others of the sandbox."""
        return self.process.pid

    def ended(self) -> bool:
        """Whether nothing of it runs any more."""
        if isinstance(self.process, ProcessId):
            outside = is_alive(self.process)
        else:
            outside = self.process.poll() is None
        return not outside and (self.agent is None or not is_alive(self.agent))

    async def connect(self) -> Streams:
        if self.ended():
            raise await self.cause()
        with short_path(self.folder) as folder:
            return await asyncio.open_unix_connection(f"{folder}/{SOCKET}", limit=STREAM_BYTES)

    async def cause(self) -> SynthError:
        known = self.kills
        for _ in range(500):
            if self.ended():
                break
            await asyncio.sleep(0.002)  # its stream ends a moment before it does
        code = None if isinstance(self.process, ProcessId) else self.process.returncode
        if code in (None, KILLED, -signal.SIGKILL) and self.group.out_of_memory() > known:
            code = OUT_OF_MEMORY
        return ended_with(code)

    async def silence(self, why: str) -> SynthError:
        """The agent waits for a command until its program has begun, and other programs inside may
        stop a command before that."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, agent, *below = clean.descendants(self.pid)
            own = Path(f"/proc/{agent}/exe").readlink()
            for pid in below:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                if state == "T" and Path(f"/proc/{pid}/exe").readlink() == own:
                    return ProgramEndedError("the program stopped a command at its start")
        return TransientError(why)

    def memory_kills(self) -> int:
        self.kills = self.group.out_of_memory()
        return self.kills

    def found(self) -> None:
        """Note the agent, which has just answered. TransientError if it is gone."""
        try:
            self.agent = ProcessId.of(clean.descendants(self.pid)[1])
        except (OSError, ValueError, IndexError) as error:
            raise TransientError("the sandbox ended") from error

    def end(self) -> None:
        # the agent alone: bubblewrap then waits for it and ends. Were that gone first, one that may
        # linger would go on, and a dead agent count for its user until the machine's init looks
        now = time.monotonic()
        self.end_began = now if self.end_began is None else self.end_began
        with contextlib.suppress(ProcessLookupError):
            if self.agent is not None and is_alive(self.agent):
                os.kill(self.agent.pid, signal.SIGKILL)
            elif (self.agent is None or now > self.end_began + FOLLOWS_S) and not self.ended():
                os.kill(self.pid, signal.SIGKILL)

    async def close(self) -> None:
        until, wait = time.monotonic() + GONE_S, 0.0005
        while not self.ended():
            if time.monotonic() > until:
                log.warning(
                    "sandbox %s is not gone after %g s; it is left to reap", self.name, GONE_S
                )
                return
            self.end()
            await asyncio.sleep(wait)
            wait = min(2 * wait, 0.01)
        self.forget()
        try:
            await self.group.remove()
        except OSError as error:
            log.warning("sandbox %s is gone, and left to reap is: %s", self.name, error)

    def forget(self) -> None:
        """Remove its folder and give its users back; only once it has ended."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.users is not None:
            USERS.give_back(self.users)
            self.users = None

    async def snapshot(self, template: SandboxTemplate) -> WorkspaceSnapshot:
        return await asyncio.to_thread(snapshots.take, self.outside(WORKSPACE), template)

    def outside(self, path: str) -> str:
        """A path inside, as the host reaches it. TransientError if the sandbox is gone."""
        if self.agent is None or not is_alive(self.agent):
            raise TransientError("the sandbox ended")
        return f"/proc/{self.agent.pid}/root{path}"

    async def remember(self) -> None:
        try:
            self.before = clean.look(self.pid, self.group)
        except clean.UnseenError as error:
            raise TransientError(f"a sandbox died at its start: {error}") from error

    async def changes(self) -> list[str]:
        assert self.before is not None, "it was never looked at before its use"
        return await clean.proved_clean(self.pid, self.group, self.before)

    def describe(self, template: SandboxTemplate) -> None:
        """Write down what another process needs to adopt it."""
        found = {
            "token": self.token,
            "processes": [ProcessId.of(self.pid), self.agent],
            "groups": [str(folder) for folder in self.group.folders],
            "template": template.model_dump(mode="json"),
        }
        fd = os.open(self.folder / DESCRIPTION, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(found, file)


def folder_of(name: str) -> Path:
    """Of a sandbox, in its owner's folder. ValueError for a name that is none."""
    owner, _, number = name.rpartition(".")
    if re.fullmatch(r"\d+\.\w*\.\w+", owner) is None or not number.isdigit():
        raise ValueError(f"a sandbox of this machine is called OWNER.NUMBER, got {name!r}")
    return root_folder() / owner / f"sandbox-{number}"


@contextmanager
def short_path(folder: Path) -> Iterator[str]:
    """The folder under a name that is short enough for a socket's address."""
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def listening_socket(folder: Path) -> int:
    """A descriptor that listens in the folder, for the agent to inherit."""
    with short_path(folder) as short, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(f"{short}/{SOCKET}")
        made.listen(8)
        made.setblocking(False)
        return made.detach()


def described(name: str) -> tuple[LocalBody, SandboxTemplate]:
    """A sandbox that its owner described. TransientError where there is none."""
    try:
        found = json.loads((folder_of(name) / DESCRIPTION).read_text(encoding="utf-8"))
        process, agent = (ProcessId(*each) for each in found["processes"])
        group = ControlGroups(tuple(map(Path, found["groups"])))
        template = SandboxTemplate.model_validate(found["template"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TransientError(f"there is no sandbox {name}: {error}") from error
    return LocalBody(name, found["token"], process, group, agent=agent), template
