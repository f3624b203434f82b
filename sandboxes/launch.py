"""From a server's definition to the sandbox and the command line that start it."""

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from records.errors import ConfigError
from sandboxes import python_env
from sandboxes.servers import ServerConfig
from sandboxes.template import BASE_ENV, Bind, SandboxTemplate

NPM = "/opt/npm"
NODE = "/opt/node/bin/node"


class Launch(NamedTuple):
    template: SandboxTemplate
    argv: list[str]


def launch_of(config: ServerConfig) -> Launch:
    """How to start the server. ConfigError, naming the command, where nothing provides it."""
    command, *arguments = config.command
    packages = python_env.site_packages(config.venv)
    if command in ("python", "python3"):
        return python_launch(config, packages, [python_env.PYTHON, *arguments])
    if (script := python_env.script_argv(command, packages)) is not None:
        return python_launch(config, packages, [*script, *arguments])
    prefix = config.npm_prefix or Path(sys.prefix) / "npm"
    if (prefix / "node_modules" / ".bin" / command).exists():
        return node_launch(config, prefix, arguments)
    if (path := shutil.which(command, path=BASE_ENV["PATH"])) is None:
        raise ConfigError(
            f"server {config.name}: command {command!r} does not exist: no package in {packages} "
            f"and none in {prefix} provides it, and it is not a program of the system"
        )
    return Launch(template_of(config, preload_clock=True), [path, *arguments])


def python_launch(config: ServerConfig, packages: Path, argv: list[str]) -> Launch:
    template = template_of(
        config,
        binds=python_env.environment_binds(packages),
        files=python_env.environment_files(),
        links=python_env.environment_links(),
    )
    return Launch(template, argv)


def node_launch(config: ServerConfig, prefix: Path, arguments: list[str]) -> Launch:
    node = shutil.which("node", path=BASE_ENV["PATH"])
    binds = [Bind(source=str(prefix / "node_modules"), target=f"{NPM}/node_modules")]
    if node is None:  # one in a home, such as a version manager's: only the program is shown
        if (own := shutil.which("node")) is None:
            raise ConfigError(f"server {config.name} needs node, which is not installed")
        binds.append(Bind(source=str(Path(own).resolve()), target=NODE))
        node = NODE
    script = f"{NPM}/node_modules/.bin/{config.command[0]}"
    return Launch(template_of(config, binds=tuple(binds)), [node, script, *arguments])


def template_of(
    config: ServerConfig,
    *,
    binds: tuple[Bind, ...] = (),
    files: dict[str, str] | None = None,
    links: dict[str, str] | None = None,
    preload_clock: bool = False,
) -> SandboxTemplate:
    return SandboxTemplate(
        binds=(*binds, *config.binds),
        files=files or {},
        links=links or {},
        env=config.env,
        clock=config.clock,
        preload_clock=preload_clock,
        limits=config.limits,
    )
