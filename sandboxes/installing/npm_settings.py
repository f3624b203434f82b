"""The registries of Node packages of the user's own settings: those of npm."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ConfigError
from sandboxes.installing.sources import (
    IndexSources,
    authorities_in,
    authorities_of_environment,
    further_hosts,
    host_of,
    secret_in,
)

CREDENTIAL = re.compile(
    r"\s*(//[^=\s]+):(_authToken|_auth|username|_password|email)\s*=\s*(.*?)\s*"
)
VARIABLE = re.compile(r"\$\{([^}]+)\}")


class NpmSources(NamedTuple):
    sources: IndexSources
    npmrc: str
    """Settings of npm inside, credentials included."""


def npm_program() -> Path:
    """The script of npm. ConfigError where npm is not installed."""
    if (npm := shutil.which("npm")) is None:
        raise ConfigError(
            "npm is not installed, which takes Node packages: install Node.js with npm"
        )
    script = Path(npm).resolve()
    if script.suffix != ".js":
        raise ConfigError(
            f"{npm} is a script of another program ({script}); put npm itself on PATH"
        )
    return script


def npm_sources() -> NpmSources:
    """ConfigError for settings that cannot be read or followed."""
    settings = read_settings()
    registries = {
        name: value
        for name, value in settings.items()
        if (name == "registry" or name.endswith(":registry")) and isinstance(value, str)
    }
    credentials = _credentials(settings)
    lines = [f"{name}={value}" for name, value in registries.items()]
    lines += [f"{where}:{kind}={value}" for (where, kind), value in credentials.items()]
    if settings.get("strict-ssl") is False:
        lines.append("strict-ssl=false")
    hosts = [host_of(url, manager="npm") for url in registries.values()]
    secrets = [v for (_, kind), v in credentials.items() if kind not in ("username", "email")]
    secrets += [text for url in registries.values() for text in secret_in(url)]
    sources = IndexSources(
        manager="npm",
        urls=tuple(registries.values()),
        hosts=tuple(dict.fromkeys([*hosts, *further_hosts()])),
        secrets=tuple(text for text in secrets if text),
        proxy=settings.get("https-proxy") or settings.get("proxy") or None,
        authorities=_authorities(settings),
    )
    return NpmSources(sources, "".join(f"{line}\n" for line in lines))


def read_settings() -> dict[str, Any]:
    """The settings of npm in the working folder; credentials are not among them."""
    npm = str(npm_program())
    argv = [shutil.which("node") or "node", npm, "config", "list", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise ConfigError(f"npm's settings cannot be read (`npm config list`): {said}") from error


def _credentials(settings: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """(registry, kind) -> value, of the files that npm reads; the nearest counts."""
    found: dict[tuple[str, str], str] = {}
    for name in (settings.get("globalconfig"), settings.get("userconfig"), ".npmrc"):
        path = Path(str(name))
        if name is None or not path.is_file():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if match := CREDENTIAL.fullmatch(line):
                value = VARIABLE.sub(lambda one: os.environ.get(one[1], one[0]), match[3])
                found[match[1], match[2]] = value.strip("\"'")
    return found


def _authorities(settings: Mapping[str, Any]) -> bytes | None:
    if isinstance(settings.get("cafile"), str):
        return authorities_in(settings["cafile"], setting="npm's setting cafile")
    given = settings.get("ca")
    if given:
        return "\n".join([given] if isinstance(given, str) else given).encode()
    return authorities_of_environment(("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"), os.environ)
