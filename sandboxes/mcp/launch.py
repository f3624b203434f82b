"""From a server's definition to the sandbox and the command line that start it."""

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ConfigError
from sandboxes.core import python_env
from sandboxes.core.template import BASE_ENV, Bind, SandboxTemplate
from sandboxes.core.workspace_files import files_of
from sandboxes.lending import leases
from sandboxes.mcp.joining import JOINS, joined_server
from sandboxes.mcp.packages.invocations import invocation_of
from sandboxes.mcp.packages.kept import kept_packages, program_of
from sandboxes.mcp.servers import ServerConfig
from tool_specs.domains.loading import checked, read_yaml

NPM = "/opt/npm"
NODE = "/opt/node/bin/node"


SCRIPTS = "/opt/server"
PROGRAMS = (".py", ".js", ".mjs", ".cjs")
"""Endings of scripts that are shown inside where a command names them."""

NOT_RUN = {
    "docker": "a container is not started in a sandbox: give the server as a Python or npm package "
    "(uvx, npx), or a program that is installed here",
    "uv": "of uv only uvx and uv tool run are understood: make a virtual environment with what "
    "the server needs (uv venv; uv pip install) and name its program by its path there",
}
NOT_RUN["podman"] = NOT_RUN["docker"]
"""Programs that cannot start a server in a sandbox, and what to do instead."""


def server_of_command(line: str, *, writes: bool | None = None) -> ServerConfig:
    """The definition of a server given as a command line, as `synth tools import --server` takes
    it. ConfigError for what does not exist."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ConfigError(f"server command {line!r} is not a command line: {error}") from error
    if not words:
        raise ConfigError(f"server command {line!r} is empty")
    called = invocation_of(words)
    shown = shown_inside([called.program, *called.arguments] if called else words, Path())
    config = ServerConfig(
        name=name_of(shown.command[0] if called or not shown.binds else shown.binds[0].target),
        command=shown.command,
        packages=called and called.packages,
        venv=shown.venv,
        binds=shown.binds,
        writes=writes,
    )
    return with_packages(config)


def load_server(path: Path) -> ServerConfig:
    """Read one definition. It needs a `command`, or `joins`, and nothing more: the name is that of
    the file unless it says another, and paths in the command are shown inside. ConfigError naming
    file and field for whatever is wrong with it."""
    given = read_yaml(path)
    if not isinstance(given, dict):
        raise ConfigError(f"{path}: a server definition is a mapping with a `command` or `joins`")
    given = {"name": name_of(path.name)} | given
    if JOINS in given:
        return joined_server(given, path, load_server)
    return definition_of(given, path.parent, origin=str(path))


def definition_of(given: dict[str, Any], folder: Path, *, origin: str) -> ServerConfig:
    """A definition from its fields, paths in it relative to the folder. ConfigError naming `origin`
    for whatever is wrong with it."""
    command = given.get("command")
    words = shlex.split(command) if isinstance(command, str) else command
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        try:
            called = invocation_of(words)
            if called is not None:
                words = [called.program, *called.arguments]
                given = given | {"packages": called.packages.model_dump()}
            shown = shown_inside(words, folder)
        except ConfigError as error:
            raise ConfigError(f"{origin}: {error}") from None
        binds = [*(bind.model_dump() for bind in shown.binds), *given.get("binds", ())]
        given = given | {"command": list(shown.command), "binds": binds}
        if shown.venv is not None:
            given = {"venv": str(shown.venv)} | given
    return with_packages(with_folders(checked(ServerConfig, given, origin=origin), folder))


def with_folders(config: ServerConfig, folder: Path) -> ServerConfig:
    """The server with what lies in the folders that its fixtures name, relative to `folder`."""
    fixtures = {
        name: fixture.model_copy(update={"contents": files_of(folder / fixture.folder)})
        for name, fixture in config.fixtures.items()
        if fixture.folder is not None
    }
    return config.model_copy(update={"fixtures": config.fixtures | fixtures})


def with_packages(config: ServerConfig) -> ServerConfig:
    """The server with the packages that are kept for it, its command the program that they have. As
    it is where it has none, or they are not installed yet (`sandboxes.installing`)."""
    packages = config.packages
    if packages is None or (kept := kept_packages(packages)) is None:
        return config
    program, *arguments = config.command
    try:
        program = program_of(packages, kept.folder, program)
    except ConfigError as error:
        raise ConfigError(f"server {config.name}: {error}") from None
    return config.model_copy(
        update={
            "command": (program, *arguments),
            "packages": packages.model_copy(update={"locked": kept.lock.packages}),
            "venv" if packages.kind == "python" else "npm_prefix": kept.folder,
        }
    )


class ShownInside(NamedTuple):
    """A command as it is run inside, and what of this machine is shown for it."""

    command: tuple[str, ...]
    venv: Path | None
    binds: tuple[Bind, ...]


def shown_inside(words: Sequence[str], folder: Path) -> ShownInside:
    """A command whose program or script is given by its path, relative to `folder`. A program of a
    virtual environment is run from that environment, one of an npm prefix from its package. Of a
    script of a Node package the package is shown, of any other script the file alone.

    ConfigError where the program does not exist.
    """
    command, *arguments = words
    venv: Path | None = None
    binds: list[Bind] = []
    if "/" in command and not command.startswith("/usr/"):  # which is always shown
        path = folder / Path(command).expanduser()
        if not path.is_file():
            raise ConfigError(f"server command {command!r} does not exist")
        if (path.absolute().parent.parent / "pyvenv.cfg").exists():
            venv, command = path.absolute().parent.parent, path.name
        elif path.name == "node":
            command = "node"
        else:
            binds.append(Bind(source=str(path.absolute()), target=f"{SCRIPTS}/{path.name}"))
            command = binds[-1].target
    for i, word in enumerate(arguments):
        if word.endswith(PROGRAMS) and (folder / Path(word).expanduser()).is_file():
            bind, arguments[i] = _script((folder / Path(word).expanduser()).absolute())
            binds.append(bind)
    return ShownInside((command, *arguments), venv, tuple(binds))


def _script(path: Path) -> tuple[Bind, str]:
    """What is shown of a script, and its path inside."""
    if path.suffix != ".py":
        path = path.resolve()
        for folder in path.parents:
            if (folder / "package.json").is_file():
                # modules are looked for in the folders above, too
                top = next((f for f in folder.parents if f.name == "node_modules"), folder)
                target = f"{SCRIPTS}/{top.name}"
                return Bind(source=str(top), target=target), f"{target}/{path.relative_to(top)}"
    return Bind(source=str(path), target=f"{SCRIPTS}/{path.name}"), f"{SCRIPTS}/{path.name}"


def name_of(path: str) -> str:
    """A server's name from that of its program or file."""
    name = re.sub(r"[^a-z0-9]+", "_", Path(path).stem.lower()).strip("_")
    return name if name[:1].isalpha() else f"server_{name}"


