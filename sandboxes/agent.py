"""The one program of ours inside a sandbox: runs commands for the host over two pipes.

Frames go both ways: the lengths of a header and of a body (two big-endian 32-bit numbers), then
both. The host sends requests {"op": ..., "id": n, ...} as marshal, which it alone may do; every
answer is a flat JSON object that carries the id. One thread and one epoll serve any number of
commands and servers at once, so that they share a workspace. It starts without `site` and imports
only what is compiled into Python or nearly so: imports are the start-up time of every sandbox.

When a command ends, what it started ends too: its process group is killed, then every process
whose ancestors are all gone. Whatever runs here may try to take this program over, so the host
believes none of its answers beyond their form.
"""

# pathlib, json and contextlib cost more time to import than all of this takes to run
# ruff: noqa: PTH103, PTH120, PTH123, PTH208, SIM105
from __future__ import annotations

import errno
import marshal
import os
import resource
import select
import stat
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

HEADER = struct.Struct(">II")
CHUNK = 65536
WINDOW = 1 << 20
"""Bytes of a server's output that may be on their way to the host, not yet read there."""

PR_SET_DUMPABLE = 4
SIGKILL, SIGPIPE, SIGXFSZ = 9, 13, 25
"""As in `signal`, whose import alone is a third of the start-up (it makes enums)."""


def frame(head: bytes, body: bytes = b"") -> bytes:
    return HEADER.pack(len(head), len(body)) + head + body


def flat_json(header: dict[str, int | str]) -> bytes:
    """Keys and texts are ours or the C library's: no quote, backslash or control character."""
    parts = []
    for key, value in header.items():
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        parts.append(f'"{key}":{text}')
    return ("{" + ",".join(parts) + "}").encode()


class Job:
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
            for reads in (True, False, False):
                ends = os.pipe2(os.O_CLOEXEC)
                inside.append(ends[0 if reads else 1])
                outside.append(ends[1 if reads else 0])
            self.pid = start(request, inside, agent.oom)
            self.pidfd = os.pidfd_open(self.pid)
        except OSError:
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
        agent.watch(self.pidfd, select.EPOLLIN, self.ended)
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
        self.agent.unwatch(self.pidfd)
        os.close(self.pidfd)
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


def start(request: dict[str, Any], stdio: list[int], oom: tuple[int, bytes]) -> int:
    """Start the command in a session of its own; OSError where it cannot be.

    The child is the first that the kernel kills when memory runs out, so that the agent lives to
    say what happened. The score is written to a descriptor opened while that was still allowed.
    posix_spawn does not copy this process as fork would, which is most of the time of an exec.
    """
    oom_fd, own_score = oom
    argv, env = request["argv"], request["env"]
    dups = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(stdio)]
    os.pwrite(oom_fd, b"1000", 0)
    try:
        os.chdir(request["cwd"])
        return os.posix_spawn(
            found(argv[0], env.get("PATH", "")), argv, env,
            file_actions=dups, setsid=True,
            setsigdef=[SIGPIPE, SIGXFSZ],  # Python ignores them, programs do not
        )  # fmt: skip
    finally:
        os.pwrite(oom_fd, own_score, 0)
        os.chdir("/")


