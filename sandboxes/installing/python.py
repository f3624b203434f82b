"""Python packages, installed from wheels by the pip that comes with this Python."""

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from pydantic import ValidationError

from records.errors import ConfigError, ItemError
from sandboxes.code.packages import INSTALL, PIP, SITE, put_pip
from sandboxes.core.programs import last_words, program
from sandboxes.core.python_env import VERSION
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import WORKSPACE
from sandboxes.egress.forwarding import PROXY
from sandboxes.installing.machine import InstalledTree, Installer, installer
from sandboxes.installing.pip_settings import pip_sources
from sandboxes.mcp.packages.kept import PackageLock, site_below
from sandboxes.mcp.packages.requested import normal_name

REPORT, LOG, SCRATCH = f"{WORKSPACE}/report.json", f"{WORKSPACE}/pip.log", f"{WORKSPACE}/scratch"

VERSIONS = re.compile(r"requirement (?P<name>[^\s(]+).*?\(from versions: (?P<versions>[^)]*)\)")
SOURCE_ONLY = re.compile(r"No sources permitted for|No binaries permitted for|\.tar\.gz")


@asynccontextmanager
async def install_python(
    requirements: Sequence[str], *, say: Callable[[str], None]
) -> AsyncIterator[InstalledTree]:
    """Install in a sandbox, which ends with the block. ConfigError where they cannot be."""
    found = pip_sources()
    what = ", ".join(requirements)
    say(f"installing {what} from your pip index {found.sources.shown}")
    async with installer(found.sources, binds=found.binds) as machine:
        sandbox = machine.sandbox
        await put_pip(sandbox)
        await sandbox.exec(["mkdir", SCRATCH])
        options = ["--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-compile"]
        options += ["--only-binary", ":all:", "--target", SITE, "--report", REPORT, "--log", LOG]
        options += ["--retries", "2", "--progress-bar", "off", "--proxy", PROXY]
        options += ["--cert", machine.authorities]
        # files that are unpacked beside their place are moved there, and not copied
        env = found.env | {"PIP_CONFIG_FILE": "/dev/null", "TMPDIR": SCRATCH}
        argv = [*program(INSTALL), PIP, "install", *options, "--", *requirements]
        done = await sandbox.exec(argv, env=env)
        if done.exit_code:
            raise await _failed(machine, what, done)
        lock = await _lock(sandbox, what)
        say(f"installed {what}: {len(lock.packages)} packages")
        yield InstalledTree(sandbox, SITE, site_below(), lock)


async def _lock(sandbox: Sandbox, what: str) -> PackageLock:
    """What pip reports to have installed. ConfigError where that is no report."""
    try:
        report = json.loads(await sandbox.read_file(REPORT))
        lines = []
        for one in report["install"]:
            hashes = one["download_info"].get("archive_info", {}).get("hashes", {})
            taken = f"sha256:{hashes['sha256']}" if "sha256" in hashes else "-"
            metadata = one["metadata"]
            lines.append(f"{normal_name(metadata['name'])}=={metadata['version']} {taken}")
        return PackageLock(packages=tuple(sorted(lines)))
    except (ItemError, ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        said = str(error).partition("\n")[0]
        raise ConfigError(f"cannot install {what}: pip's report is none: {said}") from error


async def _failed(machine: Installer, what: str, done: ExecResult) -> ConfigError:
    try:
        log = (await machine.sandbox.read_file(LOG)).decode(errors="replace")
    except ItemError:
        log = ""
    if (why := machine.obstacle(done, log)) is not None:
        return machine.error(what, why)
    index = f"the pip index {machine.sources.shown}"
    missing = VERSIONS.search(done.stderr.decode(errors="replace"))
    if missing is None:
        said = last_words(done.stderr) or f"exit code {done.exit_code}"
        return machine.error(what, f"pip, asking {machine.sources.shown}, said: {said}")
    name, versions = missing["name"], missing["versions"].strip()
    if versions not in ("none", ""):
        why = f"{index} has no such version of it for Python {VERSION}; it has {versions[-300:]}"
    elif SOURCE_ONLY.search(log):
        why = (
            f"{index} has no wheel of it for Python {VERSION} on this machine, and nothing is "
            "built here; name a version that has one, or install it beforehand and give its own "
            "program as the command"
        )
    else:
        why = f"{index} has no package of this name; look at its spelling"
    return machine.error(what if name == what else f"{what} (for {name})", why)
