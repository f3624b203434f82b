"""Processes that copy bytes between joined connections, so that one process need not hold them all.

A stream takes two descriptors of whoever proxies it, and 10,000 of them more than a process may
have on many machines. Both sockets of a joined stream are handed to one of these processes with the
bytes that are still owed to either side. `python -m tests.kubernetes.double.serving.pipes FD`: the
descriptor is a socket on which pairs come; when it ends, so does the process.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys

from tests.kubernetes.double.serving.halves import Half

DROP = b"drop"
MOST_BYTES = 1 << 17


class HandedHalf(Half):
    """One that was handed to this process."""

    open: set["HandedHalf"] = set()  # noqa: RUF012  # of the process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()  # until there is another side
        HandedHalf.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        HandedHalf.open.discard(self)
        super().connection_lost(exc)


async def joined(sockets: list[socket.socket], owed: bytes) -> None:
    """`owed` is for the first one, the client."""
    loop = asyncio.get_running_loop()
    halves = []
    for each in sockets:
        each.setblocking(False)
        _, half = await loop.create_connection(HandedHalf, sock=each)
        halves.append(half)
    client, node = halves
    client.other, node.other = node, client
    assert client.transport is not None
    assert node.transport is not None
    client.transport.write(owed)
    for half in (client.transport, node.transport):
        with contextlib.suppress(RuntimeError):
            half.resume_reading()


async def serve(control: socket.socket) -> None:
    """Until the double is gone."""
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    ended = loop.create_future()

    def receive() -> None:
        try:
            data, fds, _, _ = socket.recv_fds(control, MOST_BYTES, 2)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            loop.remove_reader(control)
            ended.set_result(None)
        elif data == DROP:
            for half in list(HandedHalf.open):
                if half.transport is not None:
                    half.transport.abort()
        else:
            task = loop.create_task(joined([socket.socket(fileno=fd) for fd in fds], data[1:]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    control.setblocking(False)
    loop.add_reader(control, receive)
    await ended


class Pipes:
    """Such processes, of the double; each pair goes to the next one."""

    def __init__(self, count: int) -> None:
        self._workers: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []
        self.handed = 0
        for _ in range(count):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                name = "tests.kubernetes.double.serving.pipes"
                process = subprocess.Popen(
                    [sys.executable, "-m", name, str(theirs.fileno())], pass_fds=[theirs.fileno()]
                )
            self._workers.append((ours, process))

    def __bool__(self) -> bool:
        return bool(self._workers)

    def hand(self, client: asyncio.Transport, node: asyncio.Transport, owed: bytes) -> None:
        """Both connections, which are no longer ours. What they have received must have been
        taken, and their buffers be empty."""
        control, _ = self._workers[self.handed % len(self._workers)]
        fds = [each.get_extra_info("socket").fileno() for each in (client, node)]
        socket.send_fds(control, [b"\0" + owed], fds)
        self.handed += 1
        for each in (client, node):
            each.abort()  # of descriptors that have been copied: nothing is sent

    def drop(self) -> int:
        for control, _ in self._workers:
            control.send(DROP)
        handed, self.handed = self.handed, 0
        return handed

    def close(self) -> None:
        for control, process in self._workers:
            control.close()
            process.wait()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as found:
        os.set_inheritable(found.fileno(), False)
        asyncio.run(serve(found))
