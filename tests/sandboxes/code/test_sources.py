"""Definitions of real projects: from a git repository here and elsewhere, an archive, an index."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import run
from records.errors import ConfigError, ItemError
from sandboxes.code.projects import Project
from sandboxes.code.sources import fetch_git, load_project, project_from, prove, write_definition
from synth.episode.tools.code_environments import code_environments
from tests.sandboxes.code.code_cases import RIGHT, TESTS, project, with_price
from tests.sandboxes.code.hostile_archives import honest_archive
from tests.sandboxes.code.hostile_repositories import git, repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return repository(tmp_path / "shop-2.git", project().files)


def made(source: str, tmp_path: Path, **settings: Any) -> Project:
    wanted: dict[str, Any] = {"runner": "unittest"} | settings
    return asyncio.run(project_from(source, into=tmp_path / "site", **wanted))


@pytest.mark.usefixtures("sandboxed")
def test_a_repository_of_this_machine_at_a_revision(shop: Path, tmp_path: Path) -> None:
    found = made(str(shop), tmp_path)
    assert found == project().model_copy(update={"name": "shop", "test_folder": "tests"})
    git(shop, "tag", "old")
    (shop / "shop" / "price.py").write_text("broken")
    git(shop, "commit", "-qam", "second")
    assert made(str(shop), tmp_path).files["shop/price.py"] == "broken"
    assert made(str(shop), tmp_path, revision="old").files["shop/price.py"] == RIGHT
    with pytest.raises(ConfigError, match="nowhere"):
        made(str(shop), tmp_path, revision="nowhere")


@pytest.mark.usefixtures("sandboxed")
def test_an_archive(tmp_path: Path) -> None:
    archive = honest_archive(project().files, tmp_path / "shop-1.0.tar.gz")
    found = made(str(archive), tmp_path)
    assert (found.name, found.files) == ("shop", project().files)


@pytest.fixture
def served(shop: Path) -> Iterator[str]:
    """The repository as git's own server gives it on loopback."""
    port = 20_000 + os.getpid() % 20_000
    argv = ["git", "daemon", f"--base-path={shop.parent}", "--export-all", "--listen=127.0.0.1"]
    with subprocess.Popen([*argv, f"--port={port}"], stderr=subprocess.DEVNULL) as daemon:
        url = f"git://127.0.0.1:{port}/{shop.name}"
        for _ in range(100):
            if subprocess.run(["git", "ls-remote", url], capture_output=True).returncode == 0:
                break
            time.sleep(0.05)
        yield url
        daemon.terminate()


@pytest.mark.usefixtures("sandboxed")
def test_a_repository_elsewhere(served: str, shop: Path, tmp_path: Path) -> None:
    hook = shop / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\nexit 1\n")
    assert made(served, tmp_path).files == project().files
    with pytest.raises(ConfigError, match="has no revision 'nowhere'"):
        made(served, tmp_path, revision="nowhere")


@pytest.mark.parametrize("revision", ["--upload-pack=touch", "-x", "a b", ""])
def test_a_revision_is_no_option(revision: str) -> None:
    with pytest.raises(ConfigError, match="a revision is"):
        asyncio.run(fetch_git("https://git.example.com/x", revision))


@pytest.mark.parametrize(
    "source", ["", "shop", "shop==", "ssh://host/x", "file:///tmp", "/nowhere"]
)
def test_what_is_no_project_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="allowed: NAME==VERSION"):
        made(source, tmp_path)


def test_definitions_are_read_back_as_they_were(tmp_path: Path) -> None:
    odd = "tab\there\r\nnel\x85 trailing \n\n\n  indented\n\u2028#: - 'x' \"y\"\x00"[:-1]
    texts = ["", "\n", " \n", odd, "a: b\n", "x\n\n", "---\n...\n", "\ufeffx"]
    for number, text in enumerate(texts):
        wanted = project().model_copy(update={"files": project().files | {"odd.txt": text}})
        path = tmp_path / f"{number}.yaml"
        write_definition(wanted, path)
        assert load_project(path) == wanted
    with pytest.raises(ConfigError, match="exists already"):
        write_definition(project(), tmp_path / "0.yaml")


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_project_is_proved_by_its_tests() -> None:
    found = asyncio.run(prove(project()))
    assert len(found.baseline.names) == 2
    assert found.baseline.green
    assert found.bug.fail_to_pass
    dear = "def price(count):\n    return count * 5 if count < 3 else count * 6\n"
    two = TESTS.replace("test_one", "test_two").replace("price(1), 5", "price(2), 10")
    files = with_price(dear) | {"tests/test_two.py": two.partition("    def test_many")[0]}
    broken = asyncio.run(prove(project().model_copy(update={"files": files})))
    others = {name.rpartition(".")[2]: o.status for name, o in broken.baseline.others.items()}
    assert others == {"test_many": "failed"}
    with pytest.raises(ItemError, match="no_bug_found"):  # one test is left, and bugs break it all
        asyncio.run(prove(project(dear)))
    with pytest.raises(ItemError, match="no test passes twice"):
        asyncio.run(prove(project("def price(count):\n    return 1 / 0\n")))


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_the_command_writes_a_definition_that_a_run_can_name(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "own.yaml"
    argv = ["code", "add", str(shop), "--out", str(out), "--runner", "unittest", "--license", "MIT"]
    assert run([*argv, "--heldout", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["project"], row["tests"], row["unsteady"]) == ("shop", 2, 0)
    assert row["noticed_by"] >= 1
    (environment,) = code_environments([str(out)]).values()
    assert (environment.project.license, environment.project.split) == ("MIT", "heldout_domain")
    assert run(["code", "check", str(out)]) == 0
    assert run(argv) == 2  # never overwrites
    (shop / "shop" / "price.py").write_text("def price(count):\n    raise OSError\n")
    git(shop, "commit", "-qam", "broken")
    other = tmp_path / "other.yaml"
    argv[4] = str(other)
    assert run(argv) == 1
    assert not other.exists()
    assert "no test passes twice" in capsys.readouterr().err
