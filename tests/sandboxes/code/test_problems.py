"""Programming problems: judged outside the sandbox, by answers that never enter it."""

import asyncio
from pathlib import Path

import pytest

from records.errors import ConfigError
from sandboxes.code.problems import FOLDER, Problem, ProblemCase, judge, load_problems
from sandboxes.code.suite import list_tests, run_suite
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.leases import available, lease

pytestmark = pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}")

SQUARE = Problem(
    name="square",
    title="Square",
    statement="Print the square of the number in the input.",
    language="python",
    examples=(ProblemCase(stdin="2\n", stdout="4\n"),),
    tests=tuple(ProblemCase(stdin=f"{n}\n", stdout=f"{n * n}\n") for n in (0, 1, 2, 11)),
    reference="print(int(input()) ** 2)\n",
    draft="print(int(input()) * 2)\n",
)


def reward(source: str, problem: Problem = SQUARE) -> float:
    run = asyncio.run(judge(problem, {problem.file: source}, list(problem.cases)))
    return len(run.passed) / len(problem.cases)


def test_the_reward_is_the_share_of_tests_passed() -> None:
    assert reward(SQUARE.reference) == 1.0
    assert reward(SQUARE.draft) == 0.5  # 0 and 2
    assert reward("print(1)") == 0.25
    assert reward("raise SystemExit(1)") == 0.0
    assert asyncio.run(judge(SQUARE, {}, ["hidden_01"])).failures == {
        "hidden_01": "there is no solution.py"
    }


# its own text has no answer in it, and what all sandboxes share cannot have one
LOOKS_FOR_ANSWERS = """
import os, pathlib

answer = str(11 * 11)
for root, folders, names in os.walk("/"):
    if root in ("/proc", "/sys", "/usr", "/opt"):
        folders.clear()
        continue
    for name in names:
        path = pathlib.Path(root, name)
        if not path.is_file():  # /dev/zero has no end
            continue
        try:
            text = path.read_text()
        except Exception:
            continue
        if answer in text and "hid" + "den" in text:
            print(answer)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "import os\nos._exit(0)\n",
        "print('passed')\nprint('{\"done\": true}')\n",
        LOOKS_FOR_ANSWERS,
        "import os\nos.kill(-1, 9)\n",
    ],
    ids=["leaves with status 0", "prints a verdict", "looks for the answers", "ends its sandbox"],
)
def test_no_answer_no_reward(source: str) -> None:
    assert reward(source) == 0.0


@pytest.mark.slow
def test_built_in_problems_are_sound() -> None:
    for problem in load_problems(FOLDER / "basics.yaml"):
        assert reward(problem.reference, problem) == 1.0
        assert reward(problem.draft, problem) < 1.0
        project = problem.project()
        names = [test.name for test in asyncio.run(list_tests(project))]
        fixed = project.files | {problem.file: problem.reference}
        assert len(asyncio.run(run_suite(project, project.files, names)).passed) < len(names)
        assert len(asyncio.run(run_suite(project, fixed, names)).passed) == len(names)


def test_an_agent_is_given_no_hidden_test() -> None:
    shown = "".join(SQUARE.project().files.values())
    assert "11" not in shown
    assert "121" not in shown


async def installed(*programs: str) -> set[str]:
    """Those that a sandbox of this machine can run."""
    async with lease(SandboxTemplate()) as sandbox:
        look = [(p, await sandbox.exec(["/bin/sh", "-c", f"command -v {p}"])) for p in programs]
    return {program for program, done in look if done.exit_code == 0}


@pytest.mark.slow
def test_other_languages_where_they_are_installed() -> None:
    programs = {
        "shell": "read n; echo $((n * n))\n",
        "javascript": "const n = +require('fs').readFileSync(0); console.log(n * n)\n",
        "perl": 'my $n = <>; print $n * $n, "\\n";\n',
        "c": '#include <stdio.h>\nint main(){int n;scanf("%d",&n);printf("%d\\n",n*n);}\n',
    }
    have = asyncio.run(installed("sh", "node", "perl", "gcc"))
    assert "sh" in have
    for language, program in zip(programs, ("sh", "node", "perl", "gcc"), strict=True):
        if program not in have:
            continue
        problem = SQUARE.model_copy(update={"language": language})
        assert reward(programs[language], problem) == 1.0, language


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("problems:\n  - {name: A}\n", r"set\.yaml: problems\[A\]\.name: String should match"),
        ("problems: []\n", r"set\.yaml: problems: Tuple should have at least 1 item"),
        ("problems: " + "[" * 100_000, r"set\.yaml: line 1, column 40: nested deeper"),
    ],
)
def test_a_wrong_problem_set_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "set.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_problems(path)
