"""Attempts on a folder that the sandbox is given read-only, and on what lies beside it."""

import os
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager

from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import NUMBERS, Attempt, Scene, of_group, walls

CHANGE = """
def attack(folder, word):
    path = folder + "/target"
    WORK
    return "the folder is changed"
"""

CHANGES = {
    "removing a file": ("unlink", "os.unlink(path)"),
    "moving a file": ("rename", 'os.rename(path, folder + "/elsewhere")'),
    "cutting a file": ("truncate", "os.truncate(path, 1)"),
    "adding to a file": ("O_APPEND", 'open(path, "a").write(word)'),
    "a new time for a file": ("utimensat", "os.utime(path)"),
    "a new folder": ("mkdir", 'os.mkdir(folder + "/new")'),
    "a new link": ("symlink", 'os.symlink("/", folder + "/new")'),
    "a new pipe": ("mkfifo", 'os.mkfifo(folder + "/new")'),
    "a socket": ("bind of a Unix socket", 'socket.socket(socket.AF_UNIX).bind(folder + "/new")'),
    "a file without a name": (
        "O_TMPFILE",
        'os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY)); open(folder + "/new", "w")',
    ),
    "an extended attribute": ("setxattr", 'os.setxattr(path, "user.word", b"x")'),
    "writing by its descriptor in /proc": (
        "/proc/self/fd",
        'fd = os.open(path, os.O_RDONLY); open(f"/proc/self/fd/{fd}", "w").write(word)',
    ),
    "writing by splice": (
        "splice",
        "r, w = os.pipe(); os.write(w, word.encode());"
        " os.splice(r, os.open(path, os.O_WRONLY), len(word))",
    ),
    "writing by sendfile": (
        "sendfile",
        'own = open("/workspace/own", "w+b"); own.write(word.encode());'
        " own.flush(); os.sendfile(os.open(path, os.O_WRONLY), own.fileno(), 0, 4)",
    ),
    "writing to its memory": (
        "mmap",
        "import mmap; fd = os.open(path, os.O_RDWR); m = mmap.mmap(fd, 4);"
        ' m[:4] = b"word"; m.flush()',
    ),
    "room for a file": ("fallocate", "os.posix_fallocate(os.open(path, os.O_WRONLY), 0, 9000)"),
}
"""Name -> (mechanism, what is done). Each changes the folder where it may be written."""

UPWARD = """
def attack(folder):
    given = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    WORK
    with os.fdopen(fd) as file:
        return file.read()
"""

UPWARDS = {
    "upward from a descriptor": (
        "openat", 'fd = os.open("../secret", os.O_RDONLY, dir_fd=given)'),
    "upward from the working folder": (
        "fchdir", 'os.fchdir(given); fd = os.open("../secret", os.O_RDONLY)'),
    "upward by /proc/self/cwd": (
        "/proc/self/cwd", 'os.fchdir(given); fd = os.open("/proc/self/cwd/../secret", 0)'),
    "upward by /proc/self/fd": (
        "/proc/self/fd", 'fd = os.open(f"/proc/self/fd/{given}/../secret", 0)'),
    "upward by a link": (
        "symlink", 'os.symlink(folder + "/..", "/workspace/up");'
        ' fd = os.open("/workspace/up/secret", 0)'),
    "upward by /proc/PID/root": (
        "/proc/PID/root", 'fd = os.open(f"/proc/{os.getpid()}/root{folder}/../secret", 0)'),
}  # fmt: skip

HANDLE = """
def attack(folder):
    handle = ctypes.create_string_buffer(struct.pack("=I", 128) + bytes(132))
    mount = ctypes.c_int()
    syscall(NAME_TO_HANDLE, -100, folder.encode(), handle, ctypes.byref(mount), 0)
    return "a handle, by which to guess others"
"""


@asynccontextmanager
async def given(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A folder of the host that everybody may change; whether it has changed is what counts."""
    with scenes.open_folder() as folder:
        file = folder / "target"
        file.write_text("untouched")
        file.chmod(0o666)
        os.utime(file, (1, 1))

        def state() -> list[object]:
            found = folder.stat(), *(path.lstat() for path in sorted(folder.iterdir()))
            text = [path.read_text() for path in [file] if file.exists()]
            names = [path.name for path in folder.iterdir()]
            kept = [(s.st_mode, s.st_size, s.st_mtime_ns, s.st_blocks) for s in found]
            return [*kept, *names, *text, [os.listxattr(p) for p in [file] if file.exists()]]

        before = state()
        yield Scene((str(folder), "word"), str(folder), reached=lambda: state() != before)


@asynccontextmanager
async def beside(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A folder with a secret beside it. The control shows the folder above both."""
    word = scenes.nonce()
    with scenes.open_folder() as folder:
        (folder / "given").mkdir()
        (folder / "secret").write_text(word)
        yield Scene((str(folder / "given"),), str(folder), proof=word)


attempt = of_group("files outside")


def upward(name: str, mechanism: str, work: str) -> Attempt:
    return attempt(
        name, mechanism=mechanism, payload=UPWARD.replace("WORK", work), shown=True, scene=beside,
        refusal="ENOENT",
    )  # fmt: skip


ATTEMPTS = [
    *(
        attempt(f"in a given folder: {name}", mechanism=mechanism, given=True, scene=given,
                payload=CHANGE.replace("WORK", work), without=walls("READ_ONLY"), refusal="EROFS")
        for name, (mechanism, work) in CHANGES.items()
    ),
    *(upward(name, mechanism, work) for name, (mechanism, work) in UPWARDS.items()),
    attempt("a handle of a given folder", mechanism="name_to_handle_at",
            payload=f"NAME_TO_HANDLE = {NUMBERS['name_to_handle_at']}\n{HANDLE}",
            scene=scenes.words("/usr"),
            without=walls("CALLS"), refusal="EPERM"),
]  # fmt: skip
