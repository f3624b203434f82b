"""The bubblewrap command line of a sandbox, and whether this machine can run it.

Run by root, mounts are made as root, without a user namespace: one of root's would map the user
inside to root outside, and files of mode 600 could be read. The agent, process 1, enters a
namespace of unprivileged users before anything else runs (`sandboxes.local.users`). A caller with a
range of users does the same in a namespace where it is root. Run by others it is a user namespace
of the caller's, and the host sees the caller, who can open nothing here that is not mounted.
"""

import os
import shutil
import stat
from collections.abc import Set
from functools import cache
from pathlib import Path, PurePosixPath

from records.errors import ConfigError
from sandboxes.core import clock, python_env
from sandboxes.core.agent_code import agent_bytecode
from sandboxes.core.network import network_files
from sandboxes.core.template import BASE_ENV, BASE_ETC, PROGRAM_ID, WORKSPACE, SandboxTemplate
from sandboxes.local.protections import NOTHING, Protection

AGENT_FILE = "/opt/agent.pyc"

ETC = BASE_ETC | {"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n"}
"""Our own, so that names resolve and nothing of the host's users or network is told."""

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


def namespaces(template: SandboxTemplate, root: bool, without: Set[Protection]) -> list[str]:
    args = [option for wall, option in NAMESPACES.items() if wall not in without]
    args += ["--new-session"]
    if Protection.PROCESSES not in without:
        args += ["--as-pid-1"]
    if not template.linger_s:
        args += ["--die-with-parent"]
    if Protection.CAPABILITIES in without:
        args += ["--cap-add", "ALL"]
    else:
        args += ["--cap-drop", "ALL"]
        if root:  # until the agent has entered the sandbox's own users
            args += ["--cap-add", "CAP_SYS_ADMIN"]
    if not root:
        args += ["--unshare-user", "--uid", str(PROGRAM_ID), "--gid", str(PROGRAM_ID)]
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
    masks = [] if Protection.MASKS in without else masked()
    devices = ["--dev-bind", "/dev"] if Protection.DEVICES in without else ["--dev"]
    return [*args, "--proc", "/proc", *masks, *devices, "/dev"]


HIDDEN_FILES = (
    "cmdline", "diskstats", "interrupts", "kallsyms", "key-users", "keys", "latency_stats", "locks",
    "partitions", "sched_debug", "slabinfo", "timer_list", "timer_stats", "vmallocinfo",
)  # fmt: skip
HIDDEN_FOLDERS = ("acpi", "asound", "bus", "driver", "fs", "irq", "scsi", "tty")
"""Of /proc: what tells of this machine's devices or start, or of other sandboxes."""


@cache
def masked() -> list[str]:
    """What covers those that are there and that not the kernel itself keeps for root. Kernel
    settings are made read-only: some of a namespace's own belong to its user."""
    args = ["--ro-bind", "/proc/sys", "/proc/sys"]
    for path in (Path("/proc", name) for name in HIDDEN_FILES):
        if path.exists() and path.stat().st_mode & stat.S_IROTH:
            args += ["--ro-bind", os.devnull, str(path)]
    for path in (Path("/proc", name) for name in HIDDEN_FOLDERS):
        if path.is_dir():  # read-only, since without root its owner is the user inside
            args += ["--perms", "0555", "--tmpfs", str(path), "--remount-ro", str(path)]
    return args


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
    files[AGENT_FILE] = agent_bytecode()
    if template.network:
        files |= network_files()
    if template.clock is not None:
        files |= {path: text.encode() for path, text in clock.clock_files().items()}
    programs = {path: text.encode() for path, text in template.programs.items()}
    args = [*folders([*binds, *files, *programs, *template.links]), *system(without)]
    writable = {b.target for b in template.binds if Protection.READ_ONLY in without}
    for target, source in sorted(binds.items()):
        args += ["--bind" if target in writable else "--ro-bind", source, target]
    for path, target in sorted(template.links.items()):
        args += ["--symlink", target, path]
    fds = []
    for mode, written in (("0444", files), ("0555", programs)):
        for path, data in sorted(written.items()):
            fds.append(fd := memory_file(path, data))
            args += ["--perms", mode, "--file", str(fd), path]
    return args, fds


def memory_file(name: str, data: bytes) -> int:
    fd = os.memfd_create(name)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def sandbox_command(
    template: SandboxTemplate,
    *,
    root: bool,
    workspace: str | None = None,
    without: Set[Protection] = NOTHING,
) -> tuple[list[str], list[int]]:
    """argv of a sandbox whose agent reads its settings from stdin, and descriptors to pass on.

    The options travel through a descriptor: everyone inside can read the command line of
    process 1, which would name folders of the host. The caller closes the descriptors. A folder
    given as `workspace` takes the place of the empty one; its size is the caller's affair.
    `without` is for the attack suite (see `protections`).
    """
    if template.network:
        without = without | {Protection.NETWORK}
    inner, fds = contents(template, without)
    options = [*namespaces(template, root, without), *inner]
    options += scratch(template, workspace, without)
    if Protection.HOSTNAME not in without:
        options += ["--hostname", template.hostname]
    for name, value in sorted((BASE_ENV | python_env.base_env()).items()):
        options += ["--setenv", name, value]
    args_fd = memory_file("args", "\0".join(options).encode())
    run = [python_env.base_python(), "-I", "-S", AGENT_FILE]
    return [required("bwrap"), "--args", str(args_fd), "--", *run], [*fds, args_fd]


def required(name: str) -> str:
    path = shutil.which(name, path=BASE_ENV["PATH"])
    if path is None:
        raise ConfigError(f"{name} is not installed; sandboxes need it")
    return path
