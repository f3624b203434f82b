"""Texts that only a decoder reads, opened: base64, hex, percent signs, entities, escapes, ROT13.

Each opening gives the whole text with what was encoded in its place, so that a phrase of which a
part is encoded is read as one. What is opened is opened again, up to `MAX_DEPTH`.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

MAX_DEPTH = 4
"""Encodings inside each other that are opened."""

MAX_OPENED = 24
"""Texts that one text is opened to, so that none takes long."""

MAX_CHARS = 20_000
"""Of a text that is looked into."""

MIN_WORDS = 5
"""Of a decoded text, from which on it says something and is no example of a value."""

MIN_IDEOGRAPHS = 10
"""Of a decoded text in a writing without blanks."""

MIN_LETTERS = 0.5
"""Share of letters and blanks in a decoded text that is not ASCII; what is no text has fewer."""

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,}={0,2}(?![A-Za-z0-9+/_-])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ ,:]?){8,}(?![0-9A-Za-z])")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}[\w.~!*'()+-]{0,60})+")
_ENTITY = re.compile(r"(?:&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});)+")
_ESCAPE = re.compile(
    r"(?:\\u\{[0-9A-Fa-f]{1,6}\}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}"
    r"|\\[0-7]{3}|U\+[0-9A-Fa-f]{4,6}[ ,]?)+"
)
_ONE_ESCAPE = re.compile(
    r"\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\x([0-9A-Fa-f]{2})"
    r"|\\([0-7]{3})|U\+([0-9A-Fa-f]{4,6})[ ,]?"
)
_STRETCH = re.compile(
    r"[A-Za-z][A-Za-z ,'/~\-@0-9_]{10,}"
    r"(?:[.:][A-Za-z0-9/~_-]+[A-Za-z ,'/~\-@0-9_]*)*"
)

_OF_LANGUAGES = """
the and to of in is for with this that all any you your from not user it on by as before
le la les et des une dans pour sur au aux que vous
der die das und mit den zum von nicht
el los las del para con todos una que por
o os as em uma com sem todo e de
ve bir bu ile
i il di che non per
send call file tool every
"""

_SHORT_WORDS = frozenset(_OF_LANGUAGES.split())
"""Short words of languages with Latin letters, by which ROT13 is told from what it hides."""


class Opened(NamedTuple):
    text: str
    """All of it, with the decoded parts in their places."""

    parts: tuple[str, ...]
    """What was decoded."""

    is_plain_otherwise: bool
    """Whether honest texts are written so: markup and addresses hold such parts everywhere."""


def opened(text: str) -> Iterator[Opened]:
    """The text decoded in every way that gives something readable, nested ones after outer ones."""
    waiting = [(text[:MAX_CHARS], 0)]
    seen = {text}
    while waiting and len(seen) <= MAX_OPENED:
        current, depth = waiting.pop(0)
        if depth == MAX_DEPTH:
            continue
        for decode in _DECODERS:
            if (found := decode(current)) is None or found.text in seen:
                continue
            seen.add(found.text)
            waiting.append((found.text[:MAX_CHARS], depth + 1))
            yield found


def says_something(text: str) -> bool:
    """Whether a decoded part is a sentence, and not an example of a value."""
    ideographs = sum(unicodedata.category(c) == "Lo" for c in text)
    words = [word for word in text.split() if sum(map(str.isalpha, word)) >= 2]
    return len(words) >= MIN_WORDS or (ideographs >= MIN_IDEOGRAPHS and _is_unspaced(text))


def _is_unspaced(text: str) -> bool:
    return any("\u3040" <= c <= "\u9fff" for c in text)


def _replaced(
    text: str,
    pattern: re.Pattern[str],
    read: Callable[[str], str | None],
    *,
    is_plain_otherwise: bool = False,
) -> Opened | None:
    parts: list[str] = []

    def one(found: re.Match[str]) -> str:
        decoded = read(found.group())
        if decoded is None or decoded == found.group():
            return found.group()
        parts.append(decoded)
        return decoded

    whole = pattern.sub(one, text)
    return Opened(whole, tuple(parts), is_plain_otherwise) if parts else None


def _readable(data: bytes) -> str | None:
    """The bytes as text that a reader could make something of."""
    for encoding in ("utf-8", "utf-16-le") if len(data) % 2 == 0 else ("utf-8",):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        kinds = [unicodedata.category(character) for character in text]
        odd = sum(kind[0] == "C" and c not in "\n\r\t" for kind, c in zip(kinds, text, strict=True))
        letters = sum(kind[0] in "LZMN" for kind in kinds)
        is_ascii_wide = encoding == "utf-8" or text.isascii()
        is_written = text.isascii() or letters >= MIN_LETTERS * len(text)
        if text and is_ascii_wide and not odd and is_written:
            return text
    return None


def _base64(text: str) -> Opened | None:
    def read(run: str) -> str | None:
        body = run.rstrip("=").replace("-", "+").replace("_", "/")
        if body.isalpha() and (body.islower() or body.isupper()):
            return None
        try:
            data = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        except (binascii.Error, ValueError):
            return None
        return _readable(data)

    return _replaced(text, _BASE64, read)


def _hex(text: str) -> Opened | None:
    def read(run: str) -> str | None:
        digits = re.sub(r"0x|\\x|[ ,:]", "", run)
        if len(digits) % 2:
            return None
        decoded = _readable(bytes.fromhex(digits))
        return decoded + " " if decoded and run[-1] in " ,:" else decoded

    return _replaced(text, _HEX, read)


def _percent(text: str) -> Opened | None:
    def read(run: str) -> str | None:
        return _readable_address(unquote_to_bytes(run.replace("+", " ")))

    return _replaced(text, _PERCENT, read)


def _readable_address(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _entities(text: str) -> Opened | None:
    found = _replaced(text, _ENTITY, html.unescape, is_plain_otherwise=True)
    if found and any(sum(c.isascii() and c.isalpha() for c in part) >= 8 for part in found.parts):
        return found._replace(is_plain_otherwise=False)  # nobody writes plain letters so
    return found


def _escapes(text: str) -> Opened | None:
    def read(run: str) -> str | None:
        points = [int(next(filter(None, found)), 8 if found[4] else 16) for found in _points(run)]
        if any(point > 0x10FFFF for point in points):
            return None
        is_bytes = all(found[3] or found[4] for found in _points(run))
        if is_bytes and all(point < 256 for point in points):
            return _readable_address(bytes(points))
        units = "".join(map(chr, points))
        try:
            return units.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            return None

    return _replaced(text, _ESCAPE, read)


def _points(run: str) -> list[tuple[str, ...]]:
    return [found.groups(default="") for found in _ONE_ESCAPE.finditer(run)]


def _rot13(text: str) -> Opened | None:
    def read(stretch: str) -> str | None:
        turned = codecs.decode(stretch, "rot13")
        before, after = map(_num_short_words, (stretch, turned))
        return turned if after >= 2 and after > 2 * before else None

    return _replaced(text, _STRETCH, read)


def _num_short_words(text: str) -> int:
    return len(_SHORT_WORDS & set(text.lower().split()))


_DECODERS = (_escapes, _percent, _entities, _hex, _base64, _rot13)
