"""Runs a project's tests on a candidate, in a sandbox that the candidate's author never was in.

Only the candidate's text files enter, under the project's own tests, all of it read-only. Each
test is a process; how its pass is told from a forged one stands in `inside/guard.py`,
`inside/tripwire.py`, `inside/runners.py` and `inside/inverted.py`. A test that passes although one
of its assertions says the opposite, or without a copy that does, is run again so in a fresh
sandbox; where it passes there too, the run is forged.

Test and code under test share a process, so this much stays possible (`tests/sandboxes/attacks`
plays it): code that was written against this very runner and tells a copy with a turned assertion
from the test, by a file that the test's process leaves behind or by comparing the running code
with its source; and code that reads the expected values in the tests, and returns them. The latter
forges nothing, it fits the tests too well. A problem with an answer that can be written down is
better judged by `sandboxes.code.problems`, where the expected answer never enters the sandbox.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from records.errors import ItemError
from sandboxes.code.projects import Project
from sandboxes.core import python_env
from sandboxes.core.body import ProgramEndedError
from sandboxes.core.sandbox import ExecResult, Sandbox
from sandboxes.core.template import Bind, Limits, SandboxTemplate
from sandboxes.lending.leases import lease

ROOT = "/repo"
FOLDER = "/opt/tests"
RUNNER = f"{FOLDER}/run_tests.py"
PARTS = ("guard", "tripwire", "runners", "inverted")
CLOCK = "2026-03-02T09:00:00"
CPU_S, WALL_S = 2, 30
"""Of one test. CPU time decides, since it does not depend on what else the machine does."""

ENDED_SANDBOX = "it ended its sandbox"
ENDED_RUNNER = "it ended what runs the tests"
STOPPED_RUNNER = "it stopped what runs the tests"
NOT_RUN = "not run: too many tests did not end"
CONTRADICTS = "it passes just so with an assertion that says the opposite"

MAX_SLOW = 2
"""Tests without an end, and of those that end or stop what runs them, after which the others are
not run: they would most likely have none."""

MAX_CUT = 10
"""Sandboxes for one suite whose tests take longer, or tell more, than `LIMITS` allow one run."""

EXCUSED = {
    "native": r"ctypes|cffi|interpreters\b|load_extension|_test\w*capi",
    "objects": r"\bgc\b",
    "frames": r"_current_(frames|exceptions)",
    "stack": r"_getframe|currentframe|(tb|gi|cr|ag)_frame|walk_(stack|tb)|inspect\.(stack|trace)",
    "tracing": r"settrace|setprofile|addaudithook|\b(trace|bdb|profile)\b",
    "code": r"__code__|__(kw)?defaults__|CodeType|co_\w+=|types\.coroutine|\bmarshal\b",
}
"""Ways to reach below the language -> what in a project's own sources shows that it goes them."""

LOOSE = {
    "builtins": r"builtins",
    "TestCase": r"(TestCase|TestSuite)\.\w+ *=|setattr\(unittest",
}
"""What judges tests -> what in a project's own tests shows that they write to it."""

IMPORTED = re.compile(r"^\s*(?:import|from) +(\w+)", re.MULTILINE)
LIBRARIES = sys.stdlib_module_names - {"__main__", "antigravity", "this", "ctypes", "sandboxes"}
"""Modules that are loaded before the code under test where tests import them, and sealed."""

OWN_ASSERTION = re.compile(r"def (assert\w+|raises)\(")

LIMITS = Limits(timeout_s=300, output_bytes=32_000_000)
PATH = f"{python_env.ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin"


Status = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed", "forged"]
"""What comes of a test: an assertion did not hold (failed), something else was raised or did not
load (error), it failed as was expected of it (xfailed) or did not (xpassed), or its pass is none,
since it passes just so with an assertion that says the opposite (forged)."""

STATUSES: tuple[Status, ...] = get_args(Status)
WITHOUT_PASS: tuple[Status, ...] = ("skipped", "xfailed")
"""Of healthy tests that do not pass. They judge nothing."""

Defence = Literal[
    "decoy",
    "copies",
    "word",
    "place",
    "seals",
    "versions",
    "tripwire",
    "trouble told at once",
    "hidden",
]
"""Steps of the runner that the attack suite leaves out to show that its payloads work."""


class CaseOutcome(NamedTuple):
    status: Status
    words: str = ""
    """What went wrong, or why it was skipped, in words that repeat exactly."""
    cause: str | None = None
    """Of a problem's program: by which name counts know what went wrong."""


class SuiteRun(NamedTuple):
    outcomes: dict[str, CaseOutcome]

    forged: bool = False
    """The code under test answered for the tests: no result counts."""

    @property
    def passed(self) -> set[str]:
        return self.of("passed")

    @property
    def failures(self) -> dict[str, str | None]:
        """Test -> None where it passed, else why not."""
        return {name: reason(outcome) for name, outcome in self.outcomes.items()}

    def of(self, *statuses: Status) -> set[str]:
        return {name for name, outcome in self.outcomes.items() if outcome.status in statuses}


