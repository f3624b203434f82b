"""Programming problems: a statement, a candidate program, hidden tests.

The judge never lets an expected answer into the sandbox: for each test the program runs in a
process of its own with the test's input, and what it prints is compared out here. A candidate can
print what it likes; only the right answer is right. It runs in another sandbox than the one it
was written in, from files that it cannot change. The reward is the share of tests passed.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from records.config import Config
from sandboxes.code.projects import Project
from sandboxes.code.suite import ENDED_SANDBOX, ROOT, CaseOutcome, SuiteRun, on_disk, template_of
from sandboxes.core import python_env
from sandboxes.core.backend import Capability
from sandboxes.core.body import ProgramEndedError
from sandboxes.core.sandbox import ExecResult
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.leases import LeaseSandbox, backend
from sandboxes.lending.pool import Pool
from tool_specs.domains.loading import load_definition

FOLDER = Path(__file__).parent / "problems"
TIMEOUT_S = 10.0
LATE = f"no answer within {TIMEOUT_S:g} s"
MAX_PRINTED = 100_000

STARTED_AT_ONCE = 4
"""Sandboxes of one candidate's hidden tests, where each test needs a sandbox of its own."""

ProgramCause = Literal[
    "no_program",
    "wrong_answer",
    "no_answer",
    "too_much_output",
    "timed_out",
    "exit_code",
    "out_of_memory",
    "ended_sandbox",
]
"""Why a program did not pass a test: there is none; it printed another answer, or nothing; more
than is kept; it had no end; it left with an exit code; it met the limit of memory; it ended its
sandbox, by processes that could not be killed or by memory."""

Language = Literal["python", "shell", "javascript", "perl", "c"]
RUN: dict[Language, tuple[str, tuple[str, ...]]] = {
    "python": ("solution.py", (python_env.PYTHON, "-I", "-B", "{file}")),
    "shell": ("solution.sh", ("/bin/sh", "{file}")),
    "javascript": ("solution.js", ("node", "{file}")),
    "perl": ("solution.pl", ("perl", "{file}")),
    "c": ("solution.c", ("/bin/sh", "-c", "gcc -O1 -o /tmp/solution {file} && exec /tmp/solution")),
}
"""Language -> name of the candidate's file, and how it is run."""

TEST_FILE = '''"""The examples of PROBLEM.md; the grade depends on further tests."""

import subprocess
import unittest

RUN = {run!r}
EXAMPLES = {examples!r}


class ExamplesTest(unittest.TestCase):
    def check(self, place):
        given, expected = EXAMPLES[place]
        done = subprocess.run(RUN, input=given, capture_output=True, text=True, timeout=10)
        self.assertEqual(done.stdout.split(), expected.split(), f"for the input {{given!r}}")
'''
EXAMPLE = '''
    def test_example_{place}(self):
        """{doc}"""
        self.check({index})
'''


class ProblemCase(Config):
    stdin: str
    stdout: str
    """Expected; white space at ends of lines and of the output does not count."""
    about: str = ""
    """What the case is about, for a person."""


class Problem(Config):
    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: str
    statement: str
    language: Language
    examples: tuple[ProblemCase, ...] = Field(min_length=1)
    tests: tuple[ProblemCase, ...] = Field(min_length=1)
    """Hidden: they are shown to nobody, and their answers to no sandbox."""
    reference: str
    """A program that passes all of them."""
    draft: str
    """One that somebody began and that is not right yet: where the work starts."""
    license: str = "unknown"
    split: Literal["train", "heldout_domain"] = "train"

    @model_validator(mode="after")
    def _draft_differs(self) -> Self:
        if self.draft == self.reference:
            raise ValueError(f"problem {self.name}: the draft is the reference")
        return self

    @property
    def file(self) -> str:
        return RUN[self.language][0]

    @property
    def cases(self) -> dict[str, ProblemCase]:
        return {f"hidden_{number:02}": case for number, case in enumerate(self.tests, 1)}

    def project(self) -> Project:
        """What an agent is given: the statement, the draft, the examples as tests."""
        run = [word.format(file=self.file) for word in RUN[self.language][1]]
        examples = [(case.stdin, case.stdout) for case in self.examples]
        parts = [TEST_FILE.format(run=run, examples=examples)]
        for index, case in enumerate(self.examples):
            doc = (case.about or f"Example {index + 1}").replace('"', "'").rstrip(".")
            parts.append(EXAMPLE.format(place=index + 1, index=index, doc=f"{doc}."))
        shown = "\n".join(
            f"Input:\n{case.stdin}\nOutput:\n{case.stdout}\n" for case in self.examples
        )
        statement = f"# {self.title}\n\n{self.statement}\n\n## Examples\n\n{shown}"
        return Project(
            name=self.name,
            title=self.title,
            description=self.statement,
            files={
                "PROBLEM.md": statement,
                self.file: self.draft,
                "tests/__init__.py": "",
                "tests/test_examples.py": "".join(parts),
            },
            license=self.license,
            split=self.split,
        )


