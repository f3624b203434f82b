"""What a sandbox is made of: its files, environment, clock and limits. Starts nothing."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from records.config import Config

WORKSPACE = "/workspace"
"""The folder a sandboxed program may fill, and where it starts. Empty in a fresh sandbox."""

WRITABLE = (WORKSPACE, "/tmp", "/dev/shm")
"""All that can be written inside."""

PROGRAM_ID = 1000
"""User and group of all programs inside, whoever the caller is and whatever the host's own id is.
Whoever else owns files there, such as /usr, shows as `nobody`."""

BASE_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/sh",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""The whole environment of a sandboxed program; nothing of the caller's is passed on."""

BASE_ETC = {
    "/etc/passwd": f"""root:x:0:0:root:/:/bin/sh
agent:x:{PROGRAM_ID}:{PROGRAM_ID}:agent:/tmp:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/sh
""",
    "/etc/group": f"root:x:0:\nagent:x:{PROGRAM_ID}:\nnogroup:x:65534:\n",
    # the workspace may belong to root, which git would call dubious
    "/etc/gitconfig": """[init]
defaultBranch = main
[safe]
directory = *
[gc]
auto = 0
[maintenance]
auto = false
""",
}
"""Files of /etc that every sandbox has, so that nothing of a host's users is told."""


def _inside_path(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError(f"a path inside the sandbox is absolute and has no '..', got {path!r}")
    return path


InsidePath = Annotated[str, AfterValidator(_inside_path)]


class Limits(Config):
    """Bounds of one sandbox. `sandboxes.local.doctor.enforceable` says how this machine holds
    them."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"strict"})

    timeout_s: float = Field(default=30.0, gt=0, le=3600)
    """Wall clock of one exec; then its whole process tree is killed."""

    start_timeout_s: float = Field(default=20.0, gt=0, le=600)
    """Wall clock from spawning the sandbox to its agent's first answer."""

    memory_mb: int = Field(default=512, ge=32)
    """All processes together, the files in the sandbox included."""

    processes: int = Field(default=64, ge=8)
    """Processes and threads alive at once, four of them the sandbox's own."""

    cpus: float = Field(default=1.0, gt=0, le=1024)
    """CPU time per second of wall clock, all processes together."""

    output_bytes: int = Field(default=1_000_000, ge=1_000, le=32_000_000)
    """Kept of stdout and of stderr of one exec; the rest is read and thrown away."""

    disk_mb: int = Field(default=64, ge=1)
    """Size of the workspace, and of /tmp."""

    open_files: int = Field(default=1024, ge=32)

    strict: bool = False
    """Refuse to start where this machine cannot wholly enforce every limit, instead of naming in
    the log what it cannot."""


class Bind(Config):
    """A file or folder of the host shown read-only inside."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"source"})

    source: str
    target: InsidePath


class SandboxTemplate(Config):
    """What decides a sandbox: equal templates give equal sandboxes. What passes on where one is
    lent again stands in `sandboxes.local.clean`."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"recycle", "spares"})
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"programs": {}, "egress": False})

    binds: tuple[Bind, ...] = ()
    """Beside /usr, which is always there. Never a home, the checkout or a dataset."""

    files: dict[InsidePath, str] = Field(default_factory=dict)
    """Read-only files written into the root, by path."""

    programs: dict[InsidePath, str] = Field(default_factory=dict)
    """As `files`, and can be run."""

    links: dict[InsidePath, str] = Field(default_factory=dict)
    """Symbolic links in the root: path -> target."""

    env: dict[str, str] = Field(default_factory=dict)
    """Added to `BASE_ENV`."""

    clock: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")
    """The instant, in UTC, at which the wall clock of Python, Node and git inside stands still."""

    preload_clock: bool = False
    """Also stop it for other programs, where libfaketime is installed."""

    seed: int | None = None
    """Beside a clock: what Python and Node inside draw at random is a stream of it, another one for
    each process. None leaves it to chance."""

    workdir: InsidePath = WORKSPACE
    hostname: str = Field(default="sandbox", pattern=r"^[a-z][a-z0-9-]{0,62}$")
    limits: Limits = Limits()

    network: bool = False
    """Share this machine's network, loopback and abstract sockets included. Only to fetch from a
    package index: nothing of the caller's is shown to such a sandbox, so that none can leave, and
    no code of a package should run in it."""

    egress: bool = False
    """On a cluster: let the sandbox connect to the egress proxy there, and to nothing else. On this
    machine the proxy's socket is bound instead."""

    recycle: bool = True
    """Whether a pool may lend the sandbox again once it is proved clean; else it is replaced."""

    spares: bool = True
    """Whether a backend that has sandboxes ready before anybody asks should have some of these.
    False where a template shows what is made for one use, such as a candidate's files: nobody would
    ever take what is left over."""

    linger_s: float = Field(default=0.0, ge=0, le=86400)
    """How long it outlives the stream to its owner, and its owner: in that time it can be adopted,
    and what runs in it goes on. With 0 it ends at once."""

    @model_validator(mode="after")
    def _seed_beside_a_clock(self) -> Self:
        if self.seed is not None and self.clock is None:
            raise ValueError(f"a seed goes with a stopped clock, got seed {self.seed} without")
        return self

    @model_validator(mode="after")
    def _network_sees_nothing(self) -> Self:
        shown = [
            name for name in ("binds", "files", "programs", "links", "env") if getattr(self, name)
        ]
        if self.network and shown:
            raise ValueError(
                f"a sandbox with network is shown nothing of the caller's, got {', '.join(shown)}"
            )
        return self
