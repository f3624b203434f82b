"""Fetches one source distribution (.tar.gz) from a package index and writes it to stdout.

Arguments: a folder with pip, the index or "", certificates, the most bytes, name, version. Nothing
of the package is run or unpacked, which `pip download` would do to ask for its metadata. Ends with
3 where the index does not have it or it is too large, and with 4 where the index cannot be reached,
saying why on stderr.
"""

# This program runs alone in a bare interpreter.
from __future__ import annotations

import hashlib
import html.parser
import os
import re
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NOT_THERE, UNREACHABLE = 3, 4
TIMEOUT_S = 30


class Links(html.parser.HTMLParser):
    """Targets of a page's links: an index is such a page (PEP 503)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def default_index(pip: str) -> str:
    """The index that pip asks when none is named: known to pip alone."""
    sys.path.insert(0, pip)
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


def fetched(url: str, context: ssl.SSLContext, most: int) -> bytes:
    if urllib.parse.urlsplit(url).scheme not in ("https", "http"):
        leave(NOT_THERE, f"{url} is no web address")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S, context=context) as answer:
            data = answer.read(most + 1)
    except urllib.error.HTTPError as error:
        leave(NOT_THERE if error.code in (404, 410) else UNREACHABLE, f"{url}: {error}")
    except OSError as error:
        leave(UNREACHABLE, f"{url}: {error}")
    if len(data) > most:
        leave(NOT_THERE, f"{url} has more than {most} bytes")
    return data


def leave(code: int, why: str) -> NoReturn:
    sys.stderr.write(f"{why}\n")
    sys.exit(code)


def main() -> None:
    pip, index, authorities, most, name, version = sys.argv[1:]
    context = ssl.create_default_context(
        cafile=authorities if os.path.exists(authorities) else None  # noqa: PTH110
    )
    page = f"{(index or default_index(pip)).rstrip('/')}/{normal(name)}/"
    links = Links()
    links.feed(fetched(page, context, int(most)).decode(errors="replace"))
    wanted = normal(f"{name}-{version}") + ".tar.gz"
    for link in links.found:
        url, _, digest = urllib.parse.urljoin(page, link).partition("#")
        file = urllib.parse.unquote(url.rpartition("/")[2])
        if not file.endswith(".tar.gz") or normal(file[: -len(".tar.gz")]) + ".tar.gz" != wanted:
            continue
        data = fetched(url, context, int(most))
        kind, _, value = digest.partition("=")
        if kind == "sha256" and hashlib.sha256(data).hexdigest() != value:
            leave(UNREACHABLE, f"{url} arrived damaged: its digest is another")
        sys.stdout.buffer.write(data)
        return
    leave(NOT_THERE, f"{page} has no source distribution (.tar.gz) of {name} {version}")


main()
