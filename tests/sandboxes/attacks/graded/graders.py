"""Attempts on the real graders, on sandboxes that are lent again, and on snapshots.

No wall of a sandbox stands here but a step that the graders, the pool or a snapshot take. The
control plays the same payload without that step, inside a sandbox with all its walls.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from pathlib import Path

from sandboxes.code.problems import Problem, one_case
from sandboxes.code.suite import Defence, on_disk, run_suite, template_of
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from sandboxes.local.backend import lease
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import CAPS, Attempt, Play, Scene, Scenery, of_group, python
from tests.sandboxes.code.code_cases import ANSWERS_FOR_TESTS, ATTACKS, MANY, TESTS, WRONG, project
from tests.sandboxes.forks import fork
from tests.sandboxes.on_host import body_of, pid_of

PLAIN = SandboxTemplate(limits=CAPS)


async def graded(files: dict[str, str], without: Set[Defence] = frozenset()) -> str:
    run = await run_suite(project(), project().files | files, [MANY], without=without)
    return "forged" if run.forged else "passed" if MANY in run.passed else "failed"


async def own_tests(_attempt: Attempt, scene: Scene) -> str:
    """The candidate brings tests that its wrong answer passes."""
    files = {"shop/price.py": WRONG, "tests/test_price.py": TESTS.replace("45", "50")}
    judged = project()
    if scene.control:  # what the candidate brings is what judges
        judged = judged.model_copy(update={"files": judged.files | files})
    run = await run_suite(judged, judged.files | files, [MANY])
    return "won a passed test" if MANY in run.passed else "refused the test failed"


async def early_exit(_attempt: Attempt, scene: Scene) -> str:
    """The code under test ends its process with status 0 while it is tested."""
    files = ATTACKS["leaves with status 0"]
    if not scene.control:
        return f"refused the test {await graded(files)}"
    with on_disk(project().files | files) as bind:  # judged by the status alone
        async with lease(template_of(project(), (bind,))) as sandbox:
            done = await sandbox.exec(["python", "-m", "unittest", MANY], cwd=bind.target)
    return "won a passed test" if done.exit_code == 0 else f"unclear: {done}"


async def answers(_attempt: Attempt, scene: Scene) -> str:
    """Code that looks for the word that a pass is told by in all that it holds, to say it."""
    without: Set[Defence] = {"word", "decoy"} if scene.control else frozenset()
    found = await graded({"shop/price.py": ANSWERS_FOR_TESTS + WRONG}, without)
    return "won a passed test" if found == "passed" else f"refused the run is {found}"


SEEKS_ANSWER = """import os
told = "none"
for folder, _, names in os.walk("/repo"):
    for name in names:
        text = open(os.path.join(folder, name)).read()
        if name == "expected":
            told = text
print(told)
"""


async def seek_answer(_attempt: Attempt, scene: Scene) -> str:
    """The program looks for the answer that it is to give."""
    problem = Problem.model_validate(
        {
            "name": "sum",
            "title": "Sum",
            "statement": "Add the numbers.",
            "language": "python",
            "draft": "print()\n",
            "reference": "print(sum(map(int, input().split())))\n",
            "examples": [{"about": "one number", "stdin": "7", "stdout": "7"}],
            "tests": [{"about": "two numbers", "stdin": "1234 4321", "stdout": "5555"}] * 2,
        }
    )
    case = next(case for case in problem.cases.values() if case.stdout.strip() == "5555")
    shown = {"expected": case.stdout} if scene.control else {}
    with on_disk({problem.file: SEEKS_ANSWER} | shown) as bind:
        template = template_of(problem.project(), (bind,))
        outcome = await one_case(problem, case, template, lease)
    return "won the right answer" if outcome.status == "passed" else f"refused {outcome.words}"


def used_twice(plant: str, look: str) -> Play:
    """A shell line of the first holder, which prints something once it is done and then waits, and
    one of the second; both in the same sandbox. What the second prints is what the first has left
    it."""

    async def play(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
        if scene.control:  # lent again as it is
            await (await sandbox.open_stdio(["sh", "-c", plant])).read()
            return _left((await sandbox.exec(["sh", "-c", look])).stdout)
        for _ in range(TRIES):
            async with Pool(PoolSettings(live=1)) as pool:
                async with pool.lease(PLAIN) as first:
                    await (await first.open_stdio(["sh", "-c", plant])).read()
                await pool.settled()
                async with pool.lease(PLAIN) as second:
                    if pid_of(second) == pid_of(first):
                        return _left((await second.exec(["sh", "-c", look])).stdout)
        return f"unclear: the second holder got another sandbox, {TRIES} times"

    return play


TRIES = 3
"""A busy machine does not always wipe a sandbox within its time, and then lends another."""


def _left(printed: bytes) -> str:
    said = printed.decode().strip()
    return f"won {said}" if said else "refused nothing was left"


WATCHER = python("""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(1, b"up")
        while True:
            if os.path.exists("/workspace/key"):
                open("/tmp/stolen", "w").write(open("/workspace/key").read())
            time.sleep(0.01)
