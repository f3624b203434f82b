"""Sandboxes on this machine: bubblewrap, one agent process in each, limits on everything.

What is contained: files outside, the network, other processes, the caller's environment and
rights, the agent and its stream, and memory, processes, CPU, disk and output as far as
`sandboxes.local.doctor` says for this machine. What is not: bugs of the kernel, and how long the
host's other programs wait for its disks and caches. Nothing ever runs outside a sandbox: where none
can be made, `create` raises.
"""

import asyncio
import itertools
import json
import logging
import os
import resource
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from functools import cache
from typing import IO

from records.errors import ConfigError, SynthError, TransientError
from sandboxes.core.agent.frames import HEADER, VERSION, frame, lengths
from sandboxes.core.backend import Backend, Capability, SandboxInfo
from sandboxes.core.body import Snapshot
from sandboxes.core.channel import FrameChannel
from sandboxes.core.owners import own_folder, owner_is_dead, owner_name, root_folder
from sandboxes.core.sandbox import Sandbox, closing
from sandboxes.core.template import BASE_ENV, PROGRAM_ID, WORKSPACE, SandboxTemplate
from sandboxes.local import body as bodies
from sandboxes.local import bwrap, cgroups, doctor, rlimits, seccomp, snapshots, users
from sandboxes.local.body import LocalBody
from sandboxes.local.cgroups import ControlGroups
from sandboxes.local.protections import NOTHING, Protection
from sandboxes.local.reaper import reap_once
from sandboxes.local.snapshots import WorkspaceSnapshot
from sandboxes.local.watcher import WATCHER

log = logging.getLogger(__name__)

JOIN = """
for file do shift; [ "$file" = -- ] && break; echo $$ > "$file" || exit 125; done; exec "$@"
"""
"""Shell that joins control groups, then becomes the sandbox: no process of it was ever outside."""

_numbers = itertools.count()


class LocalBackend:
    """See `sandboxes.core.backend.Backend`. `without` leaves out walls, for the attack suite."""

    name = "local"
    capabilities: Set[Capability] = frozenset(Capability) - {Capability.EGRESS}

    def __init__(self, without: Set[Protection] = NOTHING) -> None:
        self._without = without

    def unavailable(self) -> str | None:
        return unavailable()

    async def create(self, template: SandboxTemplate, snapshot: Snapshot | None = None) -> Sandbox:
        """ConfigError where none can run here or where a bind is missing, TransientError where
        this one did not start. Unless it may linger, it dies with the thread that calls this (that
        is how the kernel ties it to its owner), which for asyncio is that of the event loop."""
        if snapshot is not None and not isinstance(snapshot, WorkspaceSnapshot):
            raise ConfigError(f"this backend starts from its own snapshots, got {snapshot!r}")
        check_machine(template)
        reap_once()
        raise_open_files()
        mounted = snapshot if snapshot is not None and snapshots.overlay_works() else None
        with os.fdopen(os.memfd_create("errors"), "w+b") as errors:
            group = cgroups.make_group(template.limits, name := next_name())
            try:
                body = spawn(name, template, errors, group, mounted, self._without)
            except BaseException as error:
                await group.remove()
                if not isinstance(error, OSError):
                    raise
                raise TransientError(f"a sandbox could not be started: {error}") from error
            try:
                return await self._opened(template, body, None if mounted else snapshot)
            except BaseException as error:
                await asyncio.shield(body.close())
                if not isinstance(error, SynthError | OSError | EOFError | ValueError):
                    raise
                if isinstance(error, ConfigError):
                    raise
                errors.seek(0)
                why = errors.read(2000).decode(errors="replace").strip()
                raise TransientError(f"a sandbox did not start: {why or error!r}") from error

    async def _opened(
        self, template: SandboxTemplate, body: LocalBody, copied: WorkspaceSnapshot | None
    ) -> Sandbox:
        channel = channel_to(body, template)
        try:
            async with asyncio.timeout(template.limits.start_timeout_s):
                await channel.open()
            body.found()
            body.describe(template)
            if copied is not None:
                owner = body.users and body.users.program
                await asyncio.to_thread(snapshots.put, copied, body.outside(WORKSPACE), owner)
        except BaseException:
            await asyncio.shield(channel.close())
            raise
        WATCHER.watch(body)
        return Sandbox(template, body, channel)

    async def adopt(self, name: str) -> Sandbox:
        body, template = bodies.described(name)
        body.memory_kills()  # those of its former holder's time
        channel = channel_to(body, template)
        try:
            async with asyncio.timeout(template.limits.start_timeout_s):
                await channel.open(adopted=True)
        except (OSError, EOFError) as error:
            raise TransientError(f"sandbox {name} does not answer: {error!r}") from error
        WATCHER.watch(body)
        return Sandbox(template, body, channel)

    async def list(self) -> list[SandboxInfo]:
        found = []
        for path in sorted(root_folder().glob(f"*/sandbox-*/{bodies.DESCRIPTION}")):
            owner, number = path.parent.parent.name, path.parent.name.partition("-")[2]
            try:
                body, template = bodies.described(f"{owner}.{number}")
            except TransientError:  # ended in this very moment
                continue
            if not body.ended():
                alive = not owner_is_dead(owner)
                found.append(SandboxInfo(body.name, alive, template.linger_s > 0))
        return found

    async def destroy(self, name: str) -> None:
        try:
            body, _ = bodies.described(name)
        except TransientError:
            return
        await body.close()


