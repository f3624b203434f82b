"""Attempts to reach the network, or to be reached."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager

from sandboxes.core.sandbox import Sandbox
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import Attempt, Scene, of_group, run_payload, walls

SEND = """
def attack(family, kind, address, port, word):
    with socket.socket(int(family), int(kind)) as s:
        s.settimeout(3)
        s.connect((address, int(port)))
        s.send(word.encode())
        s.recv(100)
    return "an answer"
"""

DNS = """
def attack(family, kind, address, port, word):
    labels = [word.encode(), b"example", b"com"]
    name = b"".join(bytes([len(label)]) + label for label in labels) + bytes(1)
    query = struct.pack(">HHHHHH", 7, 256, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
    with socket.socket(int(family), int(kind)) as s:
        s.settimeout(3)
        s.sendto(query, (address, int(port)))
        s.recv(500)
    return "the resolver's answer"
"""

ABSTRACT = """
def attack(word):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\\0" + word)
        s.send(word.encode())
        s.recv(100)
    return "an answer"
"""

SOCKET_FILE = """
def attack(path, word):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.send(word.encode())
        s.recv(100)
    return "an answer"
"""

LISTEN = """
def attack(port, word):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", int(port)))
        s.listen()
        s.settimeout(1.5)
        try:
            peer = s.accept()[0]
        except TimeoutError:
            raise Refused("nobody could connect")
        peer.send(word.encode())
        peer.close()
    return "a caller"
"""

PING = """
def attack(address):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) as s:
        s.settimeout(3)
        body = struct.pack(">BBHHH", 8, 0, 0, 7, 7)
        check = ~sum(struct.unpack(">4H", body)) & 0xffff
        s.sendto(body[:2] + struct.pack(">H", check) + body[4:], (address, 0))
        s.recv(500)
    return "an echo"
"""

SNIFF = """
def attack(word):
    with socket.socket(17, socket.SOCK_RAW, socket.htons(3)) as s:  # AF_PACKET, all protocols
        s.settimeout(3)
        s.bind(("lo", 0))
        while True:
            if word.encode() in s.recv(2000):
                return word
"""

LO_DOWN = """
def attack():
    import fcntl
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", 0)
        fcntl.ioctl(s, 0x8914, request)  # SIOCSIFFLAGS: down
    return "the interface is down"
"""

PORTS = """
def attack(port):
    with open("/proc/net/tcp") as file:
        local = [line.split()[1] for line in file.readlines()[1:]]
    if any(int(entry.rpartition(":")[2], 16) == int(port) for entry in local):
        return "the host's listeners"
    raise Refused("not in the list")
"""

SOCK_DIAG = """
def attack(port):
    with socket.socket(16, socket.SOCK_RAW, 4) as s:  # AF_NETLINK, NETLINK_SOCK_DIAG
        body = struct.pack("=BBBBI", 2, 6, 0, 0, 0xffffffff) + bytes(48)
        s.send(struct.pack("=IHHII", 16 + len(body), 20, 0x301, 1, 0) + body)
        ports = []
        while True:
            data = s.recv(1 << 20)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                if kind in (2, 3):  # error, done
                    if int(port) in ports:
                        return "the host's listeners"
                    raise Refused(f"not in the list")
                ports.append(struct.unpack_from(">H", data, 20)[0])
                data = data[(length + 3) & ~3:]
"""

LINKS = """
def attack(names):
    with open("/proc/net/dev") as file:
        seen = {line.partition(":")[0].strip() for line in file.readlines()[2:]}
    if set(names.split()) & seen:
        return "names " + " ".join(seen)
    raise Refused(" ".join(seen))
"""

FAMILY = """
def attack(family, kind):
    socket.socket(int(family), int(kind)).close()
    return "a socket"
"""


@asynccontextmanager
async def port(_without: Set[Protection]) -> AsyncIterator[Scene]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    yield Scene((str(free), scenes.nonce()))


async def call_in(attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """The payload listens; the host tries to connect, as somebody outside would."""
    work, heard = asyncio.create_task(run_payload(attempt, sandbox, scene)), b""
    while not work.done() and not heard:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(scene.args[0]))
            heard = await reader.read(100)
            writer.close()
        await asyncio.sleep(0.02)
    words = await work
    return words if (heard.decode() == scene.args[1]) == words.startswith("won") else f"? {words}"


@asynccontextmanager
async def traffic(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """Datagrams that carry a secret over the host's loopback."""
    word = scenes.nonce()

    async def talk() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while True:
                with contextlib.suppress(OSError):
                    sender.sendto(word.encode(), ("127.0.0.1", 9))
                await asyncio.sleep(0.02)

    task = asyncio.create_task(talk())
    yield Scene((word,), proof=word)
    task.cancel()


