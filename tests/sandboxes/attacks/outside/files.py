"""Attempts on files of the host: from inside, and through the host's own file calls."""

import contextlib
import ctypes
import os
import stat
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from records.errors import ItemError
from sandboxes.core.sandbox import Sandbox
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import CAPS, Attempt, Scene, is_root, of_group, python, walls

ROOT = Path(__file__).parents[4]

READ = """
def attack(path):
    with open(path) as file:
        return file.read(100).replace("\\n", " ")
"""

LIST = """
def attack(path, known):
    if known in os.listdir(path):
        return "its listing"
    raise Refused("another folder stands there")
"""

PROC_ROOT = """
def attack(path):
    with open("/proc/self/root/.." + path) as file:
        return file.read()
"""

VICTIM = """
def attack(pid, path):
    with open(f"/proc/{pid}/%s" % PLACE.replace("PATH", path), "rb") as file:
        return file.read().replace(bytes(1), b" ").decode().replace("\\n", " ")
"""

VICTIM_FILES = """
def attack(pid, path):
    for name in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{name}") == path:
            with open(f"/proc/{pid}/fd/{name}") as file:
                return file.read()
    raise Refused("no such file is open")
"""

WRITE = """
def attack(path, word):
    with open(path, "w") as file:
        file.write(word)
    return "written"
"""

HARD_LINK = """
def attack(path):
    os.link(path, "/workspace/link")
    return "a second name for it"
"""

OPEN_DEVICE = """
def attack(path):
    os.close(os.open(path, os.O_RDONLY))
    return "the device is open"
"""

MAKE_DEVICE = """
def attack():
    os.mknod("/tmp/device", 0o60666, os.makedev(8, 0))
    return "a device node"
"""

REMOUNT = """
def attack(path, word):
    folder = os.path.dirname(path)
    syscall(NUMBERS["mount"], None, folder.encode(), None, ctypes.c_ulong(0x1020), None)
    with open(path, "w") as file:
        file.write(word)
    return "written"
"""

BY_HANDLE = """
def attack(folder, kind, handle):
    handle = bytes.fromhex(handle)
    buffer = ctypes.create_string_buffer(struct.pack("=Ii", len(handle), int(kind)) + handle)
    mount = os.open(folder, os.O_RDONLY)
    fd = syscall(NUMBERS["open_by_handle_at"], mount, buffer, os.O_RDONLY)
    return os.read(fd, 100).decode()
"""


def in_proc(place: str) -> str:
    return f"PLACE = {place!r}\n{VICTIM}"


