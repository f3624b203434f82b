"""Installed packages as they are kept in the user's cache: one folder for one request.

A folder appears whole or not at all, whatever is killed when. It holds what is shown to a server
and `lock.json`, the packages that were taken. A request that was answered once is answered by its
folder from then on, so that a server stays what it is and needs no index again; another Python or
Node is another request.
"""

import configparser
import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError

from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from records.files import locked, make_folder
from records.new_folder import new_folder
from sandboxes.core import python_env
from sandboxes.mcp.packages.requested import LockedPackage, ServerPackages, normal_name

LOCK = "lock.json"


class PackageLock(Config):
    packages: tuple[LockedPackage, ...] = Field(min_length=1)


class KeptPackages(NamedTuple):
    folder: Path
    """A virtual environment's `lib`, or `node_modules`, stand in it."""

    lock: PackageLock


def packages_folder() -> Path:
    """Where they are kept: `agentic-synth/packages` in $XDG_CACHE_HOME, else in ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / (
        "agentic-synth/packages"
    )


def place_of(packages: ServerPackages) -> Path:
    """The folder of a request. ConfigError where node is needed and not installed."""
    runs_on = python_env.VERSION if packages.kind == "python" else node_version()
    machine = f"{platform.system()}-{platform.machine()}-{'-'.join(platform.libc_ver())}"
    request = digest(packages.kind, packages.requirements, runs_on, machine)
    name = re.sub(r"[^a-z0-9]+", "-", packages.main.lower()).strip("-")[:60]
    return packages_folder() / f"{name}-{request}"


@cache
def node_version() -> str:
    """The major version of node, which decides what installs for it."""
    if (node := shutil.which("node")) is None:
        raise ConfigError("npm packages run on node, which is not installed: install Node.js")
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().partition(".")[0]


def kept_packages(packages: ServerPackages) -> KeptPackages | None:
    """What is kept for a request; None where nothing is. ConfigError for a folder that something
    else has changed."""
    folder = place_of(packages)
    try:
        text = (folder / LOCK).read_text(encoding="utf-8")
    except FileNotFoundError:
        if folder.exists():
            raise ConfigError(f"{folder} has lost its {LOCK}; remove the folder") from None
        return None
    try:
        return KeptPackages(folder, PackageLock.model_validate_json(text))
    except ValidationError as error:
        said = error.errors()[0]["msg"]
        raise ConfigError(f"{folder / LOCK} is no lock ({said}); remove the folder") from error


@contextlib.contextmanager
def one_at_a_time(packages: ServerPackages) -> Iterator[None]:
    """Waits while another process installs for the same request."""
    place = place_of(packages)
    make_folder(place.parent)
    lock = place.with_name(f".lock-{place.name}")
    lock.touch()
    with locked(lock, exclusive=True):
        yield


@contextlib.contextmanager
def keeping(packages: ServerPackages, lock: PackageLock) -> Iterator[Path]:
    """A folder to put the installed packages in, kept for the request once the block ends well."""
    with new_folder(place_of(packages)) as folder:
        folder.chmod(0o755)  # whatever the caller's umask: sandboxes run as another user
        yield folder
        text = json.dumps(lock.model_dump(mode="json"), indent=1)
        (folder / LOCK).write_text(f"{text}\n", encoding="utf-8")


def site_below() -> Path:
    """Where Python packages stand, so that the folder is a virtual environment to `python_env`."""
    return Path("lib") / f"python{python_env.VERSION}" / "site-packages"


def program_of(packages: ServerPackages, folder: Path, wanted: str) -> str:
    """The program that the command means. ConfigError, with those that there are, where the
    packages do not have it."""
    is_python, main = packages.kind == "python", packages.requirements[0]
    found = python_programs(folder / site_below()) if is_python else node_programs(folder)
    own = [name for name, package in found.items() if _same(package, packages.main)]
    if not packages.own_program and wanted in found:
        return wanted
    if packages.own_program:
        if named := [name for name in own if _same(name, wanted)]:
            return named[0]
        if len(own) == 1:
            return own[0]
    has = ", ".join(sorted(own if packages.own_program else found)[:20]) or "none"
    named = f"uvx --from {main}" if is_python else f"npx --package={main}"
    raise ConfigError(
        f"{', '.join(packages.requirements)} has no program {wanted!r}; programs that it has: "
        f"{has}. Name one of them: {named} PROGRAM"
    )


def _same(one: str, other: str) -> bool:
    return normal_name(one) == normal_name(other)


def python_programs(site: Path) -> dict[str, str]:
    """Program -> package, of every installed package."""
    found: dict[str, str] = {}
    for info in sorted(site.glob("*.dist-info")):
        package = info.name.partition("-")[0]
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        parser.optionxform = str  # type: ignore[assignment]  # names keep their case
        entries = info / "entry_points.txt"
        if entries.is_file():
            with contextlib.suppress(configparser.Error):
                parser.read_string(entries.read_text(encoding="utf-8"))
        if parser.has_section("console_scripts"):
            found |= dict.fromkeys(dict(parser["console_scripts"]), package)
        record = info / "RECORD"
        lines = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
        for line in lines:  # programs that are no Python, and that the package brings along
            if match := re.fullmatch(r"(?:\.\./)*bin/([^/,\"]+),.*", line):
                found.setdefault(match[1], package)
    return found


def node_programs(folder: Path) -> dict[str, str]:
    """Program -> package, of those in `node_modules/.bin`."""
    found: dict[str, str] = {}
    for link in sorted((folder / "node_modules" / ".bin").glob("*")):
        parts = link.readlink().parts[1:]  # ../PACKAGE/FILE
        found[link.name] = "/".join(parts[: 2 if parts[0].startswith("@") else 1])
    return found
