"""The graded tests of a task, run on what an episode's calls left of the code.

They run from the rows alone (what the task begins with, and the changes of its calls), in sandboxes
that the agent never was in, so a stored trajectory can be graded again at any time.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from records.digest import digest
from records.tables.schemas import Row
from synth.episode.tools.code_environments import CodeEnvironment, candidate_files
from synth.rubrics.criteria import Rubric, TestCheck

REMEMBERED = 256
"""Results kept: an agent that speaks without having changed anything is not graded anew."""

FORGED = "the code under test answered for its tests"


def graded_tests(rubric: Rubric) -> list[str]:
    """Names of all tests that the rubric's criteria ask for, in their order."""
    checks = [TestCheck.model_validate(c.check) for c in rubric.criteria if c.kind == "test"]
    return [name for check in checks for name in (*check.fail_to_pass, *check.pass_to_pass)]


class Bench:
    """One for the episodes of a stage."""

    def __init__(self, environment_of: Callable[[Row], CodeEnvironment]) -> None:
        self._environment_of = environment_of
        self._known: OrderedDict[str, dict[str, str | None]] = OrderedDict()

    async def tests_of(
        self, task: Row, rubric: Rubric, calls: Iterable[Mapping[str, Any]]
    ) -> dict[str, str | None] | None:
        """Test -> None where it passed, else why not; None for a task without graded tests.

        `calls` are rows of `tool_calls`. TransientError when a sandbox fails by itself.
        """
        names = graded_tests(rubric)
        if not names:
            return None
        environment = self._environment_of(task)
        changes = [change for call in calls for change in call["state_diff"]]
        candidate = candidate_files(environment.start(task), changes)
        key = digest(environment.definition, names, candidate)
        if key not in self._known:
            run = await environment.judge(candidate, names)
            self._known[key] = dict.fromkeys(names, FORGED) if run.forged else run.failures
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return self._known[key]
