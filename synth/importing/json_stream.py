"""The values of one large JSON document, one after another, in memory of a few of them.

Only brackets, strings and commas are looked at, so a value that is no JSON costs the others nothing
as long as its brackets close. A value of more than `LONGEST_BYTES` is passed over, and told.
"""

import json
import re
from collections.abc import Collection, Iterator
from io import BufferedReader, BytesIO
from typing import NamedTuple

LONGEST_BYTES = 1 << 24
"""Of one value: a conversation of more than 16 MiB is none."""

CHUNK_BYTES = 1 << 16
"""Of a compressed file that breaks off, at most this much before the end is not read."""

_BOM = b"\xef\xbb\xbf"

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_WITHIN = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+", re.DOTALL)
"""What lies between two brackets within a value."""
_BESIDE = re.compile(rb'(?:[^"\[\]{},:]++|' + _STRING + rb")*+", re.DOTALL)
"""The same where a comma or a colon ends the value."""
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_SPACES = re.compile(rb"[ \t\r\n]*+")


class JsonPart(NamedTuple):
    """A value of the document."""

    line: int
    """Where it begins, from 1."""
    text: bytes | None
    """None for one that is too long, or was not wanted."""
    size: int
    is_whole: bool
    """Whether anything follows it; the last part of a file that was cut off may be cut off."""


class JsonScanner:
    """Goes through a stream once, and holds no more than a chunk of it and the value at hand."""

    def __init__(self, data: BufferedReader | BytesIO) -> None:
        self._data = data
        self._buffer = data.read1(CHUNK_BYTES)
        self._at = len(_BOM) if self._buffer.startswith(_BOM) else 0
        self.line = 1
        self._depth, self._in_string, self._is_escaped = 0, False, False

    def peek(self) -> bytes:
        """The next byte that is no space; empty at the end."""
        while True:
            found = _SPACES.match(self._buffer, self._at)
            self._pass(found.end() if found else self._at)
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._fill():
                return b""

    def take(self) -> None:
        """Pass the byte that `peek` gave."""
        self._pass(self._at + 1)

    def value(self, *, wanted: bool = True) -> JsonPart:
        """The value that begins here, up to the comma, colon or bracket that ends it."""
        self.peek()
        line, kept, size = self.line, bytearray(), 0
        self._depth, self._in_string, self._is_escaped = 0, False, False
        is_whole = False
        while not is_whole and (self._at < len(self._buffer) or self._fill()):
            start = self._at
            is_whole = self._walk()
            size += self._at - start
            if wanted and size <= LONGEST_BYTES:
                kept += self._buffer[start : self._at]
            self.line += self._buffer.count(b"\n", start, self._at)
        text = bytes(kept).strip() if wanted and size <= LONGEST_BYTES else None
        return JsonPart(line, text, size, is_whole)

    def _walk(self) -> bool:
        """Go on as far as the buffer reaches, or to the value's end: whether this is it."""
        end = len(self._buffer)
        while self._at < end:
            if self._in_string:
                self._pass_string()
                continue
            found = (_WITHIN if self._depth else _BESIDE).match(self._buffer, self._at)
            self._at = found.end() if found else self._at
            if self._at == end:
                return False
            byte = self._buffer[self._at : self._at + 1]
            if byte == b'"':  # a string that the buffer cuts off
                self._in_string = True
            elif byte in (b"[", b"{"):
                self._depth += 1
            elif self._depth == 0:
                return True
            else:
                self._depth -= 1
            self._at += 1
        return False

    def _pass_string(self) -> None:
        """From within a string past its end, or to the end of the buffer."""
        self._at += self._is_escaped
        self._is_escaped = False
        found = _IN_STRING.match(self._buffer, self._at)
        self._at = found.end() if found else self._at
        if self._at == len(self._buffer):
            return
        self._in_string = self._buffer[self._at] != ord('"')
        self._is_escaped = self._in_string  # what stopped it is the buffer's last backslash
        self._at += 1

    def _fill(self) -> bool:
        self._buffer, self._at = self._data.read1(CHUNK_BYTES), 0
        return bool(self._buffer)

    def _pass(self, to: int) -> None:
        self.line += self._buffer.count(b"\n", self._at, to)
        self._at = to


def parts_of_list(scanner: JsonScanner) -> Iterator[JsonPart]:
    """The elements of the list that begins here; the last one is not whole where the document ends
    before the list does."""
    scanner.take()
    while (byte := scanner.peek()) != b"]":
        if not byte:
            yield JsonPart(scanner.line, b"", 0, False)
            return
        part = scanner.value()
        yield part
        if not part.is_whole:
            return
        if scanner.peek() == b",":
            scanner.take()
        elif part.size == 0:  # a bracket or colon where none belongs
            yield JsonPart(scanner.line, b"", 0, False)
            return
    scanner.take()


class JsonObject(NamedTuple):
    """What is known of an object that a document is, without its large members."""

    members: dict[str, bytes | None]
    """By name, in order; None for one that was not asked for, or is too long."""
    is_alone: bool
    """Whether nothing follows it: else the document is a line for each of several."""


def object_in(scanner: JsonScanner, wanted: Collection[str]) -> JsonObject:
    """The object that begins here, with the members of these names; of one that breaks off, where
    it cannot be decompressed, those before."""
    members: dict[str, bytes | None] = {}
    try:
        scanner.take()
        while scanner.peek() not in (b"}", b""):
            name = _name_of(scanner.value())
            if scanner.peek() != b":":
                return JsonObject(members, is_alone=True)
            scanner.take()
            members[name] = None
            members[name] = scanner.value(wanted=name in wanted).text
            if scanner.peek() == b",":
                scanner.take()
        scanner.take()
        return JsonObject(members, is_alone=not scanner.peek())
    except OSError:  # whoever reads the rows meets it again, and tells
        return JsonObject(members, is_alone=True)


def list_of_member(scanner: JsonScanner, name: str) -> Iterator[JsonPart]:
    """The elements of a list that an object has under this name; none where it has no such list."""
    scanner.take()
    while scanner.peek() not in (b"}", b""):
        is_it = _name_of(scanner.value()) == name
        if scanner.peek() != b":":
            return
        scanner.take()
        if is_it and scanner.peek() == b"[":
            yield from parts_of_list(scanner)
            return
        scanner.value(wanted=False)
        if scanner.peek() == b",":
            scanner.take()


def _name_of(part: JsonPart) -> str:
    """Empty for what is no name."""
    try:
        name = json.loads(part.text or b"")
    except ValueError:
        return ""
    return name if isinstance(name, str) else ""
