"""Tells which text files of a repository have changed, as one JSON object, and stops the clocks.

Reads a request (JSON) on stdin: `root`, a folder, and the repository `top` in it; the known files,
[path, digest of the text or null for what is no text]; the bounds. Answers

    {"folder": whether the repository is a folder that can be read,
     "files": {path: text, or null for what is no text of moderate size}   of new and changed ones,
     "gone": [place among the known files],
     "left": {why: [path]}                                                 of what was not read}

Whatever made the folder had its way with it: so nothing is opened that is no regular file, no link
is followed, and depth, number and size of everything are bounded. Known files come first: however
many new ones there are, a known one is not taken for gone. Times of change below `root` are set to
the instant of the sandbox, so that no listing tells when something was really done.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH120, PTH123, SIM105
from __future__ import annotations

import itertools
import json
import os
import stat
import sys

try:
    from _blake2 import blake2b  # the module hashlib around it loads all of OpenSSL
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

SKIPPED = {"__pycache__", ".git", ".pytest_cache"}
MAX_DEPTH, MAX_PATH = 64, 1000
"""Folders below each other, bytes of a path: with more a file fits into no other folder."""

NAMED = 5
"""Of the paths that are left out for one reason."""


class TreeLook:
    def __init__(self, request: dict[str, Any]) -> None:
        self.root, self.top = request["root"], request["top"]
        self.instant: int = request["instant"]
        self.known: dict[str, str | None] = dict(request["known"])
        self.largest: int = request["file_bytes"]
        self.room: int = request["changed_bytes"]
        self.new_files: int = request["new_files"]
        self.new_entries: int = request["new_entries"]
        self.expected = children_of(f"{self.top}/{path}" for path in self.known)
        self.there: set[str] = set()
        self.files: dict[str, str | None] = {}
        self.left: dict[str, list[str]] = {}

    def answer(self) -> dict[str, Any]:
        is_folder = all(is_readable_folder(f) for f in (self.root, f"{self.root}/{self.top}"))
        if is_folder:
            self.stop_clock(self.root)
            for path in sorted(self.walk(), key=lambda path: path not in self.known):
                self.take(path)
        gone = [n for n, path in enumerate(self.known) if path not in self.there]
        return {"folder": is_folder, "files": self.files, "gone": gone, "left": self.left}

    def walk(self) -> list[str]:
        """Regular files of the repository, relative to it. Everything has its clock stopped."""
        found: list[str] = []
        waiting = [""]
        while waiting:
            folder, below = waiting.pop(), []
            for name in self.names_in(folder):
                path = f"{folder}/{name}".lstrip("/")
                self.stop_clock(f"{self.root}/{path}")
                try:
                    mode = os.lstat(f"{self.root}/{path}").st_mode
                except OSError:
                    continue  # known once, and not there any more
                if stat.S_ISDIR(mode) and name not in SKIPPED:
                    below.append(path)
                elif stat.S_ISREG(mode) and path.startswith(f"{self.top}/"):
                    found.append(path[len(self.top) + 1 :])
            waiting += reversed(below)
        return found

    def names_in(self, folder: str) -> list[str]:
        """In their order: those on the way to known files, others as long as there is room."""
        expected = self.expected.get(folder, set())
        if folder.count("/") > MAX_DEPTH:
            self.leave("too deep", folder)
            return []
        try:
            with os.scandir(f"{self.root}/{folder}") as entries:
                others = (entry.name for entry in entries if entry.name not in expected)
                names = set(itertools.islice(others, self.new_entries))
                if next(others, None) is not None:
                    self.leave("too many files", folder)
        except OSError as error:
            self.leave(error.strerror or "closed", folder)
            return []
        self.new_entries -= len(names)
        return sorted(names | expected)

    def take(self, path: str) -> None:
        """Note the file if it is new or has changed, and there is room for it."""
        is_known, whole = path in self.known, f"{self.top}/{path}"
        if len(os.fsencode(path)) > MAX_PATH:
            self.leave("too long a path", whole)
        elif not is_utf8(path):
            self.leave("no name in UTF-8", whole)
        elif not is_known and self.new_files <= 0:
            self.leave("too many files", os.path.dirname(whole))
        else:
            self.there.add(path)
            text = self.text_of(f"{self.root}/{whole}")
            if not is_known or self.known[path] != digest_of(text):
                self.note(path, text, is_known)

    def note(self, path: str, text: str | None, is_known: bool) -> None:
        size = len(json_of([path, text]))
        if size > self.room:
            self.leave("too much text changed by one call", f"{self.top}/{path}")
            return
        self.room -= size
        self.new_files -= not is_known
        self.files[path] = text

    def text_of(self, path: str) -> str | None:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(path, flags), "rb") as file:
                data = file.read(self.largest + 1)
            return data.decode() if len(data) <= self.largest else None
        except (OSError, UnicodeDecodeError):
            return None

    def leave(self, why: str, path: str) -> None:
        """`path` is relative to the root, what is told to the repository."""
        shown = os.path.relpath(path or ".", self.top)
        shown = os.fsencode(shown).decode(errors="backslashreplace")[-MAX_PATH:]
        paths = self.left.setdefault(why, [])
        if len(paths) < NAMED and shown not in paths:
            paths.append(shown)

    def stop_clock(self, path: str) -> None:
        try:
            os.utime(path, (self.instant, self.instant), follow_symlinks=False)
        except OSError:
            pass  # not there, or too long a path


def is_readable_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode) and os.access(path, os.R_OK | os.X_OK)
    except OSError:
        return False


def is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def children_of(paths: Iterable[str]) -> dict[str, set[str]]:
    """Folder -> names in it that lead to one of the paths."""
    children: dict[str, set[str]] = {}
    for path in paths:
        while path:
            folder, _, name = path.rpartition("/")
            children.setdefault(folder, set()).add(name)
            path = folder
    return children


def digest_of(text: str | None) -> str | None:
    return None if text is None else blake2b(text.encode(), digest_size=32).hexdigest()


def json_of(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


sys.stdout.buffer.write(json_of(TreeLook(json.load(sys.stdin)).answer()))
