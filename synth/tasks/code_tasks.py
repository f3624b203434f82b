"""Tasks on code, proved by execution: a bug is injected, the reference solution undoes it through
the tools that the agent has, and the graded tests pass on what that leaves.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from records.digest import digest
from records.errors import ItemError
from records.seeds import rng_of
from sandboxes.code.mutations import Replacement
from sandboxes.code.swe import Baseline, baseline_of, bug_id, inject_bug
from sandboxes.code.workspace import open_workspace
from sandboxes.lending.leases import LeaseSandbox, lease
from synth.episode.tools.code_bench import graded_tests
from synth.episode.tools.code_environments import CodeEnvironment, candidate_files, start_files
from synth.episode.tools.code_executor import file_changes
from synth.rubrics.built_in import FORMAT, TEST, EpisodeCall
from synth.rubrics.criteria import Criterion, FormatCheck, Rubric, TestCheck
from synth.tasks.goals.goals import Draft, Goal, Proof, Step
from synth.tasks.proof.extensions import NO_EXTENSIONS, Extensions
from synth.tasks.proof.proving import UnprovedError, check_passes, observed_chars

CODE_VERSION = 3
"""Raised when the same item would be another task on code, or one that is told otherwise. Part of
the ids of these tasks alone."""


class CodeTask(NamedTuple):
    complexity: str
    draft: Draft
    proof: Proof
    failing: list[dict[str, str]]
    """What an issue may tell of: name, doc and message of the failing tests."""
    secret: tuple[str, ...]
    """Lines of the program that it must not quote."""
    bug_id: str
    """Tasks on one bug have one split, and are duplicates of each other."""


class InjectedBug(NamedTuple):
    """What an episode starts from, and how it is put right."""

    bug_id: str
    """The same for every task on this bug; of a problem, its name decides it."""
    edits: list[dict[str, str]]
    """From the environment's own files to those of the episode."""
    path: str
    fix: Replacement
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    failing: list[dict[str, str]]


