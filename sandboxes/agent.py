"""The one program of ours inside a sandbox: runs commands for the host over two pipes.

Frames go both ways: lengths of a JSON header and of a body (two big-endian 32-bit numbers), then
both. The host sends {"op": ..., "id": n}; every answer carries the id. One thread and one selector
serve any number of commands and servers at once, so they share a workspace. Standard library
only, and started without `site`: its imports are the start-up time of every sandbox.

When a command ends, what it started ends too: its process group is killed, then every process
whose ancestors are all gone. Whatever runs here may try to take this program over, so the host
believes none of its answers beyond their form.
"""

# Importing pathlib would cost every sandbox start-up time.
# ruff: noqa: PTH103, PTH120, PTH123, PTH208

import contextlib
import errno
import json
import os
import resource
import selectors
import signal
import stat
import struct
import sys
import time

HEADER = struct.Struct(">II")
CHUNK = 65536
WINDOW = 1 << 20
"""Bytes of a server's output that may be on their way to the host, not yet read there."""

PR_SET_DUMPABLE = 4


def frame(header, body=b""):
    text = json.dumps(header).encode()
    return HEADER.pack(len(text), len(body)) + text + body


class Job:
    """A running command. `stream` jobs pass their output on as it comes; others keep it."""

    def __init__(self, agent, ident, request, stdin):
        self.agent, self.id, self.stream = agent, ident, request["op"] == "open"
        self.cap = request["output_bytes"]
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.truncated = self.timed_out = False
        self.pending_in, self.close_in = bytearray(stdin), not self.stream
        self.in_flight = 0
        self.deadline = None
        if request.get("timeout_s") is not None:
            self.deadline = time.monotonic() + request["timeout_s"]
        ends = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
        inside, outside = (
            (ends[0][0], ends[1][1], ends[2][1]),
            (ends[0][1], ends[1][0], ends[2][0]),
        )
        try:
            self.pid = start(request, inside, agent.oom)
        except BaseException:
            for fd in outside:
                os.close(fd)
            raise
        finally:
            for fd in inside:
                os.close(fd)
        for fd in outside:
            os.set_blocking(fd, False)
        self.stdin, self.fds = outside[0], {"stdout": outside[1], "stderr": outside[2]}
        self.pidfd = os.pidfd_open(self.pid)
        agent.watch(self.pidfd, selectors.EVENT_READ, self.ended)
        for name in self.fds:
            self.watch_output(name)
        self.feed()

    def watch_output(self, name):
        self.agent.watch(self.fds[name], selectors.EVENT_READ, lambda: self.read(name))

    def feed(self):
        """Write waiting input, as much as the pipe takes; close it after the last byte if asked."""
        while self.stdin is not None and self.pending_in:
            try:
                del self.pending_in[: os.write(self.stdin, self.pending_in[:CHUNK])]
            except BlockingIOError:
                self.agent.watch(self.stdin, selectors.EVENT_WRITE, self.feed)
                return
            except OSError:  # the command closed its end: what is left has no reader
                self.drop_stdin()
        if self.stdin is not None:
            self.agent.unwatch(self.stdin)
            if self.close_in:
                self.drop_stdin()

    def drop_stdin(self):
        self.pending_in.clear()
        if self.stdin is not None:
            self.agent.unwatch(self.stdin)
            os.close(self.stdin)
            self.stdin = None

    def read(self, name):
        """One chunk of output; True if there was one."""
        fd = self.fds.get(name)
        if fd is None:
            return False
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.agent.unwatch(fd)
            os.close(self.fds.pop(name))
            return False
        if self.stream and name == "stdout":
            self.in_flight += len(data)
            self.agent.send({"id": self.id, "event": "stdout"}, data)
            if self.in_flight >= WINDOW:
                self.agent.unwatch(fd)
        elif self.stream:  # of a server's stderr the end tells why it died
            kept = self.output[name]
            kept += data
            del kept[: -self.cap]
        else:
            kept = self.output[name]
            room = self.cap - len(kept)
            kept += data[:room]
            self.truncated |= len(data) > room
        return True

    def acknowledge(self, count):
        self.in_flight -= count
        if "stdout" in self.fds and self.in_flight < WINDOW:
            self.watch_output("stdout")

    def ended(self):
        self.agent.unwatch(self.pidfd)
        os.close(self.pidfd)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # before the wait, while the number is still ours
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        del self.agent.jobs[self.id]
        self.agent.kill_orphans()
        self.drop_stdin()
        for name in list(self.fds):
            # what is in the pipe now, no more: a writer that got away must not hold us up
            for _ in range(64):
                if not self.read(name):
                    break
            if name in self.fds:
                self.agent.unwatch(self.fds[name])
                os.close(self.fds.pop(name))
        out, err = bytes(self.output["stdout"]), bytes(self.output["stderr"])
        header = {
            "id": self.id,
            "event": "exit",
            "exit_code": status,
            "timed_out": self.timed_out,
            "truncated": self.truncated,
            "stdout_bytes": len(out),
        }
        self.agent.send(header, out + err)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def start(request, stdio, oom):
    """Fork and exec in a session of its own; OSError of the exec is raised here.

    The child is the first that the kernel kills when memory runs out, so that the agent lives to
    say what happened. The score is written to a descriptor opened while that was still allowed.
    """
    oom_fd, own_score = oom
    report_r, report_w = os.pipe2(os.O_CLOEXEC)
    os.pwrite(oom_fd, b"1000", 0)
    try:
        pid = os.fork()
        if pid == 0:
            become(request, stdio, report_w)  # never returns
    except OSError:
        os.close(report_r)
        raise
    finally:
        os.pwrite(oom_fd, own_score, 0)
        os.close(report_w)
    failed = os.read(report_r, 16)  # empty once the exec closed the pipe
    os.close(report_r)
    if failed:
        os.waitpid(pid, 0)
        raise OSError(int(failed), os.strerror(int(failed)))
    return pid


