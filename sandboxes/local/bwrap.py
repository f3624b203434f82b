"""The bubblewrap command line of a sandbox, and whether this machine can run it.

Run by root, mounts are made as root, without a user namespace, and setpriv drops to an
unprivileged host user before the first program inside: a user namespace of root would map the
user inside to root outside, and files of mode 600 could be read. Run by others it is a user
namespace, and the host sees the caller, who can open nothing here that is not mounted.
"""

import __future__

import importlib.util
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Set
from functools import cache
from pathlib import Path, PurePosixPath

from records.errors import ConfigError
from sandboxes.core import agent, clock, python_env
from sandboxes.core.template import AGENT_UID, BASE_ENV, WORKSPACE, SandboxTemplate
from sandboxes.local import seccomp
from sandboxes.local.protections import NOTHING, Protection

AGENT_FILE = "/opt/agent.pyc"

ETC = {
    "/etc/passwd": f"""root:x:0:0:root:/:/bin/sh
agent:x:{AGENT_UID}:{AGENT_UID}:agent:/tmp:/bin/sh
""",
    "/etc/group": f"root:x:0:\nagent:x:{AGENT_UID}:\n",
    # the workspace belongs to root where root mounts it, which git would call dubious
    "/etc/gitconfig": """[init]
defaultBranch = main
[safe]
directory = *
[gc]
auto = 0
[maintenance]
auto = false
""",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
"""Our own, so that names resolve and nothing of the host's users or network is told."""

RESOLVER = Path("/etc/resolv.conf")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Where a sandbox with network finds the certificates that this machine trusts."""

TRUSTED = (AUTHORITIES, "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where systems keep them; the first that exists is shown."""

NAMESPACES = {
    Protection.IPC: "--unshare-ipc",
    Protection.PROCESSES: "--unshare-pid",
    Protection.NETWORK: "--unshare-net",
    Protection.HOSTNAME: "--unshare-uts",
    Protection.GROUPS: "--unshare-cgroup-try",
    Protection.ENVIRONMENT: "--clearenv",
}


def is_root() -> bool:
    return os.geteuid() == 0


def namespaces(root: bool, without: Set[Protection]) -> list[str]:
    args = [option for wall, option in NAMESPACES.items() if wall not in without]
    args += ["--new-session", "--die-with-parent"]
    if Protection.CAPABILITIES in without:
        args += ["--cap-add", "ALL"]
    else:
        args += ["--cap-drop", "ALL"]
        if root:
            for name in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):  # setpriv drops them
                args += ["--cap-add", name]
    if not root:
        args += ["--unshare-user", "--uid", str(AGENT_UID), "--gid", str(AGENT_UID)]
    return args


def drop(without: Set[Protection]) -> list[str]:
    """Run by root: what stands before the first program inside, to take root's rights from it."""
    args = [required("setpriv"), "--no-new-privs"]
    if Protection.USER not in without:
        args += ["--reuid", str(AGENT_UID), "--regid", str(AGENT_UID), "--clear-groups"]
    if Protection.CAPABILITIES not in without:
        args += ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
    return args


def system(without: Set[Protection]) -> list[str]:
    """/usr read-only, and beside it what makes a system of it: links, /proc, a minimal /dev."""
    args = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            args += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():  # systems that have not merged it into /usr
            args += ["--ro-bind", str(path), str(path)]
    if Path("/etc/alternatives").is_dir():  # Debian's awk, cc and others are links through it
        args += ["--ro-bind", "/etc/alternatives", "/etc/alternatives"]
    args += ["--symlink", "/usr/share/zoneinfo/UTC", "/etc/localtime"]
    devices = ["--dev-bind", "/dev"] if Protection.DEVICES in without else ["--dev"]
    return [*args, "--proc", "/proc", *devices, "/dev"]


def scratch(
    template: SandboxTemplate, workspace: str | None, without: Set[Protection]
) -> list[str]:
    """The writable folders, each of bounded size. The rest is read-only at the end."""
    sizes, args = dict.fromkeys(("/tmp", WORKSPACE), template.limits.disk_mb << 20), []
    for path, size in (sizes | {"/dev/shm": 16 << 20}).items():
        if path == WORKSPACE and workspace is not None:
            args += ["--bind", workspace, path]
            continue
        bound = [] if Protection.SIZES in without else ["--size", str(size)]
        args += ["--perms", "1777", *bound, "--tmpfs", path]
    read_only = ["/"] if Protection.DEVICES in without else ["/dev", "/"]  # it would close devices
    return [*args, *(word for path in read_only for word in ("--remount-ro", path))]


def folders(paths: list[str]) -> list[str]:
    """Make the parents of `paths`: made by bubblewrap itself they would be closed to others."""
    parents = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    args = []
    for parent in sorted(parents - {"/"}):
        args += ["--perms", "0755", "--dir", parent]
    return args


def contents(template: SandboxTemplate, without: Set[Protection]) -> tuple[list[str], list[int]]:
    """What is in the root; files travel through descriptors, so none is left on the host."""
    binds = {bind.target: bind.source for bind in (*python_env.base_binds(), *template.binds)}
    for target, source in binds.items():
        if not Path(source).exists():
            raise ConfigError(f"bind {target} of the sandbox: {source} does not exist")
    files = {path: text.encode() for path, text in (ETC | template.files).items()}
    files["/etc/hosts"] = f"127.0.0.1 localhost {template.hostname}\n".encode()
    files[AGENT_FILE] = agent_code()
    if template.network:
        files |= network_files()
    if template.clock is not None:
        files |= {path: text.encode() for path, text in clock.clock_files().items()}
    args = [*folders([*binds, *files, *template.links]), *system(without)]
    writable = {b.target for b in template.binds if Protection.READ_ONLY in without}
    for target, source in sorted(binds.items()):
        args += ["--bind" if target in writable else "--ro-bind", source, target]
    for path, target in sorted(template.links.items()):
        args += ["--symlink", target, path]
    fds = []
    for path, data in sorted(files.items()):
        fds.append(fd := memory_file(path, data))
        args += ["--perms", "0444", "--file", str(fd), path]
    return args, fds


