"""Node packages, installed by the user's own npm. Their scripts are not run."""

import json
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from records.errors import ConfigError, ItemError
from sandboxes.core.programs import last_words
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import WORKSPACE, Bind
from sandboxes.egress.forwarding import PROXY
from sandboxes.installing.machine import InstalledTree, Installer, installer
from sandboxes.installing.npm_settings import npm_program, npm_sources
from sandboxes.mcp.launch import node_program
from sandboxes.mcp.packages.kept import PackageLock
from sandboxes.mcp.packages.requested import node_name

PREFIX, CACHE, SETTINGS = f"{WORKSPACE}/prefix", f"{WORKSPACE}/cache", f"{WORKSPACE}/npmrc"
MODULES = f"{PREFIX}/node_modules"
OWN_NPM = "/opt/npm-program"


@asynccontextmanager
async def install_node(
    requirements: Sequence[str], *, say: Callable[[str], None]
) -> AsyncIterator[InstalledTree]:
    """Install in a sandbox, which ends with the block. ConfigError where they cannot be."""
    what = ", ".join(requirements)
    npm, binds = _npm_inside()
    found = npm_sources()
    node, more = node_program("packages")
    say(f"installing {what} from your npm registry {found.sources.shown}")
    async with installer(found.sources, binds=(*binds, *more)) as machine:
        sandbox = machine.sandbox
        own = f"proxy={PROXY}\nhttps-proxy={PROXY}\nnoproxy=\ncafile={machine.authorities}\n"
        await sandbox.write_file(SETTINGS, (found.npmrc + own).encode(), mode=0o600)
        await sandbox.write_file(f"{PREFIX}/package.json", b"{}\n")
        options = ["--prefix", PREFIX, "--userconfig", SETTINGS, "--globalconfig", "/dev/null"]
        options += ["--cache", CACHE, "--ignore-scripts", "--no-bin-links", "--no-audit"]
        options += ["--no-fund", "--no-update-notifier", "--loglevel", "error", "--omit", "dev"]
        argv = [node, npm, "install", *options, "--", *requirements]
        env = {"PATH": f"{Path(node).parent}:{os.defpath}"}
        done = await sandbox.exec(argv, cwd=PREFIX, env=env)
        if done.exit_code:
            raise _failed(machine, what, done)
        lock = await _lock(sandbox, what)
        say(f"installed {what}: {len(lock.packages)} packages")
        names = [node_name(requirement) for requirement in requirements]
        yield InstalledTree(
            sandbox,
            MODULES,
            Path("node_modules"),
            lock,
            lambda folder: link_programs(folder, names),
        )


def _npm_inside() -> tuple[str, tuple[Bind, ...]]:
    """The path of npm inside, and what is shown for it where it is not of the system."""
    script = npm_program()
    if script.is_relative_to("/usr"):
        return str(script), ()
    package = script.parents[1]  # npm/bin/npm-cli.js
    inside = f"{OWN_NPM}/{script.relative_to(package)}"
    return inside, (Bind(source=str(package), target=OWN_NPM),)


async def _lock(sandbox: Sandbox, what: str) -> PackageLock:
    """What npm says that it installed. Its own list is removed: it names the registry."""
    listed = f"{MODULES}/.package-lock.json"
    try:
        found: dict[str, Any] = json.loads(await sandbox.read_file(listed))["packages"]
        await sandbox.exec(["rm", "-f", listed])
        lines = {
            f"{path.rpartition('node_modules/')[2]}@{one['version']} {one.get('integrity', '-')}"
            for path, one in found.items()
        }
        return PackageLock(packages=tuple(sorted(lines)))
    except (ItemError, ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        said = str(error).partition("\n")[0]
        raise ConfigError(f"cannot install {what}: npm's list is none: {said}") from error


def link_programs(folder: Path, names: Sequence[str]) -> None:
    """Make `node_modules/.bin` as npm does, for the programs of these packages alone."""
    modules = folder / "node_modules"
    links = modules / ".bin"
    links.mkdir(exist_ok=True)
    links.chmod(0o755)
    for name in names:
        package = modules / name
        for program, path in programs_of(package).items():
            file = (package / path).resolve()
            link = links / program
            if file.is_relative_to(package.resolve()) and file.is_file() and not link.exists():
                file.chmod(0o555)
                link.symlink_to(Path("..") / file.relative_to(modules.resolve()))


def programs_of(package: Path) -> dict[str, str]:
    """Program -> file in the package, as its package.json says."""
    try:
        described = json.loads((package / "package.json").read_text(encoding="utf-8"))
        given = described.get("bin") or {}
    except (OSError, ValueError, AttributeError):
        return {}
    if isinstance(given, str):
        given = {package.name: given}
    if not isinstance(given, dict):
        return {}
    return {
        name.rpartition("/")[2]: path
        for name, path in given.items()
        if isinstance(path, str) and re.fullmatch(r"(@[\w.-]+/)?[\w.-]+", name)
    }


def _failed(machine: Installer, what: str, done: ExecResult) -> ConfigError:
    if (why := machine.obstacle(done)) is not None:
        return machine.error(what, why)
    said = done.stderr.decode(errors="replace")
    registry = f"the npm registry {machine.sources.shown}"
    if "code E404" in said:
        missing = re.search(r"'([^'\s]+)' is not in this registry", said)
        named = node_name(missing[1]) if missing else what
        return machine.error(what, f"{registry} has no package {named}; look at its spelling")
    if "code ETARGET" in said:
        found = re.search(r"No matching version found for (\S+?)\.?\s", said)
        return machine.error(what, f"{registry} has no version {found[1] if found else what}")
    told = [
        line for line in said.splitlines() if line.startswith("npm error") and "log" not in line
    ]
    first = next((line for line in told if " code " not in line), "") or last_words(done.stderr)
    return machine.error(what, f"npm, asking {registry}, said: {last_words(first.encode())}")
