"""What an installation may reach, and by which way: hosts of indexes, their secrets, the user's
proxy."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib import request
from urllib.parse import unquote, urlsplit, urlunsplit

from records.errors import ConfigError
from sandboxes.egress.proxy import Egress, UpstreamProxy
from sandboxes.mcp.secret_values import Redactor

HOSTS = "SYNTH_PACKAGE_HOSTS"
"""Variable with further hosts, `NAME` or `NAME:PORT`, that an index keeps its files on."""

PORTS = {"http": 80, "https": 443}

CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""In the order in which pip looks at them, after its own setting."""


class IndexSources(NamedTuple):
    """Where one package manager takes packages from, as its user has set it."""

    manager: str
    urls: tuple[str, ...]
    """Addresses of indexes, credentials included."""

    hosts: tuple[str, ...]
    """`NAME:PORT` of each, and of what else may be reached."""

    secrets: tuple[str, ...]
    """Texts that stand in no message and no file."""

    proxy: str | None
    """The proxy of the manager's own settings, in place of that of the environment."""

    authorities: bytes | None
    """Certificates to trust (PEM); None: those that this machine trusts."""

    @property
    def shown(self) -> str:
        """The indexes for people, without credentials."""
        return ", ".join(dict.fromkeys(bare(url) for url in self.urls))

    def redactor(self) -> Redactor:
        """Takes every secret of the settings out of a text."""
        texts = {*self.secrets, *(secret_in(self.proxy) if self.proxy else ())}
        for url in request.getproxies_environment().values():
            texts |= {*secret_in(url)}
        return Redactor({f"of {self.manager} {n}": text for n, text in enumerate(sorted(texts), 1)})

    def egress(self) -> Egress:
        """The way out. ConfigError for a host or proxy that is none."""
        ways = {}
        for host in self.hosts:
            name, _, port = host.rpartition(":")
            if (url := self._proxy_for(name, int(port))) is not None:
                ways[name.strip("[]"), int(port)] = upstream_of(url)
        try:
            return Egress(
                "packages",
                self.hosts,
                clean=self.redactor().text,
                private=True,
                upstream=ways,
            )
        except ValueError as error:
            raise ConfigError(f"{self.manager}'s settings: {error}") from error

    def _proxy_for(self, name: str, port: int) -> str | None:
        found = request.getproxies_environment()
        if self.proxy is not None:
            return self.proxy
        if request.proxy_bypass(f"{name}:{port}", found) or is_loopback(name):
            return None
        return found.get("https" if port == PORTS["https"] else "http") or found.get("all")


def is_loopback(name: str) -> bool:
    return name in ("localhost", "[::1]") or name.startswith("127.")


def upstream_of(url: str) -> UpstreamProxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in PORTS or not parts.hostname:
        raise ConfigError(
            f"the proxy {bare(url)} is none that is understood; one is http://HOST:PORT"
        )
    user = None
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return UpstreamProxy(parts.hostname, parts.port or PORTS[parts.scheme], parts.scheme, user)


def host_of(url: str, *, manager: str) -> str:
    """`NAME:PORT` of an address. ConfigError for one that is not of the web."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port or PORTS.get(parts.scheme)
    except ValueError:
        name, port = None, None
    if not name or port is None:
        raise ConfigError(
            f"{manager}'s settings name the index {bare(url)}, which is no address; one is "
            "https://HOST/PATH or http://HOST:PORT/PATH"
        )
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def further_hosts() -> tuple[str, ...]:
    """Those of SYNTH_PACKAGE_HOSTS."""
    named = re.split(r"[,\s]+", os.environ.get(HOSTS, "").strip())
    return tuple(host if ":" in host else f"{host}:443" for host in named if host)


def bare(url: str) -> str:
    """An address without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(an address that cannot be read)"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def secret_in(url: str) -> Iterable[str]:
    """The password of an address, else its user, as it stands and as it is meant."""
    try:
        user, _, password = urlsplit(url).netloc.rpartition("@")[0].partition(":")
    except ValueError:
        return [url]
    return {text for text in (password or user, unquote(password or user)) if text}


def authorities_in(path: str, *, setting: str) -> bytes:
    """The certificates of a file. ConfigError where it cannot be read."""
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{setting} names the certificates {path}, which cannot be read: {error.strerror}"
        ) from error


def authorities_of_environment(names: Iterable[str], env: Mapping[str, str]) -> bytes | None:
    for name in names:
        if (path := env.get(name)) and Path(path).is_file():
            return authorities_in(path, setting=name)
    return None
