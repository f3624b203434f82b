"""Real packages: what a sandbox with network may hold, and injected bugs in three of the
index's."""

import asyncio
import io
import os
import socket
import tarfile
from pathlib import Path
from random import Random

import pytest
from pydantic import ValidationError

from records.errors import ConfigError, TransientError
from sandboxes.code import packages
from sandboxes.code.packages import MACHINE, PackageIndex, install, project_of_index, unpack
from sandboxes.code.projects import Project
from sandboxes.code.suite import list_tests, run_suite
from sandboxes.code.swe import baseline_of, inject_bug
from sandboxes.core.python_env import base_python, site_packages
from sandboxes.core.sandbox import ExecResult
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.leases import lease
from tests.sandboxes.code.code_cases import MANY, ONE, WRONG, project, with_price


@pytest.mark.parametrize(
    "shown",
    [
        {"env": {"API_KEY": "x"}},
        {"files": {"/key": "x"}},
        {"links": {"/key": "/proc/1/environ"}},
        {"binds": ({"source": "/var", "target": "/var"},)},
    ],
)
def test_a_sandbox_with_network_is_shown_nothing(shown: dict[str, object]) -> None:
    SandboxTemplate.model_validate(shown)  # the control
    with pytest.raises(ValueError, match="nothing of the caller's"):
        SandboxTemplate.model_validate(shown | {"network": True})


def test_an_index_with_a_password_is_refused() -> None:
    for name in ("url", "proxy"):
        with pytest.raises(ValueError, match="no user or password"):
            PackageIndex.model_validate({name: "https://me:secret@index.invalid/simple"})


@pytest.mark.usefixtures("sandboxed")
def test_network_is_shared_where_asked_and_the_other_walls_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-the-callers-own-secret")
    monkeypatch.setenv("API_KEY", "sk-the-callers-own-secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        dial = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"

        async def run(template: SandboxTemplate) -> list[ExecResult]:
            async with lease(template) as sandbox:
                look = f"env; cat {secret} {Path.home()}/.netrc; id -u; touch /etc/x"
                commands = (base_python(), "-I", "-c", dial), ("sh", "-c", look)
                return [await sandbox.exec(command) for command in commands]

        (alone, _), (shared, seen) = asyncio.run(run(SandboxTemplate())), asyncio.run(run(MACHINE))
    assert alone.exit_code != 0
    assert shared.exit_code == 0, shared.stderr
    assert seen.exit_code != 0  # nothing of the root can be written
    assert b"sk-the-callers-own-secret" not in seen.stdout
    assert seen.stdout.splitlines()[-1] == b"65534"


@pytest.mark.parametrize("bad", ["--index-url=x", "a @ file:///x", "", "a\n--pre"])
def test_a_requirement_is_no_option_and_no_address(bad: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a requirement"):
        asyncio.run(install([bad], into=tmp_path / "site"))


def test_installed_packages_are_plain_read_only_files_inside_their_folder(tmp_path: Path) -> None:
    def packed(*members: tuple[str, bytes]) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, kind in members:
                info = tarfile.TarInfo(name)
                info.type, info.linkname = kind, "/etc/passwd"
                tar.addfile(info, io.BytesIO())
        return buffer.getvalue()

    unpack(packed(("./a/b.py", tarfile.REGTYPE), ("./c", tarfile.SYMTYPE)), tmp_path / "site")
    found = [path for path in (tmp_path / "site").rglob("*") if not path.is_dir()]
    assert found == [tmp_path / "site/a/b.py"]
    assert found[0].stat().st_mode & 0o222 == 0
    with pytest.raises(ValueError, match="relative"):
        unpack(packed(("../evil.py", tarfile.REGTYPE)), tmp_path / "other")
    assert not (tmp_path / "evil.py").exists()


def test_settings_are_guessed_from_the_files() -> None:
    def guess(*files: str) -> tuple[object, object]:
        text = "Name: x\nLicense: MIT\nSummary: Does x.\n"
        found = packages.guessed(dict.fromkeys(files, ""), packages.message_from_string(text))
        assert found["license"] == "MIT"
        return found["test_folder"], found["paths"]

    assert guess("src/x/a.py", "tests/test_a.py") == ("tests", ("src",))
    assert guess("x.py", "test_x.py") == ("test_x.py", (".",))
    assert guess("x/a.py", "x/tests/test_a.py") == ("x/tests", (".",))


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_pytest_judges_as_unittest_does() -> None:
    shop = project()
    same = Project(name="shop", files=shop.files, runner="pytest", site=site_packages(None))

    async def run() -> tuple[list[str], set[str]]:
        names = [test.name for test in await list_tests(same)]
        right = await run_suite(same, same.files, names)
        assert right.passed == set(names)
        return names, (await run_suite(same, with_price(WRONG), names)).passed

    names, passed = asyncio.run(run())
    assert {name.rpartition("::")[2] for name in names} == {
        name.rpartition(".")[2] for name in (ONE, MANY)
    }
    assert [name.rpartition("::")[2] for name in passed] == ["test_one"]


async def from_index(name: str, version: str, into: Path) -> Project:
    """Skips where this machine's settings, or the lack of a network, let no index be reached."""
    settings = {"url": os.environ.get("PIP_INDEX_URL"), "proxy": os.environ.get("HTTPS_PROXY")}
    try:
        index = PackageIndex.model_validate(
            {key: value for key, value in settings.items() if value}
        )
        return await project_of_index(name, version, into=into, index=index)
    except (TransientError, ValidationError) as error:
        pytest.skip(f"the package index cannot be reached from here: {error}")


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    ("name", "version"), [("webcolors", "1.13"), ("xmltodict", "0.13.0"), ("parse", "1.20.2")]
)
def test_a_bug_is_planted_in_a_real_package_and_undone(
    name: str, version: str, tmp_path: Path
) -> None:
    async def run() -> None:
        real = await from_index(name, version, tmp_path / "site")
        baseline = await baseline_of(real)
        assert len(baseline.names) >= 30
        bug = await inject_bug(real, baseline, Random(1))
        names = [*bug.fail_to_pass, *bug.pass_to_pass]
        broken = await run_suite(real, bug.files, names)
        assert not broken.passed & set(bug.fail_to_pass)
        path = bug.mutation.path
        mended = bug.files | {path: bug.files[path].replace(*bug.fix)}
        assert mended == real.files
        assert (await run_suite(real, mended, names)).passed == set(names)

    asyncio.run(run())


@pytest.mark.network
@pytest.mark.usefixtures("sandboxed")
def test_what_the_index_does_not_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no source distribution .* of parse 0\.0\.999"):
        asyncio.run(from_index("parse", "0.0.999", tmp_path / "site"))
