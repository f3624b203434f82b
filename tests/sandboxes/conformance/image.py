"""A small image for the tests, made of this machine's own programs: nothing is fetched."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

NAME = "localhost/agentic-synth-conformance:2"

PYTHON = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"

COMMANDS = (
    *("sh", "cat", "echo", "env", "find", "head", "id", "kill", "ln", "ls", "mkdir", "mkfifo"),
    *(
        "printf",
        "pwd",
        "rm",
        "seq",
        "setsid",
        "sleep",
        "stat",
        "tail",
        "tee",
        "test",
        "true",
        "yes",
    ),
)

PASSWD = b"root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/tmp:/bin/sh\n"


def made(podman: list[str]) -> str | None:
    """None once the image is there, or why it cannot be made."""
    if shutil.which("podman") is None:
        return "podman is not installed"
    if not Path(PYTHON).exists():
        return f"an image would be made of {PYTHON}, which is not here"
    if subprocess.run([*podman, "image", "exists", NAME], check=False).returncode == 0:
        return None
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            fill(tar)
        file.flush()
        done = subprocess.run(
            [*podman, "import", "--quiet", file.name, NAME], capture_output=True, check=False
        )
    return done.stderr.decode(errors="replace").strip() if done.returncode else None


def fill(tar: tarfile.TarFile) -> None:
    programs = [path for name in COMMANDS if (path := shutil.which(name, path="/usr/bin:/bin"))]
    library = Path("/usr/lib") / Path(PYTHON).name
    for path in sorted(
        {
            PYTHON,
            *programs,
            *linked([PYTHON, *programs, *map(str, library.glob("lib-dynload/*.so"))]),
        }
    ):
        tar.add(Path(path).resolve(), path if path.startswith("/usr/") else f"/usr{path}")
    tar.add(library, library, filter=needed)
    for name in ("bin", "sbin", "lib", "lib64"):
        link = tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
        tar.addfile(link)
    for name in ("tmp", "etc", "proc", "dev", "sys", "run"):
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
        tar.addfile(folder)
    users = tarfile.TarInfo("etc/passwd")
    users.size = len(PASSWD)
    tar.addfile(users, io.BytesIO(PASSWD))


def linked(programs: list[str]) -> set[str]:
    """The libraries that they need, and the loader of these."""
    done = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    return set(re.findall(r"(/\S+) \(0x", done.stdout))


def needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = ("__pycache__", "test", "dist-packages", "idlelib", "ensurepip")
    return None if Path(entry.name).name in left_out else entry
