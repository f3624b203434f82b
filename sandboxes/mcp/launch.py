"""From a server's definition to the sandbox and the command line that start it."""

import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from records.errors import ConfigError
from sandboxes.core import python_env
from sandboxes.core.template import BASE_ENV, Bind, SandboxTemplate
from sandboxes.mcp.servers import ServerConfig

NPM = "/opt/npm"
NODE = "/opt/node/bin/node"


SCRIPTS = "/opt/server"
DOWNLOADERS = {
    "uvx": "pip install",
    "pipx": "pip install",
    "npx": "npm install --prefix .venv/npm",
    "bunx": "npm install --prefix .venv/npm",
    "docker": "as a Python or npm package",
}


def server_of_command(line: str, *, writes: bool | None = None) -> ServerConfig:
    """The definition of a server given as a command line, as `synth tools import --server` takes
    it. A command of a virtual environment is run from that environment; scripts given by their
    path are shown inside, and nothing beside them. ConfigError for what does not exist."""
    try:
        command, *arguments = shlex.split(line)
    except ValueError as error:  # also where there is no word at all
        raise ConfigError(f"server command {line!r} is not a command line: {error}") from error
    venv, binds = None, []
    if "/" in command:
        path = Path(command).expanduser().absolute()
        if not path.is_file():
            raise ConfigError(f"server command {command!r} does not exist")
        if (path.parent.parent / "pyvenv.cfg").exists():
            venv, command = path.parent.parent, path.name
        else:
            binds.append(Bind(source=str(path), target=f"{SCRIPTS}/{path.name}"))
            command = binds[-1].target
    for i, word in enumerate(arguments):
        if word.endswith((".py", ".js", ".mjs", ".cjs")) and Path(word).is_file():
            source = Path(word).absolute()
            binds.append(Bind(source=str(source), target=f"{SCRIPTS}/{source.name}"))
            arguments[i] = binds[-1].target
    scripts = [bind.target for bind in binds]  # "python server.py" is named for the script
    name = re.sub(r"[^a-z0-9]+", "_", Path((scripts or [command])[-1]).stem.lower()).strip("_")
    return ServerConfig(
        name=name if name[:1].isalpha() else f"server_{name}",
        command=(command, *arguments),
        venv=venv,
        binds=tuple(binds),
        writes=writes,
    )


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
    if any(bind.target == command for bind in config.binds):
        return Launch(template_of(config, preload_clock=True), [*config.command])
    if command in DOWNLOADERS:
        raise ConfigError(
            f"server {config.name}: {command} would download its package, and a sandbox has no "
            f"network; install the package ({DOWNLOADERS[command]}) and name its own command"
        )
    if (path := shutil.which(command, path=BASE_ENV["PATH"])) is None:
        raise ConfigError(
            f"server {config.name}: command {command!r} does not exist: no package in {packages} "
            f"and none in {prefix} provides it, and it is not a program of the system"
        )
    return Launch(template_of(config, preload_clock=command != "node"), [path, *arguments])


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