def check_way_out(config: ServerConfig) -> None:
    """ConfigError for a server that declares hosts where sandboxes have no way to them."""
    place = leases.place_in_use()
    if config.hosts and place.proxy is None and place.backend.name != leases.HERE.backend.name:
        raise ConfigError(
            f"server {config.name} declares hosts ({', '.join(config.hosts)}), and sandboxes of "
            f"{place.backend.name} have no way to them: name the egress proxy of the cluster in "
            "sandboxes.kubernetes.egress_proxy (docs/kubernetes.md), or leave the server out"
        )


class Launch(NamedTuple):
    template: SandboxTemplate
    argv: list[str]


def launch_of(config: ServerConfig) -> Launch:
    """How to start the server. ConfigError, naming the command, where nothing provides it."""
    command, *arguments = config.command
    if config.packages is not None and not config.packages.locked:
        raise ConfigError(
            f"server {config.name}: {', '.join(config.packages.requirements)} is not installed "
            "yet; `synth tools import --server` and `synth run` install it"
        )
    packages = python_env.site_packages(config.venv)
    if command in ("python", "python3"):
        return python_launch(config, packages, [python_env.PYTHON, *arguments])
    if (script := python_env.script_argv(command, packages)) is not None:
        return python_launch(config, packages, [*script, *arguments])
    if config.packages is not None and (packages / "bin" / command).is_file():
        return python_launch(config, packages, [*bundled_argv(command, packages), *arguments])
    prefix = config.npm_prefix or Path(sys.prefix) / "npm"
    if (prefix / "node_modules" / ".bin" / command).exists():
        return node_launch(config, prefix, arguments)
    if command == "node":
        node, binds = node_program(f"server {config.name}")
        return Launch(template_of(config, binds=binds), [node, *arguments])
    if any(bind.target == command for bind in config.binds):
        return Launch(template_of(config, preload_clock=True), [*config.command])
    if command in NOT_RUN:
        raise ConfigError(f"server {config.name}: {NOT_RUN[command]}")
    if (path := shutil.which(command, path=BASE_ENV["PATH"])) is None:
        raise ConfigError(
            f"server {config.name}: command {command!r} does not exist: no package in {packages} "
            f"and none in {prefix} provides it, and it is not a program of the system"
        )
    return Launch(template_of(config, preload_clock=command != "node"), [path, *arguments])


