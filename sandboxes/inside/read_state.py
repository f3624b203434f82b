"""Tells what the files of a sandbox hold, as one JSON object: what a server keeps on disk.

Takes a request (JSON) as its argument: `root`, a folder, and the bounds. Answers

    {"state": {entity: {id: row}},   rows of tables and of JSON, files and folders
     "left": {why: [path]}}          of what was not read

A SQLite table is an entity, `PATH:TABLE`, and each row one of its rows by its primary key. JSON and
JSON Lines that hold a list or a mapping of objects are entities too. Whatever else is text is a row
of `file` with its text, and what is no text one with its SHA-256. Whatever made the files had its
way with them: so nothing is opened that is no regular file, no link is followed, and depth, number
and size of everything are bounded.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH118
from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SKIPPED = {"__pycache__", ".git", "node_modules", ".cache", ".npm"}
"""Folders that hold what a program makes for itself. Of a repository the branches are read."""

BESIDE = ("-wal", "-shm", "-journal")
"""Files that SQLite keeps beside a database, and whose content is read with it."""

LOG = re.compile(r"(?:^|[._-])(?:audit|logs?|history|trace)(?:[._-]|$)", re.IGNORECASE)
"""Names of files and folders in which a program notes what it was asked: they tell the calls, and
not what came of them."""

SQLITE = b"SQLite format 3\0"
KEYS = ("id", "uuid", "key", "name", "slug", "path", "title")
"""Members by which rows are told apart, where half of them or more have one and no two the same."""

MAX_DEPTH = 24
NAMED = 5
"""Of the paths that are left out for one reason."""


class StateLook:
    def __init__(self, request: dict[str, Any]) -> None:
        self.root: str = request["root"]
        self.file_bytes: int = request["file_bytes"]
        self.room: int = request["total_bytes"]
        self.rows: int = request["max_rows"]
        self.state: dict[str, dict[str, dict[str, Any]]] = {"file": {}, "folder": {}}
        self.left: dict[str, list[str]] = {}

    def answer(self) -> dict[str, Any]:
        for path in self.walk(self.root, 0):
            self.read(path)
        entities = {name: rows for name, rows in self.state.items() if rows}
        return {"state": entities, "left": self.left}

    def walk(self, folder: str, depth: int) -> Iterator[str]:
        """Regular files, in the order of their names; folders become rows on the way."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            self.leave("unreadable", folder)
            return
        for entry in entries:
            if LOG.search(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name == ".git":
                    self.branches(entry.path)
                elif entry.name not in SKIPPED:
                    self.state["folder"][self.name(entry.path)] = {}
                    if depth < MAX_DEPTH:
                        yield from self.walk(entry.path, depth + 1)
                    else:
                        self.leave("too_deep", entry.path)
            elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(BESIDE):
                yield entry.path

    def branches(self, folder: str) -> None:
        """What the repository's references point at: its history, told by digests."""
        refs = os.path.join(folder, "refs")
        paths = [os.path.join(folder, "HEAD"), os.path.join(folder, "packed-refs")]
        paths += [os.path.join(at, name) for at, _, names in os.walk(refs) for name in names]
        for path in sorted(paths):
            if (data := self.bytes_of(path, quietly=True)) is not None:
                text = data.decode(errors="replace").strip()
                self.state.setdefault("git_ref", {})[self.name(path)] = {"at": text}

    def read(self, path: str) -> None:
        data = self.bytes_of(path)
        if data is None:
            return
        name = self.name(path)
        if data.startswith(SQLITE):
            self.state["file"][name] = {}
            self.tables(path, name)
            return
        tables = json_tables(data, name) if name.endswith((".json", ".jsonl", ".ndjson")) else None
        if tables is not None:
            self.state["file"][name] = {}
            for entity, rows in tables.items():
                self.state[entity] = self.bounded(entity, rows)
            return
        self.state["file"][name] = content_of(data)

    def tables(self, path: str, name: str) -> None:
        try:
            base = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
        except sqlite3.Error:
            self.leave("unreadable", path)
            return
        try:
            listed = base.execute("PRAGMA table_list").fetchall()
            own = sorted(
                table
                for schema, table, kind, *_ in listed
                if schema == "main" and kind == "table" and not table.startswith("sqlite_")
            )
            for table in own:
                entity = f"{name}:{table}"
                self.state[entity] = self.bounded(entity, rows_of_table(base, table, self.rows))
        except sqlite3.Error:
            self.leave("unreadable", path)
        finally:
            base.close()

    def bounded(self, entity: str, rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if len(rows) <= self.rows:
            return rows
        self.leave("too_many_rows", entity)
        return dict(list(rows.items())[: self.rows])

    def bytes_of(self, path: str, *, quietly: bool = False) -> bytes | None:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            if not quietly:
                self.leave("unreadable", path)
            return None
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return None
            if found.st_size > min(self.file_bytes, self.room):
                self.leave("too_large", path)
                return None
            data = file.read(self.file_bytes + 1)
        self.room -= len(data)
        return data

    def name(self, path: str) -> str:
        inside = os.path.relpath(path, self.root)
        return inside.encode(errors="surrogateescape").decode(errors="replace")

    def leave(self, why: str, path: str) -> None:
        named = self.left.setdefault(why, [])
        if len(named) < NAMED:
            named.append(path if ":" in path else self.name(path))


def content_of(data: bytes) -> dict[str, Any]:
    """A text without what editors add and take away by themselves: carriage returns, and blanks at
    its end."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"sha256": hashlib.sha256(data).hexdigest()}
    return {"text": text.replace("\r\n", "\n").rstrip()}


def json_tables(data: bytes, name: str) -> dict[str, dict[str, dict[str, Any]]] | None:
    """Entity -> id -> row; None for what is no JSON or holds no rows."""
    try:
        text = data.decode()
        if not text.strip():
            return None
        try:
            value = lines_of(text) if name.endswith((".jsonl", ".ndjson")) else json.loads(text)
        except ValueError:
            value = lines_of(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        return listed(value, name)
    if not isinstance(value, dict):
        return None
    if value and all(isinstance(row, dict) for row in value.values()):
        return {name: {str(key): row for key, row in value.items()}}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    rest: dict[str, Any] = {}
    for member, part in value.items():
        entity = f"{name}:{member}"
        if isinstance(part, list) and (tables := listed(part, entity)) is not None:
            found |= tables
        elif isinstance(part, dict) and part and all(isinstance(r, dict) for r in part.values()):
            found[entity] = {str(key): row for key, row in part.items()}
        else:
            rest[member] = part
    return found | ({name: {"": rest}} if rest else {name: {}})


def lines_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def listed(values: list[Any], entity: str) -> dict[str, dict[str, dict[str, Any]]] | None:
    """Rows of a list of objects, by kind where each says its `type`; None where some are none."""
    if not all(isinstance(row, dict) for row in values):
        return None
    kinds = {row.get("type") for row in values}
    if values and all(isinstance(kind, str) for kind in kinds):
        return {
            f"{entity}:{kind}": keyed([row for row in values if row["type"] == kind])
            for kind in sorted(kinds)
        }
    return {entity: keyed(values)}


def keyed(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows by the first member that tells them apart, else by all their plain values together,
    else by their number. Rows without a member that half of them have go by their values: one of
    them gives no other row another name."""
    members = {member for row in rows for member in row}
    for key in (*KEYS, *sorted(k for k in members if k.endswith(("_id", "Id", "ID")))):
        having = [row for row in rows if isinstance(row.get(key), str | int)]
        if having and 2 * len(having) >= len(rows):
            found = {str(row[key]): without(row, key) for row in having}
            found |= {plainly(row): row for row in rows if key not in row}
            if len(found) == len(rows):
                return found
    found = {plainly(row): row for row in rows}
    if len(found) == len(rows):
        return found
    return {str(number): row for number, row in enumerate(rows)}


def without(row: dict[str, Any], key: str) -> dict[str, Any]:
    """The row without what is its id."""
    return {name: value for name, value in row.items() if name != key}


def plainly(row: dict[str, Any]) -> str:
    return " | ".join(str(row[key]) for key in sorted(row) if isinstance(row[key], str | int))


def rows_of_table(base: sqlite3.Connection, table: str, most: int) -> dict[str, dict[str, Any]]:
    quoted = '"' + table.replace('"', '""') + '"'
    columns = base.execute(f"PRAGMA table_info({quoted})").fetchall()
    keys = [c[1] for c in sorted((c for c in columns if c[5]), key=lambda c: c[5])]
    names = [c[1] for c in columns]
    query = f"SELECT * FROM {quoted} LIMIT {most + 1}"
    if not keys:
        query = f"SELECT rowid, * FROM {quoted} LIMIT {most + 1}"
        names = ["rowid", *names]
        keys = ["rowid"]
    found = {}
    for values in base.execute(query):
        row = {name: plain(value) for name, value in zip(names, values, strict=True)}
        ident = " | ".join(str(row[key]) for key in keys)
        found[ident] = without(row, keys[0]) if len(keys) == 1 else row
    return found


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def main() -> None:
    sys.setrecursionlimit(2_000)
    answer = StateLook(json.loads(sys.argv[1])).answer()
    json.dump(answer, sys.stdout, allow_nan=False, default=str)


if __name__ == "__main__":
    main()
