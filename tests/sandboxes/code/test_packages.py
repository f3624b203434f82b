"""Real packages: what a sandbox with network may hold, and injected bugs in three of the
index's."""

import asyncio
import os
import socket
from pathlib import Path
from random import Random

import pytest
from pydantic import ValidationError

from records.errors import ConfigError, TransientError
from sandboxes.code import packages
from sandboxes.code.file_records import FileBounds
from sandboxes.code.packages import MACHINE, PackageIndex, install, project_of_index, take_site
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
    assert seen.stdout.splitlines()[-1] == b"1000"


@pytest.mark.parametrize(
    "bad",
    [
        "--index-url=x", "a @ file:///x", "", "a\n--pre", "https://x.invalid/a.tar.gz", "pip/",
        "git+https://x.invalid/a",
    ],
)  # fmt: skip
def test_a_requirement_is_no_option_and_no_address(bad: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a requirement"):
        asyncio.run(install([bad], into=tmp_path / "site"))


MADE = """
import os, sys
site, kind = sys.argv[1:]
os.makedirs(f"{site}/pkg")
def write(path, data=b""):
    with open(os.path.join(os.fsencode(site), path), "wb") as file:
        file.write(data)
write(b"pkg/a.py", b"x = 1")
if kind == "honest":
    write(b"pkg/large.so", bytes(range(256)) * 10_000)
    write(b"pkg/empty")
    write(b"pkg/run", b"#!/bin/sh")
    os.chmod(f"{site}/pkg/run", 0o6777)
    os.symlink("/etc/passwd", f"{site}/link")
    os.symlink("/etc", f"{site}/folder")
    os.mkfifo(f"{site}/pipe")
    os.link(f"{site}/pkg/a.py", f"{site}/pkg/b.py")
elif kind == "deep":
    os.makedirs(f"{site}/" + "d/" * 60)
elif kind == "not UTF-8":
    write(b"pkg/\\xff.py")
elif kind == "a control character":
    write(b"pkg/\\x1b[2J.py")
elif kind == "many files":
    for number in range(200):
        write(b"pkg/%d" % number)
elif kind == "large":
    write(b"pkg/sparse", b"x")
    os.truncate(f"{site}/pkg/sparse", 3_000_000)
"""
"""Makes what an installation might leave behind."""

SMALL = FileBounds(files=100, file_bytes=2_700_000, total_bytes=2_700_000)


def taken(kind: str, into: Path) -> None:
    async def run() -> None:
        async with lease(SandboxTemplate()) as sandbox:
            made = await sandbox.exec([base_python(), "-I", "-c", MADE, packages.SITE, kind])
            assert made.exit_code == 0, made.stderr
            await take_site(sandbox, into)

    asyncio.run(run())


@pytest.mark.usefixtures("sandboxed")
def test_installed_packages_are_plain_read_only_files_inside_their_folder(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        taken("honest", tmp_path / "site")
    finally:
        os.umask(old)
    found = {str(p.relative_to(tmp_path / "site")): p for p in (tmp_path / "site").rglob("*")}
    large = bytes(range(256)) * 10_000
    texts = {
        "a.py": b"x = 1",
        "b.py": b"x = 1",
        "large.so": large,
        "empty": b"",
        "run": b"#!/bin/sh",
    }
    assert found.keys() == {"pkg", *(f"pkg/{name}" for name in texts)}
    assert (tmp_path / "site").stat().st_mode == found.pop("pkg").stat().st_mode == 0o40755
    for path, file in found.items():
        assert file.read_bytes() == texts[path.removeprefix("pkg/")]
        assert (file.lstat().st_mode, file.lstat().st_nlink) == (0o100444, 1)


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("deep", "a path is too long or too deep"),
        ("not UTF-8", "has a name that is not plain"),
        ("a control character", "has a name that is not plain"),
        ("many files", "more than 100 files"),
        ("large", "2700000 bytes"),
    ],
)
def test_packages_beyond_the_bounds_leave_nothing_behind(
    kind: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "SITE_FILES", SMALL)
    with pytest.raises(ConfigError, match=f"cannot read the installed packages: .*{said}"):
        taken(kind, tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


METADATA = """Metadata-Version: 2.1
Name: x
License: MIT
Summary: Does x.
Requires-Dist: one>=1
Requires-Dist: two; extra == "more"
"""


@pytest.mark.usefixtures("sandboxed")
def test_what_a_package_says_of_itself_is_read_in_a_sandbox() -> None:
    def described(**files: str) -> packages.PackageDescription:
        return asyncio.run(packages.described_by(files))

    toml = '[project]\ndependencies = ["three", "four"]\n'
    one = described(**{"PKG-INFO": METADATA, "pyproject.toml": toml})
    assert (one.summary, one.license) == ("Does x.", "MIT")
    assert one.needs == ("one>=1", 'two; extra == "more"')
    assert described(**{"pyproject.toml": toml}).needs == ("three", "four")
    beside = described(
        **{"PKG-INFO": "Name: x\n", "x.egg-info/requires.txt": "five\n\n[test]\nsix"}
    )
    assert beside.needs == ("five",)
    assert described(**{"pyproject.toml": "no TOML ["}).needs == ()
    assert described(**{"setup.py": ""}) == packages.PackageDescription()


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "a = " + "[" * 100_000},
        {"pyproject.toml": "[project]\ndependencies = [" + "'x'," * 40_000 + "]"},
        {"pyproject.toml": "[project]\ndependencies = ['" + "x" * 10_000 + "']"},
        {"PKG-INFO": "Requires-Dist: x\n" * 1_000},
    ],
)
def test_descriptions_that_are_none_are_refused(files: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="cannot read what the package says of itself"):
        asyncio.run(packages.described_by(files))


def test_settings_are_guessed_from_the_files() -> None:
    def guess(*files: str) -> tuple[object, object]:
        described = packages.PackageDescription(summary="Does x.", license="MIT")
        found = packages.guessed(dict.fromkeys(files, ""), described)
        assert (found["license"], found["description"]) == ("MIT", "Does x.")
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
