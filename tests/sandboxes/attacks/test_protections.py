"""Walls can be left out by the attack suite, and by nothing else."""

import ast
import inspect
import os
from pathlib import Path

import pytest

from sandboxes.core.template import SandboxTemplate
from sandboxes.local import backend as local
from sandboxes.local import bwrap
from sandboxes.local.protections import NOTHING

ROOT = Path(__file__).parents[3]
PACKAGES = (
    "records",
    "tool_specs",
    "sandboxes",
    "offline_llm",
    "synth",
    "trainer",
    "flows",
    "benchmarks",
)


@pytest.mark.slow
def test_only_the_makers_of_a_sandbox_know_its_walls() -> None:
    users = set()
    for file in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "protections" not in text:  # parsing the whole project takes seconds
            continue
        tree = ast.parse(text)
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        if any(node.module == "sandboxes.local.protections" for node in imports):
            users.add(file.relative_to(ROOT).as_posix())
    assert users == {"sandboxes/local/bwrap.py", "sandboxes/local/backend.py"}


def test_all_walls_stand_unless_asked() -> None:
    for function in (local.lease, local.spawn, bwrap.sandbox_command):
        assert inspect.signature(function).parameters["without"].default is NOTHING
    _, fds = bwrap.sandbox_command(SandboxTemplate(), root=bwrap.is_root())
    os.lseek(fds[-1], 0, os.SEEK_SET)
    options = os.read(fds[-1], 1 << 20).decode().split("\0")
    for fd in fds:
        os.close(fd)
    assert set(bwrap.NAMESPACES.values()) <= set(options)
    assert not {"--bind", "--dev-bind"} & set(options)