def reason(outcome: CaseOutcome) -> str | None:
    """None for a pass, else the words; with the status before them where it says more."""
    if outcome.status == "passed":
        return None
    if outcome.status in ("failed", "error"):
        return outcome.words
    return f"{outcome.status}: {outcome.words}" if outcome.words else outcome.status


class Test(NamedTuple):
    name: str
    doc: str


class RunnerAnswer(NamedTuple):
    """What the runner said, and how it ended."""

    lines: list[dict[str, Any]]
    ended: ExecResult

    @property
    def is_whole(self) -> bool:
        return any("done" in line for line in self.lines)

    @property
    def is_cut(self) -> bool:
        """Whether a limit of ours ended it."""
        return self.ended.timed_out or self.ended.truncated


def template_of(project: Project, binds: tuple[Bind, ...] = ()) -> SandboxTemplate:
    """The machine of a project: a Python with its packages, the runner, a stopped clock. `binds`
    are of one candidate, so that with them no spare ones are worth having."""
    packages = python_env.environment_binds(project.site) if project.site else ()
    return SandboxTemplate(
        binds=(*packages, *binds),
        files=python_env.environment_files() | runner_files(),
        links=python_env.environment_links(),
        env={"PATH": PATH},
        clock=CLOCK,
        limits=LIMITS,
        spares=not binds,
    )


def runner_files() -> dict[str, str]:
    """The program that runs tests, and its parts where it imports them from."""
    inside = Path(__file__).parents[1] / "inside"
    parts = {f"{FOLDER}/sandboxes/inside/{part}.py": inside / f"{part}.py" for part in PARTS}
    files = {RUNNER: inside / "run_tests.py"} | parts
    return {path: file.read_text(encoding="utf-8") for path, file in files.items()}


@contextmanager
def on_disk(files: Mapping[str, str]) -> Iterator[Bind]:
    """The files in a folder of the host that a sandbox shows read-only, for as long as it lives."""
    with tempfile.TemporaryDirectory(prefix="synth-code-") as folder:
        root = Path(folder) / "repo"
        root.mkdir(mode=0o755)
        for path, text in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            target.write_text(text, encoding="utf-8")
            target.chmod(0o644)
        yield Bind(source=str(root), target=ROOT)


async def list_tests(project: Project) -> list[Test]:
    """Every test of the project's own suite, by name. ItemError where none can be loaded, or their
    names are more than `LIMITS` let through."""
    with on_disk(project.files) as bind:
        async with lease(template_of(project, (bind,))) as sandbox:
            told = await ask(sandbox, project, None)
    if told.ended.truncated:
        raise ItemError("too_many_tests", f"project {project.name}: it has too many tests")
    if not (tests := tests_in(told.lines)):
        raise ItemError("no_tests", f"project {project.name}: no test was found")
    return tests


async def run_suite(
    project: Project,
    candidate: Mapping[str, str],
    names: Sequence[str],
    *,
    every_copy: bool = False,
    without: Set[Defence] = frozenset(),
) -> SuiteRun:
    """The named tests on the candidate. TransientError only where a sandbox fails by itself: a
    test that ends its own sandbox, or the process that runs the tests, has failed. `every_copy`
    runs all copies of each test, instead of a few drawn by chance."""
    with on_disk(project.graded_files(candidate)) as bind:
        grading = Grading(project, template_of(project, (bind,)), every_copy, without)
        await grading.run(names)
        await grading.run_suspects()
    return SuiteRun({name: grading.outcomes[name] for name in names}, grading.forged)


