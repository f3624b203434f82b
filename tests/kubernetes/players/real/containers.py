"""One container: bubblewrap around its command, which is the first of its processes."""

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from sandboxes.core.template import Limits
from sandboxes.local import bwrap, cgroups
from sandboxes.local.cgroups import ControlGroups
from tests.kubernetes.players.objects import Obj
from tests.kubernetes.players.quantities import amount
from tests.kubernetes.players.real.namespaces import PodNamespaces
from tests.kubernetes.players.real.security import Identity, RefusedError
from tests.kubernetes.players.real.volumes import Volume

PROCESSES = 1024
"""Of one container, which a kubelet bounds for all Pods of its node."""

UNLIMITED_MB, MOST_CPUS = 1 << 20, 1024.0

SHM_BYTES = 64 << 20

JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 71; shift; done; shift; exec "$@"'
"""A shell's: become a member of control groups, then the command."""

NAMESPACES = [
    "--unshare-pid", "--as-pid-1", "--unshare-cgroup-try", "--new-session", "--die-with-parent",
    "--clearenv",
    "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID",
    "--cap-add", "CAP_SETPCAP",
]  # fmt: skip
"""Made as root, without a user namespace, as a container's without `hostUsers: false`; the
capabilities are for leaving root and go with it."""

KILLED = 128 + signal.SIGKILL
STEP_S = 0.005


@dataclass(slots=True)
class Container:
    """A container that has started."""

    process: asyncio.subprocess.Process
    pid: int
    """Of its first process, as this machine counts."""
    groups: ControlGroups
    env: dict[str, str]
    workdir: str
    identity: Identity

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    def signal(self, number: int) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def signal_all(self, number: int) -> None:
        for folder in self.groups.folders[:1]:
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), number)

    async def wait(self) -> tuple[int, str]:
        """Its exit code, and the reason that only the node can know. Nothing of it is left."""
        code = await self.process.wait()
        code = 128 - code if code < 0 else code
        out_of_memory = code == KILLED and self.groups.out_of_memory() > 0
        await self.groups.remove()
        return code, "OOMKilled" if out_of_memory else ""

    def command_inside(self, command: list[str]) -> list[str]:
        """The command of this machine that runs `command` in the container, as its exec does."""
        env = [f"{name}={value}" for name, value in self.env.items()]
        return [
            "/bin/sh", "-c", JOIN, "join", *self.groups.entries, "--",
            "/usr/bin/nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--ipc",
            "--uts", "--", "/usr/bin/env", "-i", "-C", self.workdir, *env,
            *self.identity.entry, *command,
        ]  # fmt: skip

    def finds(self, command: list[str]) -> bool:
        """Whether there is such a program inside."""
        if not command:
            return False
        root = f"/proc/{self.pid}/root"
        if "/" in command[0]:
            return os.path.lexists(root + str(Path(self.workdir, command[0])))
        folders = self.env.get("PATH", "").split(":")
        return any(os.path.lexists(f"{root}{folder}/{command[0]}") for folder in folders)


async def start(
    *,
    spec: Obj,
    command: list[str],
    env: dict[str, str],
    identity: Identity,
    volumes: dict[str, Volume],
    etc: dict[str, Path],
    extra: dict[str, str],
    namespaces: PodNamespaces,
    group: str,
    log: Path,
) -> Container:
    """RefusedError where it does not start, with what bubblewrap says of it."""
    workdir = spec.get("workingDir") or "/"
    options = [
        *NAMESPACES,
        *filesystem(spec, identity, volumes, etc, extra),
        *(word for name, value in env.items() for word in ("--setenv", name, value)),
        "--chdir", workdir,
    ]  # fmt: skip
    groups = cgroups.make_group(limits_of(spec), group)
    options_fd = bwrap.memory_file("args", "\0".join(options).encode())
    reads, writes = os.pipe()
    try:
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", JOIN, "join", *groups.entries, "--", *namespaces.enter(),
                bwrap.required("bwrap"), "--args", str(options_fd), "--info-fd", str(writes), "--",
                *identity.entry, *command,
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
                pass_fds=(options_fd, writes, *namespaces.fds.values()),
                env={"PATH": env.get("PATH", "")},
            )  # fmt: skip
    except BaseException:
        os.close(reads)
        await groups.remove()
        raise
    finally:
        os.close(options_fd)
        os.close(writes)
    pid = await first_process(process, reads)
    if pid is None:
        await process.wait()
        await groups.remove()
        last = log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise RefusedError(f"failed to create containerd task: {last}")
    return Container(process, pid, groups, env, workdir, identity)


async def first_process(process: asyncio.subprocess.Process, reads: int) -> int | None:
    """The container's first process once it runs what it is to run; None where it never did."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reads, "rb")
    )
    said = await reader.read()
    if not said:
        return None
    pid = int(json.loads(said)["child-pid"])
    while process.returncode is None:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() != "bwrap":
                return pid
        await asyncio.sleep(STEP_S)
    return pid


def limits_of(spec: Obj) -> Limits:
    given = (spec.get("resources") or {}).get("limits") or {}
    memory, cpus = given.get("memory"), given.get("cpu")
    return Limits.model_construct(
        memory_mb=UNLIMITED_MB if memory is None else max(1, int(amount(memory)) >> 20),
        processes=PROCESSES,
        cpus=MOST_CPUS if cpus is None else float(amount(cpus)),
    )


def filesystem(
    spec: Obj,
    identity: Identity,
    volumes: dict[str, Volume],
    etc: dict[str, Path],
    extra: dict[str, str],
) -> list[str]:
    """The image that every image is, and the container's volumes in it."""
    places = {each["mountPath"].rstrip("/"): each for each in spec.get("volumeMounts") or []}
    args = bwrap.folders([*places, *etc, *extra])
    args += [*bwrap.system(frozenset()), "--perms", "1777", "--dir", "/tmp"]
    if "/dev/shm" not in places:
        args += ["--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"]
    for target, source in sorted([*((k, str(v)) for k, v in etc.items()), *extra.items()]):
        args += ["--ro-bind", source, target]
    for target, mount in sorted(places.items()):
        volume = volumes[mount["name"]]
        source = volume.folder / inside(mount.get("subPath", ""))
        if not source.exists():
            source.mkdir(parents=True)
            source.chmod(0o777)
        closed = volume.read_only or mount.get("readOnly")
        args += ["--ro-bind" if closed else "--bind", str(source), target]
    if identity.read_only:
        args += ["--remount-ro", "/"]
    return args


def inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise RefusedError(f"subPath {path!r} must be a relative path that does not contain '..'")
    return path
