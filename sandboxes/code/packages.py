"""Real packages as projects: fetched from a package index, with what their tests need.

Fetching is all that happens with network, in a sandbox that is shown nothing of the caller's
(`SandboxTemplate.network`). No code of a package runs there: a source distribution comes out as it
is and is read in a sandbox without network, and what it needs is installed from wheels alone.
Tests run where there is no network. What a distribution says of itself is read in a sandbox too.

What is not contained while fetching: that sandbox shares this machine's network, so it reaches
whatever this machine does. What is not supported: dependencies without a wheel, tests that need
the package itself installed (its metadata, entry points or built extensions), pytest plugins.
"""

import json
import os
import re
import shutil
import sysconfig
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator

from records.config import Config
from records.errors import ConfigError, ItemError, TransientError
from sandboxes.code.file_records import FileBounds, FilePiece, read_out
from sandboxes.code.projects import Project
from sandboxes.code.reading import files_of_sdist
from sandboxes.core import python_env
from sandboxes.core.network import AUTHORITIES, network_files
from sandboxes.core.programs import last_words, program
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import WORKSPACE, Limits, SandboxTemplate
from sandboxes.lending.leases import lease
from sandboxes.local import backend as local

FETCH = Path(__file__).parents[1] / "inside" / "fetch_sdist.py"
INSTALL = Path(__file__).parents[1] / "inside" / "install_wheels.py"
DESCRIBE = Path(__file__).parents[1] / "inside" / "describe_package.py"
PIP, SITE = f"{WORKSPACE}/pip", f"{WORKSPACE}/site"

MACHINE = SandboxTemplate(
    network=True,
    hostname="installer",
    limits=Limits(timeout_s=240, memory_mb=1024, disk_mb=256, output_bytes=32_000_000, cpus=2.0),
)

DESCRIBER = SandboxTemplate(hostname="reader", limits=Limits(timeout_s=20, memory_mb=256))

SITE_FILES = FileBounds(files=20_000, file_bytes=200_000_000, total_bytes=200_000_000)
"""Of installed packages."""

MAX_NEEDS = 500
"""Requirements of one distribution."""

MAX_SDIST = 30_000_000
"""Bytes of a source distribution; less than a command of a sandbox may put out."""

NOT_THERE = 3
"""Exit code of `inside/fetch_sdist.py` for what the index does not have, or has too much of."""

REQUIREMENT = re.compile(r"[A-Za-z0-9][^@\n/\\:]*")
"""No option of pip, and no address or path: a source from elsewhere would be built, which runs its
code."""


class PackageIndex(Config):
    """Where packages come from. Nothing is taken from this machine's own settings of pip."""

    url: str | None = Field(default=None, pattern=r"^https?://")
    """None is pip's own default."""

    proxy: str | None = Field(default=None, pattern=r"^https?://")

    @model_validator(mode="after")
    def _no_secrets(self) -> Self:
        for url in (self.url, self.proxy):
            if url and "@" in urlsplit(url).netloc:
                raise ValueError("an address of an index carries no user or password")
        return self

    @property
    def env(self) -> dict[str, str]:
        return {"http_proxy": self.proxy, "https_proxy": self.proxy} if self.proxy else {}


async def project_of_index(
    name: str,
    version: str,
    *,
    into: Path,
    index: PackageIndex = PackageIndex(),
    requires: Sequence[str] = (),
    **settings: object,
) -> Project:
    """The source distribution of exactly this version, with its dependencies installed in `into`.

    `requires` adds to what the distribution itself declares; pytest comes by itself where it is the
    runner. `settings` are fields of `Project` that are not to be guessed from the files. The same
    call later may install newer dependencies: keep the folder, or pin them in `requires`.
    ConfigError where the index has no such thing or it has no tests, TransientError where the index
    cannot be reached.
    """
    with tempfile.TemporaryDirectory(prefix="synth-sdist-") as folder:
        archive = Path(folder) / "sdist.tar.gz"
        archive.write_bytes(await fetch_sdist(name, version, index=index))
        files = await files_of_sdist(archive, f"{name} {version}")
    named = re.sub(r"[^a-z0-9]+", "_", name.lower())
    return await project_of_files(
        files, name=named, into=into, index=index, requires=requires, **settings
    )


