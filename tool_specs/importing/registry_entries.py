"""Entries of an MCP registry as what can be done with them. Pure; every text is untrusted.

An entry describes a server: packages that start one, remotes that are one. It lists no tools: those
come from asking a remote, which this only prepares. Today's form (2025-09 and later) and the first
one (2025-05: snake case, offsets) are read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tool_specs.importing.licences import UNKNOWN, spdx_of

OFFICIAL = "io.modelcontextprotocol.registry/official"
PUBLISHER = "io.modelcontextprotocol.registry/publisher-provided"

_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
MAX_LISTED = 20
"""Packages and remotes that are read of one entry."""


class Remote(NamedTuple):
    url: str
    host: str
    fault: str | None
    """Why it cannot be asked: needs_secret, needs_variables, sse_only, bad_url; None if it can."""


class RegistryEntry(NamedTuple):
    name: str
    version: str
    status: str
    """active, deprecated or deleted."""
    is_latest: bool
    description: str
    repository: str
    license: str
    remotes: tuple[Remote, ...]
    packages: tuple[str, ...]
    """What would have to be installed, such as "npm:@a/b@1.0.0"."""


class RegistryPage(NamedTuple):
    entries: list[RegistryEntry | None]
    """None for an entry that is none."""
    cursor: str | None


def read_page(answer: Any) -> RegistryPage | None:
    """A page of the API's answer, None if it is none."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("servers"), list):
        return None
    about = _object(answer.get("metadata"))
    cursor = about.get("nextCursor") or about.get("next_cursor")
    entries = [read_entry(one) for one in answer["servers"]]
    return RegistryPage(entries, cursor if isinstance(cursor, str) and cursor else None)


def read_entry(given: Any) -> RegistryEntry | None:
    """None for what has no name that a registry allows."""
    outer = _object(given)
    server = _object(outer.get("server")) or outer
    name = server.get("name")
    if not isinstance(name, str) or len(name) > 200 or not _NAME.fullmatch(name):
        return None
    meta = _object(outer.get("_meta"))
    official = _object(meta.get(OFFICIAL)) or outer
    detail = _object(server.get("version_detail"))  # the first form
    latest = official.get("isLatest", official.get("is_latest", detail.get("is_latest")))
    status = official.get("status") or server.get("status")
    provided = _object(_object(server.get("_meta")).get(PUBLISHER))
    return RegistryEntry(
        name=name,
        version=_text(server.get("version") or detail.get("version")),
        status=status if status in ("deprecated", "deleted") else "active",
        is_latest=latest is not False,
        description=_text(server.get("description")),
        repository=_text(_object(server.get("repository")).get("url")),
        license=next(
            (spdx_of(one["license"]) for one in (server, provided) if "license" in one), UNKNOWN
        ),
        remotes=tuple(map(_remote, _objects(server.get("remotes")))),
        packages=tuple(map(_package, _objects(server.get("packages")))),
    )


def _remote(remote: Mapping[str, Any]) -> Remote:
    given = remote.get("url")
    url = _text(given)
    kind = remote.get("type") or remote.get("transport_type") or remote.get("transport")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        parts.port  # noqa: B018  a port that is no number raises here
    except ValueError:
        return Remote(url, "", "bad_url")
    if isinstance(given, str) and url != given.strip():  # cut or cleaned, it is another address
        return Remote(url, host, "bad_url")
    if "{" in url:
        return Remote(url, host, "needs_variables")
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return Remote(url, host, "bad_url")
    if kind == "sse":
        return Remote(url, host, "sse_only")
    if any(
        one.get("isRequired", one.get("is_required")) for one in _objects(remote.get("headers"))
    ):
        return Remote(url, host, "needs_secret")
    return Remote(url, host, None)


def _package(package: Mapping[str, Any]) -> str:
    kind = (
        package.get("registryType") or package.get("registry_type") or package.get("registry_name")
    )
    name = _text(package.get("identifier") or package.get("name"))
    version = _text(package.get("version"))
    return f"{_text(kind) or 'package'}:{name}" + (f"@{version}" if version else "")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> Sequence[Mapping[str, Any]]:
    listed = value if isinstance(value, list) else []
    return [one for one in listed if isinstance(one, Mapping)][:MAX_LISTED]


def _text(value: Any) -> str:
    """One printable line of at most 500 characters."""
    if not isinstance(value, str):
        return ""
    return "".join(c if c.isprintable() else " " for c in value[:500]).strip()