@asynccontextmanager
async def bystander(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A listener of the host that nobody calls."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Scene((str(server.getsockname()[1]),))


def interfaces() -> str:
    return " ".join(name for _, name in socket.if_nameindex() if name != "lo")


of, words = scenes.of, scenes.words
attempt = of_group("network")
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
ADMIN = walls("USER", "CAPABILITIES")

ATTEMPTS = [
    attempt("TCP to the host's loopback", mechanism="TCP", refusal="ECONNREFUSED", payload=SEND,
            without=walls("NETWORK"), scene=scenes.listener(socket.AF_INET, TCP, "127.0.0.1")),
    attempt("TCP over IPv6 to the host's loopback", mechanism="TCP",
            refusal="ECONNREFUSED", payload=SEND,
            without=walls("NETWORK"), scene=scenes.listener(socket.AF_INET6, TCP, "::1")),
    attempt("TCP to the host's own address", mechanism="TCP", refusal="ENETUNREACH", payload=SEND,
            without=walls("NETWORK"), scene=scenes.listener(socket.AF_INET, TCP)),
    attempt("UDP to the host's loopback", mechanism="UDP", refusal="ECONNREFUSED", payload=SEND,
            without=walls("NETWORK"), scene=scenes.listener(socket.AF_INET, UDP, "127.0.0.1")),
    attempt("UDP to the host's own address", mechanism="UDP", refusal="ENETUNREACH", payload=SEND,
            without=walls("NETWORK"), scene=scenes.listener(socket.AF_INET, UDP)),
    attempt("data in a DNS query", mechanism="DNS", refusal="ENETUNREACH", payload=DNS,
            without=walls("NETWORK"), scene=scenes.listener(socket.AF_INET, UDP)),
    attempt("abstract Unix socket of the host", mechanism="abstract Unix sockets",
            refusal="ECONNREFUSED", payload=ABSTRACT,
            without=walls("NETWORK"), scene=scenes.abstract_socket),
    attempt("socket file of a host's service", mechanism="socket files",
            refusal="ENOENT", payload=SOCKET_FILE,
            shown=True, scene=scenes.socket_file),
    attempt("listening for callers from outside", mechanism="listening",
            refusal="nobody could connect", payload=LISTEN,
            without=walls("NETWORK"), scene=port, play=call_in),
    attempt("raw socket, ping of the host", mechanism="raw sockets",
            refusal="EPERM", payload=PING, as_root=True,
            by="system call filter", without=walls("NETWORK", "CALLS") | ADMIN,
            scene=of(scenes.host_address)),
    attempt("packet socket, listening in on the host", mechanism="packet sockets",
            refusal="EAFNOSUPPORT", payload=SNIFF,
            by="system call filter", without=walls("NETWORK", "CALLS") | ADMIN,
            scene=traffic, as_root=True),
    attempt("taking an interface down", mechanism="interface ioctl",
            refusal="EPERM", payload=LO_DOWN, without=ADMIN,
            by="no capabilities", as_root=True),
    attempt("the host's listeners in /proc/net", mechanism="/proc/net",
            refusal="not in the list", payload=PORTS,
            without=walls("NETWORK"), scene=bystander),
    attempt("the host's listeners by netlink", mechanism="netlink",
            refusal="EAFNOSUPPORT", payload=SOCK_DIAG,
            by="system call filter", without=walls("NETWORK", "CALLS"), scene=bystander),
    attempt("names of the host's interfaces", mechanism="interface ioctl",
            refusal="lo", payload=LINKS,
            without=walls("NETWORK"), scene=of(interfaces)),
    attempt("vsock, past the network namespace", mechanism="vsock",
            refusal="EAFNOSUPPORT", payload=FAMILY,
            without=walls("CALLS"), scene=words("40", "1")),
    attempt("Bluetooth socket", mechanism="rare socket families",
            refusal="EAFNOSUPPORT", payload=FAMILY, scene=words("31", "3"),
            without=walls("CALLS"), kernel="it has no Bluetooth here"),
]  # fmt: skip
