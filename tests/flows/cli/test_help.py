"""`synth --help` is quick: no command imports at its top what only its work needs."""

import os
import subprocess
import sys

import pytest

from flows.cli.main import app
from tests.flows.conftest import ROOT, Synth

OURS_ALLOWED = ("flows.cli", "records.errors")
"""Of our own modules: parsing, and the errors that become exit codes."""

LIGHT = {
    "attr",
    "attrs",
    "cyclopts",
    "docstring_parser",
    "markdown_it",
    "mdurl",
    "pygments",
    "rich",
}
"""Of others' packages: what parses a command line and draws its help."""


def test_help_imports_nothing_that_only_a_command_s_work_needs() -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from flows.cli.main import run\n"
        "run(['--help'])\n"
        "print('\\n'.join({*sys.modules} - before), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = done.stderr.split()
    others = {name.split(".")[0] for name in modules} - sys.stdlib_module_names
    packages = {"flows", "records"}
    assert others <= LIGHT | packages, sorted(others - LIGHT - packages)
    parents = {allowed.split(".")[0] for allowed in OURS_ALLOWED}
    ours = {name for name in modules if name.split(".")[0] in packages} - parents
    assert not [name for name in ours if not name.startswith(OURS_ALLOWED)]


@pytest.mark.parametrize("words", [("demo",), ("run",), ("tools", "list"), ("sandbox", "accounts")])
def test_options_that_commands_share_have_one_name(refusal: Synth, words: tuple[str, ...]) -> None:
    """And no second, such as `--no-json`."""
    done = refusal(*words, "--help")
    assert done.returncode == 0
    assert "--dataset" in done.stdout
    assert "-d" in done.stdout.split()
    assert "--no-" not in done.stdout


def test_every_command_has_a_line_in_the_help(refusal: Synth) -> None:
    shown = refusal("--help").stdout
    assert all(name in shown for name in app if not name.startswith("-"))
