"""The built wheel holds all that the program reads, and its demo runs in an empty folder.

It is installed into an environment of its own, which sees the packages that are installed here but
for the checkout and for what neither of the extras `flows` and `demo` brings.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT
from tests.test_rooms import ROOMS

pytestmark = pytest.mark.slow

NO_SERVERS = ("--set", "servers=[]")
"""A sandbox sees its own environment's packages, which here are the wheel's alone."""

NOT_BROUGHT = ("torch", "safetensors", "tokenizers", "kubernetes", "datasets", "tensorboard")
"""Of the other extras."""

MISSING = f"""
import sys

class Missing:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in {NOT_BROUGHT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing)
"""
"""Read at every start of Python there. None in `sys.modules` would do it, but that scipy takes
what stands there for a module."""


DATA = ("configs/endpoints",)
"""What the program reads beside its packages."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools leaves `build/` behind, whose files would get into the next."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for package in (*ROOMS, *DATA):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, source / package, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", out, source)
    [built] = out.glob("*.whl")
    return built


def pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the wheel and its two extras."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip("--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)
    here = {"base": str(home), "platbase": str(home)}
    packages = Path(sysconfig.get_path("purelib", vars=here))
    # a plain path: .pth files of that folder, such as the checkout's, are not read
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    (packages / "sitecustomize.py").write_text(MISSING)
    return home / "bin"


def in_empty_folder(
    folder: Path, installed: Path, *command: str
) -> subprocess.CompletedProcess[str]:
    """A command there, its output and errors together as on a terminal."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SYNTH_DATASET")}
    path = os.pathsep.join([str(installed), str(Path(sys.executable).parent), kept["PATH"]])
    return subprocess.run(
        command,
        cwd=folder,
        env=kept | {"PATH": path, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {
        path.relative_to(ROOT).as_posix()
        for package in (*ROOMS, *DATA)
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == files
    for kind in ("yaml", "j2", "md", "css", "jsonl", "cjs"):
        assert any(name.endswith(f".{kind}") for name in held), kind


def test_an_endpoint_is_found_by_its_name_without_a_checkout(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "run.toml").write_text('[roles.all]\nendpoint = "no-such-endpoint"\n')
    done = in_empty_folder(tmp_path, installed, "synth", "run", "run.toml")
    assert done.returncode == 2
    assert "ready endpoints: " in done.stdout
    for path in (ROOT / "configs" / "endpoints").glob("*.toml"):
        assert path.stem in done.stdout


def test_the_demo_of_the_wheel_ends_with_commands_that_work_where_it_is(
    installed: Path, tmp_path: Path
) -> None:
    small = ("num_tasks=12", 'domains=["ticket_board", "home_hub"]', "code=[]")
    changed = [word for setting in small for word in ("--set", setting)]
    demo = in_empty_folder(tmp_path, installed, "synth", "demo", *changed, *NO_SERVERS)
    assert demo.returncode == 0, demo.stdout
    assert "trajectories were accepted" in demo.stdout
    assert "with what each call changed" in demo.stdout
    last = demo.stdout[demo.stdout.index("with what each call changed") :]
    assert "changed: " in last
    assert "data/demo/report.html" in last
    assert (tmp_path / "data" / "demo" / "report.html").exists()
    assert ".venv" not in last
    assert "make " not in last
    assert str(installed) not in last
    assert last.rstrip().endswith("synth run first.toml --dataset data/first")

    offered = last[last.index("cat > first.toml") :].rstrip().splitlines()
    dry_run = offered[: [line.endswith("--dry-run") for line in offered].index(True) + 1]
    script = " ".join(["\n".join(dry_run), *NO_SERVERS])
    done = in_empty_folder(tmp_path, installed, "bash", "-ec", script)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "data" / "first-dry-run" / "report.html").exists()
