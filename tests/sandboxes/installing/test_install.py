"""Packages of servers, installed for real from indexes of this machine: what the sandbox reaches,
what is kept, what stays secret, and what is said when it does not work."""

import asyncio
import base64
import hashlib
import io
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from records.errors import ConfigError
from sandboxes.installing.install import installed
from sandboxes.installing.machine import installer
from sandboxes.installing.pip_settings import pip_sources
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.packages.kept import kept_packages, packages_folder
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import open_server
from tests.sandboxes.code.hostile_index import ServedIndex, serve_index, wheel

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

TINY = Path(__file__).parents[1] / "mcp" / "tiny_server.py"
USER, PASSWORD = "robot", "s3cr3t/of+index"
LOGIN = f"{USER}:s3cr3t%2Fof%2Bindex"

NODE_SERVER = """#!/usr/bin/env node
const tools = [{name: "greet", description: "Greets.", inputSchema: {type: "object"}}];
const serverInfo = {name: "greeter", version: "1"};
require("readline").createInterface({input: process.stdin}).on("line", line => {
  const {id, method, params} = JSON.parse(line);
  if (id === undefined) return;
  const answers = {
    initialize: () => ({protocolVersion: params.protocolVersion, capabilities: {tools: {}},
                        serverInfo}),
    "tools/list": () => ({tools}),
  };
  const found = answers[method];
  const answer = found ? {result: found()} : {error: {code: -32601, message: "no " + method}};
  console.log(JSON.stringify({jsonrpc: "2.0", id, ...answer}));
});
"""


def tiny_wheel(name: str = "tiny_srv", *, ballast: int = 0, program: str = "tiny-srv") -> bytes:
    served = TINY.read_text().replace('main(sys.argv[1] if len(sys.argv) > 1 else "")', "")
    entry = f"[console_scripts]\n{program} = {name}:run\n"
    files = {
        f"{name}.py": f"{served}\ndef run():\n    main('')\n".encode(),
        f"{name}-1.0.dist-info/entry_points.txt": entry.encode(),
    }
    if ballast:
        files[f"{name}_ballast.bin"] = os.urandom(1 << 20) * ballast
    return wheel(name, files)


@pytest.fixture
def index() -> Iterator[ServedIndex]:
    with serve_index() as served:
        served.packages["tiny_srv-1.0-py3-none-any.whl"] = tiny_wheel()
        yield served


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings but those of the test: the file that pip is told to read."""
    for name in list(os.environ):
        if name.upper().startswith(("PIP_", "UV_", "NPM_CONFIG_")) or "PROXY" in name.upper():
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "pip.conf"


def use(settings: Path, url: str) -> None:
    settings.write_text(
        f"[global]\nindex-url = {url}\nextra-index-url =\nfind-links =\nretries = 0\n"
    )


def install(line: str, said: list[str] | None = None) -> ServerConfig:
    heard = said if said is not None else []
    return asyncio.run(installed(server_of_command(line), say=heard.append))


def tools_of(config: ServerConfig) -> list[str]:
    async def listed() -> list[str]:
        async with open_server(config) as server:
            return [tool["name"] for tool in await server.list_tools()]

    return asyncio.run(listed())


def held_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_server_starts_from_the_index_and_again_without_it(
    settings: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[str] = []
    with caplog.at_level(logging.DEBUG), serve_index() as index:
        index.packages["tiny_srv-1.0-py3-none-any.whl"] = data = tiny_wheel()
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        index.login = f"Basic {login}"
        use(settings, index.url.replace("://", f"://{LOGIN}@"))
        first = install("uvx tiny-srv", said)
        assert index.asked
        index.login = "Basic another"
        with pytest.raises(ConfigError, match="refuses the login") as refused:
            install("uvx --with not-there tiny-srv", said)
    assert first.packages is not None
    assert first.packages.locked == (f"tiny-srv==1.0 sha256:{hashlib.sha256(data).hexdigest()}",)
    again = server_of_command("uvx tiny-srv")  # the index is gone
    assert again == first == install("uvx tiny-srv")
    assert "echo" in tools_of(again)
    assert said[0] == f"installing tiny-srv from your pip index {index.url}"
    told = "\n".join([*said, caplog.text, str(refused.value), json.dumps(first.identity())])
    for secret in (PASSWORD, "s3cr3t", login):
        assert secret not in told
        assert secret.encode() not in held_in(packages_folder())


REACHING = """
import socket, sys, urllib.request
def tried(url, proxy):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}))
    try:
        return opener.open(url, timeout=5).status
    except Exception as error:
        return getattr(error, "code", type(error).__name__)
