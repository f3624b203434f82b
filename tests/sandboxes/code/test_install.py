"""Packages of an index that means harm: nothing of them runs, nothing odd reaches the host."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from records.errors import ConfigError
from sandboxes.code import packages
from sandboxes.code.packages import PackageIndex, install, project_of_index
from tests.sandboxes.code.code_cases import project
from tests.sandboxes.code.hostile_index import ServedIndex, serve_index, source, wheel, zip64

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

RAN = "import urllib.request\nurllib.request.urlopen('{url}/ran')\n"
BUILD = b'[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n'


@pytest.fixture
def index() -> Iterator[ServedIndex]:
    with serve_index() as served:
        yield served


def installed(index: ServedIndex, name: str, into: Path) -> Path:
    return asyncio.run(install([name], into=into, index=PackageIndex(url=index.url)))


def test_packages_are_installed_as_they_are(index: ServedIndex, tmp_path: Path) -> None:
    files = {"good/__init__.py": b"x = 1\n", "good/lib.so": bytes(range(256)) * 8_000}
    index.packages["good-1.0-py3-none-any.whl"] = wheel("good", files)
    site = installed(index, "good", tmp_path / "site")
    found = {str(p.relative_to(site)): p.read_bytes() for p in (site / "good").iterdir()}
    assert found == files
    assert (site / "good-1.0.dist-info" / "METADATA").is_file()


def test_a_dependency_by_an_address_is_not_built(index: ServedIndex, tmp_path: Path) -> None:
    """pip builds what is named so, whatever `--only-binary` says, and building runs its code."""
    evil = {"evil.py": RAN.format(url=index.url).encode(), "pyproject.toml": BUILD}
    index.packages["evil-1.0.tar.gz"] = source("evil", "", evil)
    needs = (f"evil @ {index.url.removesuffix('/simple')}/files/evil-1.0.tar.gz",)
    index.packages["urls-1.0-py3-none-any.whl"] = wheel("urls", {"urls.py": b""}, needs=needs)
    with pytest.raises(ConfigError, match=r"evil-1.0.tar.gz is no wheel, and nothing is built"):
        installed(index, "urls", tmp_path / "site")
    assert not any(path.endswith("/ran") for path in index.asked)
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("kind", ["bomb", "zip64", "outside"])
def test_wheels_that_are_none_are_refused(
    kind: str, index: ServedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = packages.MACHINE.limits.model_copy(update={"disk_mb": 40})
    monkeypatch.setattr(packages, "MACHINE", packages.MACHINE.model_copy(update={"limits": limits}))
    odd = {
        "bomb": lambda: wheel("odd", {"odd/a.py": bytes(45 << 20)}),
        "zip64": lambda: zip64(wheel("odd", {"odd.py": b""})),
        "outside": lambda: wheel("odd", {"../../../out.py": b""}),
    }
    index.packages["odd-1.0-py3-none-any.whl"] = odd[kind]()
    with pytest.raises(ConfigError, match="cannot install odd: ") as refused:
        installed(index, "odd", tmp_path / "site")
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_source_distribution_is_read_and_not_run(
    index: ServedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {path: text.encode() for path, text in project().files.items()}
    setup = RAN.format(url=index.url)
    index.packages["shop-1.0.tar.gz"] = source("shop", setup, files)

    def made() -> dict[str, str]:
        found = project_of_index(
            "shop", "1.0", into=tmp_path / "site", index=PackageIndex(url=index.url),
            runner="unittest",
        )  # fmt: skip
        return asyncio.run(found).files

    assert {p: t for p, t in made().items() if p not in ("setup.py", "PKG-INFO")} == project().files
    assert not any(path.endswith("/ran") for path in index.asked)
    monkeypatch.setattr(packages, "MAX_SDIST", 300)
    with pytest.raises(ConfigError, match="has more than 300 bytes"):
        made()