def network_files() -> dict[str, bytes]:
    """What resolving names and checking certificates need, copied: all else of /etc stays out."""
    found = {"/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n"}
    if RESOLVER.exists():
        found[str(RESOLVER)] = RESOLVER.read_bytes()
    trusted = next((path for path in map(Path, TRUSTED) if path.is_file()), None)
    return found if trusted is None else found | {AUTHORITIES: trusted.read_bytes()}


def memory_file(name: str, data: bytes) -> int:
    fd = os.memfd_create(name)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


AGENT_PARTS = ("frames", "files", "job", "main")
"""Modules of `sandboxes.core.agent`, each after those that it imports."""

FUTURE = "from __future__ import annotations\n"
ANNOTATIONS = __future__.annotations.compiler_flag
"""The same by a flag: the statement imports a module, whenever the agent starts."""

BOOT = """
import marshal, sys
for name, code in marshal.loads({parts!r}):
    sys.modules[name] = module = type(sys)(name)
    exec(code, module.__dict__)
module.main(marshal.loads(bytes.fromhex(sys.argv[1])))
"""


@cache
def agent_code() -> bytes:
    """The agent compiled once here, all modules in one file: compiling it inside, or looking for
    its modules there, would cost every sandbox 10 ms."""
    folder, parts = Path(agent.__file__).parent, []
    for name in AGENT_PARTS:
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        code = compile(text.replace(FUTURE, "", 1), f"{name}.py", "exec", ANNOTATIONS, optimize=2)
        parts.append((f"{agent.__name__}.{name}", code))
    boot = compile(BOOT.format(parts=marshal.dumps(parts)), AGENT_FILE, "exec", optimize=2)
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(boot)


def sandbox_command(
    template: SandboxTemplate,
    rlimits: dict[str, int],
    *,
    root: bool,
    workspace: str | None = None,
    without: Set[Protection] = NOTHING,
) -> tuple[list[str], list[int]]:
    """argv of a sandbox whose agent speaks frames on stdin and stdout, and descriptors to pass on.

    The options travel through a descriptor too: everyone inside can read the command line of
    process 1, which would name folders of the host. The caller closes the descriptors. A folder
    given as `workspace` takes the place of the empty one; its size is the caller's affair.
    `without` is for the attack suite (see `protections`).
    """
    if template.network:
        without = without | {Protection.NETWORK}
    inner, fds = contents(template, without)
    options = [*namespaces(root, without), *inner, *scratch(template, workspace, without)]
    if Protection.HOSTNAME not in without:
        options += ["--hostname", template.hostname]
    for name, value in sorted((BASE_ENV | python_env.base_env()).items()):
        options += ["--setenv", name, value]
    program = None if Protection.CALLS in without else seccomp.filter_program()
    if program is not None:
        fds = [*fds, memory_file("seccomp", program)]
        options += ["--seccomp", str(fds[-1])]
    args_fd = memory_file("args", "\0".join(options).encode())
    settings = {
        "rlimits": rlimits,
        "hidden": Protection.HIDDEN_AGENT not in without,
        # beside processes of the host it must never kill all that it can
        "kills_leftovers": not without & {Protection.ORPHANS, Protection.PROCESSES},
    }
    run = [python_env.base_python(), "-I", "-S", AGENT_FILE, marshal.dumps(settings).hex()]
    if root:
        run = [*drop(without), *run]
    return [required("bwrap"), "--args", str(args_fd), "--", *run], [*fds, args_fd]


def required(name: str) -> str:
    path = shutil.which(name, path=BASE_ENV["PATH"])
    if path is None:
        raise ConfigError(f"{name} is not installed; sandboxes need it")
    return path


@cache
def unavailable() -> str | None:
    """Why no sandbox can run here, found by running one; None where it can. Asked once."""
    if sys.platform != "linux":
        return (
            f"sandboxes need Linux and its namespaces, this is {sys.platform}: run it in a Linux "
            "virtual machine or container; simulated tools work here without"
        )
    if shutil.which("bwrap", path=BASE_ENV["PATH"]) is None:
        return "bubblewrap (bwrap) is not installed: apt install bubblewrap"
    if is_root() and shutil.which("setpriv", path="/usr/bin:/bin") is None:
        return "setpriv (util-linux) is not installed, and root must drop its rights with it"
    command, fds = sandbox_command(SandboxTemplate(), {}, root=is_root())
    try:
        with tempfile.TemporaryFile() as errors:
            done = subprocess.run(
                command, pass_fds=fds, input=b"", stdout=subprocess.PIPE,
                stderr=errors, timeout=30, env={}, check=False,
            )  # fmt: skip
            errors.seek(0)
            why = errors.read(2000).decode(errors="replace").strip()
    except subprocess.TimeoutExpired:
        return "a trial sandbox did not answer within 30 s"
    finally:
        for fd in fds:
            os.close(fd)
    if b"ready" in done.stdout:
        return None
    return f"a trial sandbox failed with exit code {done.returncode}: {why or 'no message'}"