async def read_outside(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """The host reads a path that climbs out of the working folder."""
    return await read_by_host(sandbox, f"../../../..{scene.args[0]}")


async def read_link(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """A link to the host's file lies where the host expects a result."""
    await sandbox.exec(["ln", "-s", scene.args[0], "/workspace/result"])
    return await read_by_host(sandbox, "result")


async def read_by_host(sandbox: Sandbox, path: str) -> str:
    try:
        return f"won {(await sandbox.read_file(path)).decode()}"
    except ItemError as error:
        return f"refused {error.args[0].rpartition(': ')[2]}"


async def write_outside(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    path, word = scene.args
    try:
        await sandbox.write_file(f"../..{path}", word.encode())
    except ItemError as error:
        return f"refused {str(error).rpartition(': ')[2]}"
    return "won"


SWAP = """
import os, sys
os.symlink(sys.argv[1], "/workspace/link")
for name in ("file", "result"):
    open(f"/workspace/{name}", "w").write("own")
print("tried", flush=True)
while True:
    for source in ("link", "file"):
        os.link(f"/workspace/{source}", "/workspace/next", follow_symlinks=False)
        os.rename("/workspace/next", "/workspace/result")
        if source == "file":
            os.unlink("/workspace/file")
            open("/workspace/file", "w").write("own")
"""


async def race(sandbox: Sandbox, scene: Scene, word: bytes | None) -> str:
    """A name turns from a file into a link and back while the host reads or writes it."""
    swapping = await sandbox.open_stdio(python(SWAP, scene.args[0]))
    if await swapping.read() != b"tried\n":
        return f"unclear: {swapping.ended}"
    seen, refused, lost = set[bytes](), 0, False
    for _ in range(3000):
        lost = scene.reached() if scene.reached else str(scene.proof).encode() in seen
        if lost or refused > 5:
            break
        try:
            if word is None:
                seen.add(await sandbox.read_file("result"))
            else:
                await sandbox.write_file("result", word)
        except ItemError:
            refused += 1
    if lost:
        return f"won {scene.proof}"
    # it met the link, which led nowhere
    return "refused the link leads nowhere" if refused else "unclear: no link was met"


async def race_reading(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    return await race(sandbox, scene, None)


async def race_writing(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    return await race(sandbox, scene, scene.args[1].encode())


async def read_sparse(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """A file that costs the sandbox nothing and would fill the host's memory."""
    await sandbox.exec(["truncate", "-s", "8M", "/workspace/result"])
    try:
        return f"won {len(await sandbox.read_file('result'))} bytes"
    except ItemError as error:
        return f"refused {str(error).rpartition(' is ')[2]}"


@asynccontextmanager
async def checkout(_without: Set[Protection]) -> AsyncIterator[Scene]:
    if ROOT.is_relative_to("/tmp"):
        pytest.skip("the checkout lies below /tmp, over which every sandbox has its own")
    first = (ROOT / "pyproject.toml").read_text()[:30].splitlines()[0]
    yield Scene((str(ROOT / "pyproject.toml"),), str(ROOT), proof=first)


@asynccontextmanager
async def home(_without: Set[Protection]) -> AsyncIterator[Scene]:
    folder = Path.home()
    names = sorted(path.name for path in folder.iterdir())
    if not names or folder.is_relative_to("/tmp"):
        pytest.skip("no home folder with anything in it")
    yield Scene((str(folder), names[0]), str(folder))


@asynccontextmanager
async def of_another_user(without: Set[Protection]) -> AsyncIterator[Scene]:
    """A closed file of root's: root's sandboxes have users of their own, others' the caller's."""
    if not is_root():
        pytest.skip("the file would be the caller's own")
    async with scenes.secret_file(0o600)(without) as scene:
        yield scene


BASIC = {"full", "null", "ptmx", "random", "tty", "urandom", "zero", "console"}


def open_device() -> str:
    """A device of this machine that everybody may open, which a sandbox should not have."""
    for path in sorted(Path("/dev").iterdir()):
        mode = path.stat().st_mode if path.exists() else 0
        if stat.S_ISCHR(mode) and mode & stat.S_IROTH and path.name not in BASIC | {"kmsg"}:
            return str(path)
    pytest.skip("no further device here that everybody may open")


def disk() -> str:
    """A block device that root can open here."""
    for path in sorted(Path("/dev").iterdir()):
        if stat.S_ISBLK(path.stat(follow_symlinks=False).st_mode):
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_RDONLY))
                return str(path)
    pytest.skip("no block device in /dev that root could open")


@asynccontextmanager
async def beside(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A folder that the sandbox is given, and a secret on the same disk outside it."""
    libc = ctypes.CDLL(None, use_errno=True)
    with scenes.open_folder() as folder:
        word = scenes.nonce()
        (folder / "given").mkdir()
        secret = folder / "secret"
        secret.write_text(word)
        secret.chmod(0o600)
        buffer = ctypes.create_string_buffer(128 + 8)
        ctypes.memmove(buffer, (128).to_bytes(4, "little"), 4)
        mount = ctypes.c_int()
        if libc.name_to_handle_at(-100, os.fsencode(secret), buffer, ctypes.byref(mount), 0):
            pytest.skip(f"no file handles here: {os.strerror(ctypes.get_errno())}")
        size, kind = (int.from_bytes(buffer.raw[i : i + 4], "little") for i in (0, 4))
        handle = buffer.raw[8 : 8 + size].hex()
        given = str(folder / "given")
        yield Scene((given, str(kind), handle), given, proof=word)


attempt = of_group("files outside")
MISSING = "No such file or directory"
ADMIN = walls("CALLS", "USER", "CAPABILITIES")
OPEN = walls("PROCESSES", "USER", "CAPABILITIES")

ATTEMPTS = [
    attempt("absolute path", mechanism="paths", refusal="ENOENT", payload=READ, shown=True,
            scene=scenes.secret_file()),
    attempt("read_file of a path with ..", mechanism="files through the host",
            refusal=MISSING, shown=True,
            scene=scenes.secret_file(), play=read_outside),
    attempt("read_file of a symbolic link", mechanism="files through the host",
            refusal=MISSING, shown=True,
            scene=scenes.secret_file(), play=read_link),
    attempt("read_file while a file turns into a link", mechanism="races of links",
            refusal="the link leads nowhere",
            shown=True, scene=scenes.secret_file(), play=race_reading),
    attempt("write_file of a path with ..", mechanism="files through the host",
            refusal="Read-only file system",
            without=walls("READ_ONLY"), given=True, scene=scenes.target_file, play=write_outside),
    attempt("write_file while a file turns into a link", mechanism="races of links",
            refusal="the link leads nowhere",
            without=walls("READ_ONLY"), shown=True, by="minimal root", scene=scenes.target_file,
            play=race_writing),
    attempt("read_file of a file that is larger than the host's memory", mechanism="sparse files",
            refusal="larger than 100000 bytes", play=read_sparse,
            limits=CAPS.model_copy(update={"output_bytes": 100_000}),
            loosened=CAPS.model_copy(update={"output_bytes": 16_000_000})),
    attempt("/proc/self/root/..", mechanism="/proc/self/root",
            refusal="ENOENT", payload=PROC_ROOT, shown=True,
            scene=scenes.secret_file()),
    attempt("/proc/PID/root of a host's process", mechanism="/proc/PID/root", as_root=True,
            refusal="ENOENT", payload=in_proc("rootPATH"),
            without=OPEN, by="process namespace", scene=scenes.victim),
    attempt("/proc/PID/cwd of a host's process", mechanism="/proc/PID/cwd", as_root=True,
            refusal="ENOENT", payload=in_proc("cwd/secret"),
            without=OPEN, by="process namespace", scene=scenes.victim),
    attempt("/proc/PID/fd of a host's process", mechanism="/proc/PID/fd", as_root=True,
            refusal="ENOENT", payload=VICTIM_FILES,
            without=OPEN, by="process namespace", scene=scenes.victim),
    attempt("the checkout", mechanism="paths",
            refusal="ENOENT", payload=READ, shown=True, scene=checkout),
    attempt("the home folder", mechanism="paths", refusal="ENOENT", payload=LIST, shown=True,
            without=walls("USER"), scene=home, by="minimal root"),
    attempt("a dataset's part", mechanism="paths",
            refusal="ENOENT", payload=READ, shown=True, by="minimal root",
            without=walls("USER"),
            scene=scenes.secret_file(0o600, "data/demo/tables/tasks/part.parquet")),
    attempt("another user's file in a given folder", mechanism="file modes",
            refusal="EACCES", payload=READ, given=True,
            without=walls("USER"), scene=of_another_user, as_root=True),
    attempt("writing into a given folder", mechanism="open for writing",
            refusal="EROFS", payload=WRITE, given=True,
            without=walls("READ_ONLY"), scene=scenes.target_file),
    attempt("mounting a given folder writable", mechanism="mount",
            refusal="EPERM", payload=REMOUNT, given=True,
            by="system call filter", without=ADMIN, scene=scenes.target_file, as_root=True),
    attempt("a file by its handle", mechanism="open_by_handle_at",
            refusal="EPERM", payload=BY_HANDLE, given=True,
            by="system call filter", without=ADMIN, scene=beside, as_root=True),
    attempt("a device that everybody may open", mechanism="devices",
            refusal="ENOENT", payload=OPEN_DEVICE,
            without=walls("DEVICES"), scene=scenes.of(open_device)),
    attempt("a disk of the host", mechanism="devices", refusal="ENOENT", payload=OPEN_DEVICE,
            by="minimal /dev", without=walls("DEVICES", "USER"), scene=scenes.of(disk),
            as_root=True),
    attempt("making a device node", mechanism="device nodes", refusal="EPERM", payload=MAKE_DEVICE,
            without=walls("USER", "CAPABILITIES"), by="no capabilities", as_root=True),
    attempt("hard link to a file of a given folder", mechanism="hard links",
            refusal="EXDEV", payload=HARD_LINK,
            given=True, without=walls("READ_ONLY", "USER"), scene=scenes.secret_file(),
            kernel="links do not cross mounts"),
]  # fmt: skip
