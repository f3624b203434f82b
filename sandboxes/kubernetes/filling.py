"""What a template shows of this machine, on its way into Pods: one archive, sent over one stream.

Files, programs, links and binds are laid out under numbered folders of an emptyDir. The init
container `fill` takes them in; the main container mounts each folder read-only at its place, so
that no program changes them. An archive is made once for what it holds and kept while this process
lives. What other users may not read here is closed in a sandbox too.
"""

import asyncio
import io
import json
import os
import posixpath
import secrets
import stat
import tarfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from typing import NamedTuple

from records.errors import ConfigError, TransientError
from sandboxes.core import python_env
from sandboxes.core.owners import own_folder
from sandboxes.core.template import SandboxTemplate
from sandboxes.kubernetes.api import exec_stream
from sandboxes.kubernetes.api.connection import Connection
from sandboxes.kubernetes.causes import FILL
from sandboxes.kubernetes.names import digest_of

VOLUME, PLACE = "fill", "/fill"
WHOLE, MARK = "whole", ".filled"
"""Folder of the volume in which all lies, and the file that says that it does."""

SHARED = "/opt"
"""Folders of it are ours: whatever a template shows below one of them is one mount."""

WAIT = f"""
import os, time
while not os.path.exists("{PLACE}/{MARK}"):
    time.sleep(0.05)
"""
"""What the init container runs."""

TAKE = f"""
import os, sys, tarfile
class Part:
    def __init__(self, left):
        self.left = left
    def read(self, count):
        data = sys.stdin.buffer.read(min(count, self.left))
        self.left -= len(data)
        return data
left = int.from_bytes(sys.stdin.buffer.read(8), "big")
if not os.path.exists("{PLACE}/{MARK}"):
    at = "{PLACE}/part%d" % os.getpid()
    os.mkdir(at)
    with tarfile.open(fileobj=Part(left), mode="r|") as archive:
        archive.extraction_filter = lambda member, path: member
        archive.extractall(at)
    os.rename(at, "{PLACE}/{WHOLE}")
    open("{PLACE}/{MARK}", "x").close()
sys.stdout.write("filled")
"""
"""What takes an archive in: its length in 8 bytes, then itself. The stream has no other end."""

CHUNK = 1 << 20
AT_ONCE = 4
"""Pods that are filled at the same time."""

FILL_S, SLOWEST = 60.0, 1 << 20
"""For a Pod to take in its files, and bytes a second beside it: then its node may be lost."""

RECENT_S = 10.0
"""For so long nobody looks again whether the files that a template shows have changed."""

SLACK_BYTES, BLOCK_BYTES = 16 << 20, 4096


class Mount(NamedTuple):
    target: str
    """Path inside."""
    part: str
    """Path in the volume."""


class Filling(NamedTuple):
    digest: str
    mounts: tuple[Mount, ...]
    archive: Path
    size: int
    """Bytes of the archive, which is not compressed."""
    entries: int
    """Files and folders in it."""

    @property
    def volume_mb(self) -> int:
        """What it takes in a Pod at most: a file is rounded up to blocks there."""
        return (self.size + self.entries * BLOCK_BYTES + SLACK_BYTES) >> 20


Entry = tuple[str, str, int]
"""Kind (file, link, bind), text or target or source, and mode."""


def shown(template: SandboxTemplate, *, carry_python: bool) -> dict[str, Entry]:
    """Path inside -> what is there."""
    binds = (*(python_env.base_binds() if carry_python else ()), *template.binds)
    found: dict[str, Entry] = {clean(b.target): ("bind", b.source, 0) for b in binds}
    found |= {clean(path): ("file", text, 0o444) for path, text in template.files.items()}
    found |= {clean(path): ("file", text, 0o555) for path, text in template.programs.items()}
    return found | {clean(path): ("link", to, 0o777) for path, to in template.links.items()}


