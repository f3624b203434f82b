"""The indexes of Python packages of the user's own settings: those of pip, and uv's variables."""

import json
import netrc
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from records.errors import ConfigError
from sandboxes.code.packages import bundled_pip
from sandboxes.core.template import Bind
from sandboxes.installing.sources import (
    CA_VARIABLES,
    IndexSources,
    authorities_in,
    authorities_of_environment,
    bare,
    further_hosts,
    host_of,
    secret_in,
)

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
found = Configuration(isolated=False)
found.load()
index = {"default": PyPI.simple_url, "files": PyPI.file_storage_domain}
print(json.dumps({"settings": dict(found.items()), **index}))
"""
"""Prints the settings of pip, the index that is asked where none is named, and the host that it
keeps files on, which are known to pip alone. Run outside a sandbox: it reads the user's files."""

SECTIONS = ("global", "install", ":env:")
"""In the order in which a later one counts more."""

UNSUPPORTED = ("client-cert",)
FOLDERS = "/srv/packages"
"""Where folders of packages of this machine are shown inside."""


class PipSources(NamedTuple):
    sources: IndexSources
    env: dict[str, str]
    """For pip inside, credentials included."""

    binds: tuple[Bind, ...]
    """Folders of this machine that the settings name as indexes."""


def pip_sources() -> PipSources:
    """ConfigError for settings that cannot be read or followed."""
    found = read_settings()
    settings = merged(found["settings"])
    for name in UNSUPPORTED:
        if name in settings:
            raise ConfigError(
                f"pip's setting {name} = {settings[name]} is not followed when packages of servers "
                "are installed; install the package beforehand and name its own program"
            )
    env = os.environ
    first = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL") or settings.get("index-url")
    urls = (
        [] if settings.get("no-index", "") in ("1", "true", "yes") else [first or found["default"]]
    )
    urls += settings.get("extra-index-url", "").split()
    urls += _unnamed(env.get("UV_INDEX", "").split()) + env.get("UV_EXTRA_INDEX_URL", "").split()
    links = settings.get("find-links", "").split()
    links += env.get("UV_FIND_LINKS", "").replace(",", " ").split()
    urls = [_with_login(url) for url in _unnamed(urls)]
    shown = _Shown()
    indexes = [shown.inside(url, above=True) for url in dict.fromkeys(urls)]
    linked = [shown.inside(url, above=False) for url in dict.fromkeys(links)]
    web = [url for url in [*indexes, *linked] if "://" in url and not url.startswith("file:")]
    hosts = [host_of(url, manager="pip") for url in web]
    if host_of(found["default"], manager="pip") in hosts:
        hosts.append(f"{found['files']}:443")
    trusted = [*settings.get("trusted-host", "").split(), *env.get("UV_INSECURE_HOST", "").split()]
    hosts += [host if ":" in host else f"{host}:443" for host in trusted]
    given = settings.get("cert")
    authorities = (
        authorities_in(given, setting="pip's setting cert")
        if given
        else authorities_of_environment(CA_VARIABLES, env)
    )
    inside = {
        "PIP_INDEX_URL": indexes[0] if indexes else "",
        "PIP_EXTRA_INDEX_URL": " ".join(indexes[1:]),
        "PIP_FIND_LINKS": " ".join(linked),
        "PIP_TRUSTED_HOST": " ".join([*trusted, *_unencrypted(web)]),
        "PIP_NO_INDEX": "" if indexes else "1",
        "PIP_TIMEOUT": settings.get("timeout") or settings.get("default-timeout") or "15",
        "PIP_PRE": settings.get("pre", ""),
    }
    sources = IndexSources(
        manager="pip",
        urls=(*urls, *links),
        hosts=tuple(dict.fromkeys([*hosts, *further_hosts()])),
        secrets=tuple(text for url in web for text in secret_in(url)),
        proxy=settings.get("proxy"),
        authorities=authorities,
    )
    return PipSources(sources, {k: v for k, v in inside.items() if v}, tuple(shown.binds))


def read_settings() -> dict[str, Any]:
    """What PROGRAM prints, for the environment that this program runs in."""
    argv = [sys.executable, "-I", "-c", PROGRAM, str(bundled_pip())]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ConfigError(f"pip's settings cannot be read: {said}; `pip config debug` shows them")
    return json.loads(done.stdout)


def merged(settings: Mapping[str, str]) -> dict[str, str]:
    """Setting -> value, as `pip install` takes them."""
    found: dict[str, str] = {}
    for section in SECTIONS:
        for name, value in settings.items():
            if name.startswith(f"{section}."):
                found[name.removeprefix(f"{section}.")] = str(value)
    return found


def _unnamed(urls: Sequence[str]) -> list[str]:
    """Without the names that uv lets indexes have: NAME=URL."""
    return [url.partition("=")[2] if "=" in url.partition("://")[0] else url for url in urls]


def _unencrypted(urls: Sequence[str]) -> list[str]:
    """Hosts that are named with http://, which uv asks as they are and pip only if told."""
    parts = [urlsplit(url) for url in urls]
    return [part.netloc.rpartition("@")[2] for part in parts if part.scheme == "http"]


def _with_login(url: str) -> str:
    """The address with the login that ~/.netrc has for its host, as pip looks it up."""
    parts = urlsplit(url)
    if not parts.hostname or parts.username is not None:
        return url
    path = Path(os.environ.get("NETRC") or "~/.netrc").expanduser()
    try:
        login = netrc.netrc(str(path)).hosts.get(parts.hostname)
    except (OSError, netrc.NetrcParseError):
        return url
    if login is None:
        return url
    user, password = quote(login[0], safe=""), quote(login[2] or "", safe="")
    return urlunsplit(parts._replace(netloc=f"{user}:{password}@{parts.netloc}"))


class _Shown:
    """Folders of this machine among the indexes, and where they stand inside."""

    def __init__(self) -> None:
        self.binds: list[Bind] = []

    def inside(self, url: str, *, above: bool) -> str:
        """The address inside. Of an index the folder above is shown, too, since its pages lead to
        files beside it."""
        parts = urlsplit(url)
        if parts.scheme not in ("", "file"):
            return url
        path = Path(unquote(parts.path)).expanduser()
        if not path.exists():
            raise ConfigError(f"pip's settings name {bare(url)}, which does not exist")
        top = path.resolve().parent if above else path.resolve()
        if top in (Path("/"), Path.home(), Path("/usr"), Path("/home")):
            raise ConfigError(
                f"pip's settings name the folder {path}, whose pages may lead to all of {top}, "
                "which no sandbox is shown; put the index into a folder of its own"
            )
        target = f"{FOLDERS}/{len(self.binds)}/{top.name}"
        self.binds.append(Bind(source=str(top), target=target))
        inner = f"{target}/{path.resolve().name}" if above else target
        return f"file://{quote(inner)}"
