"""Kernel namespaces of the players' own: for mounts that end with the process, and for each Pod."""

import ctypes
import fcntl
import os
import socket
import threading
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x40000000,
)  # fmt: skip
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 2, 4, 0x4000, 1 << 18
MNT_DETACH = 2
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
IFREQ_BYTES = 40

SHARED = ("net", "ipc", "uts")
"""What all containers of a Pod are in together."""

_library = ctypes.CDLL(None, use_errno=True)


def own_mounts() -> None:
    """From now on nothing that this process mounts is seen elsewhere, or left behind."""
    _checked(_library.unshare(CLONE_NEWNS), "unshare")
    _mount(None, Path("/"), None, MS_REC | MS_PRIVATE, None)


def mount_tmpfs(folder: Path, size_bytes: int | None) -> None:
    options = "mode=0777" if size_bytes is None else f"mode=0777,size={size_bytes}"
    _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, options)


def unmount(folder: Path) -> None:
    _library.umount2(os.fsencode(folder), MNT_DETACH)


def _mount(
    source: str | None, target: Path, kind: str | None, flags: int, options: str | None
) -> None:
    words = [None if each is None else each.encode() for each in (source, kind, options)]
    done = _library.mount(words[0], os.fsencode(target), words[1], flags, words[2])
    _checked(done, f"mount on {target}")


def _checked(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


class PodNamespaces:
    """Network (a loopback and nothing else), IPC and host name of one Pod, held by descriptors."""

    def __init__(self, hostname: str) -> None:
        self.fds: dict[str, int] = {}
        problem: list[OSError] = []

        def make() -> None:
            try:
                _checked(_library.unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS), "unshare")
                socket.sethostname(hostname[:63])
                loopback_up()
                for name in SHARED:
                    self.fds[name] = os.open(f"/proc/thread-self/ns/{name}", os.O_RDONLY)
            except OSError as error:
                problem.append(error)

        thread = threading.Thread(target=make)  # it alone is in them, and ends at once
        thread.start()
        thread.join()
        if problem:
            self.close()
            raise problem[0]

    def enter(self) -> list[str]:
        """The command that runs the next one in them; it needs the descriptors."""
        paths = [f"--{name}=/proc/self/fd/{fd}" for name, fd in self.fds.items()]
        return ["/usr/bin/nsenter", *paths, "--"]

    def close(self) -> None:
        while self.fds:
            os.close(self.fds.popitem()[1])


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = b"lo".ljust(16, b"\0") + IFF_UP.to_bytes(2, "little")
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request.ljust(IFREQ_BYTES, b"\0"))
