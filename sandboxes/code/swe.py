"""Tasks for software engineers: a bug injected into a project, kept only if its tests notice it.

The project's own suite is the judge. Tests that fail with the bug and pass without are
`fail_to_pass`; those that pass either way, `pass_to_pass`. A test that is skipped, with the bug or
without, judges nothing, nor does one whose outcome or words differ between two runs; a bug that
shows only in such tests is none.
"""

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import NamedTuple

from records.digest import digest
from records.errors import ItemError
from sandboxes.code.mutation_search import find_mutations
from sandboxes.code.mutations import Mutation, Replacement, in_rounds, undo
from sandboxes.code.projects import Project
from sandboxes.code.suite import (
    WITHOUT_PASS,
    CaseOutcome,
    SuiteRun,
    Test,
    list_tests,
    run_suite,
)

MAX_TRIES = 12
"""Mutations tried for one bug before the project is given up for it."""

MAX_FAILING = 0.5
"""Largest share of the suite that a bug may break: one that breaks nearly all hides nowhere."""


class Baseline(NamedTuple):
    """A project's suite on the project as it is."""

    tests: tuple[Test, ...]
    """Those that pass, twice."""

    others: dict[str, CaseOutcome]
    """Tests that do not pass twice -> the first outcome that is no pass. They judge nothing."""

    unsteady: tuple[str, ...] = ()
    """Those of the others whose two runs differ."""

    @property
    def names(self) -> list[str]:
        return [test.name for test in self.tests]

    @property
    def green(self) -> bool:
        """Whether all is as it should be: every test passes, or is skipped, or fails as expected of
        it, the same way twice."""
        fine = all(outcome.status in WITHOUT_PASS for outcome in self.others.values())
        return fine and not self.unsteady


class Bug(NamedTuple):
    mutation: Mutation
    files: dict[str, str]
    """The project with the bug in it, tests included."""
    fix: Replacement
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    failures: dict[str, str]
    """Failing test -> what it says."""


def bug_id(project: Project, path: str, mutated: str) -> str:
    """Of what is changed in which file of which project, however it is told, drawn or undone: two
    mutations that leave the same text are one bug."""
    return digest("bug", project.name, path, project.files[path], mutated)


async def baseline_of(project: Project) -> Baseline:
    """Run the suite twice. ItemError where nothing passes."""
    tests = await list_tests(project)
    names = [test.name for test in tests]
    first = await run_suite(project, project.files, names, every_copy=True)
    second = await run_suite(project, project.files, names)
    steady = first.passed & second.passed
    if not steady:
        raise ItemError("no_passing_tests", f"project {project.name}: no test passes twice")
    runs = [(name, first.outcomes[name], second.outcomes[name]) for name in names]
    return Baseline(
        tests=tuple(test for test in tests if test.name in steady),
        others={n: b if a.status == "passed" else a for n, a, b in runs if n not in steady},
        unsteady=tuple(name for name, a, b in runs if a.status != b.status),
    )


async def inject_bug(project: Project, baseline: Baseline, rng: Random) -> Bug:
    """A bug drawn by `rng`. ItemError where none of the tries shows in the tests ("no_bug_found"),
    or nothing could be tried ("no_mutations")."""
    for mutation in islice(await drawn_mutations(project, rng), MAX_TRIES):
        if (bug := await injected_bug(project, baseline, mutation)) is not None:
            return bug
    raise ItemError("no_bug_found", f"project {project.name}: none in {MAX_TRIES} tries")


async def drawn_mutations(project: Project, rng: Random) -> Iterator[Mutation]:
    """All of the project's mutations in the order in which they are tried for one task. Errors as
    `find_mutations`."""
    return in_rounds(await find_mutations(project), rng.shuffle)


async def injected_bug(project: Project, baseline: Baseline, mutation: Mutation) -> Bug | None:
    """The bug that this mutation is; None if the tests do not notice it, or it is no fair one:
    nearly everything fails, a test has no end, or two runs differ."""
    original = project.files[mutation.path]
    files = project.files | {mutation.path: mutation.apply(original)}
    run = await run_suite(project, files, baseline.names)
    silent = run.of(*WITHOUT_PASS)
    failing = [name for name in baseline.names if name not in run.passed | silent]
    if not failing or len(failing) > MAX_FAILING * len(baseline.names) or hangs(run):
        return None
    again = await run_suite(project, files, failing)
    if any(again.outcomes[name] != run.outcomes[name] for name in failing):
        return None
    return Bug(
        mutation=mutation,
        files=files,
        fix=undo(original, mutation),
        fail_to_pass=tuple(failing),
        pass_to_pass=tuple(name for name in baseline.names if name in run.passed),
        failures={name: run.outcomes[name].words for name in failing},
    )


def hangs(run: SuiteRun) -> bool:
    words = ("it did not end", "it used more", "not run", "it ended")
    return any(outcome.words.startswith(words) for outcome in run.outcomes.values())