def bundled_argv(command: str, packages: Path) -> list[str]:
    """How to run a program that a package brings along as a file."""
    inside = f"{python_env.packages_inside()}/bin/{command}"
    with (packages / "bin" / command).open("rb") as file:
        first = file.readline(200)
    return (
        [python_env.PYTHON, inside] if first.startswith(b"#!") and b"python" in first else [inside]
    )


def python_launch(config: ServerConfig, packages: Path, argv: list[str]) -> Launch:
    programs = python_env.environment_programs(packages) if calls_programs(config) else {}
    template = template_of(
        config,
        binds=python_env.environment_binds(packages, needed_there(config, packages)),
        files=python_env.environment_files(),
        programs=programs,
        links=python_env.environment_links(),
        path=(f"{python_env.ENVIRONMENT}/bin", f"{python_env.packages_inside()}/bin"),
    )
    return Launch(template, argv)


def needed_there(config: ServerConfig, packages: Path) -> tuple[str, ...] | None:
    """What of the packages the server needs where they are sent to its sandbox; None for all: on
    this machine they are shown without any cost, and of a script nobody knows what it imports."""
    command, *arguments = config.command
    if leases.place_in_use() is leases.HERE or config.packages is not None:
        return None
    if command in ("python", "python3"):
        if arguments[:1] != ["-m"] or len(arguments) < 2:
            return None
        command = arguments[1]
    owner = python_env.owner_of(packages, command)
    return None if owner is None else python_env.needed_by(packages, owner)


def calls_programs(config: ServerConfig) -> bool:
    """Whether something beside the server may call the programs that its packages have."""
    return bool(config.probes or any(fixture.setup for fixture in config.fixtures.values()))


def node_launch(config: ServerConfig, prefix: Path, arguments: list[str]) -> Launch:
    node, binds = node_program(f"server {config.name}")
    binds = (Bind(source=str(prefix / "node_modules"), target=f"{NPM}/node_modules"), *binds)
    script = f"{NPM}/node_modules/.bin/{config.command[0]}"
    path = (f"{NPM}/node_modules/.bin", str(Path(node).parent))
    return Launch(template_of(config, binds=binds, path=path), [node, script, *arguments])


def node_program(what: str) -> tuple[str, tuple[Bind, ...]]:
    """The path of node inside, and what is shown for it: of one in a home, such as a version
    manager's, the program alone. ConfigError where there is none."""
    if (node := shutil.which("node", path=BASE_ENV["PATH"])) is not None:
        return node, ()
    if (own := shutil.which("node")) is None:
        raise ConfigError(f"{what} needs node, which is not installed: install Node.js")
    return NODE, (Bind(source=str(Path(own).resolve()), target=NODE),)


def template_of(
    config: ServerConfig,
    *,
    binds: tuple[Bind, ...] = (),
    files: dict[str, str] | None = None,
    programs: dict[str, str] | None = None,
    links: dict[str, str] | None = None,
    path: tuple[str, ...] = (),
    preload_clock: bool = False,
) -> SandboxTemplate:
    """`path`: folders whose programs can be called by name, before those of the system."""
    named = ":".join((*path, BASE_ENV["PATH"]))
    return SandboxTemplate(
        binds=(*binds, *config.binds),
        files=files or {},
        programs=programs or {},
        links=links or {},
        env={"PATH": named} | config.env,
        clock=config.clock,
        preload_clock=preload_clock,
        limits=config.limits,
    )