def become(request, stdio, report):
    try:
        os.setsid()
        for target, fd in enumerate(stdio):
            os.dup2(fd, target)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, programs do not
            signal.signal(number, signal.SIG_DFL)
        os.chdir(request["cwd"])
        os.execvpe(request["argv"][0], request["argv"], request["env"])
    except BaseException as error:
        number = error.errno if isinstance(error, OSError) else errno.EINVAL
        os.write(report, str(number).encode())
    finally:
        os._exit(127)


def parents():
    """Process id -> parent's, of everything alive here."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] != b"Z":
                    found[int(name)] = int(fields[1])
    return found


def read_file(path, limit):
    """Up to `limit` bytes of a regular file. Opened without waiting: a FIFO would never answer."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(limit)


def write_file(path, data, mode):
    os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags, mode)
    with open(fd, "wb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        file.write(data)


class Agent:
    def __init__(self, settings):
        for name, value in settings["rlimits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (value, value))
        oom_fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        self.oom = oom_fd, os.read(oom_fd, 16)
        hide_memory()
        self.selector = selectors.DefaultSelector()
        self.jobs = {}
        self.incoming = bytearray()
        self.watch(0, selectors.EVENT_READ, self.receive)

    def watch(self, fd, events, handler):
        try:
            self.selector.modify(fd, events, handler)
        except KeyError:
            self.selector.register(fd, events, handler)

    def unwatch(self, fd):
        with contextlib.suppress(KeyError):
            self.selector.unregister(fd)

    def send(self, header, body=b""):
        data = memoryview(frame(header, body))
        while data:
            data = data[os.write(1, data) :]

    def receive(self):
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
            self.handle(json.loads(message[:head]), message[head:])

    def handle(self, request, body):
        op, ident = request["op"], request["id"]
        job = self.jobs.get(ident)
        try:
            if op in ("exec", "open"):
                self.jobs[ident] = Job(self, ident, request, body)
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
            elif job is not None:  # the rest speaks of a job, which may just have ended
                self.steer(job, request, body)
        except OSError as error:
            known = {"errno": error.errno or 0, "reason": error.strerror or str(error)}
            self.send({"id": ident, "event": "error", **known})

    def steer(self, job, request, body):
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

    def kill_orphans(self):
        """Kill what has no living ancestor among the jobs: daemons that left their group.

        With no job left one signal to everything is atomic, which a fork bomb cannot outrun;
        beside a server the tree is walked until a walk finds nothing.
        """
        if not self.jobs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            return
        roots = {job.pid for job in self.jobs.values()}
        for _ in range(200):
            parent = parents()
            strays = [pid for pid in parent if not kept(pid, parent, roots)]
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not strays:
                return
        sys.exit(1)  # it forks faster than we kill: end the sandbox

    def run(self):
        while True:
            deadlines = [job.deadline for job in self.jobs.values() if job.deadline is not None]
            wait = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
            for key, _ in self.selector.select(wait):
                if key.fd in self.selector.get_map():  # not dropped by an earlier handler
                    key.data()
            now = time.monotonic()
            for job in self.jobs.values():
                if job.deadline is not None and job.deadline <= now:
                    job.deadline, job.timed_out = None, True
                    job.kill()


def kept(pid, parent, roots):
    """Whether `pid` is the agent's own, or below a running job."""
    if pid in (1, os.getpid()):
        return True
    while pid in parent:
        if pid in roots:
            return True
        pid = parent[pid]
    return False


def hide_memory():
    """Not dumpable: others of the same user cannot trace this process or open its pipes."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def main(settings):
    if os.getpid() != 2:  # what it kills at the end of a command would be the machine
        sys.exit("this program runs only as the first one of a sandbox")
    agent = Agent(settings)
    agent.send({"id": 0, "event": "ready"})
    agent.run()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
