"""Real packages as projects: fetched from a package index, with what their tests need.

Fetching is all that happens with network, in a sandbox that is shown nothing of the caller's
(`SandboxTemplate.network`). No code of a package runs there: a source distribution is read as an
archive, and what it needs is installed from wheels alone. Tests run where there is no network.

What is not contained while fetching: that sandbox shares this machine's network, so it reaches
whatever this machine does. What is not supported: dependencies without a wheel, tests that need
the package itself installed (its metadata, entry points or built extensions), pytest plugins.
"""

import contextlib
import io
import re
import sysconfig
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, model_validator

from records.config import Config
from records.errors import ConfigError, TransientError
from sandboxes.code.projects import Project, check_path, sdist_files
from sandboxes.core import python_env
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import WORKSPACE, Limits, SandboxTemplate
from sandboxes.lending.leases import lease
from sandboxes.local.bwrap import AUTHORITIES, network_files

FETCH = Path(__file__).parents[1] / "inside" / "fetch_sdist.py"
PIP, SITE = f"{WORKSPACE}/pip", f"{WORKSPACE}/site"

MACHINE = SandboxTemplate(
    network=True,
    hostname="installer",
    limits=Limits(timeout_s=240, memory_mb=1024, disk_mb=256, output_bytes=32_000_000, cpus=2.0),
)

MAX_SITE, MAX_SITE_FILES = 200_000_000, 20_000
"""Bounds of installed packages: bytes of all files, and their number."""

NOT_THERE = 3
"""Exit code of `inside/fetch_sdist.py` for what the index does not have."""

REQUIREMENT = re.compile(r"[A-Za-z0-9][^@\n]*")
"""No option of pip, and no address: a source from elsewhere would be built, which runs its code."""


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
    files = sdist_files(await fetch_sdist(name, version, index=index), f"{name} {version}")
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
    metadata = message_from_string(files.get("PKG-INFO", ""))
    settings = guessed(files, metadata) | settings
    needs = [*declared_needs(files, metadata), *requires]
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


def declared_needs(files: Mapping[str, str], metadata: Message) -> list[str]:
    """What the distribution says it needs; older tools wrote it to a file beside the metadata, and
    a repository has only what its tools will make that of."""
    if declared := metadata.get_all("Requires-Dist"):
        return declared
    if not metadata:
        with contextlib.suppress(tomllib.TOMLDecodeError, AttributeError, TypeError):
            stated = tomllib.loads(files.get("pyproject.toml", "")).get("project", {})
            return [str(need) for need in stated.get("dependencies", ())]
    beside = [text for path, text in files.items() if path.endswith(".egg-info/requires.txt")]
    plain = beside[0].partition("[")[0] if beside else ""  # sections in brackets are optional
    return plain.split()


TEST_FOLDERS = ("tests", "test", "testing")


def guessed(files: Mapping[str, str], metadata: Message) -> dict[str, object]:
    """Settings of a project as its files suggest them."""
    folders = {
        str(parent): None for path in sorted(files) for parent in PurePosixPath(path).parents
    }
    alone = [path for path in sorted(files) if re.fullmatch(r"tests?(_\w+)?\.py", path)]
    nested = [folder for folder in folders if PurePosixPath(folder).name in TEST_FOLDERS]
    found = [folder for folder in TEST_FOLDERS if folder in folders] + alone + nested
    declared = metadata.get("License-Expression") or metadata.get("License") or "unknown"
    return {
        "description": metadata.get("Summary", ""),
        "license": declared.strip().partition("\n")[0],
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


async def fetch_sdist(name: str, version: str, *, index: PackageIndex = PackageIndex()) -> bytes:
    """The archive as the index has it, its digest compared. Errors as `project_of_index`."""
    async with lease(MACHINE) as sandbox:
        await put_pip(sandbox)
        argv = [python_env.base_python(), "-I", "-", PIP, index.url or "", AUTHORITIES]
        done = await sandbox.exec([*argv, name, version], stdin=FETCH.read_bytes(), env=index.env)
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
    argv = [python_env.base_python(), "-s", "-B", "-m", "pip", "install", *options]
    async with lease(MACHINE) as sandbox:
        await put_pip(sandbox)
        env = index.env | {"PYTHONPATH": PIP}
        done = await sandbox.exec([*argv, "--", *requirements], env=env)
        if done.exit_code and b"Retrying (" not in done.stdout + done.stderr:
            raise ConfigError(f"cannot install {', '.join(requirements)}: {last_line(done)}")
        whole(done, f"installing {', '.join(requirements)}")
        packed = await sandbox.exec(["tar", "-C", SITE, "-cz", "."])
    unpack(whole(packed, "copying the installed packages"), into)
    return into


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


def unpack(archive: bytes, into: Path) -> None:
    """Regular files alone, read-only. ConfigError where they pass the bounds."""
    total = count = 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r|gz") as tar:
        into.mkdir(parents=True, mode=0o755)
        for member in tar:
            path = member.name.removeprefix("./")
            if not member.isreg():
                continue
            total, count = total + member.size, count + 1
            if total > MAX_SITE or count > MAX_SITE_FILES:
                raise ConfigError(f"packages are over {MAX_SITE} bytes or {MAX_SITE_FILES} files")
            check_path(path)
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            file = tar.extractfile(member)
            target.write_bytes(file.read() if file else b"")
            target.chmod(0o444)


def whole(done: ExecResult, what: str) -> bytes:
    """Standard output of a command that ended well. TransientError for any other."""
    if done.exit_code or done.truncated:
        why = "too much output" if done.truncated else last_line(done)
        raise TransientError(f"{what} failed: {'out of time' if done.timed_out else why}")
    return done.stdout


def last_line(done: ExecResult) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else f"exit code {done.exit_code}"
