"""What of the installed packages a server needs, where they are sent to its sandbox."""

from pathlib import Path

import pytest

from sandboxes.core.python_env import environment_binds, needed_by, owner_of, packages_inside

Files = tuple[str, ...]


def install(site: Path, name: str, files: Files, requires: Files = (), script: str = "") -> None:
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n\n")
    own = [*files, f"{info.name}/METADATA", f"../../../bin/{name}", "__pycache__/x.pyc"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in own))
    if script:
        text = f"[console_scripts]\n{script} = {files[0].partition('/')[0]}:main\n"
        (info / "entry_points.txt").write_text(text)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    needs = ("Base.Lib>=2 ; python_version >= '3.8'", "net[fast]<3", "docs; extra == 'docs'")
    install(tmp_path, "clock-server", ("clock_server/__init__.py",), needs, "serve-clock")
    install(tmp_path, "base-lib", ("base_lib.py",), ("not-installed", "clock-server"))
    install(tmp_path, "net", ("net/a.py", "net.libs/b.so"), ('speed; extra == "Fast"',))
    install(tmp_path, "speed", ("speed.cpython-311.so",))
    install(tmp_path, "docs", ("docs/__init__.py",))
    install(tmp_path, "torch", ("torch/__init__.py",))
    return tmp_path


def test_a_server_gets_what_it_requires_and_nothing_else(site: Path) -> None:
    found = needed_by(site, "clock_server")
    assert {entry for entry in found if not entry.endswith(".dist-info")} == {
        *("clock_server", "base_lib.py", "net", "net.libs", "speed.cpython-311.so")
    }
    assert "clock_server-1.0.dist-info" in found  # by which it finds its own version
    assert len(found) == 9


def test_programs_and_modules_are_found_by_whose_they_are(site: Path) -> None:
    assert owner_of(site, "serve-clock") == "clock-server"
    assert owner_of(site, "clock_server.main") == "clock-server"
    assert owner_of(site, "base_lib") == "base-lib"
    assert owner_of(site, "unknown") is None


def test_entries_stand_where_the_whole_folder_would(site: Path) -> None:
    [whole] = environment_binds(site)
    assert (whole.source, whole.target) == (str(site), packages_inside())
    [one] = environment_binds(site, ["net"])
    assert (one.source, one.target) == (str(site / "net"), f"{packages_inside()}/net")