def clean(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def roots_of(paths: Mapping[str, Entry]) -> dict[str, str]:
    """Place of a mount -> its number, of as few mounts as show all these paths."""
    wanted = set()
    for path, (kind, *_) in paths.items():
        parts = path.split("/")
        if parts[1] == SHARED[1:] and len(parts) > 3:
            wanted.add("/".join(parts[:3]))
        elif kind != "link":
            wanted.add(path)
    roots = sorted(path for path in wanted if not any(above in wanted for above in parents(path)))
    return {path: str(number) for number, path in enumerate(roots)}


def parents(path: str) -> Iterator[str]:
    while path != "/":
        yield (path := posixpath.dirname(path))


def part_of(path: str, roots: Mapping[str, str]) -> str | None:
    """Where a path inside lies in the volume; None where no mount shows it."""
    for above in (path, *parents(path)):
        if above in roots:
            rest = path[len(above) :]
            return f"{WHOLE}/{roots[above]}{rest}"
    return None


def laid_out(paths: Mapping[str, Entry]) -> tuple[tuple[Mount, ...], dict[str, Entry]]:
    """The mounts, and what lies where in the archive. ConfigError for a link that is beside no
    folder of ours and leads to none of these files: a mount cannot show it."""
    roots = roots_of(paths)
    mounts = [Mount(path, f"{WHOLE}/{number}") for path, number in roots.items()]
    inside: dict[str, Entry] = {}
    for path, entry in paths.items():
        part = part_of(path, roots)
        if part is not None:
            inside[part.removeprefix(f"{WHOLE}/")] = entry
            continue
        to = clean(posixpath.join(posixpath.dirname(path), entry[1]))
        if (meant := part_of(to, roots)) is None:
            raise ConfigError(
                f"link {path} -> {entry[1]} of a sandbox cannot be shown on a cluster: it lies in "
                f"a folder of the image; put it below {SHARED}, or let it lead to a file or folder "
                "that the template shows"
            )
        mounts.append(Mount(path, meant))
    return tuple(sorted(mounts)), inside


def signature(source: str) -> str:
    """What changes when the files below a path do, as far as sizes and times tell it."""
    lines = []
    for path, found in walked(Path(source)):
        lines.append(f"{path} {found.st_mode} {found.st_size} {found.st_mtime_ns}")
    return digest_of(*lines)


def walked(source: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Path below it ("" for itself) and status; links are not followed but for the first one, and
    folders that are closed to others not entered."""
    try:
        first = source.stat()
    except OSError as error:
        raise ConfigError(f"bind of the sandbox: {source}: {error.strerror}") from error
    yield "", first
    if not stat.S_ISDIR(first.st_mode):
        return
    for at, below, names in os.walk(source):
        entered = []
        for name in sorted([*below, *names]):
            path = os.path.join(at, name)  # noqa: PTH118  # pathlib takes longer than all the rest
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IXOTH:
                entered.append(name)
            yield path[len(str(source)) + 1 :], found
        below[:] = entered


def written(archive: tarfile.TarFile, inside: Mapping[str, Entry]) -> None:
    made: set[str] = set()
    for part, (kind, text, mode) in sorted(inside.items()):
        for above in reversed(list(parents("/" + part))):
            if above != "/" and above not in made:
                made.add(above)
                archive.addfile(member(above[1:], tarfile.DIRTYPE, 0o755))
        made.add("/" + part)
        if kind == "file":
            data = text.encode()
            archive.addfile(member(part, tarfile.REGTYPE, mode, len(data)), io.BytesIO(data))
        elif kind == "link":
            archive.addfile(member(part, tarfile.SYMTYPE, mode, link=text))
        else:
            for below, found in walked(Path(text)):
                added(archive, Path(text, below), f"{part}/{below}".rstrip("/"), found)


def added(archive: tarfile.TarFile, path: Path, part: str, found: os.stat_result) -> None:
    """One file of this machine; sockets, FIFOs and devices are none."""
    others = found.st_mode & 0o5
    if stat.S_ISLNK(found.st_mode):
        link = path.readlink()
        archive.addfile(member(part, tarfile.SYMTYPE, 0o777, link=str(link)))
    elif stat.S_ISDIR(found.st_mode):
        archive.addfile(member(part, tarfile.DIRTYPE, 0o200 | others * 0o111))
    elif stat.S_ISREG(found.st_mode):
        if not others & 0o4:
            archive.addfile(member(part, tarfile.REGTYPE, 0))
            return
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            archive.addfile(member(part, tarfile.REGTYPE, others * 0o111, size), file)


def member(part: str, kind: bytes, mode: int, size: int = 0, *, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(part)
    made.type, made.mode, made.size, made.linkname = kind, mode, size, link
    return made


class Fillings:
    """The archives of this process, by what is in them."""

    def __init__(
        self,
        *,
        carry_python: bool,
        kept: int = 64,
        needed: Callable[[], Set[str]] = frozenset[str],
    ) -> None:
        """The archives that are `needed` stay on the disk, and `kept` others, those used last.
        `needed` gives digests, and is called from threads."""
        self._carry_python, self._most, self._needed = carry_python, kept, needed
        self._made: OrderedDict[str, Filling] = OrderedDict()
        self._recent: dict[str, tuple[float, Filling]] = {}
        """What a template was found to show, and when."""
        self._making = asyncio.Lock()
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def of(self, template: SandboxTemplate) -> Filling | None:
        """None where the template shows nothing. ConfigError where it shows what is not there, or
        what no Pod can be shown."""
        paths = shown(template, carry_python=self._carry_python)
        if not paths:
            return None
        loop, key = asyncio.get_running_loop(), digest_of(json.dumps(paths))
        async with self._making:
            found = self._recent.get(key)
            old = found is None or loop.time() - found[0] > RECENT_S
            if found is None or old or not found[1].archive.exists():
                found = loop.time(), await asyncio.to_thread(self._filling, paths)
                since = found[0] - RECENT_S
                self._recent = {k: v for k, v in self._recent.items() if v[0] >= since}
                self._recent[key] = found
            return found[1]

    def _filling(self, paths: Mapping[str, Entry]) -> Filling:
        for path, (kind, source, _) in paths.items():
            if kind == "bind" and Path(source).is_socket():
                raise ConfigError(
                    f"{path} of a sandbox is a socket of this machine ({source}), which no Pod can "
                    "reach"
                )
        lines = []
        for path, (kind, text, mode) in sorted(paths.items()):
            lines.append(f"{path} {kind} {mode} {signature(text) if kind == 'bind' else text}")
        digest = digest_of(*lines)
        if digest not in self._made or not self._made[digest].archive.exists():
            mounts, inside = laid_out(paths)
            archive, entries = self._archive(digest, inside)
            size = archive.stat().st_size
            self._made[digest] = Filling(digest, mounts, archive, size, entries)
        self._made.move_to_end(digest)
        needed = {digest, *self._needed()}
        spare = [each for each in self._made if each not in needed]
        for each in spare[: max(0, len(spare) - self._most)]:
            self._made.pop(each).archive.unlink(missing_ok=True)
        return self._made[digest]

    def _archive(self, digest: str, inside: Mapping[str, Entry]) -> tuple[Path, int]:
        """The archive, and the number of its entries. Other event loops of this process may make
        the same one meanwhile."""
        folder = own_folder() / "filling"
        folder.mkdir(mode=0o700, exist_ok=True)
        whole = folder / f"{digest}.tar"
        part = folder / f"{digest}.{secrets.token_hex(4)}"
        try:
            with tarfile.open(part, mode="w", format=tarfile.PAX_FORMAT) as archive:
                written(archive, inside)
                entries = len(archive.getmembers())
        except OSError as error:
            raise TransientError(
                f"a file of a sandbox changed while it was read: {error}"
            ) from error
        part.rename(whole)
        return whole, entries

    async def send(
        self, filling: Filling, connection: Connection, pods: str, pod: str, python: str
    ) -> None:
        """Fill one Pod whose init container runs. TransientError where that fails."""
        command = [python, "-I", "-S", "-c", TAKE]
        async with self._slots:
            try:
                reader, writer = await exec_stream.opened(connection, pods, pod, FILL, command)
            except OSError as error:
                raise TransientError(f"Pod {pod} cannot be filled: {error}") from error
            try:
                async with asyncio.timeout(FILL_S + filling.size / SLOWEST):
                    writer.write(filling.size.to_bytes(8, "big"))
                    with filling.archive.open("rb") as file:
                        while data := await asyncio.to_thread(file.read, CHUNK):
                            writer.write(data)
                            await writer.drain()
                    answer = await reader.read()
                if answer != b"filled":
                    transport = writer.transport
                    assert isinstance(transport, exec_stream.ExecTransport)
                    said = transport.said.decode(errors="replace").strip()[-300:]
                    raise TransientError(f"Pod {pod} cannot be filled: {said or 'no answer'}")
            except OSError as error:
                raise TransientError(f"Pod {pod} cannot be filled: {error!r}") from error
            finally:
                writer.close()
