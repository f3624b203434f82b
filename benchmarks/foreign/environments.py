"""Virtual environments of single servers: nothing of theirs is in this project's own."""

import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGES: dict[str, tuple[str, ...]] = {
    # the trainer's own versions, so that what is exported here is read by the very same code there
    "transformers": ("torch==2.13.0", "transformers[serving]==5.23.0"),
    "litellm": ("litellm[proxy]==1.109.1",),
}

TOLD: dict[str, tuple[str, ...]] = {
    "transformers": ("transformers", "torch", "fastapi"),
    "litellm": ("litellm", "fastapi", "openai"),
}
"""Packages whose versions stand beside the results."""

LOOSE = ("litellm-proxy-extras", "litellm-enterprise", "certifi")
"""litellm pins releases of its own helpers, and of certificates, that an index may not have yet.
The first two serve its database and its paid features, which are not used here."""

INSTALL_TIMEOUT_S = 1200.0


class CannotRunError(Exception):
    """A server cannot be had on this machine; the text says why."""


class Environment(NamedTuple):
    folder: Path
    versions: dict[str, str]

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)


def environment(name: str, root: Path) -> Environment:
    """The environment of a server below `root`, made if it is not there yet.

    Raises CannotRunError where its packages cannot be installed.
    """
    folder = root / name
    ready = folder / "ready.json"
    if not ready.exists():
        _make(name, folder)
        ready.write_text(json.dumps(_versions(name, folder)))
    return Environment(folder, json.loads(ready.read_text()))


def _make(name: str, folder: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    if not uv.exists():
        raise CannotRunError(f"{uv} is missing; `make setup` installs it")
    overrides = folder.parent / f"{name}-overrides.txt"
    overrides.parent.mkdir(parents=True, exist_ok=True)
    overrides.write_text("\n".join(LOOSE) + "\n")
    _run([str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
    # a folder of wheels that pip is told of, which may hold the CPU build, goes before others'
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.find-links"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    command = [str(uv), "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    command += ["--override", str(overrides)]
    command += ["--find-links", told] if told else ["--torch-backend", "cpu"]
    _run([*command, *PACKAGES[name]])


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
            env={key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"},
        )
    except subprocess.TimeoutExpired:
        raise CannotRunError(
            f"`{' '.join(command)}` took more than {INSTALL_TIMEOUT_S:.0f} s"
        ) from None
    if done.returncode:
        told = " ".join(done.stderr.split())[-600:]
        raise CannotRunError(f"`{' '.join(command)}` ended with {done.returncode}: {told}")


def _versions(name: str, folder: Path) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(next(folder.glob("lib/*/site-packages")))])
    versions = {one.metadata["Name"].lower(): one.version for one in found}
    return {package: versions[package] for package in TOLD[name]}
