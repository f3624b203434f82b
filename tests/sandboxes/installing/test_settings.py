"""The user's own settings: which hosts they allow, by which way, and which texts are secret."""

import asyncio
import base64
import json
import shutil
from pathlib import Path

import pytest

from records.errors import ConfigError
from sandboxes.egress.proxy import open_egress
from sandboxes.installing import npm_settings, pip_settings
from sandboxes.installing.npm_settings import npm_sources
from sandboxes.installing.pip_settings import merged, pip_sources
from sandboxes.installing.sources import IndexSources, bare, host_of, secret_in

DEFAULT, FILES = "https://index.example/simple", "files.example"


def pip_with(monkeypatch: pytest.MonkeyPatch, **settings: str) -> pip_settings.PipSources:
    given = {f"global.{name.replace('_', '-')}": value for name, value in settings.items()}
    found = {"settings": given, "default": DEFAULT, "files": FILES}
    monkeypatch.setattr(pip_settings, "read_settings", lambda: found)
    return pip_sources()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
        *("NO_PROXY", "no_proxy", "UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_FIND_LINKS"),
        *("UV_EXTRA_INDEX_URL", "UV_INSECURE_HOST", "SYNTH_PACKAGE_HOSTS"),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))


def test_without_settings_the_default_index_and_its_files_are_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = pip_with(monkeypatch)
    assert found.env["PIP_INDEX_URL"] == DEFAULT
    assert found.sources.hosts == ("index.example:443", "files.example:443")


def test_hosts_are_those_of_every_index_and_of_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SYNTH_PACKAGE_HOSTS", "cdn.example, blobs.example:8443")
    found = pip_with(
        monkeypatch,
        index_url="http://me:pw%2Fd@mirror.example:8080/simple",
        extra_index_url="\nhttps://token@a.example/x\nhttps://b.example:8443/",
        find_links="https://c.example/links",
        trusted_host="d.example e.example:81",
    )
    assert found.sources.hosts == (
        *("mirror.example:8080", "a.example:443", "b.example:8443", "c.example:443"),
        *("d.example:443", "e.example:81", "cdn.example:443", "blobs.example:8443"),
    )
    assert {*found.sources.secrets} == {"pw%2Fd", "pw/d", "token"}
    for secret in ("pw", "token", "me:"):
        assert secret not in found.sources.shown
    assert "mirror.example:8080" in found.env["PIP_TRUSTED_HOST"]
    cleaned = found.sources.redactor().text("a pw%2Fd and pw/d, token")
    assert not [secret for secret in found.sources.secrets if secret in cleaned]


def test_uv_s_variables_and_netrc_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://uv.example/simple")
    monkeypatch.setenv("UV_INDEX", "inner=https://inner.example/simple")
    (tmp_path / "netrc").write_text("machine inner.example login me password hunter2\n")
    found = pip_with(monkeypatch, index_url="https://pip.example/")
    assert found.env["PIP_INDEX_URL"] == "https://uv.example/simple"
    assert found.env["PIP_EXTRA_INDEX_URL"] == "https://me:hunter2@inner.example/simple"
    assert found.sources.hosts == ("uv.example:443", "inner.example:443")
    assert "hunter2" in found.sources.secrets


def test_folders_are_shown_with_what_their_pages_lead_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("index/simple", "links"):
        (tmp_path / folder).mkdir(parents=True)
    found = pip_with(
        monkeypatch, index_url=f"file://{tmp_path}/index/simple", find_links=f"{tmp_path}/links"
    )
    assert [bind.source for bind in found.binds] == [f"{tmp_path}/index", f"{tmp_path}/links"]
    assert found.env["PIP_INDEX_URL"] == f"file://{found.binds[0].target}/simple"
    assert found.env["PIP_FIND_LINKS"] == f"file://{found.binds[1].target}"
    assert found.sources.hosts == ()
    with pytest.raises(ConfigError, match="which does not exist"):
        pip_with(monkeypatch, find_links="/no/such/folder")


def test_later_sections_of_pip_s_settings_count_more() -> None:
    given = {
        ":env:.timeout": "3",
        "global.timeout": "1",
        "install.timeout": "2",
        "list.format": "x",
    }
    assert merged(given) == {"timeout": "3"}


def test_settings_that_cannot_be_followed_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="setting client-cert = /c is not followed"):
        pip_with(monkeypatch, client_cert="/c")
    with pytest.raises(ConfigError, match="setting cert names the certificates /no/ca, which"):
        pip_with(monkeypatch, cert="/no/ca")
    with pytest.raises(ConfigError, match="name the index ftp://x/y, which is no address"):
        host_of("ftp://me:secret@x/y", manager="pip")


def test_addresses_are_shown_without_their_credentials() -> None:
    assert bare("https://me:pw@x:8/y?token=z#f") == "https://x:8/y"
    assert {*secret_in("https://token@x/")} == {"token"}
    assert {*secret_in("https://x/")} == set()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_s_registries_and_logins_are_taken_from_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = {
        "registry": "https://npm.example/",
        "@our:registry": "http://our.example:4873/",
        "userconfig": str(tmp_path / "npmrc"),
        "https-proxy": "http://me:pw@proxy.example:3128",
    }
    (tmp_path / "npmrc").write_text("//our.example:4873/:_authToken=${OUR_LOGIN}\n")
    monkeypatch.setenv("OUR_LOGIN", "t0p-secret")
    monkeypatch.setattr(npm_settings, "read_settings", lambda: settings)
    found = npm_sources()
    assert found.sources.hosts == ("npm.example:443", "our.example:4873")
    assert "//our.example:4873/:_authToken=t0p-secret" in found.npmrc
    assert "proxy" not in found.npmrc
    assert found.sources.redactor().text("t0p-secret pw") == "[secret of npm 2] [secret of npm 1]"


def test_the_user_s_proxy_is_gone_through_and_told_its_password_outside() -> None:
    heard: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def go() -> bytes:
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        sources = IndexSources(
            manager="pip",
            urls=("https://index.invalid/",),
            hosts=("index.invalid:443",),
            secrets=(),
            proxy=f"http://me:p%40ss@127.0.0.1:{port}",
            authorities=None,
        )
        async with server, open_egress(sources.egress()) as path:
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"CONNECT index.invalid:443 HTTP/1.1\r\n\r\n")
            answer = await reader.read()
            writer.close()
            return answer

    assert asyncio.run(go()).endswith(b"\r\n\r\nhello")
    login = base64.b64encode(b"me:p@ss").decode()
    assert f"Proxy-Authorization: Basic {login}".encode() in heard[0]
    assert heard[0].startswith(b"CONNECT index.invalid:443 ")
    assert json.dumps(login) not in str(heard[0].partition(b"Proxy")[0])