index, other, proxy = sys.argv[1:]
print(tried(index, proxy), tried(other, proxy), tried("http://192.0.2.1/", proxy))
print(tried(index, ""), tried(other, ""))
"""


def test_the_sandbox_reaches_the_index_and_nothing_else(settings: Path, index: ServedIndex) -> None:
    use(settings, index.url)

    async def go(other: str) -> str:
        async with installer(pip_sources().sources) as machine:
            argv = ["/usr/bin/python3", "-c", REACHING, f"{index.url}/tiny-srv/", other]
            done = await machine.sandbox.exec([*argv, "http://127.0.0.1:3128"])
            return done.stdout.decode()

    with serve_index() as neighbour:
        assert asyncio.run(go(neighbour.url)) == "200 403 403\nURLError URLError\n"
        assert neighbour.asked == []


KILLED = """
import asyncio
from sandboxes.installing.install import installed
from sandboxes.mcp.launch import server_of_command
asyncio.run(installed(server_of_command("uvx tiny-srv")))
"""


def test_a_kill_in_the_middle_leaves_nothing_that_is_taken_for_whole(
    settings: Path, index: ServedIndex
) -> None:
    use(settings, index.url)
    index.packages["tiny_srv-1.0-py3-none-any.whl"] = tiny_wheel(ballast=40)
    packages = server_of_command("uvx tiny-srv").packages
    assert packages is not None

    def half_written() -> bool:
        return bool([*packages_folder().glob(".tmp-*/lib/*/*/*")])

    process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=Path(__file__).parents[3])
    while not half_written():
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert kept_packages(packages) is None
    assert half_written()
    assert "echo" in tools_of(install("uvx tiny-srv"))
    assert not half_written()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "uvx nowhere-srv",
            r"cannot install nowhere-srv.*: the pip index .* has no package of this",
        ),
        ("uvx tiny-srv==9", r"has no such version of it for Python 3\.\d+; it has 1\.0"),
        ("uvx unbuilt", r"has no wheel of it for Python .* nothing is built here"),
    ],
)
def test_what_an_index_does_not_have_is_named(
    line: str, said: str, settings: Path, index: ServedIndex
) -> None:
    index.packages["unbuilt-1.0.tar.gz"] = b""
    use(settings, index.url)
    with pytest.raises(ConfigError, match=said) as refused:
        install(line)
    assert str(refused.value).startswith("server ")


def test_an_index_that_is_gone_is_named(settings: Path) -> None:
    with serve_index() as index:
        pass
    use(settings, index.url)
    with pytest.raises(ConfigError, match=r"index cannot be reached: 127\.0\.0\.1:\d+ cannot be"):
        install("uvx tiny-srv")


def node_tarball() -> bytes:
    package = {
        "name": "@our/greeter",
        "version": "1.2.3",
        "bin": "index.js",
        "scripts": {"postinstall": "touch ran"},
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in {"package.json": json.dumps(package), "index.js": NODE_SERVER}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def registry_of(index: ServedIndex) -> SimpleNamespace:
    """Lets the index answer as a registry of one package."""
    tarball, base = node_tarball(), index.url.removesuffix("/simple")
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(tarball).digest()).decode()}"
    dist = {"tarball": f"{base}/greeter-1.2.3.tgz", "integrity": integrity}
    version = {"name": "@our/greeter", "version": "1.2.3", "bin": "index.js", "dist": dist}
    described = {
        "name": "@our/greeter",
        "dist-tags": {"latest": "1.2.3"},
        "versions": {"1.2.3": version},
    }
    index.packages["@our%2fgreeter"] = json.dumps(described).encode()
    index.packages["greeter-1.2.3.tgz"] = tarball
    return SimpleNamespace(url=f"{base}/", integrity=integrity)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_node_packages_come_from_the_registry_of_npm_s_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_CONFIG_USERCONFIG", str(tmp_path / "npmrc"))
    monkeypatch.setenv("REGISTRY_LOGIN", PASSWORD)
    with serve_index() as index:
        registry = registry_of(index)
        index.login = f"Bearer {PASSWORD}"
        where = registry.url.removeprefix("http:")
        (tmp_path / "npmrc").write_text(
            f"@our:registry={registry.url}\n{where}:_authToken=${{REGISTRY_LOGIN}}\n"
        )
        made = install("npx -y @our/greeter@1.2.3")
        index.login = "Bearer other"
        with pytest.raises(ConfigError, match="refuses the login") as refused:
            install("npx -y @our/greeter")
        assert PASSWORD not in str(refused.value)
    assert made.packages is not None
    assert made.packages.locked == (f"@our/greeter@1.2.3 {registry.integrity}",)
    assert tools_of(server_of_command("npx -y @our/greeter@1.2.3")) == ["greet"]  # it is gone
    assert PASSWORD.encode() not in held_in(packages_folder())
    assert not [*packages_folder().rglob("ran")]