def found(command: str, path: str) -> str:
    """The program that a shell would run for `command`."""
    if "/" in command:
        return command
    for folder in path.split(":"):
        if os.access(f"{folder}/{command}", os.X_OK):
            return f"{folder}/{command}"
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def read_file(path: str, limit: int) -> bytes:
    """Up to `limit` bytes of a regular file. Opened without waiting: a FIFO would never answer."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(limit)


def write_file(path: str, data: bytes, mode: int) -> None:
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, mode)
    with open(fd, "wb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        file.write(data)


class Agent:
    def __init__(self, settings: dict[str, Any]) -> None:
        for name, value in settings["rlimits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))
        oom_fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        self.oom = oom_fd, os.read(oom_fd, 16)
        hide_memory()
        self.epoll = select.epoll()
        self.handlers: dict[int, Callable[[], object]] = {}
        self.jobs: dict[int, Job] = {}
        self.incoming = bytearray()
        self.watch(0, select.EPOLLIN, self.receive)

    def watch(self, fd: int, events: int, handler: Callable[[], object]) -> None:
        if fd in self.handlers:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
        self.handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        if self.handlers.pop(fd, None) is not None:
            self.epoll.unregister(fd)

    def send(self, header: dict[str, int | str], body: bytes = b"") -> None:
        data = memoryview(frame(flat_json(header), body))
        while data:
            data = data[os.write(1, data) :]

    def receive(self) -> None:
        data = os.read(0, 1 << 20)
        if not data:
            sys.exit(0)  # the owner is gone, and with this process the whole sandbox
        self.incoming += data
        while len(self.incoming) >= HEADER.size:
            head, body = HEADER.unpack_from(self.incoming)
            end = HEADER.size + head + body
            if len(self.incoming) < end:
                return
            message = bytes(self.incoming[HEADER.size : end])
            del self.incoming[:end]
            self.handle(marshal.loads(message[:head]), message[head:])

    def handle(self, request: dict[str, Any], body: bytes) -> None:
        op, ident = request["op"], request["id"]
        try:
            if op in ("exec", "open"):
                self.jobs[ident] = Job(self, request, body)
                if op == "open":
                    self.send({"id": ident, "event": "started"})
            elif op == "read":
                data = read_file(request["path"], request["limit"] + 1)
                whole = len(data) <= request["limit"]
                self.send({"id": ident, "event": "ok", "whole": whole}, data[: request["limit"]])
            elif op == "write":
                write_file(request["path"], body, request["mode"])
                self.send({"id": ident, "event": "ok"})
            elif op == "ping":
                self.send({"id": ident, "event": "ok"})
            elif ident in self.jobs:  # the rest steers a job, which may just have ended
                self.steer(self.jobs[ident], request, body)
        except OSError as error:
            reason = error.strerror or "failed"
            self.send({"id": ident, "event": "error", "errno": error.errno or 0, "reason": reason})

    def steer(self, job: Job, request: dict[str, Any], body: bytes) -> None:
        if request["op"] == "stdin":
            job.pending_in += body
            job.feed()
        elif request["op"] == "close_stdin":
            job.close_in = True
            job.feed()
        elif request["op"] == "ack":
            job.acknowledge(request["bytes"])
        elif request["op"] == "kill":
            job.kill()

    def kill_orphans(self) -> None:
        """Kill what has no living ancestor among the jobs: daemons that left their group.

        With no job left one signal to everything is atomic, which a fork bomb cannot outrun;
        beside a server the tree is walked until a walk finds nothing.
        """
        if not self.jobs:
            kill(-1)
            return
        roots = {job.pid for job in self.jobs.values()}
        for _ in range(200):
            parent = parents()
            strays = [pid for pid in parent if not kept(pid, parent, roots)]
            for pid in strays:
                kill(pid)
            if not strays:
                return
        sys.exit(1)  # it forks faster than we kill: end the sandbox

    def run(self) -> None:
        while True:
            deadlines = [job.deadline for job in self.jobs.values() if job.deadline is not None]
            wait = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
            for fd, _ in self.epoll.poll(wait):
                if handler := self.handlers.get(fd):  # not dropped by an earlier handler
                    handler()
            now = time.monotonic()
            for job in self.jobs.values():
                if job.deadline is not None and job.deadline <= now:
                    job.deadline, job.timed_out = None, True
                    job.kill()


def kill(pid: int) -> None:
    try:
        os.kill(pid, SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


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


def kept(pid: int, parent: dict[int, int], roots: set[int]) -> bool:
    """Whether `pid` is the sandbox's own, or below a running job."""
    if pid in (1, os.getpid()):
        return True
    while pid in parent:
        if pid in roots:
            return True
        pid = parent[pid]
    return False


def hide_memory() -> None:
    """Not dumpable: others of the same user cannot trace this process or open its pipes."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def main(settings: dict[str, Any]) -> None:
    if os.getpid() != 2:  # what it kills at the end of a command would be the machine
        sys.exit("this program runs only as the first one of a sandbox")
    agent = Agent(settings)
    agent.send({"id": 0, "event": "ready"})
    agent.run()


if __name__ == "__main__":
    main(marshal.loads(bytes.fromhex(sys.argv[1])))
