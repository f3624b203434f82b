"""What an agent leaves behind is graded, whatever it is: nothing of it stops the run."""

import asyncio

import pytest

from sandboxes.code.suite import run_suite
from tests.sandboxes.code.code_cases import MANY, ONE, project

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

PROJECT = project().model_copy(
    update={"files": project().files | {"shop/conftest.py": "", "shop/deep/er/conftest.py": ""}}
)
LEFT = {
    "a file where a folder of the project's tests is": {"tests": "x"},
    "a file where a folder with settings of tests is": {"shop": "x"},
    "a file where a folder above these is": {"shop/deep": "x"},
    "a file below what is a file": {"shop/conftest.py/x.py": "x"},
    "a name as long as can be": {"n" * 255: "x"},
    "a path as long as is taken": {"/".join(["n" * 199] * 5): "x"},
    "names with line breaks and escapes": {"a\nb.py": "x", "\x1b[2J.py": "x", "-rf": "x"},
    "a message of half letters": {"shop/price.py": r"raise ValueError('\ud800')"},
    "nothing": {},
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_is_graded(name: str) -> None:
    assert PROJECT.graded_files(LEFT[name]).keys() >= {"tests/test_price.py", "shop/conftest.py"}
    found = asyncio.run(run_suite(PROJECT, LEFT[name], [ONE, MANY]))
    assert found.failures.keys() == {ONE, MANY}
    assert not found.passed
    "".join(map(str, found.failures.values())).encode()  # as verdicts are stored
