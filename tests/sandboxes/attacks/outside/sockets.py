"""More ways to the host's network: addresses, protocols and lists that the plain ones leave out."""

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import Attempt, Scene, Scenery, of_group, walls
from tests.sandboxes.attacks.outside.network import SEND, TCP, UDP

TO_ANY = """
def attack(family, kind, address, port, word):
    with socket.socket(socket.AF_INET) as s:
        s.settimeout(3)
        s.connect(("0.0.0.0", int(port)))
        s.send(word.encode())
        s.recv(100)
    return "an answer"
"""

MAPPED = TO_ANY.replace("AF_INET)", "AF_INET6)").replace("0.0.0.0", "::ffff:127.0.0.1")

BY_NAME = TO_ANY.replace("0.0.0.0", "localhost")

FAST_OPEN = """
def attack(family, kind, address, port, word):
    with socket.socket(socket.AF_INET) as s:
        s.sendto(word.encode(), 0x20000000, (address, int(port)))  # MSG_FASTOPEN
        s.recv(100)
    return "an answer"
"""

MULTIPATH = """
def attack(family, kind, address, port, word):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as s:
        s.settimeout(3)
        s.connect((address, int(port)))
        s.send(word.encode())
        s.recv(100)
    return "an answer"
"""

MANY_AT_ONCE = """
def attack(family, kind, address, port, word):
    class Address(ctypes.Structure):
        _fields_ = [("family", ctypes.c_ushort), ("port", ctypes.c_uint16),
                    ("address", ctypes.c_uint8 * 4), ("zero", ctypes.c_uint8 * 8)]
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
    class Message(ctypes.Structure):
        _fields_ = [("name", ctypes.POINTER(Address)), ("name_length", ctypes.c_uint),
                    ("vectors", ctypes.POINTER(Vector)), ("count", ctypes.c_size_t),
                    ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
                    ("flags", ctypes.c_int), ("length", ctypes.c_uint)]
    to = Address(2, socket.htons(int(port)), (127, 0, 0, 1))
    vector = Vector(word.encode(), len(word))
    message = Message(ctypes.pointer(to), 16, ctypes.pointer(vector), 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        if libc.sendmmsg(s.fileno(), ctypes.byref(message), 1, 0) != 1:
            raise OSError(ctypes.get_errno(), "sendmmsg")
        try:
            s.recv(100)
        except TimeoutError:
            raise Refused("nobody heard it")
    return "an answer"
"""

MULTICAST = """
def attack(group, port, word):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        s.settimeout(0.5)
        s.sendto(word.encode(), (group, int(port)))
        try:
            s.recv(100)
        except TimeoutError:
            raise Refused("nobody heard it")
    return "an answer"
"""

TO_INTERFACE = """
def attack(names):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, 25, names.split()[0].encode() + bytes(1))
    return "bound to an interface of the host"
"""

ADDRESSES = """
def attack(address):
    import fcntl
    buffer = ctypes.create_string_buffer(4000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        ask = struct.pack("iL", len(buffer), ctypes.addressof(buffer))
        size = struct.unpack("iL", fcntl.ioctl(s, 0x8912, ask))[0]  # SIOCGIFCONF
    seen = [socket.inet_ntoa(buffer.raw[i + 20:i + 24]) for i in range(0, size, 40)]
    if address in seen:
        return "addresses " + " ".join(seen)
    raise Refused(" ".join(seen) or "no address")
"""

DUMP = """
def dump(kind):
    with socket.socket(16, socket.SOCK_RAW, 0) as s:  # AF_NETLINK, NETLINK_ROUTE
        s.send(struct.pack("=IHHII", 17, kind, 0x301, 1, 0) + bytes(4))
        found = b""
        while True:
            data = s.recv(1 << 20)
            found += data
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind in (2, 3):  # error, done
                    return found
                data = data[(length + 3) & ~3:]

def attack(address):
    if socket.inet_aton(address) in dump(KIND):
        return "the host's address " + address
    raise Refused("not in the list")
"""

FILE_OF_NET = """
def attack(path, word):
    with open(path) as file:
        if word in file.read():
            return "it is in the list"
    raise Refused("not in the list")
"""

DESCRIPTOR = """
def attack(word):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\\0" + word)
        _, fds, _, _ = socket.recv_fds(s, 10, 1)
        return os.pread(fds[0], 100, 0).decode()
"""