def channel_to(body: LocalBody, template: SandboxTemplate) -> FrameChannel:
    return FrameChannel(
        body.connect, body.cause, body.silence, token=body.token, linger_s=template.linger_s
    )


LOCAL: Backend = LocalBackend()


@asynccontextmanager
async def lease(
    template: SandboxTemplate, *, without: Set[Protection] = NOTHING
) -> AsyncIterator[Sandbox]:
    """A fresh sandbox that may lack walls."""
    async with closing(await LocalBackend(without).create(template)) as sandbox:
        yield sandbox


def next_name() -> str:
    return f"{owner_name()}.{next(_numbers)}"


def check_machine(template: SandboxTemplate) -> None:
    if (reason := unavailable()) is not None:
        raise ConfigError(f"no sandbox can run here: {reason}")
    if (missing := unenforced()) and template.limits.strict:
        raise ConfigError(f"limits.strict: this machine cannot wholly enforce {missing}")
    if template.egress:
        raise ConfigError(
            "sandboxes of local cannot do this: egress (the proxy's socket is bound instead)"
        )


@cache
def unenforced() -> str:
    """What limits do not wholly hold here and why, empty where all do; logged when first asked."""
    found = "; ".join(f"{gap.what} ({gap.how})" for gap in doctor.gaps())
    if found:
        log.warning("sandboxes of this machine do not wholly enforce: %s", found)
    return found