async def project_of_files(
    files: Mapping[str, str],
    *,
    name: str,
    into: Path,
    index: PackageIndex = PackageIndex(),
    requires: Sequence[str] = (),
    **settings: object,
) -> Project:
    """As `project_of_index`, of files that are at hand. The index is asked only where something is
    to be installed."""
    described = await described_by(files)
    settings = guessed(files, described) | settings
    needs = [*described.needs, *requires]
    if settings["runner"] == "pytest":
        needs.append("pytest")
    if needs:
        settings["site"] = await install(needs, into=into, index=index)
    try:
        project = Project.model_validate({"name": name, "files": files, **settings})
    except ValidationError as error:
        first = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ConfigError(f"{name} makes no project: {first}") from error
    refuse_hidden(project)
    return project


class PackageDescription(Config):
    """What a distribution says of itself."""

    summary: str = Field(default="", max_length=2_000)
    license: str = Field(default="unknown", max_length=2_000)
    needs: tuple[Annotated[str, Field(max_length=2_000)], ...] = Field(
        default=(), max_length=MAX_NEEDS
    )
    """Requirements, as pip reads them."""


async def described_by(files: Mapping[str, str]) -> PackageDescription:
    """Read in a sandbox where there is anything to read. ConfigError where that is no description
    or too much."""
    beside = [text for path, text in files.items() if path.endswith(".egg-info/requires.txt")]
    texts = {
        "metadata": files.get("PKG-INFO", ""),
        "pyproject": files.get("pyproject.toml", ""),
        "requires": beside[0] if beside else "",
    }
    if not any(texts.values()):
        return PackageDescription()
    what = "cannot read what the package says of itself"
    try:
        async with lease(DESCRIBER) as sandbox:
            done = await sandbox.exec(program(DESCRIBE), stdin=json.dumps(texts).encode())
    except ItemError as error:
        raise ConfigError(f"{what}: reading it ended the sandbox: {error}") from error
    if done.exit_code or done.truncated:
        why = "out of time" if done.timed_out else last_words(done.stderr)
        raise ConfigError(f"{what}: {why or f'exit code {done.exit_code}'}")
    try:
        return PackageDescription.model_validate_json(done.stdout)
    except ValidationError as error:
        raise ConfigError(f"{what}: {error.errors()[0]['msg']}") from error


TEST_FOLDERS = ("tests", "test", "testing")


def guessed(files: Mapping[str, str], described: PackageDescription) -> dict[str, object]:
    """Settings of a project as its files suggest them."""
    folders = {
        str(parent): None for path in sorted(files) for parent in PurePosixPath(path).parents
    }
    alone = [path for path in sorted(files) if re.fullmatch(r"tests?(_\w+)?\.py", path)]
    nested = [folder for folder in folders if PurePosixPath(folder).name in TEST_FOLDERS]
    found = [folder for folder in TEST_FOLDERS if folder in folders] + alone + nested
    return {
        "description": described.summary,
        "license": described.license,
        "test_folder": found[0] if found else "tests",
        "paths": ("src",) if "src" in folders else (".",),
        "runner": "pytest",
    }


def refuse_hidden(project: Project) -> None:
    """ConfigError where the installed packages hold the project's own, whose source would then
    never be what its tests import."""
    if project.site is None:
        return
    for path in project.sources:
        for root in map(PurePosixPath, project.paths):
            if not PurePosixPath(path).is_relative_to(root):
                continue
            top = PurePosixPath(path).relative_to(root).parts[0]
            if (project.site / top).exists() and top not in ("bin", "docs"):
                raise ConfigError(f"{project.name} is among its own dependencies ({top})")


@asynccontextmanager
async def machine(what: str) -> AsyncIterator[Sandbox]:
    """A sandbox with the network of this machine. ConfigError where what is done in it is too much
    for it."""
    try:
        async with local.lease(MACHINE) as sandbox:
            yield sandbox
    except ItemError as error:
        raise ConfigError(f"{what} ended its sandbox: {error}") from error


async def fetch_sdist(name: str, version: str, *, index: PackageIndex = PackageIndex()) -> bytes:
    """The archive as the index has it, its digest compared. Errors as `project_of_index`."""
    async with machine(f"fetching {name} {version}") as sandbox:
        await put_pip(sandbox)
        argv = [*program(FETCH), PIP, index.url or "", AUTHORITIES, str(MAX_SDIST), name, version]
        done = await sandbox.exec(argv, env=index.env)
    if done.exit_code == NOT_THERE:
        raise ConfigError(last_line(done))
    return whole(done, f"fetching {name} {version}")


