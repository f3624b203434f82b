"""Tasks for software engineers: a bug injected into a project, kept only if its tests notice it.

The project's own suite is the judge. Tests that fail with the bug and pass without are
`fail_to_pass`; those that pass either way, `pass_to_pass`. A test whose outcome or words differ
between two runs judges nothing, and a bug that shows only in such tests is none.
"""

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import NamedTuple

from records.digest import digest
from records.errors import ItemError
from sandboxes.code.mutations import Mutation, Replacement, in_rounds, mutations_of, undo
from sandboxes.code.projects import Project
from sandboxes.code.suite import SuiteRun, Test, list_tests, run_suite

MAX_TRIES = 12
"""Mutations tried for one bug before the project is given up for it."""

MAX_FAILING = 0.5
"""Largest share of the suite that a bug may break: one that breaks nearly all hides nowhere."""


class Baseline(NamedTuple):
    """A project's suite on the project as it is."""

    tests: tuple[Test, ...]
    """Those that pass, twice."""

    @property
    def names(self) -> list[str]:
        return [test.name for test in self.tests]


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
    first = await run_suite(project, project.files, names)
    second = await run_suite(project, project.files, names)
    steady = first.passed & second.passed
    if not steady or first.forged or second.forged:
        raise ItemError("no_passing_tests", f"project {project.name}: no test passes twice")
    return Baseline(tuple(test for test in tests if test.name in steady))


async def inject_bug(project: Project, baseline: Baseline, rng: Random) -> Bug:
    """A bug drawn by `rng`. ItemError("no_bug_found") when none of the tries shows in the tests."""
    for mutation in islice(drawn_mutations(project, rng), MAX_TRIES):
        if (bug := await injected_bug(project, baseline, mutation)) is not None:
            return bug
    raise ItemError("no_bug_found", f"project {project.name}: none in {MAX_TRIES} tries")


def drawn_mutations(project: Project, rng: Random) -> Iterator[Mutation]:
    """All of the project's mutations in the order in which they are tried for one task."""
    places = [
        mutation
        for path, text in sorted(project.sources.items())
        for mutation in mutations_of(path, text)
    ]
    return in_rounds(places, rng.shuffle)


async def injected_bug(project: Project, baseline: Baseline, mutation: Mutation) -> Bug | None:
    """The bug that this mutation is; None if the tests do not notice it, or it is no fair one:
    nearly everything fails, a test has no end, or two runs differ."""
    original = project.files[mutation.path]
    files = project.files | {mutation.path: mutation.apply(original)}
    run = await run_suite(project, files, baseline.names)
    failing = [name for name in baseline.names if run.failures[name] is not None]
    if not failing or len(failing) > MAX_FAILING * len(baseline.names) or hangs(run):
        return None
    again = await run_suite(project, files, failing)
    if any(again.failures[name] != run.failures[name] for name in failing):
        return None
    return Bug(
        mutation=mutation,
        files=files,
        fix=undo(original, mutation),
        fail_to_pass=tuple(failing),
        pass_to_pass=tuple(name for name in baseline.names if name not in failing),
        failures={name: run.failures[name] or "" for name in failing},
    )


def hangs(run: SuiteRun) -> bool:
    words = ("it did not end", "it used more", "not run", "it ended")
    return any((failure or "").startswith(words) for failure in run.failures.values())
