"""The agent's loop: requests in, answers out, any number of commands and servers at once.

It is the first process of the sandbox. The kernel keeps every signal from it that is sent inside,
so that nothing there can end or stop it; its own end ends everything. It reads its settings, one
JSON object, from stdin and listens on a socket, which it got open or makes at a path. Whoever
greets it with its token is its host, in place of the one before; without a host it waits
`linger_s`.

When a command ends, what it started ends too: its process group is killed, then every process
whose ancestors are all gone. Whatever runs here may still try to take this program over, so the
host believes none of its answers beyond their form.
"""

# pathlib, json and contextlib cost more time to import than all of this takes to run
# ruff: noqa: SIM105
from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]  # `signal` makes enums of it
import os
import resource
import select
import sys
import time

from sandboxes.core.agent.files import ipc_objects, read_file, wipe, write_file
from sandboxes.core.agent.frames import loaded
from sandboxes.core.agent.job import CommandJob, alone, kept, kill, moving, parents
from sandboxes.core.agent.rights import Rights
from sandboxes.core.agent.stream import LONGEST_GREETING, Ledger, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

GONE_S = 2.0
"""For killed processes to be gone. One that the kernel holds longer is left to be seen."""

OUTRUN, UNDYING, OUT_OF_MEMORY = 41, 42, 43
"""Exit codes: something forks faster than it is killed, or does not die, or left no memory. Each
way the program has ended its own sandbox."""

GREETERS = 8
"""Streams without a greeting yet; before more are taken the oldest is closed."""