class Grading:
    """One suite on one candidate, in as many sandboxes as it takes."""

    def __init__(
        self,
        project: Project,
        template: SandboxTemplate,
        every_copy: bool,
        without: Set[Defence],
    ) -> None:
        self.project, self.template = project, template
        self.every_copy, self.without = every_copy, without
        self.outcomes: dict[str, CaseOutcome] = {}
        self.suspects: dict[str, int] = {}
        self.forged = False
        self._broken = self._cut = 0
        """Turns that a test ended or stopped, and those that limits of ours did."""

    async def run(self, names: Sequence[str]) -> None:
        waiting, alone = list(names), False
        while waiting:
            if self._broken >= MAX_SLOW or self._cut >= MAX_CUT:
                self.outcomes |= dict.fromkeys(waiting, CaseOutcome("failed", NOT_RUN))
                return
            turn = waiting[:1] if alone else waiting
            try:
                self._hear(await self._ask(turn), turn)
            except ProgramEndedError:
                if alone:  # it was this one test, in a sandbox of its own
                    self.outcomes[turn[0]] = CaseOutcome("failed", ENDED_SANDBOX)
                alone = True
            waiting = [name for name in waiting if name not in self.outcomes]

    async def run_suspects(self) -> None:
        """Each of them once more, with the opposite assertion in its place."""
        for name, copy in self.suspects.items():
            if self._broken >= MAX_SLOW:
                self.outcomes[name] = CaseOutcome("failed", NOT_RUN)
                continue
            try:
                told = await self._ask([name], turned={name: copy})
            except ProgramEndedError:
                self.outcomes[name] = CaseOutcome("failed", ENDED_SANDBOX)
                continue
            if any(is_suspect(line) for line in told.lines):
                self.outcomes[name], self.forged = CaseOutcome("forged", CONTRADICTS), True
            elif not told.is_whole:
                self._blame(name, told)

    async def _ask(
        self, names: Sequence[str], turned: Mapping[str, int] | None = None
    ) -> RunnerAnswer:
        how: dict[str, Any] = {"turned": turned}
        if turned is None:
            how = {"every_copy": self.every_copy, "without": self.without}
        async with lease(self.template) as sandbox:
            return await ask(sandbox, self.project, names, **how)

    def _hear(self, told: RunnerAnswer, turn: Sequence[str]) -> None:
        came = outcomes_in(told.lines)
        self.outcomes |= came
        self.suspects |= suspects_in(told.lines)
        self.forged |= any(line.get("decoy") is True for line in told.lines)
        if told.is_whole:
            return
        if came and told.is_cut:  # the rest has not had its time
            self._cut += 1
            return
        begun = [line["begins"] for line in told.lines if line.get("begins") in turn]
        self._blame(begun[-1] if begun else turn[0], told)

    def _blame(self, name: str, told: RunnerAnswer) -> None:
        """The test, in which what runs the tests came to its end."""
        self._broken += 1
        words = STOPPED_RUNNER if told.is_cut else ENDED_RUNNER
        if name not in self.outcomes or self.outcomes[name].status == "passed":
            self.outcomes[name] = CaseOutcome("failed", words)


def suspects_in(lines: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Test that passed -> the number of a copy that did, too, or was not run."""
    passed = {name for name, outcome in outcomes_in(lines).items() if outcome.status == "passed"}
    told = [line for line in lines if is_suspect(line) and line["test"] in passed]
    return {line["test"]: line["suspect"] for line in told}


def tests_in(lines: Sequence[Mapping[str, Any]]) -> list[Test]:
    """All tests that the runner found. What has another form is not the runner's."""
    listed = [line["tests"] for line in lines if isinstance(line.get("tests"), list)]
    return [
        Test(*test)
        for tests in listed
        for test in tests
        if isinstance(test, list) and [type(part) for part in test] == [str, str]
    ]


def outcomes_in(lines: Sequence[Mapping[str, Any]]) -> dict[str, CaseOutcome]:
    """Test -> outcome, of what the runner said. What has another form is not the runner's."""
    outcomes: dict[str, CaseOutcome] = {}
    for line in lines:
        name, status, words = line.get("test"), line.get("status"), line.get("words")
        if isinstance(name, str) and isinstance(words, str) and status in STATUSES:
            outcomes[name] = CaseOutcome(status, words)
    return outcomes


def is_suspect(line: Mapping[str, Any]) -> bool:
    return isinstance(line.get("suspect"), int) and isinstance(line.get("test"), str)


async def ask(
    sandbox: Sandbox,
    project: Project,
    names: Sequence[str] | None,
    *,
    root: str = ROOT,
    only: str | None = None,
    turned: Mapping[str, int] | None = None,
    every_copy: bool = False,
    without: Set[Defence] = frozenset(),
) -> RunnerAnswer:
    """What the runner says of these tests of the files at `root`. None lists them, and with `only`
    runs those whose names hold it. `turned` tells of which tests one copy, by its number, is to be
    run in the test's place."""
    own = "\n".join(project.sources.values())
    tests = "\n".join(text for path, text in project.files.items() if project.is_protected(path))
    request = {
        "root": root,
        "test_folder": project.test_folder,
        "paths": project.paths,
        "runner": project.runner,
        "tests": names,
        "only": only,
        "turned": dict(turned or {}),
        "every_copy": every_copy,
        "without": sorted(without),
        "libraries": sorted(set(IMPORTED.findall(tests)) & LIBRARIES),
        "own": OWN_ASSERTION.findall(f"{own}\n{tests}"),
        "excused": [kind for kind, shows in EXCUSED.items() if re.search(shows, own)],
        "loose": [judge for judge, shows in LOOSE.items() if re.search(shows, tests)],
        "cpu_s": CPU_S,
        "wall_s": WALL_S,
        "max_slow": MAX_SLOW,
    }
    argv = [python_env.PYTHON, "-I", "-B", RUNNER]
    done = await sandbox.exec(argv, stdin=json.dumps(request).encode())
    return RunnerAnswer(lines_of(done.stdout), done)


def lines_of(text: bytes) -> list[dict[str, Any]]:
    """What the runner wrote, up to where it was cut off, or where somebody else wrote."""
    lines: list[dict[str, Any]] = []
    for text_line in text.splitlines():
        try:
            line = json.loads(text_line)
        except (ValueError, RecursionError):
            break
        if not isinstance(line, dict):
            break
        lines.append(line)
    return lines