@cache
def raise_open_files() -> None:
    """Each sandbox takes one descriptor of its owner's; the usual soft limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def spawn(
    name: str,
    template: SandboxTemplate,
    errors: IO[bytes],
    group: ControlGroups,
    snapshot: WorkspaceSnapshot | None = None,
    without: Set[Protection] = NOTHING,
) -> LocalBody:
    """Start the processes of a sandbox and return at once; blocks for some milliseconds."""
    root = users.apart() is None
    folder = bodies.folder_of(name)
    own_folder()
    folder.mkdir(mode=0o700)
    taken = None
    descriptors: list[int] = []
    try:
        if root and Protection.USER not in without and users.apart() is None:
            taken = users.USERS.take()
        descriptors.append(listener := bodies.listening_socket(folder))
        workspace = None if snapshot is None else str(snapshot.files)
        command, fds = bwrap.sandbox_command(
            template, root=root, workspace=workspace, without=without
        )
        descriptors += fds
        if snapshot is not None:
            command = [*snapshot.command(taken and taken.program), *command]
        if root:
            command = [*users.entry(), *command]
        token = secrets.token_hex(16)
        settings = settings_of(template, token, listener, taken, without)
        passed = [*descriptors, *([] if taken is None else [taken.namespace])]
        # not passed on under its own number, which everything inside would inherit
        descriptors.append(stdin := bwrap.memory_file("settings", json.dumps(settings).encode()))
        process = subprocess.Popen(
            ["/bin/sh", "-c", JOIN, "sh", *group.entries, "--", *command],
            stdin=stdin, stdout=errors, stderr=errors, close_fds=True,
            pass_fds=passed,
            env=dict(os.environ) if Protection.ENVIRONMENT in without else {},
            # a terminal's Ctrl-C is for its owner, whom one that lingers outlives
            start_new_session=template.linger_s > 0,
        )  # fmt: skip
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if taken is not None:
            users.USERS.give_back(taken)
        raise
    finally:
        for fd in descriptors:
            os.close(fd)
    return LocalBody(name, token, process, group, taken)


def settings_of(
    template: SandboxTemplate,
    token: str,
    listener: int,
    taken: users.Users | None,
    without: Set[Protection],
) -> dict[str, object]:
    """What the agent reads at its start (`sandboxes.core.agent.main`)."""
    limits = rlimits.rlimits_for(template.limits, have=set(cgroups.controllers()))
    calls = None if Protection.CALLS in without else seccomp.filter_program()
    hidden = Protection.HIDDEN_AGENT not in without
    return {
        "token": token,
        "listen": listener,
        "start_s": template.limits.start_timeout_s,
        "linger_s": template.linger_s,
        "rlimits": limits,
        "scores": True,
        "users_fd": None if taken is None else taken.namespace,
        "program_id": PROGRAM_ID,
        "own_id": PROGRAM_ID if Protection.APART in without else users.OWN_ID,
        "calls": "" if calls is None else calls.hex(),
        "hidden": hidden,
        # those of the host, which it has without its own /dev, are not its to bound
        "terminals": not without & {Protection.TERMINALS, Protection.DEVICES},
        # beside processes of the host it must never kill all that it can
        "kills_leftovers": not without & {Protection.ORPHANS, Protection.PROCESSES},
    }


@cache
def unavailable() -> str | None:
    """Why no sandbox can run here, found by starting one; None where it can. Asked once."""
    if sys.platform != "linux":
        return (
            f"sandboxes need Linux and its namespaces, this is {sys.platform}: run it in a Linux "
            "virtual machine or container; simulated tools work here without"
        )
    if shutil.which("bwrap", path=BASE_ENV["PATH"]) is None:
        return "bubblewrap (bwrap) is not installed: apt install bubblewrap"
    if bwrap.is_root() and (reason := users.apart()) is not None:
        return f"root must give its rights away to users of a sandbox's own, and cannot: {reason}"
    with os.fdopen(os.memfd_create("errors"), "w+b") as errors:
        try:
            body = spawn(next_name(), SandboxTemplate(), errors, ControlGroups(()))
        except (OSError, TransientError) as error:
            return f"a trial sandbox could not be started: {error}"
        try:
            if greeted(body):
                return None
        finally:
            body.end()
            assert isinstance(body.process, subprocess.Popen)
            body.process.wait()
            body.forget()
        errors.seek(0)
        why = errors.read(2000).decode(errors="replace").strip()
        return f"a trial sandbox failed: {why or 'it does not answer'}"


def greeted(body: LocalBody) -> bool:
    """Whether the agent answers a greeting; waits up to 30 s."""
    hello = {"op": "hello", "version": VERSION, "token": body.token, "seen": 0}
    with (
        bodies.short_path(body.folder) as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream,
    ):
        stream.settimeout(30)
        try:
            stream.connect(f"{folder}/{bodies.SOCKET}")
            stream.sendall(frame(json.dumps(hello).encode()))
            head, _ = lengths(stream.recv(HEADER, socket.MSG_WAITALL))
            return b'"event":"hello"' in stream.recv(head, socket.MSG_WAITALL)
        except OSError:
            return False
