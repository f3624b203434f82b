"""A running command of a sandbox, and the processes it may have left."""

# pathlib, json and contextlib cost more time to import than all of this takes to run
# ruff: noqa: PTH123, PTH208, SIM105
from __future__ import annotations

import errno
import os
import resource
import select
import time

from sandboxes.core.agent.frames import CHUNK, WINDOW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from sandboxes.core.agent.rights import Rights

    class Agent(Protocol):
        """What a job needs of the agent's loop (`main.Agent`)."""

        oom: tuple[int, bytes] | None
        cpu_s: int | None
        jobs: dict[int, CommandJob]
        rights: Rights

        def watch(self, fd: int, events: int, handler: Callable[[], object]) -> None: ...
        def unwatch(self, fd: int) -> None: ...
        def send(self, header: dict[str, Any], body: bytes = b"") -> None: ...
        def kill_orphans(self) -> None: ...


STILL = (b"T", b"t", b"Z", b"X")
"""States of threads that do nothing until a signal comes: stopped, traced, dead."""

SIGKILL, SIGPIPE, SIGXFSZ = 9, 13, 25
"""As in `signal`, whose import alone is a third of the start-up (it makes enums)."""


class CommandJob:
    """A running command. Jobs of op "open" pass their output on as it comes; others keep it."""

    def __init__(self, agent: Agent, request: dict[str, Any], stdin: bytes) -> None:
        self.agent, self.id, self.stream = agent, request["id"], request["op"] == "open"
        self.cap = request["output_bytes"]
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.truncated = self.timed_out = False
        self.pending_in, self.close_in = bytearray(stdin), not self.stream
        self.in_flight = 0
        wait = request.get("timeout_s")
        self.deadline = None if wait is None else time.monotonic() + wait
        inside, outside = [], []
        try:
            with agent.rights:  # pipes of the program's user, who may open /dev/stderr anew
                for reads in (True, False, False):
                    ends = os.pipe2(os.O_CLOEXEC)
                    inside.append(ends[0 if reads else 1])
                    outside.append(ends[1 if reads else 0])
                self.pid = start(request, inside, agent.oom)
            if agent.cpu_s is not None:
                fix_cpu_limit(self.pid, agent.cpu_s)
        except (OSError, ValueError):
            for fd in outside:
                os.close(fd)
            raise
        finally:
            for fd in inside:
                os.close(fd)
        for fd in outside:
            os.set_blocking(fd, False)
        self.stdin: int | None = outside[0]
        self.fds = {"stdout": outside[1], "stderr": outside[2]}
        for name in self.fds:
            self.watch_output(name)
        self.feed()

    def watch_output(self, name: str) -> None:
        self.agent.watch(self.fds[name], select.EPOLLIN, lambda: self.read(name))

    def feed(self) -> None:
        """Write waiting input, as much as the pipe takes; close it after the last byte if asked."""
        while self.stdin is not None and self.pending_in:
            try:
                del self.pending_in[: os.write(self.stdin, self.pending_in[:CHUNK])]
            except BlockingIOError:
                self.agent.watch(self.stdin, select.EPOLLOUT, self.feed)
                return
            except OSError:  # the command closed its end: what is left has no reader
                self.drop_stdin()
        if self.stdin is not None:
            self.agent.unwatch(self.stdin)
            if self.close_in:
                self.drop_stdin()

    def drop_stdin(self) -> None:
        self.pending_in.clear()
        if self.stdin is not None:
            self.agent.unwatch(self.stdin)
            os.close(self.stdin)
            self.stdin = None

    def read(self, name: str) -> bool:
        """Take one chunk of output; whether there was one."""
        fd = self.fds.get(name)
        if fd is None:
            return False
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.drop_output(name)
            return False
        kept = self.output[name]
        if self.stream and name == "stdout":
            self.in_flight += len(data)
            self.agent.send({"id": self.id, "event": "stdout"}, data)
            if self.in_flight >= WINDOW:
                self.agent.unwatch(fd)
        elif self.stream:  # of a server's stderr the end tells why it died
            kept += data
            del kept[: -self.cap]
        else:
            room = self.cap - len(kept)
            kept += data[:room]
            self.truncated |= len(data) > room
        return True

    def drop_output(self, name: str) -> None:
        fd = self.fds.pop(name)
        self.agent.unwatch(fd)
        os.close(fd)

    def acknowledge(self, count: int) -> None:
        self.in_flight -= count
        if "stdout" in self.fds and self.in_flight < WINDOW:
            self.watch_output("stdout")

    def kill(self) -> None:
        try:
            os.killpg(self.pid, SIGKILL)
        except ProcessLookupError:
            pass

    def ended(self) -> None:
        """Its process has ended and waits to be waited for."""
        self.kill()  # its group; before the wait, while the number is still ours
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        del self.agent.jobs[self.id]
        self.agent.kill_orphans()
        self.drop_stdin()
        for name in list(self.fds):
            # what is in the pipe now, no more: a writer that got away must not hold us up
            for _ in range(64):
                if not self.read(name):
                    break
            if name in self.fds:
                self.drop_output(name)
        out, err = bytes(self.output["stdout"]), bytes(self.output["stderr"])
        self.agent.send(
            {
                "id": self.id,
                "event": "exit",
                "exit_code": code,
                "timed_out": self.timed_out,
                "truncated": self.truncated,
                "stdout_bytes": len(out),
            },
            out + err,
        )