SEND_DESCRIPTOR = """
def attack(word):
    with open("/workspace/own", "w+") as file:
        file.write(word)
        file.flush()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("\\0" + word)
            socket.send_fds(s, [b"x"], [file.fileno()])
            s.recv(1)
    return "the host holds a file of this sandbox"
"""

DATAGRAM = """
def attack(word):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(word.encode(), "\\0" + word)
    return "a datagram"
"""

PIPE_OF_HOST = """
def attack(path, word):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, word.encode())
    return "a line in the host's pipe"
"""

EVENTS = """
def attack():
    with socket.socket(16, socket.SOCK_RAW, 15) as s:  # NETLINK_KOBJECT_UEVENT
        s.bind((0, 1))
    return "the kernel's events about devices are heard"
"""

NEW_INTERFACE = """
def attack():
    name = b"dummy0" + bytes(2)
    kind = struct.pack("=HH", 9, 1) + b"dummy" + bytes(3)
    body = bytes(16) + struct.pack("=HH", 11, 3) + b"dummy0\\0" + bytes(1)
    body += struct.pack("=HH", 4 + len(kind), 18) + kind
    with socket.socket(16, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("=IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
        error = struct.unpack_from("=i", s.recv(1000), 16)[0]
    if error not in (0, -95):  # no such kind here, which is found out after the check of rights
        raise OSError(-error, "")
    return "an interface may be made"
"""


