"""Programming problems as an environment: the answer is a program, hidden tests judge it.

It is judged as `sandboxes.code.problems` does: each test is a run of its own in a clean sandbox,
and no expected answer ever enters one. So nothing that a program prints, reads, patches or ends
there tells it what is right or is taken for it. What the tests say goes into the reward alone; the
policy is shown none of it. A program that draws at random or asks for the time is judged by what it
does this once.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from records.digest import digest
from records.errors import ConfigError, TransientError
from records.seeds import share_of
from sandboxes.code.problems import LATE, TIMEOUT_S, Problem, judged
from sandboxes.code.suite import MAX_SLOW, CaseOutcome
from sandboxes.lending.capacity import machine_live
from sandboxes.lending.leases import available
from synth.episode.tools.code_environments import code_environments
from synth.gym.core.environment import GymSplit, GymStep, GymTask, Reward, checked
from synth.gym.programs.answers import TAGS, program_in
from synth.gym.programs.settings import ProgramSettings
from synth.llm.wire.request import Message

SYSTEM = "You write programs."

QUESTION = """{statement}
## Answer

Write a program in {language} that reads the input from standard input and prints the output. It has
{seconds:g} seconds. Put the whole program into a block that begins with ```{tag} and ends with ```.
Of several such blocks the last one counts.
"""

NOT_RUN = "not_run"
"""Tests of a program that had no end in two others, as counts name them."""


class Programs:
    """Problems with hidden tests (`synth.gym.core.environment.GymEnvironment`)."""

    family = "programs"

    def __init__(self, settings: ProgramSettings = ProgramSettings()) -> None:
        """ConfigError where no sandbox can run, for names that are no problems, and for files with
        a wrong place."""
        if (why := available()) is not None:
            raise ConfigError(f"programs are run in sandboxes, and none can run here: {why}")
        self.settings = settings
        environments = code_environments(settings.problems).values()
        problems = [one.problem for one in environments if one.problem is not None]
        if not problems:
            raise ConfigError(f"problems = {list(settings.problems)} names no problem")
        self._problems = {_id_of(problem): problem for problem in problems}
        self._slots = self._new_slots()

    def tasks(self) -> Sequence[GymTask]:
        return tuple(
            GymTask(
                task_id,
                self.family,
                self._split(task_id, problem),
                ("kind:program", f"language:{problem.language}", f"problem:{problem.name}"),
                {"problem": problem.name},
            )
            for task_id, problem in sorted(self._problems.items())
        )

    async def begin(self, task: GymTask, seed: int) -> "ProgramEpisode":
        del seed  # nothing is drawn in an episode of one answer
        return ProgramEpisode(self, self._problems[task.task_id])

    async def close(self) -> None:
        """Nothing runs between answers."""
        self._slots = self._new_slots()

    async def outcomes(self, problem: Problem, program: str) -> list[CaseOutcome | None]:
        """Of the hidden tests in their order; None for those that were not run. TransientError
        where a sandbox fails by itself."""
        found: list[CaseOutcome | None] = []
        names, late = list(problem.cases), 0
        async with (
            self._slots,
            aclosing(judged(problem, {problem.file: program}, names)) as tests,
        ):
            async for _, outcome in tests:
                found.append(outcome)
                late += outcome.words == LATE
                if late == MAX_SLOW:
                    break
        return found + [None] * (len(names) - len(found))

    def _split(self, task_id: str, problem: Problem) -> GymSplit:
        if problem.split != "train":
            return "heldout"
        kept = share_of(task_id, "gym_validation") < self.settings.validation_share
        return "validation" if kept else "train"

    def _new_slots(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.settings.live or machine_live())


class ProgramEpisode:
    """One problem being answered (`synth.gym.core.environment.GymEpisode`)."""

    tools: Sequence[Mapping[str, Any]] = ()

    def __init__(self, environment: Programs, problem: Problem) -> None:
        self._environment, self._problem = environment, problem
        self._over = False
        self.messages: list[Message] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question_of(problem)},
        ]

    async def step(self, action: Message) -> GymStep:
        if self._over:
            raise ValueError(f"the episode on problem {self._problem.name} has ended")
        self._over = True
        self.messages.append(action)
        program = program_in(str(action.get("content") or ""), self._problem.language)
        if program is None:
            return GymStep(
                [], done=True, reward=Reward(0.0, {"tests_passed": 0.0, "no_program": 1})
            )
        try:
            outcomes = await self._environment.outcomes(self._problem, program)
        except TransientError:
            return GymStep([], done=True, outside="infra_error")
        reward = reward_of(outcomes, partial=self._environment.settings.partial)
        return GymStep([], done=True, reward=checked(reward))

    async def close(self) -> None:
        """Nothing runs."""


def question_of(problem: Problem) -> str:
    """What the policy is asked: the statement with its examples. Of the hidden tests it has
    nothing."""
    return QUESTION.format(
        statement=problem.project().files["PROBLEM.md"],
        language=problem.language,
        seconds=TIMEOUT_S,
        tag=TAGS[problem.language][0],
    )


def reward_of(outcomes: Sequence[CaseOutcome | None], *, partial: bool) -> Reward:
    """Of a program by its hidden tests, None for those not run: 1 where it passed all, else 0, or
    with `partial` the share that it passed. The parts are that share, and how many tests failed for
    which cause."""
    passed = sum(one is not None and one.status == "passed" for one in outcomes)
    share = passed / len(outcomes)
    causes = Counter(
        NOT_RUN if one is None else one.cause
        for one in outcomes
        if one is None or one.status != "passed"
    )
    parts = {"tests_passed": share} | {str(cause): float(n) for cause, n in causes.items()}
    return Reward(share if partial or share == 1 else 0.0, parts)


def _id_of(problem: Problem) -> str:
    return digest("program", problem.identity())