def start(request: dict[str, Any], stdio: list[int], oom: tuple[int, bytes] | None) -> int:
    """Start the command in a session of its own; OSError or ValueError where it cannot be.

    The child is the first that the kernel kills when memory runs out, so that the agent lives to
    say what happened. The score is written to a descriptor opened while that was still allowed.
    posix_spawn does not copy this process as fork would, which is most of the time of an exec.
    """
    argv, env = request["argv"], request["env"]
    dups = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(stdio)]
    if not argv or not argv[0]:
        raise FileNotFoundError(errno.ENOENT, "the command is empty")
    if oom is not None:
        os.pwrite(oom[0], b"1000", 0)
    try:
        os.chdir(request["cwd"])
        return os.posix_spawn(
            found(argv[0], env.get("PATH", "")), argv, env,
            file_actions=dups, setsid=True,
            setsigdef=[SIGPIPE, SIGXFSZ],  # Python ignores them, programs do not
        )  # fmt: skip
    finally:
        if oom is not None:
            os.pwrite(oom[0], oom[1], 0)
        os.chdir("/")


def fix_cpu_limit(pid: int, seconds: int) -> None:
    """Let the limit that a command has inherited be its own to raise no more."""
    for _ in range(100):
        try:
            resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds))
        except PermissionError:  # its program is about to begin, and its users are not settled
            time.sleep(0.0002)
        except ProcessLookupError:  # it has ended already
            return
        else:
            return


def found(command: str, path: str) -> str:
    """The program that a shell would run for `command`."""
    if "/" in command:
        return command
    for folder in path.split(":"):
        if os.access(f"{folder}/{command}", os.X_OK):
            return f"{folder}/{command}"
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def kill(pid: int, number: int = SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def alone() -> bool:
    """Whether nothing is here, dead or alive, beside this process."""
    return sum(map(str.isdigit, os.listdir("/proc"))) <= 1


def parents() -> dict[int, int]:
    """Process id -> parent's, of everything alive here."""
    alive = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                alive[int(name)] = int(fields[1])
    return alive


def moving() -> bool:
    """Whether a thread of another process here is neither stopped nor dead."""
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            for thread in os.listdir(f"/proc/{name}/task"):
                with open(f"/proc/{name}/task/{thread}/stat", "rb") as file:
                    if file.read().rpartition(b")")[2].split()[0] not in STILL:
                        return True
        except OSError:
            continue  # it is gone
    return False


def kept(pid: int, parent: dict[int, int], roots: set[int]) -> bool:
    """Whether `pid` is this process, or below a running job, or came in from outside, as a
    container manager's `exec` does: what is made inside always descends from this process."""
    if pid == os.getpid():
        return True
    above = pid
    while above in parent:
        if above in roots:
            return True
        pid, above = above, parent[above]
    return above == 0 and pid != os.getpid()