@dataclass
class CodeTasks:
    """Makes tasks of these environments; remembers how their own suites run."""

    environments: Mapping[str, CodeEnvironment]
    extensions: Extensions = NO_EXTENSIONS
    lease: LeaseSandbox = lease
    """Where reference plans are executed."""
    _baselines: dict[str, Baseline] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def environment_for(self, item_id: str) -> CodeEnvironment:
        """Which environment a task is about: repositories and problems alike, three to one."""
        rng = rng_of(item_id, "world")
        kinds = [
            [w for w in self.environments.values() if (w.problem is not None) == is_problem]
            for is_problem in (False, False, False, True)
        ]
        pools = [pool for pool in kinds if pool]
        if not pools:
            raise UnprovedError("no_code_world")
        pool = sorted(rng.choice(pools), key=lambda environment: environment.project.name)
        return rng.choice(pool)

    async def make(self, item_id: str) -> CodeTask:
        """UnprovedError where no bug or no proof is found, TransientError for a lost sandbox."""
        environment = self.environment_for(item_id)
        try:
            if environment.problem is not None:
                bug = await self._draft_of_problem(environment)
            else:
                bug = await self._bug_in_repository(environment, rng_of(item_id, "bug"))
        except ItemError as error:
            raise UnprovedError(error.reason) from error
        draft = _draft(environment, bug)
        criteria = (*_criteria(bug), *self.extensions.criteria(draft))
        rubric = Rubric(criteria=criteria)
        observed = await self._prove(environment, draft, rubric)
        count = len(bug.fail_to_pass)
        complexity = "simple" if count == 1 else "moderate" if count <= 4 else "complex"
        secret = (*bug.fix.old.splitlines(), *bug.fix.new.splitlines())
        proof = Proof(
            rubric=rubric,
            observed_chars=observed,
            num_distinct_tools=len({step.tool for step in draft.plan}),
        )
        return CodeTask(complexity, draft, proof, bug.failing, secret, bug.bug_id)

    async def _bug_in_repository(self, environment: CodeEnvironment, rng: Random) -> InjectedBug:
        project = environment.project
        async with self._lock:  # the suite runs once, however many tasks wait for it
            if project.name not in self._baselines:
                self._baselines[project.name] = await baseline_of(project)
        baseline = self._baselines[project.name]
        bug = await inject_bug(project, baseline, rng)
        docs = {test.name: test.doc for test in baseline.tests}
        return InjectedBug(
            bug_id=bug_id(project, bug.mutation.path, bug.files[bug.mutation.path]),
            edits=[{"path": bug.mutation.path, "old": bug.fix.new, "new": bug.fix.old}]
            if project.files[bug.mutation.path].count(bug.fix.new) == 1
            else [
                {
                    "path": bug.mutation.path,
                    "old": project.files[bug.mutation.path],
                    "new": bug.files[bug.mutation.path],
                }
            ],
            path=bug.mutation.path,
            fix=bug.fix,
            fail_to_pass=bug.fail_to_pass,
            pass_to_pass=bug.pass_to_pass,
            failing=[
                {"name": name, "doc": docs[name], "message": text.partition("\n")[0]}
                for name, text in bug.failures.items()
            ],
        )

    async def _draft_of_problem(self, environment: CodeEnvironment) -> InjectedBug:
        """The problem's own draft; its hidden tests are what is graded."""
        problem = environment.problem
        assert problem is not None
        files = environment.project.files
        draft = await environment.judge(files, list(problem.cases))
        right = await environment.judge(
            files | {problem.file: problem.reference}, list(problem.cases)
        )
        failing = tuple(name for name, failure in draft.failures.items() if failure is not None)
        if not failing or len(right.passed) < len(problem.cases):
            raise UnprovedError("problem_unsound", problem.name)
        passing = tuple(name for name in problem.cases if name not in failing)
        # hidden tests are nobody's to name: what an issue can tell is the statement, and that the
        # program does something else
        seen = f"{draft.failures[failing[0]]} for some inputs"
        statement = " ".join(problem.statement.split())
        told = [{"name": problem.name, "doc": statement, "message": seen}]
        fix = Replacement(problem.draft, problem.reference)
        own = digest("problem", problem.name)
        return InjectedBug(own, [], problem.file, fix, failing, passing, told)

    async def _prove(self, environment: CodeEnvironment, draft: Draft, rubric: Rubric) -> int:
        """Length of what the reference plan's calls show. UnprovedError where it solves nothing."""
        start = start_files(environment.project, draft.initial_state["edits"])
        calls: list[EpisodeCall] = []
        async with open_workspace(environment.project, start, self.lease) as workspace:
            for step in draft.plan:
                before = dict(workspace.files)
                result = await workspace.call(step.tool, step.arguments)
                if result.error_code is not None:
                    raise UnprovedError("plan_fails", f"{step.tool}: {result.text[:200]}")
                diff = tuple(file_changes(before, workspace.files))
                calls.append(
                    EpisodeCall(
                        tool=step.tool,
                        arguments=step.arguments,
                        observation=result.text,
                        diff=diff,
                    )
                )
        changes = [change for call in calls for change in call.diff]
        run = await environment.judge(candidate_files(start, changes), graded_tests(rubric))
        check_passes(rubric, draft, calls, self.extensions.kinds, tests=run.failures)
        return observed_chars(calls)


def _criteria(bug: InjectedBug) -> list[Criterion]:
    check = TestCheck(fail_to_pass=bug.fail_to_pass, pass_to_pass=bug.pass_to_pass)
    does = "The code does what the issue asks for, and what worked before still works."
    ends = "The assistant has the last word and answers in plain words, not in raw data."
    return [
        TEST.criterion("tests", does, check, weight=4, mandatory=True),
        FORMAT.criterion("format", ends, FormatCheck(), weight=1, mandatory=True),
    ]


def _draft(environment: CodeEnvironment, bug: InjectedBug) -> Draft:
    arguments: dict[str, Any] = {
        "path": bug.path,
        "old_text": bug.fix.old,
        "new_text": bug.fix.new,
    }
    plan = (
        Step(tool="run_tests", arguments={}),
        Step(tool="view_file", arguments={"path": bug.path}),
        Step(tool="edit_file", arguments=arguments),
        Step(tool="run_tests", arguments={}),
    )
    goal = Goal(
        tool="edit_file",
        description="Put the code right.",
        arguments=arguments,
        labels={},
        known=(),
        steps=plan,
        writes=True,
    )
    state = {
        "world": environment.project.name,
        "definition": environment.definition,
        "bug": bug.bug_id,
        "edits": bug.edits,
    }
    return Draft(variant="normal", goals=(goal,), initial_state=state)