class Agent:
    def __init__(self, settings: dict[str, Any], rights: Rights, listener: int) -> None:
        self.rights, self.listener = rights, listener
        self.oom = oom_score() if settings["scores"] else None
        self.cpu_s = settings["rlimits"].pop("RLIMIT_CPU", None)
        """Seconds of the processor for each process but this one, which serves them all."""
        if self.cpu_s is not None:  # inherited; process 1 itself gets no signal for it
            hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
            self.cpu_s = self.cpu_s if hard == resource.RLIM_INFINITY else min(self.cpu_s, hard)
            resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_s, hard))
        for name, value in settings["rlimits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))
        self.kills_leftovers = settings["kills_leftovers"]
        self.linger_s = settings["linger_s"]
        self.epoll = select.epoll()
        self.handlers: dict[int, Callable[[], object]] = {}
        self.jobs: dict[int, CommandJob] = {}
        self.ledger = Ledger(settings["token"])
        self.stream: Stream | None = None
        self.alone_until: float | None = time.monotonic() + settings["start_s"]
        """When it gives up waiting for a host; None while it has one."""
        self.greeters: dict[int, Stream] = {}
        self.held: list[tuple[dict[str, Any], bytes]] | None = None
        """What is to be begun once the sandbox goes on; None while it does."""
        self.watch(listener, select.EPOLLIN, self.connect)
        self.watch_children()

    def watch(self, fd: int, events: int, handler: Callable[[], object]) -> None:
        if fd in self.handlers:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
        self.handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        if self.handlers.pop(fd, None) is not None:
            self.epoll.unregister(fd)

    def watch_children(self) -> None:
        """Everything orphaned here becomes this process's child, and is to be waited for."""
        wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # Python's own would let it through
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.set_wakeup_fd(woken, warn_on_full_buffer=False)

        def reap() -> None:
            os.read(wake, 4096)
            self.reap()

        self.watch(wake, select.EPOLLIN, reap)

    def reap(self) -> None:
        running = {job.pid: job for job in self.jobs.values()}
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if (job := running.pop(found.si_pid, None)) is not None:
                job.ended()
            else:
                os.waitpid(found.si_pid, 0)

    def connect(self) -> None:
        fd = accepted(self.listener)
        if fd is None:
            return
        if len(self.greeters) >= GREETERS:
            self.dismiss(next(iter(self.greeters)))
        stream = self.greeters[fd] = Stream(fd)
        self.watch(fd, select.EPOLLIN, lambda: self.greet(stream))

    def greet(self, stream: Stream) -> None:
        """The first frame of a new stream decides whether it takes the present one's place."""
        try:
            found = stream.frames()
        except Exception:  # anybody may send anything here
            found = None
        if found == [] and len(stream.incoming) <= LONGEST_GREETING:
            return
        if not found or not isinstance(found[0][0], dict):
            self.dismiss(stream.fd)
            return
        (hello, _), *rest = found
        answer, repeated = self.ledger.greeting(hello, list(self.jobs))
        if repeated is None:
            try:
                os.write(stream.fd, answer)
            except OSError:
                pass
            self.dismiss(stream.fd)
            return
        del self.greeters[stream.fd]
        self.drop_stream()
        self.stream, self.alone_until = stream, None
        stream.outgoing = [memoryview(answer), *map(memoryview, repeated)]
        self.watch(stream.fd, select.EPOLLIN, self.ready)
        self.flush()
        if hello.get("adopt"):
            self.resume()  # whoever paused it is gone
        for request, body in rest:
            self.take(request, body)

    def dismiss(self, fd: int) -> None:
        self.unwatch(fd)
        del self.greeters[fd]
        os.close(fd)

    def drop_stream(self) -> None:
        if self.stream is not None:
            self.unwatch(self.stream.fd)
            os.close(self.stream.fd)
            self.stream = None
            self.alone_until = time.monotonic() + self.linger_s

    def flush(self) -> None:
        stream = self.stream
        if stream is None:
            return
        try:
            left = stream.write()
        except OSError:
            self.drop_stream()
            return
        if left != stream.waiting:
            stream.waiting = left
            events = select.EPOLLIN | (select.EPOLLOUT if left else 0)
            self.watch(stream.fd, events, self.ready)

    def ready(self) -> None:
        self.receive()
        if self.stream is not None and self.stream.waiting:
            self.flush()

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        self.put(self.ledger.number(header, body))

    def put(self, whole: bytes) -> None:
        if self.stream is not None:
            self.stream.outgoing.append(memoryview(whole))
            if len(self.stream.outgoing) == 1:
                self.flush()

    def receive(self) -> None:
        stream = self.stream
        if stream is None:
            return
        found = stream.frames()
        if found is None:
            self.drop_stream()
            return
        for request, body in found:
            self.take(request, body)

    def take(self, request: dict[str, Any], body: bytes) -> None:
        if self.ledger.accept(request, body):
            self.handle(request, body)
        if (owed := self.ledger.owes()) is not None:
            self.put(owed)

    def handle(self, request: dict[str, Any], body: bytes) -> None:
        op, ident = request["op"], request["id"]
        try:
            if self.held is not None and op in ("exec", "open", "write"):
                self.held.append((request, body))
            elif op in ("exec", "open"):
                self.jobs[ident] = CommandJob(self, request, body)
                if op == "open":
                    self.send({"id": ident, "event": "started"})
            elif op == "read":
                with self.rights:
                    data = read_file(request["path"], request["limit"] + 1)
                whole = len(data) <= request["limit"]
                self.send({"id": ident, "event": "ok", "whole": whole}, data[: request["limit"]])
            elif op == "write":
                with self.rights:
                    write_file(request["path"], body, request["mode"])
                self.send({"id": ident, "event": "ok"})
            elif op == "ping":
                self.send({"id": ident, "event": "ok"})
            elif op == "pause":
                self.pause()
                self.send({"id": ident, "event": "ok"})
            elif op == "resume":
                self.send({"id": ident, "event": "ok"})
                self.resume()
            elif op == "wipe":
                self.stop_everything()
                with self.rights:
                    wipe(request["folders"])
                self.send({"id": ident, "event": "ok", "ipc": ipc_objects()})
            elif ident in self.jobs:  # the rest steers a job, which may just have ended
                self.steer(self.jobs[ident], request, body)
        except OSError as error:
            self.refuse(ident, error.errno or 0, error.strerror or "failed")
        except ValueError as error:  # a zero byte, or half a character, where the system takes none
            self.refuse(ident, 22, f"Invalid argument: {error}")
        except (MemoryError, RecursionError):
            self.refuse(ident, 12, "Cannot allocate memory")

    def refuse(self, ident: int, number: int, reason: str) -> None:
        self.send({"id": ident, "event": "error", "errno": number, "reason": reason})

    def steer(self, job: CommandJob, request: dict[str, Any], body: bytes) -> None:
        if request["op"] == "stdin":
            job.pending_in += body
            job.feed()
        elif request["op"] == "ack":
            job.acknowledge(request["bytes"])
        elif request["op"] == "kill":
            job.kill()

    def pause(self) -> None:
        """Stop everything here in one step that no fork outruns, and begin nothing until `resume`.
        What was in the middle of a call stands a moment later, and is waited for."""
        self.held = []
        if not self.kills_leftovers:
            return
        kill(-1, _signal.SIGSTOP)
        end = time.monotonic() + GONE_S
        while moving() and time.monotonic() < end:
            time.sleep(0.0005)

    def resume(self) -> None:
        held, self.held = self.held or [], None
        if self.kills_leftovers:
            kill(-1, _signal.SIGCONT)
        for request, body in held:
            self.handle(request, body)

    def kill_orphans(self) -> None:
        """Kill what has no living ancestor among the jobs: daemons that left their group.

        With no job left one signal to everything is atomic, which a fork bomb cannot outrun;
        beside a server the tree is walked until a walk finds nothing. The dead count as processes
        until they have been waited for, so the next command would find no room beside a bomb's.
        """
        if not self.kills_leftovers:
            return
        if not self.jobs:
            self.kill_all(GONE_S)
            return
        roots = {job.pid for job in self.jobs.values()}
        end, before = time.monotonic() + GONE_S, set()
        while True:
            parent = parents()
            strays = {pid for pid in parent if not kept(pid, parent, roots)}
            for pid in strays:
                kill(pid)
            dying = strays <= before  # nothing new: they only need the time to die
            if not strays or (dying and time.monotonic() > end):
                return
            if time.monotonic() > end:
                sys.exit(OUTRUN)
            if dying:
                time.sleep(0.0005)
            before = strays

    def kill_all(self, within_s: float) -> bool:
        """Kill everything but this process and wait for it; whether it is gone in time."""
        end = time.monotonic() + within_s
        while True:
            kill(-1)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return True
            if alone():
                return True
            if time.monotonic() > end:
                return False
            time.sleep(0.0005)

    def stop_everything(self) -> None:
        if not self.kills_leftovers:
            sys.exit(UNDYING)  # without processes of its own "everything" is the machine
        for job in list(self.jobs.values()):
            job.kill()
            job.ended()
        if not self.kill_all(GONE_S):
            sys.exit(UNDYING)

    def run(self) -> None:
        while True:
            now = time.monotonic()
            ends = [job.deadline for job in self.jobs.values() if job.deadline is not None]
            if self.alone_until is not None:
                ends.append(self.alone_until)
            for fd, _ in self.epoll.poll(max(0.0, min(ends) - now) if ends else None):
                if handler := self.handlers.get(fd):  # not dropped by an earlier handler
                    handler()
            now = time.monotonic()
            if self.alone_until is not None and self.alone_until <= now:
                return
            for job in self.jobs.values():
                if job.deadline is not None and job.deadline <= now:
                    job.deadline, job.timed_out = None, True
                    job.kill()


def oom_score() -> tuple[int, bytes]:
    """The file that says how soon the kernel kills this process for memory, and what it says."""
    fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    return fd, os.read(fd, 16)


def listening(where: int | str) -> int:
    """A socket that listens: one that was handed over, or a new one at a path."""
    import _socket

    if isinstance(where, int):
        os.set_inheritable(where, False)
        return where
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    made.bind(where)
    made.listen(GREETERS)
    return made.detach()


def accepted(listener: int) -> int | None:
    """The next stream, None where it is gone already."""
    import _socket

    socket = _socket.socket(fileno=listener)
    try:
        return socket._accept()[0]  # pyright: ignore[reportAttributeAccessIssue]
    except OSError:
        return None
    finally:
        socket.detach()


def settings_of(fd: int) -> dict[str, Any]:
    parts = []
    while part := os.read(fd, 1 << 16):
        parts.append(part)
    return loaded(b"".join(parts))


def main() -> None:
    settings = settings_of(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(nothing, fd)
    os.close(nothing)
    # what it kills at the end of a command would be the machine
    if settings["kills_leftovers"] and os.getpid() != 1:
        sys.exit("this program runs only as the first one of a sandbox")
    rights = Rights()
    listener = listening(settings["listen"])
    agent = Agent(settings, rights, listener)
    if settings["users_fd"] is not None:
        if settings["terminals"]:
            rights.bound_terminals()
        rights.enter_users(settings["users_fd"], settings["program_id"], settings["own_id"])
    if settings["calls"]:
        rights.filter_calls(bytes.fromhex(settings["calls"]))
    if settings["hidden"]:
        rights.hide()
    try:
        agent.run()
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)
