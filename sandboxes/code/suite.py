"""Runs a project's tests on a candidate, in a sandbox that the candidate's author never was in.

Only the candidate's text files enter, under the project's own tests, all of it read-only. Each
test is a process; how its pass is told from a forged one stands in `inside/run_tests.py`. What
nothing in one process can rule out: code written against this very runner, which looks for the
word in its own pipes or spares the decoy. A problem with an answer that can be written down is
better judged by `sandboxes.code.problems`, where the expected answer never enters the sandbox.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ItemError, TransientError
from sandboxes.code.projects import Project
from sandboxes.core import python_env
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Bind, Limits, SandboxTemplate
from sandboxes.lending.leases import lease

ROOT = "/repo"
RUNNER = "/opt/tests/run_tests.py"
CLOCK = "2026-03-02T09:00:00"
CPU_S, WALL_S = 2, 30
"""Of one test. CPU time decides, since it does not depend on what else the machine does."""

MAX_SLOW = 2
"""Tests without an end after which the others are not run: they would most likely have none."""

LIMITS = Limits(timeout_s=300)
PATH = f"{python_env.ENVIRONMENT}/bin:/usr/local/bin:/usr/bin:/bin"


class SuiteRun(NamedTuple):
    failures: dict[str, str | None]
    """Test -> None where it passed, else what went wrong, in words that repeat exactly."""

    forged: bool = False
    """The code under test answered for the tests: no result counts."""

    @property
    def passed(self) -> set[str]:
        return {name for name, failure in self.failures.items() if failure is None}


class Test(NamedTuple):
    name: str
    doc: str


def template_of(project: Project, binds: tuple[Bind, ...] = ()) -> SandboxTemplate:
    """The machine of a project: a Python with its packages, the runner, a stopped clock."""
    packages = python_env.environment_binds(project.site) if project.site else ()
    inside = Path(__file__).parents[1] / "inside" / "run_tests.py"
    return SandboxTemplate(
        binds=(*packages, *binds),
        files=python_env.environment_files() | {RUNNER: inside.read_text(encoding="utf-8")},
        links=python_env.environment_links(),
        env={"PATH": PATH},
        clock=CLOCK,
        limits=LIMITS,
    )


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
    """Every test of the project's own suite, by name. ItemError where none can be loaded."""
    with on_disk(project.files) as bind:
        async with lease(template_of(project, (bind,))) as sandbox:
            lines = await ask(sandbox, project, None)
    tests = [Test(*test) for line in lines for test in line.get("tests", ())]
    if not tests:
        raise ItemError("no_tests", f"project {project.name}: no test was found")
    return tests


async def run_suite(
    project: Project, candidate: Mapping[str, str], names: Sequence[str], *, decoy: bool = True
) -> SuiteRun:
    """The named tests on the candidate. TransientError only where a sandbox fails by itself: a
    test that ends its own sandbox, or the process that runs the tests, has failed."""
    failures: dict[str, str | None] = {}
    forged = False
    with on_disk(project.graded_files(candidate)) as bind:
        template = template_of(project, (bind,))
        waiting, alone = list(names), False
        while waiting:
            turn = waiting[:1] if alone else waiting
            try:
                async with lease(template) as sandbox:
                    lines = await ask(sandbox, project, turn, decoy=decoy)
            except TransientError:
                await check_sandboxes()
                if alone:  # this one test, in a sandbox of its own, where others live
                    failures[turn[0]] = "it ended its sandbox"
                    waiting.remove(turn[0])
                alone = True
                continue
            failures |= {line["test"]: line["failure"] for line in lines if "test" in line}
            forged |= any(line.get("decoy", False) for line in lines)
            if not any("done" in line for line in lines):
                begun = [line["begins"] for line in lines if "begins" in line]
                failures.setdefault(begun[-1] if begun else turn[0], "it ended what runs the tests")
            waiting = [name for name in waiting if name not in failures]
    return SuiteRun({name: failures[name] for name in names}, forged)


async def check_sandboxes() -> None:
    """TransientError if no sandbox lives even without the candidate."""
    async with lease(SandboxTemplate()) as sandbox:
        await sandbox.ping()


async def ask(
    sandbox: Sandbox,
    project: Project,
    names: Sequence[str] | None,
    *,
    root: str = ROOT,
    decoy: bool = False,
    only: str | None = None,
) -> list[dict[str, Any]]:
    """What the runner says of these tests of the files at `root`. None lists them, and with `only`
    runs those whose names hold it."""
    request = {
        "root": root,
        "test_folder": project.test_folder,
        "paths": project.paths,
        "runner": project.runner,
        "tests": names,
        "decoy": decoy,
        "only": only,
        "cpu_s": CPU_S,
        "wall_s": WALL_S,
        "max_slow": MAX_SLOW,
    }
    argv = [python_env.PYTHON, "-I", "-B", RUNNER]
    done = await sandbox.exec(argv, stdin=json.dumps(request).encode())
    lines = []
    for line in done.stdout.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:  # cut off where the runner was killed
            break
    return lines
