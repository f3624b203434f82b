"""Who holds what on this machine: names that tell a living owner from a dead one.

Processes of a sandbox die with the process that opened it. Control groups and snapshots do not:
each carries its owner's name, so that `sandboxes.local.reaper` finds what a killed owner left. The
name holds the process id, its start time (a recycled id is another process) and the process
namespace (an id says nothing in another container, so that nothing there is ever judged).
"""

import os
import stat
import tempfile
from pathlib import Path

from records.errors import ConfigError, TransientError
from records.processes import ProcessId, is_alive, this_process

PREFIX = "agentic-synth"


def owner_name() -> str:
    me = this_process()
    return f"{me.pid}.{me.started}.{namespace()}"


def namespace() -> str:
    link = Path("/proc/self/ns/pid")
    return link.readlink().name.strip("pid:[]") if link.is_symlink() else "0"


def owner_is_dead(name: str) -> bool:
    """Whether the owner named at the start of `name` no longer runs; False where that cannot be
    told: the name is not ours, or of another process namespace."""
    pid, started, space = [*name.split(".")[:3], "", "", ""][:3]
    return pid.isdigit() and space == namespace() and not is_alive(ProcessId(int(pid), started))


def root_folder() -> Path:
    """Where owners of this user keep snapshots. Only this user may have made it: the temporary
    folder around it is everyone's. ConfigError if it is someone else's."""
    folder = Path(tempfile.gettempdir()) / f"{PREFIX}-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise TransientError(f"cannot make {folder} for snapshots: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o77:
        raise ConfigError(
            f"{folder} is not a closed folder of this user; remove it, or set TMPDIR to another"
        )
    return folder


def own_folder() -> Path:
    """This process's folder in it."""
    folder = root_folder() / owner_name()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise TransientError(f"cannot make {folder} for snapshots: {error.strerror}") from error
    return folder
