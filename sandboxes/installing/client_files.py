"""Files in which people keep the servers of their chat programs and editors, read as definitions.

`mcpServers` (`claude_desktop_config.json`, `.mcp.json`) or `servers` (`mcp.json` of VS Code), a
mapping of names to a command or an address. Values that look like secrets are not taken from the
file: they become `secrets`, which are read from the environment when the server starts.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ConfigError
from sandboxes.mcp.launch import definition_of, load_server
from sandboxes.mcp.packages.invocations import without_shell
from sandboxes.mcp.remote import checked_url
from sandboxes.mcp.servers import ServerConfig

DEFINITIONS, CLIENT_FILES = (".yaml", ".yml"), (".json",)
"""Endings of our own definitions, and of clients' files."""

KEYS = ("mcpServers", "servers")
REMOTE_TYPES = ("http", "sse", "streamable-http", "streamableHttp", "streamable_http", "ws")

SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
VARIABLE = re.compile(r"\$\{[^}]*\}")
LOGIN = re.compile(r"://[^/@\s]+@")
"""An address with a user or password in it."""


class ClientServers(NamedTuple):
    """What such a file names."""

    servers: tuple[ServerConfig, ...]
    remote: dict[str, str]
    """Name -> address, of servers that run elsewhere."""


def is_server_file(name: str) -> bool:
    """Whether a setting or an option names a file of servers, and no server."""
    return name.endswith((*DEFINITIONS, *CLIENT_FILES))


def servers_in(path: Path) -> tuple[ServerConfig, ...]:
    """Those of a definition, or of a client's file, for a run, which starts its servers.
    ConfigError for one that runs elsewhere, and as `client_servers` and `load_server`."""
    if path.suffix in DEFINITIONS:
        return (load_server(path),)
    found = client_servers(path)
    for name, url in found.remote.items():
        raise ConfigError(
            f"{path}: server {name!r} runs elsewhere ({url}), and a run starts its servers in "
            'sandboxes; give it "disabled": true there, and import its tools with `synth tools '
            f"import --url {url}`"
        )
    return found.servers


def client_servers(path: Path) -> ClientServers:
    """ConfigError, naming file and entry, for what cannot be read or followed. Entries that are
    disabled are left out."""
    entries = _entries(path)
    servers: dict[str, ServerConfig] = {}
    remote: dict[str, str] = {}
    names: dict[str, str] = {}
    for entry, given in entries.items():
        where = f"{path}: server {entry!r}"
        if not isinstance(given, dict):
            raise ConfigError(f"{where} is a mapping with a command or a url")
        if given.get("disabled") is True or given.get("enabled") is False:
            continue
        name = identifier_of(entry)
        if name in names:
            raise ConfigError(f"{where}: {names[name]!r} is called {name}, too; rename one of them")
        names[name] = entry
        if "url" in given or "serverUrl" in given or given.get("type") in REMOTE_TYPES:
            remote[name] = _address(given, where)
        else:
            servers[name] = _server(name, given, path, where)
    if not names:
        raise ConfigError(f"{path} names no server that is not disabled")
    return ClientServers(tuple(servers.values()), remote)


def _entries(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON (comments are none either): {error}") from error
    holder = given.get("mcp", given) if isinstance(given, dict) else None
    if isinstance(holder, dict):
        for key in KEYS:
            if isinstance(holder.get(key), dict):
                return holder[key]
    raise ConfigError(f"{path} has no mapping {' or '.join(KEYS)} of names to servers")


def identifier_of(entry: str) -> str:
    """A server's name from that which a person gave it."""
    name = re.sub(r"[^a-z0-9]+", "_", entry.lower()).strip("_")
    return name if name[:1].isalpha() else f"server_{name}"


def _address(given: Mapping[str, Any], where: str) -> str:
    url = given.get("url", given.get("serverUrl"))
    if not isinstance(url, str):
        raise ConfigError(f"{where} runs elsewhere and has no url")
    if given.get("headers") or VARIABLE.search(url) or SECRET_NAME.search(url.partition("?")[2]):
        raise ConfigError(
            f"{where} needs a login, which is not taken from the file; import it with `synth tools "
            'import --url URL --token-env VARIABLE`, and give it "disabled": true here'
        )
    try:
        return checked_url(url)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _server(name: str, given: Mapping[str, Any], path: Path, where: str) -> ServerConfig:
    command, arguments = given.get("command"), given.get("args") or []
    if not isinstance(command, str) or not command:
        raise ConfigError(f"{where} has no command")
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        raise ConfigError(f"{where}: args is a list of texts")
    if given.get("envFile"):
        raise ConfigError(
            f"{where}: envFile is not read; put what is no secret into env, and set the rest in "
            "the environment of this command"
        )
    words = [*without_shell([command, *arguments])]
    for problem in secrets_in(words):
        raise ConfigError(f"{where}: {problem}; let the server read it from a variable of env")
    folder = path.parent / given["cwd"] if isinstance(given.get("cwd"), str) else path.parent
    env, secrets = _environment(given.get("env") or {}, where)
    definition = {"name": name, "command": words, "env": env, "secrets": secrets}
    return definition_of(definition, folder, origin=where)


def secrets_in(words: Sequence[str]) -> Iterator[str]:
    """Why a command cannot be kept as it is, for each argument that holds a secret, or the place
    for one: commands are written into datasets."""
    secret_follows = False
    for number, word in enumerate(words):
        option, equals, value = word.partition("=")
        is_option = word.startswith("-")
        if VARIABLE.search(word):
            yield f"argument {number} is to hold the value of a variable"
        elif LOGIN.search(word):
            yield f"argument {number} is an address with a user or password in it"
        elif is_option and equals and value and SECRET_NAME.search(option):
            yield f"argument {number}, {option}=..., looks like a secret"
        elif secret_follows and not is_option:
            yield f"argument {number}, which follows {words[number - 1]}, looks like a secret"
        secret_follows = is_option and not equals and bool(SECRET_NAME.search(option))


def _environment(given: Any, where: str) -> tuple[dict[str, str], list[str]]:
    """What the server is given in the open, and the names of its secrets."""
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: env is a mapping of names to texts")
    env: dict[str, str] = {}
    secrets: list[str] = []
    for name, value in given.items():
        if not isinstance(value, str | int | float):
            raise ConfigError(f"{where}: env.{name} is no text")
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        if text and (SECRET_NAME.search(name) or VARIABLE.search(text) or LOGIN.search(text)):
            secrets.append(name)
        else:
            env[name] = text
    return env, secrets
