"""A file from which a server that was killed starts again: one line for each write.

Lines go to the system at once and not to the disk: a killed process loses none, a machine may.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import orjson

from tests.kubernetes.double.kinds import Address


class Journal:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self.version = 0
        """The newest version that the file tells of."""
        self._kept: dict[tuple[str, str, str, str], bytes] = {}
        for line in self._lines():
            self.version = max(self.version, line["version"])
            key = (*line["address"], *line["key"])
            if line["body"] is None:
                self._kept.pop(key, None)
            else:
                self._kept[key] = line["body"].encode()

    def _lines(self) -> Iterator[dict]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):  # the last one may be cut
                    yield orjson.loads(line)

    def objects(self) -> Iterator[tuple[Address, bytes]]:
        """Address and body of each object that was there at the end."""
        for (group, plural, _, _), body in self._kept.items():
            yield (group, plural), body

    def open(self) -> None:
        """Begin a new file with what is kept, then append to it."""
        fresh = self._path.with_suffix(".fresh")
        with fresh.open("wb") as file:
            for (group, plural, namespace, name), body in self._kept.items():
                file.write(_line((group, plural), (namespace, name), self.version, body))
            if self.version:
                file.write(_line(("", ""), ("", ""), self.version, None))
        fresh.replace(self._path)
        self._kept.clear()
        self._file = self._path.open("ab", buffering=0)

    def write(
        self, address: Address, key: tuple[str, str], version: int, body: bytes | None
    ) -> None:
        """Note one write; no body is a deletion."""
        if self._file is not None:
            self._file.write(_line(address, key, version, body))


def _line(address: Address, key: tuple[str, str], version: int, body: bytes | None) -> bytes:
    text = None if body is None else body.decode()
    return orjson.dumps({"version": version, "address": address, "key": key, "body": text}) + b"\n"
