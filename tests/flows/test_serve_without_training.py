"""Where torch is not installed, `synth serve` serves the other flows and says which are missing."""

import os
import subprocess
import sys

import pytest

from tests.flows.conftest import ROOT

PROGRAM = """
import sys
class Missing:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing)
from flows.serve import FLOWS, training_flows
print([flow.name for flow in (*FLOWS, *training_flows(print))])
"""


def served_without(module: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_flows_that_train_are_left_out_with_a_line() -> None:
    done = served_without("torch")
    assert done.returncode == 0, done.stderr
    told, names = done.stdout.splitlines()
    assert all(word in told for word in ("pretrain", "sft", "torch", "agentic-synth[train]"))
    assert "'pipeline'" in names
    assert "'rephrase'" in names
    assert "'pretrain'" not in names


@pytest.mark.slow
def test_another_module_that_is_missing_is_an_error() -> None:
    """No extra would bring it."""
    done = served_without("yaml")
    assert done.returncode == 1
    assert "No module named 'yaml'" in done.stderr
