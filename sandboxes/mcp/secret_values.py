"""Secrets that servers get: values of environment variables, and how they are kept out of all text.

A definition names variables; the values are read when the server starts, given to its process
alone, and stored nowhere. Whatever comes back from the sandbox is searched for them: in plain, and
as JSON, URLs, base64 and hexadecimal digits spell them. A server that means to tell its secret can
spell it in another way: it has the secret, so give it only what it may know.
"""

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from records.errors import ConfigError

MIN_CHARS = 8
"""A shorter value stands in ordinary text by chance."""


def secret_values(server: str, names: Iterable[str]) -> dict[str, str]:
    """Variable -> value. ConfigError naming the first that is not set, too short or no text."""
    found = {}
    for name in names:
        value = os.environ.get(name, "")
        if not value:
            raise ConfigError(
                f"server {server} declares the secret {name}, and no environment variable of that "
                "name is set; set it where this command runs"
            )
        try:
            value.encode()
        except UnicodeEncodeError as error:  # surrogates stand for the bytes that are no text
            raise ConfigError(
                f"server {server}: the secret {name} is no UTF-8 text (byte {error.start + 1} or "
                "near it), so it cannot be kept out of what the server says; set it to text"
            ) from None
        if len(value) < MIN_CHARS:
            raise ConfigError(
                f"server {server}: the secret {name} has {len(value)} characters; one of under "
                f"{MIN_CHARS} cannot be kept out of what the server says"
            )
        found[name] = value
    return found


def spellings(value: str) -> set[str]:
    """The value, and what becomes of it on common ways into a text."""
    raw = value.encode()
    found = {value, quote(value), quote(value, safe=""), quote_plus(value), raw.hex()}
    found |= {json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False)}
    found |= {text.replace("/", "\\/") for text in found}
    for shift in range(3):  # what stands before it in an encoded text moves the bits
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * shift + raw).decode().rstrip("=")
            # the first and last characters also hold bits of what stands around it
            found.add(text[-(-8 * shift // 6) : len(text) - (1 if (shift + len(raw)) % 3 else 0)])
    return found


class Redactor:
    """Puts `[secret NAME]` in the place of every value, in any case of letters."""

    def __init__(self, values: Mapping[str, str]) -> None:
        names = {text: name for name, v in values.items() for text in spellings(v)}
        longest_first = sorted(names, key=len, reverse=True)
        self._names = [names[text] for text in longest_first]
        """Of each group: what matched may have other letters than its spelling (s for a long s)."""
        groups = "|".join(f"({re.escape(text)})" for text in longest_first)
        self._pattern = re.compile(groups, re.IGNORECASE)

    def text(self, text: str) -> str:
        if not self._names:
            return text
        return self._pattern.sub(self._in_place, text)

    def _in_place(self, found: re.Match[str]) -> str:
        return f"[secret {self._names[(found.lastindex or 0) - 1]}]"

    def line(self, line: bytes) -> bytes:
        """A line that is still to be parsed; one without a secret is passed on as it is."""
        if not self._names:
            return line
        text = line.decode("utf-8", "surrogateescape")
        return self.text(text).encode("utf-8", "surrogateescape")

    def value(self, value: Any) -> Any:
        """A JSON value, its keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value


NO_SECRETS = Redactor({})
