"""One running sandbox, as whoever holds it sees it: commands, files, long-lived programs."""

import asyncio
import contextlib
import copy
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from records.errors import ConfigError, ItemError, SynthError, TransientError
from sandboxes.core import clock, python_env
from sandboxes.core.body import ProgramEndedError, SandboxBody, Snapshot
from sandboxes.core.channel import FrameAnswer, FrameChannel
from sandboxes.core.stdio import StdioProcess
from sandboxes.core.template import BASE_ENV, WRITABLE, Limits, SandboxTemplate

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
    """One running sandbox; made by a backend. Any number of commands may run at once.

    Every call raises TransientError when the sandbox is lost, and `ProgramEndedError` when the
    program in it has ended it. How a command fares is never an exception.
    """

    def __init__(self, template: SandboxTemplate, body: SandboxBody, channel: FrameChannel) -> None:
        """`channel` is open."""
        self.template, self.body = template, body
        self._env = environment(template)
        self._agent = channel
        self._over: TransientError | None = None
        """Why this object no longer answers, although its sandbox may."""

    @property
    def name(self) -> str:
        """By which `Backend.adopt` and `Backend.destroy` find it."""
        return self.body.name

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
        """Run a command to its end and return what it left, a partial output included. At its end
        everything it started is killed too."""
        limits, killed = self.template.limits, self.body.memory_kills()
        request = self._command("exec", argv, env, cwd)
        request["timeout_s"] = wait = timeout_s if timeout_s is not None else limits.timeout_s
        answer = await self._channel.request(request, stdin, within_s=wait + ANSWER_S)
        if answer.header.get("event") != "exit":
            return not_started(argv, answer)
        return finished(answer, limits, killed < self.body.memory_kills())

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
        command = argv[0] if argv else ""
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._channel.send(self._command("open", argv, env, cwd) | {"id": ident})
                reason = await process.started()
        except TimeoutError:
            raise await self._agent.unanswered(ANSWER_S) from None
        except asyncio.CancelledError:
            self._agent.give_up(ident)
            raise
        if reason is not None:
            process.forget()
            if isinstance(process.ended, ProgramEndedError):
                raise process.ended
            raise ConfigError(f"cannot start {command!r} in the sandbox: {reason}")
        return process

    def running(self) -> list[StdioProcess]:
        """The commands and programs that ran when this sandbox was adopted, or whose end nobody had
        confirmed, with the output that nobody had confirmed."""
        channel = self._channel
        return [StdioProcess(channel, ident, running=True) for ident in channel.running]

    def _command(
        self, op: str, argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
    ) -> dict[str, Any]:
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
        """Return once the agent answers."""
        await self._channel.request({"op": "ping"}, within_s=ANSWER_S)

    async def snapshot(self) -> Snapshot:
        """The workspace's files as they are now, for `Backend.create`. What runs inside stands
        still meanwhile. ItemError for what cannot be kept: more than the disk limit, too many or
        too deep folders, a file that is closed to its own user."""
        channel = self._channel
        await channel.request({"op": "pause"}, within_s=ANSWER_S)
        try:
            task = asyncio.ensure_future(self.body.snapshot(self.template))
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                (await task).remove()  # a copy goes on in its thread, and nobody would have it
                raise
        finally:
            with contextlib.suppress(SynthError):
                await channel.request({"op": "resume"}, within_s=ANSWER_S)

    async def remember(self) -> None:
        """Note how it is before its first use, for `recycle`."""
        await self.body.remember()

    async def recycle(self) -> list[str]:
        """Kill what runs here, remove every file, and compare with what was noted: an empty list
        proves that it may be lent again. TransientError for one that cannot be wiped."""
        channel = self._channel
        channel.interrupt(TransientError("the sandbox was wiped"))
        answer = await channel.request({"op": "wipe", "folders": list(WRITABLE)}, within_s=ANSWER_S)
        if answer.header.get("event") != "ok":
            raise TransientError(f"the sandbox cannot be wiped: {answer.header.get('reason')}")
        left = ["ipc"] if int(answer.header["ipc"]) else []
        return left + await self.body.changes()

    def renewed(self) -> "Sandbox":
        """The same sandbox for another holder; this object does not answer any longer."""
        other = copy.copy(self)
        self._over = TransientError("the sandbox was given back")
        return other

    def drop_stream(self) -> None:
        """Break the stream to the agent, as a network does."""
        self._agent.drop_stream()

    async def leave(self) -> None:
        """Let go of it without ending it: who adopts it within the template's `linger_s` finds what
        runs in it still running."""
        await self._agent.close()

    def end(self, why: str) -> None:
        """End it at once, whoever uses it; they get a TransientError that says why. One that
        another process has adopted is that one's to end."""
        self._agent.lose(TransientError(why))
        if not self._agent.refused:
            self.body.end()

    async def close(self) -> None:
        """End every process inside, wait until they are gone, and remove what the backend keeps."""
        self.end("the sandbox was closed")
        await self._agent.close()
        if not self._agent.refused:
            await self.body.close()


@asynccontextmanager
async def closing(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """The sandbox, ended and removed on leaving, whatever is still running in it."""
    try:
        yield sandbox
    finally:
        sandbox.end("the sandbox was closed")  # at once, whatever becomes of the event loop
        await asyncio.shield(sandbox.close())


def environment(template: SandboxTemplate) -> dict[str, str]:
    env = BASE_ENV | python_env.base_env()
    if template.clock is not None:
        env |= clock.clock_env(template.clock, seed=template.seed, preload=template.preload_clock)
    return env | template.env


def not_started(argv: Sequence[str], answer: FrameAnswer) -> ExecResult:
    missing = answer.header.get("errno") == 2
    command = argv[0] if argv else "(no command)"
    message = f"{command}: {answer.header.get('reason')}\n".encode(errors="replace")
    code = NOT_FOUND if missing else NOT_EXECUTABLE
    return ExecResult(code, b"", message, timed_out=False, truncated=False, out_of_memory=False)


def finished(answer: FrameAnswer, limits: Limits, out_of_memory: bool) -> ExecResult:
    header, cap = answer.header, limits.output_bytes
    try:
        code, split = int(header["exit_code"]), int(header["stdout_bytes"])
        timed_out, truncated = bool(header["timed_out"]), bool(header["truncated"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
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
        raise ItemError("sandbox_file", f"{path!r}: {answer.header.get('reason')}")
