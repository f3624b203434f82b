"""What is kept of installed packages: whole folders, the program that is meant, and who is told
apart by them."""

import json
from pathlib import Path

import pytest

from records.errors import ConfigError
from sandboxes.core.python_env import VERSION
from sandboxes.mcp.launch import launch_of, server_of_command, with_packages
from sandboxes.mcp.packages.kept import PackageLock, keeping, kept_packages, place_of, program_of
from sandboxes.mcp.packages.requested import ServerPackages
from sandboxes.mcp.servers import ServerConfig

WHEELS = ("one==1.0 sha256:" + 64 * "0", "two==2.0rc1 -")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def packages_of(line: str) -> ServerPackages:
    packages = server_of_command(line).packages
    assert packages is not None
    return packages


def keep(line: str, programs: dict[str, str], locked: tuple[str, ...] = WHEELS) -> ServerPackages:
    """As if it had been installed; `programs`: name -> package."""
    packages = packages_of(line)
    with keeping(packages, PackageLock(packages=locked)) as folder:
        for program, package in programs.items():
            if packages.kind == "python":
                info = folder / f"lib/python{VERSION}/site-packages/{package}-1.0.dist-info"
                info.mkdir(parents=True, exist_ok=True)
                with (info / "entry_points.txt").open("a") as file:
                    file.write(f"[console_scripts]\n{program} = m:f\n" if not file.tell() else "")
            else:
                links = folder / "node_modules/.bin"
                links.mkdir(parents=True, exist_ok=True)
                (links / program).symlink_to(f"../{package}/index.js")
    return packages


@pytest.mark.parametrize(
    ("line", "programs", "program"),
    [
        ("uvx my-srv", {"my-srv": "my_srv", "dep": "dep"}, "my-srv"),
        ("uvx my_srv", {"my-srv": "my_srv"}, "my-srv"),
        ("uvx 'my-srv[x]==1'", {"serve": "my_srv", "dep": "dep"}, "serve"),
        ("uvx --from my-srv dep", {"serve": "my_srv", "dep": "dep"}, "dep"),
        ("npx @s/server-x@1", {"mcp-server-x": "@s/server-x"}, "mcp-server-x"),
        ("npx --package=@s/a b", {"a": "@s/a", "b": "@s/a"}, "b"),
    ],
)
def test_the_program_is_that_of_the_package_or_the_one_named(
    line: str, programs: dict[str, str], program: str
) -> None:
    config = server_of_command(line)
    with pytest.raises(ConfigError, match=r"is not installed yet; `synth tools import --server`"):
        launch_of(config)
    keep(line, programs)
    found = server_of_command(line)
    assert found.command == (program,)
    assert found.packages is not None
    assert found.packages.locked == WHEELS


@pytest.mark.parametrize(
    ("line", "programs", "said"),
    [
        ("uvx my-srv", {"dep": "dep"}, r"has: none. Name one of them: uvx --from my-srv PROGRAM"),
        (
            "uvx --from my-srv x",
            {"serve": "my_srv"},
            r"no program 'x'; programs that it has: serve",
        ),
        ("npx srv", {"a": "srv", "b": "srv"}, r"has: a, b. Name one of them: npx --package=srv"),
    ],
)
def test_a_program_that_is_not_there_is_named_with_those_that_are(
    line: str, programs: dict[str, str], said: str
) -> None:
    config = server_of_command(line)
    keep(line, programs)
    with pytest.raises(ConfigError, match=said):
        with_packages(config)


def test_servers_are_told_apart_by_what_was_installed_alone() -> None:
    def identity(locked: tuple[str, ...], *needs: str) -> dict[str, object]:
        packages = ServerPackages(kind="python", requirements=needs, locked=locked)
        return ServerConfig(name="s", command=("s",), packages=packages).identity()

    assert identity(WHEELS, "one") == identity(WHEELS, "one==1.0", "two")
    assert identity(WHEELS, "one") != identity(WHEELS[:1], "one")
    assert "packages" not in ServerConfig(name="s", command=("s",)).identity()


def test_a_folder_that_is_not_whole_is_never_taken(tmp_path: Path) -> None:
    packages = packages_of("uvx my-srv")
    with pytest.raises(KeyboardInterrupt), keeping(packages, PackageLock(packages=WHEELS)):
        raise KeyboardInterrupt
    assert kept_packages(packages) is None
    place = place_of(keep("uvx my-srv", {"my-srv": "my_srv"}))
    (place / "lock.json").write_text(json.dumps({"packages": ["rubbish"]}))
    with pytest.raises(ConfigError, match=r"is no lock .* remove the folder"):
        kept_packages(packages)
    (place / "lock.json").unlink()
    with pytest.raises(ConfigError, match=r"has lost its lock\.json; remove the folder"):
        kept_packages(packages)


def test_entry_points_that_are_rubbish_are_no_programs() -> None:
    packages = keep("uvx --from my-srv x", {"x": "my_srv"})
    info = place_of(packages) / f"lib/python{VERSION}/site-packages/my_srv-1.0.dist-info"
    (info / "entry_points.txt").write_text("not = a section\n[")
    with pytest.raises(ConfigError, match="programs that it has: none"):
        program_of(packages, place_of(packages), "x")
