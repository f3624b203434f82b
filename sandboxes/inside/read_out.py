"""Reads files that a stranger made and writes them to stdout as records, within limits.

The one argument is a JSON object: `kind`, `place` and the limits. A `commit` of a git folder
(`revision`, `below`) and an `archive` (.tar.gz) give their text files, a `folder` every regular
file. A record is the lengths of a path and of a piece of its file (two big-endian 32-bit numbers),
then both; a large file comes in pieces, one after the other; two zeros end it. Ends with 3 for
what is refused, saying why on stderr.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH102, PTH110, PTH118, PTH123, PTH211, SIM115
from __future__ import annotations

import gzip
import json
import os
import resource
import stat
import subprocess
import sys
import tarfile
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any, NoReturn

    Entry = tuple[bytes, int, Callable[[], bytes]]
    """Path, size in bytes, and what reads it."""

REFUSED = 3
BLOCK = 1 << 16
GIT = "/tmp/git"
"""A git folder of our own, with the stranger's objects and none of its settings."""

SETTINGS = """[core]
repositoryformatversion = {version}
bare = true
packedGitWindowSize = 16m
packedGitLimit = 128m
"""
GIT_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}


class NotReadError(Exception):
    """The stranger's files are no such thing, or too much."""


class FileReading:
    """One reading: its limits, and what was written so far."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self.wanted, self.files, self.total, self.entries = wanted, 0, 0, 0

    def refuse_too_much(self) -> None:
        files, total = self.wanted["max_files"], self.wanted["max_total"]
        if self.files > files or self.total > total:
            raise NotReadError(f"it has more than {files} files or {total} bytes")

    def name_of(self, raw: bytes) -> str | None:
        """The path of an entry; None for one that is not relative, plain and UTF-8."""
        self.entries += 1
        if self.entries > self.wanted["max_entries"]:
            raise NotReadError(f"it has more than {self.wanted['max_entries']} entries")
        raw = raw.removeprefix(b"./")
        parts = raw.split(b"/")
        long = len(raw) > self.wanted["max_path"] or len(parts) > self.wanted["max_depth"]
        if long or max(map(len, parts)) > self.wanted["max_name"]:
            raise NotReadError(f"a path is too long or too deep: {raw[:60]!r}...")
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            return None
        plain = all(part not in (b"", b".", b"..") for part in parts)
        return name if plain and not any(ord(c) < 32 or ord(c) == 127 for c in name) else None

    def text_files(self, entries: Iterator[Entry]) -> None:
        """Write those that are UTF-8 and of moderate size. What stands twice counts as it last
        does."""
        found: dict[str, bytes] = {}
        for raw, size, read in entries:
            name = self.name_of(raw)
            if name is None or size > self.wanted["max_file"]:
                continue
            data = read()
            try:
                data.decode()
            except UnicodeDecodeError:
                continue
            found[name] = data
            self.files, self.total = len(found), self.total + len(data)
            self.refuse_too_much()
        for name, data in found.items():
            self.put(name, data)

    def every_file(self, place: str) -> None:
        top = os.fsencode(place)
        for folder, folders, names in os.walk(top):
            folders.sort()
            for raw in [*folders, *sorted(names)]:
                path = os.path.join(folder, raw)
                name = self.name_of(os.path.relpath(path, top))
                if name is None:
                    raise NotReadError(f"a file has a name that is not plain: {raw[:60]!r}")
                if stat.S_ISREG(os.lstat(path).st_mode):
                    self.files += 1
                    self.pieces(name, path)

    def pieces(self, name: str, path: bytes) -> None:
        with open(path, "rb") as file:
            data = file.read(self.wanted["piece"])
            while True:
                self.total += len(data)
                self.refuse_too_much()
                self.put(name, data)
                data = file.read(self.wanted["piece"])
                if not data:
                    return

    def put(self, name: str, data: bytes) -> None:
        raw = name.encode()
        out = sys.stdout.buffer
        out.write(len(raw).to_bytes(4, "big") + len(data).to_bytes(4, "big") + raw)
        out.write(data)


class Counted:
    """A gzip file that refuses to unpack without end."""

    def __init__(self, path: str, most: int) -> None:
        self.file, self.left, self.most = gzip.open(path), most, most

    def read(self, size: int) -> bytes:
        data = self.file.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise NotReadError(f"it unpacks to more than {self.most} bytes")
        return data


def members(place: str, most: int) -> Iterator[Entry]:
    counted: Any = Counted(place, most)
    with tarfile.open(fileobj=counted, mode="r|", bufsize=BLOCK) as archive:
        kept: Any = archive
        while (member := archive.next()) is not None:
            kept.members = []  # it would keep each one
            if member.isreg():
                file: Any = archive.extractfile(member)
                yield os.fsencode(member.name), member.size, file.read
            else:
                yield os.fsencode(member.name), sys.maxsize, bytes


def git(*words: str, errors: IO[bytes], asked: bool = False) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            ["git", f"--git-dir={GIT}", *words],
            stdin=subprocess.PIPE if asked else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=errors, env=GIT_ENV,
        )  # fmt: skip
    except FileNotFoundError:
        raise NotReadError("no program git is installed") from None


def refuse_git(place: str, errors: IO[bytes], revision: str = "") -> NoReturn:
    """Say why git failed, where it looked for a revision or for objects."""
    if os.path.exists(f"{place}/objects/info/alternates"):
        raise NotReadError(
            "it borrows objects of another repository (objects/info/alternates), which is not "
            "shown; git repack -a -d makes it whole"
        )
    errors.seek(0)
    said = " ".join(errors.read(BLOCK).decode(errors="replace").split())
    if revision and "single revision" in said:
        raise NotReadError(f"it has no revision {revision!r}")
    raise NotReadError(f"git cannot read all of it: {said[-200:] or 'objects are missing'}")


def git_folder(place: str) -> None:
    """Make GIT: the objects and references of `place` by links, under settings of ours."""
    with open(f"{place}/HEAD", "rb") as file:
        head = file.read(BLOCK)
    os.mkdir(GIT)
    with open(f"{GIT}/HEAD", "wb") as file:
        file.write(head)
    for name in ("objects", "refs", "packed-refs", "shallow", "FETCH_HEAD"):
        os.symlink(f"{place}/{name}", f"{GIT}/{name}")
    listing = ["git", "config", "--file", f"{place}/config", "--no-includes", "--get-regexp"]
    try:
        done = subprocess.run(
            [*listing, r"^extensions\.(objectformat|refstorage)$"],
            stdin=subprocess.DEVNULL, capture_output=True, env=GIT_ENV, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise NotReadError("no program git is installed") from None
    found = dict(line.split(maxsplit=1) for line in done.stdout.decode().splitlines())
    with open(f"{GIT}/config", "w") as out:
        out.write(SETTINGS.format(version=1 if found else 0))
        for name, value in found.items():
            out.write(f"[extensions]\n{name.partition('.')[2]} = {json.dumps(value)}\n")


def listed(out: IO[bytes], most: int) -> Iterator[bytes]:
    """What ends with a zero byte, none longer than `most`."""
    rest = b""
    while data := out.read(BLOCK):
        *whole, rest = (rest + data).split(b"\0")
        yield from whole
        if len(rest) > most:
            raise NotReadError("a path is too long")


def blobs(wanted: dict[str, Any]) -> Iterator[Entry]:
    """The files of the commit, as its objects have them: no filter, no attribute."""
    place, revision, below = wanted["place"], wanted["revision"], wanted["below"]
    git_folder(place)
    with tempfile.TemporaryFile() as errors:
        asking = git("rev-parse", "--verify", f"{revision}^{{tree}}", errors=errors)
        found, _ = asking.communicate()
        if asking.returncode:
            refuse_git(place, errors, revision)
        tree = found.decode().strip()
        if below:
            asking = git("rev-parse", "--verify", f"{tree}:{below}", errors=errors)
            tree = asking.communicate()[0].decode().strip()
            if asking.returncode:
                raise NotReadError(f"its revision {revision!r} has no folder {below!r}")
        listing = git("ls-tree", "-r", "-z", "-l", "--full-tree", tree, errors=errors)
        reader = git("cat-file", "--batch", errors=errors, asked=True)
        assert listing.stdout is not None
        for line in listed(listing.stdout, wanted["max_path"] + 200):
            head, _, path = line.partition(b"\t")
            mode, kind, name, size = head.split()
            if size == b"BAD":
                refuse_git(place, errors)
            if kind == b"blob" and mode != b"120000":
                yield path, int(size), lambda name=name: blob(reader, name, place, errors)
            else:
                yield path, sys.maxsize, bytes
        if listing.wait():
            refuse_git(place, errors)


def blob(reader: subprocess.Popen[bytes], name: bytes, place: str, errors: IO[bytes]) -> bytes:
    assert reader.stdin is not None
    assert reader.stdout is not None
    try:
        reader.stdin.write(name + b"\n")
        reader.stdin.flush()
    except BrokenPipeError:
        refuse_git(place, errors)
    head = reader.stdout.readline().split()
    if len(head) != 3 or head[1] != b"blob":
        refuse_git(place, errors)
    data = reader.stdout.read(int(head[2]) + 1)
    if len(data) != int(head[2]) + 1:
        refuse_git(place, errors)
    return data[:-1]


def leave(why: str) -> NoReturn:
    sys.stderr.write(f"{why}\n")
    sys.stderr.flush()
    os._exit(REFUSED)  # at once: what was not written out yet does not count


def main() -> None:
    wanted = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (wanted["memory"], wanted["memory"]))
    reading = FileReading(wanted)
    try:
        if wanted["kind"] == "commit":
            reading.text_files(blobs(wanted))
        elif wanted["kind"] == "archive":
            reading.text_files(members(wanted["place"], wanted["max_unpacked"]))
        else:
            reading.every_file(wanted["place"])
        sys.stdout.buffer.write(bytes(8))
        sys.stdout.buffer.flush()
    except NotReadError as error:
        leave(str(error))
    except MemoryError:
        leave(f"reading it takes more than {wanted['memory']} bytes of memory")
    except Exception as error:  # a stranger's bytes can break any of this in any way
        leave(f"it cannot be read ({type(error).__name__}: {str(error)[:200]})")


main()
