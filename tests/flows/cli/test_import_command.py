"""`synth tools import`: what is told to people and to programs, and which code it ends with."""

import asyncio
import json
from pathlib import Path

import pytest

from flows.cli.main import run
from records.store.dataset import Dataset
from tests.sandboxes.mcp.http_servers import Registry, registry_entry, serving

TOOLS = {"tools": [{"name": "get-x", "description": "Get x.", "inputSchema": {"type": "object"}}]}


def test_a_file_is_counted_for_people_and_for_programs(tmp_path: Path, capsys) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(TOOLS))
    command = ["tools", "import", "--file", str(tmp_path / "mine.json"), "--json"]
    assert run([*command, "--dataset", str(tmp_path / "d")]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["sources"] == {"mine": {"kept": 1}}
    assert "listed 1, kept 1, known 0, dropped 0, quarantined 0" in err
    (row,) = Dataset.open(tmp_path / "d").rows("tools")
    assert (row["name"], row["annotations"]["originalName"]) == ("get_x", "get-x")
    assert run([*command, "--dataset", str(tmp_path / "d")]) == 0
    assert "mine: 0 tools added, 0 left out, 1 there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 2, "nothing to import; name --server, --url, --registry or --file"),
        (["--file", "none.json"], 2, "none.json cannot be imported: it is not readable: No such"),
        (["--url", "time"], 2, "'time' is no URL of a server"),
        (["--registry", "registry"], 2, "'registry' is no URL of a server"),
        (["--url", "http://127.0.0.1:9/", "--token-env", "NO_TOKEN"], 2, "NO_TOKEN"),
        (["--file", "x", "--token-env", "HOME"], 2, "--token-env is sent to each --url"),
        (["--url", "http://a.example/", "--token-env", "HOME"], 2, "to a.example unencrypted"),
        (
            ["--url", "https://a.example/", "--url", "https://b.example/", "--token-env", "HOME"],
            2,
            "one token to a.example, b.example",
        ),
        (["--url", "http://[::1]:9/", "--token-env", "HOME"], 1, "1 of 1 URLs gave nothing"),
        (["--url", "http://127.0.0.1:9/", "--allow-host", "x"], 2, "add --registry"),
        (["--url", "http://127.0.0.1:9/mcp"], 1, "1 of 1 URLs gave nothing"),
    ],
)
def test_wrong_use_and_servers_that_are_not_there(
    options: list[str], code: int, words: str, tmp_path: Path, capsys
) -> None:
    assert run(["tools", "import", *options, "--dataset", str(tmp_path / "d")]) == code
    assert words in capsys.readouterr().err


def test_a_registry_names_the_hosts_that_were_not_asked(tmp_path: Path, capsys) -> None:
    entries = [
        registry_entry("x.example/a", "https://mcp.example/a", license="MIT"),
        registry_entry("x.example/b", "https://mcp.example/b"),
    ]

    async def go() -> int:
        async with serving(Registry(entries).routes) as url:
            command = ["tools", "import", "--registry", url, "--json"]
            return await asyncio.to_thread(run, [*command, "--dataset", str(tmp_path / "d")])

    assert asyncio.run(go()) == 0
    out, err = capsys.readouterr()
    assert "2 servers: host not allowed 2" in err
    assert "not asked, for want of --allow-host: mcp.example (2)" in err
    servers = json.loads(out)["servers"]
    assert [(s["server"], s["license"], s["reason"]) for s in servers] == [
        ("x.example/a", "MIT", "host_not_allowed"),
        ("x.example/b", "unknown", "host_not_allowed"),
    ]
