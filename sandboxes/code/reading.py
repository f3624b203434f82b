"""Files of repositories and archives that lie on this machine, read in a sandbox.

Nothing of them runs or is parsed here: the sandbox is shown a repository's own folder, or the
archive, read-only and without network, and gives text files back (`sandboxes.code.file_records`).
What is read of a repository are its objects: no setting, filter, attribute or hook of it counts.
"""

import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from records.errors import ConfigError
from sandboxes.code.file_records import FileBounds, FilePiece, read_out
from sandboxes.code.projects import MAX_FILE, MAX_FILES, MAX_TOTAL
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Bind, Limits, SandboxTemplate
from sandboxes.lending.leases import lease
from sandboxes.local.users import apart

REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./~^-]*")
"""Of a git repository on this machine; what begins with a dash would be an option."""

SOURCE = "/opt/source"
"""Where the sandbox finds what it reads."""

LIMITS = Limits(timeout_s=60, memory_mb=512, disk_mb=16, processes=16, cpus=2.0)

MAX_COPY = 4 << 30
"""Bytes of a closed repository that root has copied before it is shown."""

TEXT_FILES = FileBounds(MAX_FILES, MAX_FILE, MAX_TOTAL)


async def files_of_git(folder: Path, revision: str = "HEAD") -> dict[str, str]:
    """The text files of a commit, as its objects have them; below `folder`, where that lies in a
    repository. ConfigError for a revision or a folder that is none, and what cannot be read."""
    if not REVISION.fullmatch(revision):
        raise ConfigError(
            f"a revision is a branch, a tag or a commit, such as main, v1.2 or HEAD~1; got "
            f"{revision!r}"
        )
    place, inner = repository_of(folder)
    request = {"kind": "commit", "place": SOURCE, "revision": revision, "below": inner}
    return await _read_shown(place, request, f"{revision} of {folder}")


async def files_of_sdist(archive: Path, name: str | None = None) -> dict[str, str]:
    """Those below the one top folder of a source distribution. ConfigError naming it by `name`."""
    files = await _read_shown(archive, {"kind": "archive", "place": SOURCE}, name or str(archive))
    tops = sorted({path.partition("/")[0] for path in files})
    if len(tops) != 1 or tops[0] in files:
        shown = ", ".join(map(repr, tops[:5])) or "none"
        raise ConfigError(
            f"{name or archive} is no source distribution, which has one top folder; it has {shown}"
        )
    return {path.partition("/")[2]: text for path, text in files.items()}


async def _read_shown(place: Path, request: Mapping[str, Any], what: str) -> dict[str, str]:
    with shown(place) as bind:
        template = SandboxTemplate(binds=(bind,), hostname="reader", limits=LIMITS)
        async with lease(template) as sandbox:
            return await text_files(sandbox, request, what)


async def text_files(sandbox: Sandbox, request: Mapping[str, Any], what: str) -> dict[str, str]:
    """The text files that the sandbox finds (see `read_out`), by path."""
    found: dict[str, str] = {}

    def take(piece: FilePiece) -> None:
        try:
            found[piece.path] = piece.data.decode()
        except UnicodeDecodeError:
            raise ConfigError(f"{piece.path!r} is no text") from None

    await read_out(sandbox, request, bounds=TEXT_FILES, what=what, take=take)
    return found


def repository_of(folder: Path) -> tuple[Path, str]:
    """The repository's own folder, and the path of `folder` in its commits. Looks at the names of
    files alone. ConfigError where there is none that can be shown."""
    try:
        top = folder.resolve(strict=True)
        for parent in (top, *top.parents):
            own = parent / ".git"
            if own.is_symlink() or own.is_file():
                raise ConfigError(
                    f"{own} leads to a repository elsewhere (as those of worktrees and submodules "
                    "do); name that repository's folder"
                )
            if own.is_dir():
                inner = top.relative_to(parent).as_posix()
                return own, "" if inner == "." else inner
            if parent == top and (top / "HEAD").is_file() and (top / "objects").is_dir():
                return top, ""  # a bare one
    except OSError as error:
        raise ConfigError(f"cannot read {folder}: {error.strerror}") from error
    raise ConfigError(f"{folder} is no git repository, and in none")


@contextmanager
def shown(source: Path) -> Iterator[Bind]:
    """A file or folder as a sandbox can see it. Where a sandbox's user is another one than the
    caller, what only its owner may read is copied first, and the copy removed at the end."""
    with ExitStack() as stack:
        try:
            source = source.resolve(strict=True)
            if apart() is None and is_closed(source):
                folder = stack.enter_context(TemporaryDirectory(prefix="synth-read-"))
                source = copied(source, Path(folder) / "source")
        except OSError as error:
            raise ConfigError(f"cannot read {source}: {error.strerror or error}") from error
        yield Bind(source=str(source), target=SOURCE)


def is_closed(source: Path) -> bool:
    """Whether anything of it is not for everybody to read. ConfigError where it is then too large
    to be copied."""
    found, total = False, 0
    for path in below(source):
        info = path.lstat()
        wanted = 0o005 if stat.S_ISDIR(info.st_mode) else 0o004
        found |= not stat.S_ISLNK(info.st_mode) and info.st_mode & wanted != wanted
        total += info.st_size
    if found and total > MAX_COPY:
        raise ConfigError(
            f"{source} is closed to other users, and its {total} bytes are too many to be copied"
        )
    return found


def below(source: Path) -> Iterator[Path]:
    """The file or folder and all that is in it, folders first. Follows no link inside, and is not
    recursive: a stranger decides how deep folders are."""
    waiting = [source]
    while waiting:
        yield (path := waiting.pop())
        if path.is_dir() and not path.is_symlink():
            waiting += path.iterdir()


def copied(source: Path, target: Path) -> Path:
    """Its regular files and folders, open to everybody, and its links as links."""
    for path in below(source):
        to = target / path.relative_to(source)
        if path.is_symlink():
            to.symlink_to(path.readlink())
        elif path.is_dir():
            to.mkdir()
            to.chmod(0o755)
        elif path.is_file():
            shutil.copyfile(path, to)
            to.chmod(0o644)
    return target
