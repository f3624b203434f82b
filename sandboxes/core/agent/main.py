"""The agent's loop: requests in, answers out, any number of commands and servers at once.

Frames go both ways: the lengths of a header and of a body (two big-endian 32-bit numbers), then
both. The host sends requests {"op": ..., "id": n, ...} as marshal, which it alone may do; every
answer is a flat JSON object that carries the id. One thread and one epoll serve any number of
commands and servers at once, so that they share a workspace.

When a command ends, what it started ends too: its process group is killed, then every process
whose ancestors are all gone. Whatever runs here may try to take this program over, so the host
believes none of its answers beyond their form.
"""

# pathlib, json and contextlib cost more time to import than all of this takes to run
from __future__ import annotations

import marshal
import os
import resource
import select
import sys
import time

from sandboxes.core.agent.files import ipc_objects, read_file, wipe, write_file
from sandboxes.core.agent.frames import HEADER, flat_json, frame, lengths
from sandboxes.core.agent.job import CommandJob, alone, kept, kill, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PR_SET_DUMPABLE = 4
GONE_S = 2.0
"""For killed processes to be gone. One that the kernel holds longer is left to be seen."""


class Agent:
    def __init__(self, settings: dict[str, Any]) -> None:
        for name, value in settings["rlimits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))
        oom_fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        self.oom = oom_fd, os.read(oom_fd, 16)
        if settings["hidden"]:
            hide_memory()
        self.kills_leftovers = settings["kills_leftovers"]
        self.epoll = select.epoll()
        self.handlers: dict[int, Callable[[], object]] = {}
        self.jobs: dict[int, CommandJob] = {}
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
        while len(self.incoming) >= HEADER:
            head, body = lengths(self.incoming)
            end = HEADER + head + body
            if len(self.incoming) < end:
                return
            message = bytes(self.incoming[HEADER:end])
            del self.incoming[:end]
            self.handle(marshal.loads(message[:head]), message[head:])

    def handle(self, request: dict[str, Any], body: bytes) -> None:
        op, ident = request["op"], request["id"]
        try:
            if op in ("exec", "open"):
                self.jobs[ident] = CommandJob(self, request, body)
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
            elif op == "wipe":
                self.stop_everything()
                wipe(request["folders"])
                self.send({"id": ident, "event": "ok", "ipc": ipc_objects()})
            elif ident in self.jobs:  # the rest steers a job, which may just have ended
                self.steer(self.jobs[ident], request, body)
        except OSError as error:
            reason = error.strerror or "failed"
            self.send({"id": ident, "event": "error", "errno": error.errno or 0, "reason": reason})

    def steer(self, job: CommandJob, request: dict[str, Any], body: bytes) -> None:
        if request["op"] == "stdin":
            job.pending_in += body
            job.feed()
        elif request["op"] == "ack":
            job.acknowledge(request["bytes"])
        elif request["op"] == "kill":
            job.kill()

    def kill_orphans(self) -> None:
        """Kill what has no living ancestor among the jobs: daemons that left their group.

        With no job left one signal to everything is atomic, which a fork bomb cannot outrun;
        beside a server the tree is walked until a walk finds nothing. The dead count as processes
        until process 1 has waited for them, so the next command would find no room beside a bomb's.
        """
        if not self.kills_leftovers:
            return
        if not self.jobs:
            kill(-1)
            end = time.monotonic() + GONE_S
            while not alone() and time.monotonic() < end:
                time.sleep(0.001)
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

    def stop_everything(self) -> None:
        """Kill all that runs here beside the sandbox's own two processes, and see it gone."""
        if not self.kills_leftovers:
            sys.exit(1)  # without a process namespace "all that runs here" is the machine
        for job in list(self.jobs.values()):
            job.kill()
            job.ended()
        own = {1, os.getpid()}
        for _ in range(1000):
            kill(-1)
            if not parents().keys() - own:
                return
            time.sleep(0.001)
        sys.exit(1)  # something does not die: end the sandbox

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


def hide_memory() -> None:
    """Not dumpable: others of the same user cannot trace this process or open its pipes.

    By the part of ctypes that is written in C: all of it is a sixth of the agent's start-up.
    """
    import _ctypes

    own: Any = None  # this very program and what it is linked with
    prctl = _ctypes.dlsym(_ctypes.dlopen(own, 0), "prctl")
    if _ctypes.call_function(prctl, (PR_SET_DUMPABLE, 0, 0, 0, 0)) != 0:
        sys.exit("the agent's memory cannot be hidden")


def main(settings: dict[str, Any]) -> None:
    # what it kills at the end of a command would be the machine
    if settings["kills_leftovers"] and os.getpid() != 2:
        sys.exit("this program runs only as the first one of a sandbox")
    agent = Agent(settings)
    agent.send({"id": 0, "event": "ready"})
    agent.run()