async def install(
    requirements: Sequence[str], *, into: Path, index: PackageIndex = PackageIndex()
) -> Path:
    """Install from wheels into the folder, which must not exist, and return it; its files are
    read-only. Those whose environment markers do not hold are left out, by pip."""
    for requirement in requirements:
        if not REQUIREMENT.fullmatch(requirement):
            raise ConfigError(f"a requirement names a package of the index, got {requirement!r}")
    if into.exists():
        raise ConfigError(f"{into} exists; packages are installed into a new folder")
    options = ["--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    options += ["--only-binary", ":all:", "--no-compile", "--target", SITE]
    options += ["--timeout", "15", "--retries", "2", "--progress-bar", "off"]
    options += ["--index-url", index.url] if index.url else []
    options += ["--cert", AUTHORITIES] if AUTHORITIES in network_files() else []
    argv = [*program(INSTALL), PIP, "install", *options, "--", *requirements]
    async with machine(f"installing {', '.join(requirements)}") as sandbox:
        await put_pip(sandbox)
        done = await sandbox.exec(argv, env=index.env)
        if done.exit_code and b"Retrying (" not in done.stdout + done.stderr:
            raise ConfigError(f"cannot install {', '.join(requirements)}: {last_line(done)}")
        whole(done, f"installing {', '.join(requirements)}")
        await take_site(sandbox, into)
    return into


async def take_site(sandbox: Sandbox, into: Path) -> None:
    """Write the sandbox's installed packages to the folder, or none of them. Errors as
    `read_out`."""
    site = SiteFolder(into)
    request = {"kind": "folder", "place": SITE}
    try:
        await read_out(
            sandbox, request, bounds=SITE_FILES, what="the installed packages", take=site.write
        )
        site.close()
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise


async def put_pip(sandbox: Sandbox) -> None:
    """Unpack the pip that comes with this Python: no environment of the caller's is shown."""
    wheel = f"{WORKSPACE}/pip.whl"
    await sandbox.write_file(wheel, bundled_pip().read_bytes())
    argv = [python_env.base_python(), "-I", "-m", "zipfile", "-e", wheel, PIP]
    whole(await sandbox.exec(argv), "unpacking pip")


def bundled_pip() -> Path:
    """ConfigError where the system's Python comes without."""
    bundled = Path(sysconfig.get_paths()["stdlib"]) / "ensurepip" / "_bundled"
    for folder in (bundled, sysconfig.get_config_var("WHEEL_PKG_DIR")):
        if folder and (wheels := sorted(Path(folder).glob("pip-*.whl"))):
            return wheels[-1]
    raise ConfigError("this Python comes without pip: apt install python3-venv")


class SiteFolder:
    """A new folder of the host for the pieces of checked records (`RecordReader`)."""

    def __init__(self, into: Path) -> None:
        into.mkdir(parents=True)
        into.chmod(0o755)  # whatever the caller's umask: sandboxes run as another user
        self._into, self._path = into, ""
        self._file: IO[bytes] | None = None

    def write(self, piece: FilePiece) -> None:
        """Regular files alone, read-only; no file that exists is opened."""
        if piece.path != self._path or self._file is None:
            self.close()
            target = self._into / piece.path
            for parent in reversed(target.relative_to(self._into).parents[:-1]):
                folder = self._into / parent
                if not folder.exists():
                    folder.mkdir()
                    folder.chmod(0o755)
            self._file, self._path = target.open("xb"), piece.path
            os.fchmod(self._file.fileno(), 0o444)
        self._file.write(piece.data)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def whole(done: ExecResult, what: str) -> bytes:
    """Standard output of a command that ended well. ConfigError where it was too much for its
    sandbox, TransientError for any other."""
    if done.truncated or done.out_of_memory or b"No space left on device" in done.stderr:
        raise ConfigError(f"{what} failed: it is too much for its sandbox ({last_line(done)})")
    if done.exit_code:
        why = "out of time" if done.timed_out else last_line(done)
        raise TransientError(f"{what} failed: {why}")
    return done.stdout


def last_line(done: ExecResult) -> str:
    return last_words(done.stderr) or f"exit code {done.exit_code}"
