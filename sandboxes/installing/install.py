"""Installs the packages that a server runs from, once, and keeps them (`mcp/packages/kept`).

It happens in a sandbox whose only way out leads to the indexes of the user's own settings. No code
of a package runs: Python packages are taken from wheels alone, npm runs no scripts of them. What
comes out are regular files with checked paths. The sandbox is handed the credentials of the
indexes, since pip and npm log in with them; nothing else of the caller's but folders that its
settings name as indexes.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from records.errors import ConfigError, ItemError, TransientError
from sandboxes.code.file_records import FileBounds, read_out
from sandboxes.code.packages import SiteFolder
from sandboxes.core.sandbox import Sandbox
from sandboxes.installing.machine import InstalledTree
from sandboxes.installing.node import install_node
from sandboxes.installing.python import install_python
from sandboxes.local.backend import unavailable
from sandboxes.mcp.launch import with_packages
from sandboxes.mcp.packages.kept import keeping, kept_packages, one_at_a_time
from sandboxes.mcp.packages.requested import ServerPackages
from sandboxes.mcp.servers import ServerConfig

TREE = FileBounds(files=45_000, file_bytes=600 << 20, total_bytes=1_500 << 20)
"""Of the packages of one server."""


async def installed(
    config: ServerConfig, *, say: Callable[[str], None] = lambda line: None
) -> ServerConfig:
    """The server with its packages, installed where they are not yet; any other as it is.

    `say` is told before anything is installed. ConfigError, with what to do, where they cannot be:
    settings, index, package, version, wheel or program.
    """
    if config.packages is None:
        return config
    if kept_packages(config.packages) is None:
        try:
            await _install(config.packages, say)
        except (TransientError, ItemError) as error:
            raise ConfigError(
                f"server {config.name}: installing {', '.join(config.packages.requirements)} "
                f"failed: {error}"
            ) from error
        except ConfigError as error:
            raise ConfigError(f"server {config.name}: {error}") from error
    return with_packages(config)


async def _install(packages: ServerPackages, say: Callable[[str], None]) -> None:
    if (reason := unavailable()) is not None:
        raise ConfigError(
            "packages are only ever installed in a sandbox of this machine, wherever the server "
            f"runs then: {reason}"
        )
    with ExitStack() as stack:
        waiting = asyncio.to_thread(stack.enter_context, one_at_a_time(packages))
        await waiting
        if kept_packages(packages) is not None:  # another process was first
            return
        install = install_python if packages.kind == "python" else install_node
        async with install(packages.requirements, say=say) as made:
            with keeping(packages, made.lock) as folder:
                await _take(made, folder / made.below)
                made.finish(folder)


async def _take(made: InstalledTree, into: Path) -> None:
    """Write the installed files to the folder, those that run marked so."""
    sandbox = made.sandbox
    tree = SiteFolder(into)
    request = {"kind": "folder", "place": made.place}
    await read_out(sandbox, request, bounds=TREE, what="the installed packages", take=tree.write)
    tree.close()
    for path in await _executable(sandbox, made.place):
        # only what was written just now, by paths that were checked
        if not path.startswith("/") and ".." not in path.split("/") and (into / path).is_file():
            (into / path).chmod(0o555)


async def _executable(sandbox: Sandbox, place: str) -> list[str]:
    argv = ["find", ".", "-type", "f", "-perm", "-u+x", "-print0"]
    done = await sandbox.exec(argv, cwd=place)
    names = done.stdout.decode(errors="replace").split("\0")
    return [name.removeprefix("./") for name in names if name]