@asynccontextmanager
async def group(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A listener of the host in a multicast group on its loopback."""
    word, address = scenes.nonce(), "239.255.77.77"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 0))
        member = socket.inet_aton(address) + socket.inet_aton("127.0.0.1")
        server.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        port = str(server.getsockname()[1])
        with scenes.serving(server) as arrived:
            yield Scene((address, port, word), reached=lambda: word.encode() in arrived)


@asynccontextmanager
async def names_of_sockets(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A Unix socket of the host whose name tells something."""
    word = scenes.nonce()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{word}")
        yield Scene(("/proc/net/unix", word))


@asynccontextmanager
async def routes(_without: Set[Protection]) -> AsyncIterator[Scene]:
    yield Scene(("/proc/net/fib_trie", scenes.host_address()))


@asynccontextmanager
async def giver(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A service of the host that hands an open file to whoever asks."""
    word, secret = scenes.nonce(), scenes.nonce()
    with socket.socket(socket.AF_UNIX) as server, tempfile.TemporaryFile() as file:
        file.write(secret.encode())
        file.flush()
        server.bind(f"\0{word}")
        server.listen()
        server.setblocking(False)

        async def give() -> None:
            peer, _ = await asyncio.get_running_loop().sock_accept(server)
            with peer:
                socket.send_fds(peer, [b"x"], [file.fileno()])
                await asyncio.sleep(1)

        task = asyncio.create_task(give())
        yield Scene((word,), proof=secret)
        task.cancel()


@asynccontextmanager
async def taker(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A service of the host that takes an open file from whoever comes."""
    word, taken = scenes.nonce(), list[bytes]()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{word}")
        server.listen()
        server.setblocking(False)

        async def take() -> None:
            peer, _ = await asyncio.get_running_loop().sock_accept(server)
            with peer:
                peer.setblocking(True)
                _, fds, _, _ = await asyncio.to_thread(socket.recv_fds, peer, 10, 1)
                taken.extend(os.pread(fd, 100, 0) for fd in fds)
                for fd in fds:
                    os.close(fd)
                peer.send(b".")

        task = asyncio.create_task(take())
        yield Scene((word,), reached=lambda: word.encode() in taken)
        task.cancel()


@asynccontextmanager
async def mailbox(_without: Set[Protection]) -> AsyncIterator[Scene]:
    word = scenes.nonce()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(f"\0{word}")
        server.setblocking(False)
        heard = list[bytes]()

        def reached() -> bool:
            with contextlib.suppress(BlockingIOError):
                heard.append(server.recv(100))
            return word.encode() in heard

        yield Scene((word,), reached=reached)


@asynccontextmanager
async def named_pipe(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A pipe in the host's file system that a service reads its orders from."""
    word = scenes.nonce()
    with scenes.open_folder() as folder:
        path = folder / "orders"
        os.mkfifo(path)
        path.chmod(0o666)
        reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        heard = list[bytes]()

        def reached() -> bool:
            with contextlib.suppress(BlockingIOError):
                heard.append(os.read(reader, 100))
            return word.encode() in heard

        try:
            yield Scene((str(path), word), str(folder), reached=reached)
        finally:
            os.close(reader)


def interfaces() -> str:
    names = " ".join(name for _, name in socket.if_nameindex() if name != "lo")
    if not names:
        pytest.skip("this machine has no interface but loopback's")
    return names


NETWORK, CALLS = walls("NETWORK"), walls("CALLS")
NETLINK: dict[str, Any] = {
    "mechanism": "netlink", "refusal": "EAFNOSUPPORT", "by": "system call filter",
}  # fmt: skip
LOOPBACK: Scenery = scenes.listener(socket.AF_INET, TCP, "127.0.0.1")
HEARING: Scenery = scenes.listener(socket.AF_INET, UDP, "127.0.0.1")
attempt = of_group("network")
GONE = "ECONNREFUSED"


def tcp(name: str, mechanism: str, payload: str, **more: object) -> Attempt:
    return attempt(
        name, mechanism=mechanism, payload=payload,
        **{"scene": LOOPBACK, "without": NETWORK, "refusal": GONE} | more,
    )  # fmt: skip


ATTEMPTS = [
    tcp("TCP to 0.0.0.0, which is loopback", "addresses", TO_ANY),
    tcp("TCP to loopback written as an IPv6 address", "addresses", MAPPED),
    tcp("TCP to another address of loopback", "addresses", SEND,
        scene=scenes.listener(socket.AF_INET, TCP, "127.77.0.9")),
    tcp("TCP to localhost by its name", "addresses", BY_NAME),
    tcp("data in the first packet of TCP", "TCP fast open", FAST_OPEN),
    tcp("multipath TCP", "multipath TCP", MULTIPATH, without=NETWORK | CALLS,
        refusal="EPROTONOSUPPORT", by="system call filter"),
    attempt("UDP by sendmmsg, without connecting", mechanism="sendmmsg", payload=MANY_AT_ONCE,
            without=NETWORK, scene=HEARING, refusal="nobody heard it"),
    attempt("multicast on loopback", mechanism="multicast", payload=MULTICAST, without=NETWORK,
            scene=group, refusal="nobody heard it"),
    attempt("binding to an interface of the host", mechanism="SO_BINDTODEVICE",
            payload=TO_INTERFACE, without=NETWORK, scene=scenes.of(interfaces), refusal="ENODEV"),
    attempt("the host's addresses by ioctl", mechanism="interface ioctl", payload=ADDRESSES,
            without=NETWORK, scene=scenes.of(scenes.host_address), refusal="127.0.0.1"),
    attempt("the host's addresses by netlink", payload=f"KIND = 22\n{DUMP}",
            without=NETWORK | CALLS, scene=scenes.of(scenes.host_address), **NETLINK),
    attempt("the host's routes by netlink", payload=f"KIND = 26\n{DUMP}",
            without=NETWORK | CALLS, scene=scenes.of(scenes.host_address), **NETLINK),
    attempt("the host's routes in /proc/net", mechanism="/proc/net", payload=FILE_OF_NET,
            without=NETWORK, scene=routes, refusal="not in the list"),
    attempt("names of the host's Unix sockets", mechanism="/proc/net", payload=FILE_OF_NET,
            without=NETWORK, scene=names_of_sockets, refusal="not in the list"),
    attempt("a file of the host, handed over by a socket", mechanism="SCM_RIGHTS",
            payload=DESCRIPTOR, without=NETWORK, scene=giver, refusal=GONE),
    attempt("a file of the sandbox, handed to the host", mechanism="SCM_RIGHTS",
            payload=SEND_DESCRIPTOR, without=NETWORK, scene=taker, refusal=GONE),
    attempt("a datagram to an abstract socket", mechanism="abstract Unix sockets",
            payload=DATAGRAM, without=NETWORK, scene=mailbox, refusal=GONE),
    attempt("a named pipe of the host", mechanism="named pipes", payload=PIPE_OF_HOST, shown=True,
            scene=named_pipe, refusal="ENOENT"),
    attempt("events about devices by netlink", payload=EVENTS, without=CALLS, **NETLINK),
    attempt("a new interface", payload=NEW_INTERFACE, as_root=True,
            without=CALLS | walls("USER", "CAPABILITIES"), **NETLINK),
]  # fmt: skip