class ProblemSet(Config):
    """What a file of problems holds."""

    problems: tuple[Problem, ...] = Field(min_length=1)


async def judge(problem: Problem, candidate: Mapping[str, str], names: Sequence[str]) -> SuiteRun:
    """The named hidden tests on the candidate's file. TransientError only where a sandbox fails
    by itself: a program that ends its sandbox has failed."""
    return SuiteRun({name: told async for name, told in judged(problem, candidate, names)})


async def judged(
    problem: Problem, candidate: Mapping[str, str], names: Sequence[str]
) -> AsyncGenerator[tuple[str, CaseOutcome], None]:
    """As `judge`, test by test, in their order."""
    program = candidate.get(problem.file)
    if program is None:
        for name in names:
            yield name, CaseOutcome("failed", f"there is no {problem.file}", "no_program")
        return
    # one that is proved clean is lent again; where that cannot be proved, each test waits for a
    # fresh one, which takes longer than the test
    at_once = 1 if Capability.RECYCLING in backend().capabilities else STARTED_AT_ONCE
    with on_disk({problem.file: program}) as bind:
        template = template_of(problem.project(), (bind,))
        # this candidate's alone, so that none meets another
        async with Pool(PoolSettings(live=at_once)) as pool:
            for start in range(0, len(names), at_once):
                together = names[start : start + at_once]
                outcomes = await asyncio.gather(
                    *(one_case(problem, problem.cases[n], template, pool.lease) for n in together)
                )
                for name, told in zip(together, outcomes, strict=True):
                    yield name, told


async def one_case(
    problem: Problem, case: ProblemCase, template: SandboxTemplate, lease: LeaseSandbox
) -> CaseOutcome:
    argv = [word.format(file=f"{ROOT}/{problem.file}") for word in RUN[problem.language][1]]
    try:
        async with lease(template) as sandbox:
            done = await sandbox.exec(argv, stdin=case.stdin.encode(), timeout_s=TIMEOUT_S)
    except ProgramEndedError:
        return CaseOutcome("failed", ENDED_SANDBOX, "ended_sandbox")
    if done.timed_out:
        return CaseOutcome("failed", LATE, cause_of(done))
    if done.exit_code:
        return CaseOutcome("failed", f"ended with exit code {done.exit_code}", cause_of(done))
    said = done.stdout[:MAX_PRINTED].decode(errors="replace")
    if same_answer(said, case.stdout):
        return CaseOutcome("passed")
    return CaseOutcome("failed", "wrong answer", cause_of(done))


def cause_of(done: ExecResult) -> ProgramCause:
    """Of a program that gave no right answer."""
    if done.truncated:
        return "too_much_output"
    if done.out_of_memory:
        return "out_of_memory"
    if done.timed_out:
        return "timed_out"
    if done.exit_code:
        return "exit_code"
    return "wrong_answer" if done.stdout.strip() else "no_answer"


def same_answer(said: str, expected: str) -> bool:
    lines = [line.rstrip() for line in said.rstrip().splitlines()]
    return lines == [line.rstrip() for line in expected.rstrip().splitlines()]


def load_problems(path: Path) -> tuple[Problem, ...]:
    """Read a problem set (.yaml). ConfigError naming file and field for whatever is wrong."""
    return load_definition(ProblemSet, path).problems
