"""One running sandbox, as whoever holds it sees it: commands, files, long-lived programs."""

import asyncio
import contextlib
import copy
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ConfigError, ItemError, TransientError
from sandboxes.core import clock, python_env
from sandboxes.core.channel import FrameAnswer, FrameChannel
from sandboxes.core.stdio import StdioProcess
from sandboxes.core.template import BASE_ENV, WORKSPACE, WRITABLE, Limits, SandboxTemplate
from sandboxes.local import cgroups, clean, snapshots
from sandboxes.local.snapshots import WorkspaceSnapshot

ANSWER_S = 20.0
"""How late the agent's answer may be, after a command's own limit of time; then it hangs."""

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes a shell gives for a command that is not there, or that cannot be run."""


class ExecResult(NamedTuple):
    exit_code: int
    """As a shell gives it: 128 + signal for a killed command, 127 for one that is not there."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    """Whether output was thrown away because it passed the limit."""
    out_of_memory: bool
    """Whether the kernel killed something in this sandbox for memory while the command ran."""


class Sandbox:
    """One running sandbox; made by `local.lease`. Any number of commands may run at once."""

    def __init__(
        self,
        template: SandboxTemplate,
        transport: asyncio.SubprocessTransport,
        process: Process,
        group: cgroups.ControlGroups,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.template = template
        self.group = group
        self._env = environment(template)
        self._transport, self._process = transport, process
        self._agent = FrameChannel(process.stdout, process.stdin)
        self._over: TransientError | None = None
        """Why this object no longer answers, although its sandbox may."""

    @property
    def pid(self) -> int:
        """The host's id of the outermost process, above all others of the sandbox."""
        return self._process.pid

    @property
    def _channel(self) -> FrameChannel:
        if self._over is not None:
            raise self._over
        return self._agent

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> ExecResult:
        """Run a command to its end and return what it left, a partial output included.

        At its end everything it started is killed too. Raises TransientError when the sandbox
        itself is lost; how the command fares is never an exception.
        """
        limits, killed = self.template.limits, self.group.out_of_memory()
        request = self._command("exec", argv, env, cwd)
        request["timeout_s"] = wait = timeout_s if timeout_s is not None else limits.timeout_s
        answer = await self._channel.request(request, stdin, within_s=wait + ANSWER_S)
        if answer.header.get("event") != "exit":
            return not_started(argv, answer)
        return finished(answer, limits, killed < self.group.out_of_memory())

    async def open_stdio(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> StdioProcess:
        """Start a long-lived program and talk to it. ConfigError if it cannot be started."""
        ident = self._channel.new_id()
        process = StdioProcess(self._channel, ident)
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._channel.send(self._command("open", argv, env, cwd) | {"id": ident})
                reason = await process.started()
        except TimeoutError as error:
            process.forget()
            raise TransientError(f"the agent has not started {argv[0]!r} in time") from error
        if reason is not None:
            process.forget()
            raise ConfigError(f"cannot start {argv[0]!r} in the sandbox: {reason}")
        return process

    def _command(
        self, op: str, argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
    ) -> dict[str, Any]:
        if not argv or any("\0" in word for word in argv):
            raise ValueError(f"argv needs a command, and no zero bytes, got {list(argv)!r}")
        return {
            "op": op,
            "argv": list(argv),
            "env": self._env | dict(env or {}),
            "cwd": cwd or self.template.workdir,
            "output_bytes": self.template.limits.output_bytes,
        }

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file from inside, as the sandboxed user; parents are made. Relative paths start
        at the working folder. ItemError("sandbox_file") where that user could not either."""
        request = {"op": "write", "path": self._path(path), "mode": mode}
        refuse(await self._channel.request(request, data, within_s=ANSWER_S), path)

    async def read_file(self, path: str, *, limit: int | None = None) -> bytes:
        """A regular file, read from inside; larger than `limit` (the output limit) is refused."""
        limit = limit if limit is not None else self.template.limits.output_bytes
        request = {"op": "read", "path": self._path(path), "limit": limit}
        answer = await self._channel.request(request, within_s=ANSWER_S)
        refuse(answer, path)
        if not answer.header.get("whole"):
            raise ItemError("sandbox_file", f"{path} is larger than {limit} bytes")
        return answer.body

    def _path(self, path: str) -> str:
        return os.path.join(self.template.workdir, path)  # noqa: PTH118  # a path of the sandbox

    async def ping(self) -> None:
        """Return once the agent answers. TransientError if it is gone."""
        await self._channel.request({"op": "ping"}, within_s=ANSWER_S)

    async def snapshot(self) -> WorkspaceSnapshot:
        """The workspace's files as they are now, for `fork`. See
        `sandboxes.local.snapshots.take`."""
        self._channel  # noqa: B018  # raises where this object no longer answers
        return await asyncio.to_thread(snapshots.take, self._outside(WORKSPACE), self.template)

    def _outside(self, path: str) -> str:
        """A path inside, as the host reaches it. TransientError if the sandbox is gone."""
        try:
            _, _, agent, *_ = clean.descendants(self.pid)
        except (OSError, ValueError) as error:
            raise TransientError("the sandbox ended") from error
        return f"/proc/{agent}/root{path}"

    async def wipe(self) -> int:
        """Kill what runs here and remove every file that can be. How many System V objects (shared
        memory and such) are left. TransientError for a sandbox that is lost or cannot be wiped."""
        channel = self._channel
        channel.interrupt(TransientError("the sandbox was wiped"))
        answer = await channel.request({"op": "wipe", "folders": list(WRITABLE)}, within_s=ANSWER_S)
        if answer.header.get("event") != "ok":
            raise TransientError(f"the sandbox cannot be wiped: {answer.header.get('reason')}")
        return int(answer.header["ipc"])

    def renewed(self) -> "Sandbox":
        """The same sandbox for another holder; this object does not answer any longer."""
        other = copy.copy(self)
        self._over = TransientError("the sandbox was given back")
        return other

    def end(self, why: str) -> None:
        """End it at once, whoever uses it; they get a TransientError that says why."""
        self._agent.lose(why)
        # not transport.kill(), which may reap the child before the event loop's own wait for it
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)  # by its death, process 1 inside dies

    async def close(self) -> None:
        """End every process inside, wait until they are gone, and remove the control groups."""
        self.end("the sandbox was closed")
        await self._agent.close()
        await self._process.wait()
        self._transport.close()  # the pipes, of which one may have been left full
        await self.group.remove()


def environment(template: SandboxTemplate) -> dict[str, str]:
    env = BASE_ENV | python_env.base_env()
    if template.clock is not None:
        env |= clock.clock_env(template.clock, preload=template.preload_clock)
    return env | template.env


def not_started(argv: Sequence[str], answer: FrameAnswer) -> ExecResult:
    missing = answer.header.get("errno") == 2
    message = f"{argv[0]}: {answer.header.get('reason')}\n".encode()
    code = NOT_FOUND if missing else NOT_EXECUTABLE
    return ExecResult(code, b"", message, timed_out=False, truncated=False, out_of_memory=False)


def finished(answer: FrameAnswer, limits: Limits, out_of_memory: bool) -> ExecResult:
    header, cap = answer.header, limits.output_bytes
    try:
        code, split = int(header["exit_code"]), int(header["stdout_bytes"])
        timed_out, truncated = bool(header["timed_out"]), bool(header["truncated"])
    except (KeyError, TypeError, ValueError) as error:
        raise TransientError(f"the sandbox's agent sent rubbish: {error}") from error
    return ExecResult(
        exit_code=128 - code if code < 0 else code,
        stdout=answer.body[:split][:cap],
        stderr=answer.body[split:][:cap],
        timed_out=timed_out,
        truncated=truncated or len(answer.body) > 2 * cap,
        out_of_memory=out_of_memory,
    )


def refuse(answer: FrameAnswer, path: str) -> None:
    if answer.header.get("event") != "ok":
        raise ItemError("sandbox_file", f"{path}: {answer.header.get('reason')}")
