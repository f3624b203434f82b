"""Files of chat programs and editors: each entry a definition, and no secret in any of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from sandboxes.installing.client_files import client_servers, identifier_of, servers_in
from sandboxes.mcp.servers import ServerConfig

NPX = {"command": "npx", "args": ["-y", "@s/p@1.0", "/data"]}


def written(folder: Path, entries: dict[str, Any], **others: Any) -> Path:
    path = folder / "claude_desktop_config.json"
    path.write_text(json.dumps({"mcpServers": entries, "theme": "dark"} | others))
    return path


def read(folder: Path, **entry: Any) -> ServerConfig:
    return client_servers(written(folder, {"it": {"command": "uvx", "args": ["srv"]} | entry}))[0][
        0
    ]


def test_each_entry_is_a_definition_by_an_identifier(tmp_path: Path) -> None:
    entries = {
        "Files & Co": NPX | {"type": "stdio", "env": {"ROOT": "/data", "DEBUG": True}},
        "1st": {"command": "cmd", "args": ["/c", "npx", "srv"]},
        "off": {"command": "nothing", "disabled": True},
        "far": {"type": "http", "url": "https://mcp.example/mcp"},
    }
    found = client_servers(written(tmp_path, entries))
    files, first = found.servers
    assert (files.name, files.command) == ("files_co", ("p", "/data"))
    assert files.packages is not None
    assert files.packages.requirements == ("@s/p@1.0",)
    assert files.env == {"ROOT": "/data", "DEBUG": "true"}
    assert (first.name, first.command) == ("server_1st", ("srv",))
    assert found.remote == {"far": "https://mcp.example/mcp"}


@pytest.mark.parametrize("key", ["servers", "mcpServers"])
def test_files_of_editors_are_read_as_well(key: str, tmp_path: Path) -> None:
    inputs = [{"type": "promptString", "id": "token", "password": True}]
    entry = NPX | {"env": {"LOGIN": "${input:token}"}}
    for given in ({key: {"it": entry}, "inputs": inputs}, {"mcp": {key: {"it": entry}}}):
        (path := tmp_path / "mcp.json").write_text(json.dumps(given))
        (server,) = servers_in(path)
        assert (server.secrets, server.env) == (("LOGIN",), {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "ghp_0123456789"),
        ("openai_api_key", "sk-0123456789"),
        ("DB_PASSWORD", "hunter2"),
        ("CLIENT_SECRET", "0123456789"),
        ("ANYTHING", "${GITHUB_PAT}"),
        ("ANYTHING", "${env:GITHUB_PAT}"),
        ("DATABASE_URL", "postgres://me:hunter2@db/x"),
    ],
)
def test_what_looks_like_a_secret_is_read_from_the_environment(
    name: str, value: str, tmp_path: Path
) -> None:
    server = read(tmp_path, env={name: value, "PLAIN": "1"})
    assert server.secrets == (name,)
    assert server.env == {"PLAIN": "1"}
    assert value not in server.model_dump_json()


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", "sk-0123456789"],
        ["--api-key=sk-0123456789"],
        ["--token", "${TOKEN}"],
        ["postgres://me:sk-0123456789@db/x"],
    ],
)
def test_a_secret_in_a_command_is_refused_and_not_repeated(
    words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="let the server read it from a variable of env") as error:
        read(tmp_path, args=["srv", *words])
    assert "sk-0123456789" not in str(error.value)
    assert "server 'it'" in str(error.value)


def test_what_cannot_be_followed_says_so(tmp_path: Path) -> None:
    cases: list[tuple[Any, str]] = [
        ({"it": {"args": []}}, "has no command"),
        ({"it": {"command": "uvx", "args": "srv"}}, "args is a list"),
        ({"it": NPX | {"envFile": ".env"}}, "envFile is not read"),
        ({"it": NPX, "IT": NPX}, "'it' is called it, too"),
        ({"it": {"command": "uvx", "args": ["--frozen", "x"]}}, "option --frozen"),
        ({"it": {"url": "https://x/", "headers": {"Authorization": "Bearer s"}}}, "--token-env"),
        ({"it": NPX | {"disabled": True}}, "names no server"),
    ]
    for entries, said in cases:
        with pytest.raises(ConfigError, match=said) as error:
            client_servers(written(tmp_path, entries))
        assert str(tmp_path) in str(error.value)
    with pytest.raises(ConfigError, match=r"runs elsewhere .*tools import --url https://x/"):
        servers_in(written(tmp_path, {"it": {"url": "https://x/"}}))
    for text in ("{", "[]", "{}"):
        (tmp_path / "mcp.json").write_text(text)
        with pytest.raises(ConfigError, match=r"is no JSON|has no mapping"):
            client_servers(tmp_path / "mcp.json")


def test_scripts_are_found_from_the_working_folder_of_the_entry(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "srv.py").write_text("")
    server = read(tmp_path, command="python", args=["srv.py"], cwd="sub")
    assert [bind.source for bind in server.binds] == [str(tmp_path / "sub" / "srv.py")]


def test_names_become_identifiers() -> None:
    names = {
        "a": "a",
        "My Server!": "my_server",
        "github.com/x": "github_com_x",
        "\u00e9": "server_",
    }
    assert {name: identifier_of(name) for name in names} == names