time.sleep(100)
""")
QUOTED = " ".join(f"'{word}'" if " " in word or "\n" in word else word for word in WATCHER)


async def through_link(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """A link to a file of the host lies in the workspace when its snapshot is taken."""
    (path,) = scene.args
    made = await sandbox.exec(["sh", "-c", f"mkdir d && ln -s {path} d/file && ln -s / d/all"])
    if made.exit_code:
        return f"unclear: {made}"
    if scene.control:  # copied as most tools copy: what a link leads to
        with tempfile.TemporaryDirectory() as folder:
            copied = shutil.copy(f"{body_of(sandbox).outside('/workspace')}/d/file", folder)
            return f"won {Path(copied).read_text()}"
    snapshot = await sandbox.snapshot()
    try:
        async with fork(snapshot) as forked:
            done = await forked.exec(["cat", "d/file", f"d/all{path}"])
    finally:
        snapshot.remove()
    if done.stdout:
        return f"won {done.stdout.decode()}"
    missing = done.stderr.count(b"No such file or directory")
    return "refused the links lead nowhere" if missing == 2 else f"unclear: {done}"


def host_file(name: str) -> Scenery:
    @asynccontextmanager
    async def scene(_without: Set[Protection]) -> AsyncIterator[Scene]:
        with tempfile.TemporaryDirectory() as folder:
            path, word = Path(folder, name), scenes.nonce()
            path.write_text(word)
            yield Scene((str(path),), proof=word)

    return scene


grade, reuse, snap = of_group("tests that grade"), of_group("lent again"), of_group("snapshots")
WIPED = "killing and wiping between two holders"

ATTEMPTS = [
    grade("bringing tests of one's own", refusal="the test failed", own_play=own_tests,
          guard="the project's tests laid over the candidate"),
    grade("leaving a test with status 0", refusal="the test failed", own_play=early_exit,
          guard="a word that is made after the fork"),
    grade("answering for a test", refusal="the run is failed", own_play=answers,
          guard="a word that one thread alone knows"),
    grade("looking for the expected answer", refusal="wrong answer", own_play=seek_answer,
          guard="answers compared outside the sandbox"),
    reuse("a file left in every folder", refusal="nothing was left", guard=WIPED,
          play=used_twice("for d in /workspace /tmp /dev/shm; do echo left > $d/.x; done; echo;"
                          " sleep 9",
                          "cat /workspace/.x /tmp/.x /dev/shm/.x 2>/dev/null")),
    reuse("a setting that git reads of its user", refusal="nothing was left", guard=WIPED,
          play=used_twice("git config --global alias.st '!echo mine'; echo; sleep 9",
                          "git st 2>/dev/null")),
    reuse("a link in the place of the next one's folder", refusal="nothing was left", guard=WIPED,
          play=used_twice("ln -s /tmp /workspace/code; echo; sleep 9",
                          "mkdir -p /workspace/code; echo a > /workspace/code/a; cat /tmp/a"
                          " 2>/dev/null")),
    reuse("a process that waits for the next one's key", refusal="nothing was left", guard=WIPED,
          play=used_twice(QUOTED, "echo key > /workspace/key; for i in $(seq 30); do"
                          " test -s /tmp/stolen && break; sleep 0.1; done; cat /tmp/stolen"
                          " 2>/dev/null")),
    snap("a link to a file of the host", refusal="the links lead nowhere", play=through_link,
         scene=host_file("key"), as_root=True, guard="links copied as links"),
]  # fmt: skip
