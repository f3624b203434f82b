"""Who is asked: every backend in a line of its own, and what a test needs to know of each."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from sandboxes.core import owners, python_env
from sandboxes.core.backend import Backend
from sandboxes.core.body import Snapshot
from sandboxes.core.sandbox import Sandbox, closing
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local import cgroups
from sandboxes.local.backend import LocalBackend
from sandboxes.local.reaper import reap
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


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "local": local,
    "plain": plain,
    "podman": podman,
}
