"""Who is asked: every backend in a line of its own, and what a test needs to know of each."""

import atexit
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import NamedTuple

from sandboxes.core import owners, python_env
from sandboxes.core.backend import Backend
from sandboxes.core.body import Snapshot
from sandboxes.core.sandbox import Sandbox, closing
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.kubernetes.backend import KubernetesBackend
from sandboxes.local import cgroups
from sandboxes.local.backend import LocalBackend
from sandboxes.local.reaper import reap
from tests.kubernetes.players.real.host import unable
from tests.kubernetes.staging import Stage, staged, unstaged
from tests.sandboxes.conformance import image
from tests.sandboxes.conformance.plain import PlainBackend, folder
from tests.sandboxes.conformance.podman import PodmanBackend

SMALL = SandboxTemplate(
    limits=Limits(memory_mb=128, processes=48, output_bytes=8_000_000, open_files=128)
)


def small(**settings: object) -> SandboxTemplate:
    """With these settings beside."""
    return SandboxTemplate.model_validate(SMALL.model_dump() | settings)


class Subject(NamedTuple):
    name: str
    backend: Backend
    python: str
    """A Python inside."""
    remains: Callable[[str], list[str]]
    """What is left of an ended sandbox of a dead owner, once that was cleared up."""
    soon_s: float = 0.3
    """In less a new stream may not be made."""
    bounds_memory: bool = False
    """Whether a limit of memory holds for all inside together, and kills are counted."""

    @asynccontextmanager
    async def sandbox(
        self, snapshot: Snapshot | None = None, **settings: object
    ) -> AsyncIterator[Sandbox]:
        async with closing(await self.backend.create(small(**settings), snapshot)) as sandbox:
            yield sandbox

    async def names(self) -> set[str]:
        return {found.name for found in await self.backend.list()}


def local_remains(name: str) -> list[str]:
    reap()
    folders = [parent for _, parent in cgroups.controllers().values()]
    left = [path for parent in folders for path in parent.glob(f"{owners.PREFIX}.{name}")]
    return [*map(str, left), *map(str, owners.root_folder().glob(name.rpartition(".")[0]))]


def local() -> Subject:
    bounded = "memory" in cgroups.controllers()
    backend, python = LocalBackend(), python_env.base_python()
    return Subject("local", backend, python, local_remains, bounds_memory=bounded)


def plain_remains(name: str) -> list[str]:
    return [*map(str, folder().glob(name))]


def plain() -> Subject:
    return Subject("plain", PlainBackend(), sys.executable, plain_remains)


def podman_remains(name: str) -> list[str]:
    command = ["podman", "ps", "--all", "--format={{.Names}}", f"--filter=name={name}"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()


def podman() -> Subject:
    options = ("--runtime=runc",) if shutil.which("runc") else ()
    backend = PodmanBackend(image.NAME, image.PYTHON, options)
    return Subject("podman", backend, image.PYTHON, podman_remains, soon_s=10)


class Nothing(PlainBackend):
    """In the place of a backend that cannot be here."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__()
        self.name, self._reason = name, reason

    def unavailable(self) -> str | None:
        return self._reason


@cache
def stage(claims: bool) -> Stage:
    """A cluster of real Pods for as long as this process lives; its children find it by the
    environment."""
    variable = f"SYNTH_TEST_STAGE_{'CLAIMS' if claims else 'PODS'}"
    if (found := os.environ.get(variable)) is not None:
        return Stage.read(found)
    made = staged(nodes="real=1,simulated=0", claims=claims)
    entered = made.__enter__()
    atexit.register(made.__exit__, None, None, None)
    os.environ[variable] = entered.written()
    return entered


def kubernetes(claims: bool) -> Subject:
    """Pods of a played cluster, whose containers are real. Streams and owners of theirs end as
    soon as templates say, which is not how a run has it."""
    name = "claims" if claims else "pods"
    reason = unable() or unstaged(claims=claims)
    if reason is not None:
        return Subject(name, Nothing(name, reason), "", lambda _: [])
    settings = stage(claims).settings(linger_s=0, own_users=True, stream_cpus=1)

    def remains(sandbox: str) -> list[str]:
        kinds = "pods,leases" + (",sandboxclaims,sandboxes" if claims else "")
        labelled = stage(claims).kubectl(
            "get", kinds, "-l", f"synth.dev/owner={sandbox.split('-')[1]}", "-o", "name"
        )
        named = stage(claims).kubectl(
            "get", kinds, "-l", f"synth.dev/sandbox={sandbox}", "-o", "name"
        )
        return [*labelled.split(), *named.split()]

    python = python_env.base_python()
    return Subject(name, KubernetesBackend(settings), python, remains, soon_s=10)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "local": local,
    "plain": plain,
    "podman": podman,
    "pods": partial(kubernetes, False),
    "claims": partial(kubernetes, True),
}
