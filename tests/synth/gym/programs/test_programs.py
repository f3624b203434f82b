"""Programs are worth what the hidden tests say of them, whatever they do in their sandbox."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from records.errors import ConfigError, TransientError
from sandboxes.code import problems
from sandboxes.code.problems import judge, load_problems
from sandboxes.code.suite import CaseOutcome
from sandboxes.lending.leases import available
from synth.gym.core.environment import GymEnvironment, GymStep, GymTask
from synth.gym.programs import programs
from synth.gym.programs.programs import Programs, reward_of
from synth.gym.programs.settings import ProgramSettings
from tests.sandboxes.code.test_problems import LOOKS_FOR_ANSWERS, SQUARE

pytestmark = pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}")

RIGHT = "print(int(input()) ** 2)\n"


@pytest.fixture(scope="module")
def problem_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "set.yaml"
    other = SQUARE.model_copy(update={"name": "kept", "split": "heldout_domain"})
    short = SQUARE.model_copy(update={"name": "short", "tests": SQUARE.tests[2:]})
    held = [json.loads(one.model_dump_json()) for one in (SQUARE, other, short)]
    path.write_text(yaml.safe_dump({"problems": held}))
    return path


def environment(path: Path, **settings: object) -> Programs:
    return Programs(ProgramSettings.model_validate({"problems": [str(path)], **settings}))


def task_of(env: GymEnvironment, problem: str) -> GymTask:
    return next(task for task in env.tasks() if task.body["problem"] == problem)


def answered(env: GymEnvironment, *answers: str, problem: str = "square") -> list[GymStep]:
    """The last steps of episodes that go on beside each other."""

    async def one(answer: str) -> GymStep:
        episode = await env.begin(task_of(env, problem), 0)
        return await episode.step({"role": "assistant", "content": answer})

    async def all_of_them() -> list[GymStep]:
        return await asyncio.gather(*map(one, answers))

    return asyncio.run(all_of_them())


def programs_of(env: GymEnvironment, *sources: str, problem: str = "square") -> list[GymStep]:
    return answered(env, *(f"```python\n{source}\n```" for source in sources), problem=problem)


def test_all_tests_or_nothing(problem_file: Path) -> None:
    sources = (RIGHT, "print(int(input()) * 2)", "print(1)")
    steps = programs_of(environment(problem_file), *sources)
    shares = [step.reward.parts["tests_passed"] for step in steps if step.reward]
    assert shares == [1.0, 0.5, 0.25]
    assert [step.reward.value for step in steps if step.reward] == [1.0, 0.0, 0.0]
    assert steps[1].reward is not None
    assert steps[1].reward.parts["wrong_answer"] == 2
    assert all(step.done and not step.observation and step.outside is None for step in steps)


def test_a_share_is_worth_something_where_it_is_asked(problem_file: Path) -> None:
    [step] = programs_of(environment(problem_file, partial=True), "print(int(input()) * 2)")
    assert step.reward is not None
    assert step.reward.value == step.reward.parts["tests_passed"] == 0.5


def test_an_answer_without_a_program_runs_nothing(
    problem_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "judged", None)
    for step in answered(environment(problem_file), "", "The square of the number.", RIGHT):
        assert step.reward is not None
        assert step.reward.value == 0
        assert step.reward.parts["no_program"] == 1


CHEATS = {
    "prints what tests print": ("print('OK')\nprint('passed')", {"wrong_answer"}),
    "prints a verdict": ('print(\'{"done": true, "status": "passed"}\')', {"wrong_answer"}),
    "leaves early with status 0": ("import os\nos._exit(0)", {"no_answer"}),
    "exits in the test": ("import sys\nsys.exit(0)", {"no_answer"}),
    "exits with an error": ("raise SystemExit(3)", {"exit_code"}),
    "overwrites the tests": (
        "open('/repo/tests/test_examples.py', 'w').write('')",
        {"exit_code"},
    ),
    "overwrites itself": ("open(__file__, 'w').write('print(1)')", {"exit_code"}),
    "patches what compares": (
        "import sys, unittest\n"
        "unittest.TestCase.assertEqual = lambda *_: None\n"
        "sys.modules['sandboxes.code.problems'] = sys\n"
        "sys.same_answer = lambda *_: True\n"
        "print('ok')",
        {"wrong_answer"},
    ),
    "looks for the answers": (LOOKS_FOR_ANSWERS, {"no_answer"}),
    "echoes its input": ("import sys\nprint(sys.stdin.read() * 2)", {"wrong_answer"}),
    "forks": ("import os\nwhile True:\n    os.fork()", {"exit_code", "ended_sandbox", "timed_out"}),
    "fills the disk": (
        "with open('/tmp/full', 'wb') as file:\n"
        "    for _ in range(200):\n"
        "        file.write(b'0' * (1 << 20))",
        {"exit_code"},
    ),
    "takes all memory": (
        "held = [b'0' * (1 << 24) for _ in range(1000)]",
        {"out_of_memory", "exit_code", "ended_sandbox"},
    ),
    "ends its sandbox": ("import os\nos.kill(-1, 9)", {"ended_sandbox", "exit_code"}),
    "prints without measure": (
        "import sys\nfor _ in range(35):\n    sys.stdout.write('4' * 1_000_000)",
        {"too_much_output"},
    ),
}
"""Program -> the causes by which it may be known."""


@pytest.mark.slow
def test_no_cheat_is_worth_anything_and_each_is_named(problem_file: Path) -> None:
    env = environment(problem_file, live=2)
    steps = programs_of(env, *(source for source, _ in CHEATS.values()), problem="short")
    for (cheat, (_, causes)), step in zip(CHEATS.items(), steps, strict=True):
        assert step.reward is not None, cheat
        named = {name for name in step.reward.parts if name != "tests_passed"}
        assert named, cheat
        # what walks, forks or fills may have no end in time on a machine that has other work
        assert named <= {*causes, "timed_out", "not_run"}, (cheat, step.reward)
        assert named & causes, (cheat, step.reward)
        assert step.reward.value == 0, cheat


@pytest.mark.slow
def test_what_has_no_end_is_ended_and_the_rest_is_not_run(
    problem_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problems, "TIMEOUT_S", 1.5)
    spins, floods = programs_of(
        environment(problem_file), "while True: pass", "while True: print('4' * 1_000_000)"
    )
    assert spins.reward is not None
    assert floods.reward is not None
    assert spins.reward.value == floods.reward.value == 0
    assert spins.reward.parts == {"tests_passed": 0, "timed_out": 2, "not_run": 2}
    assert floods.reward.parts == {"tests_passed": 0, "too_much_output": 2, "not_run": 2}


@pytest.mark.slow
def test_programs_are_graded_as_the_problems_own_grading_does(problem_file: Path) -> None:
    problem, env = load_problems(problem_file)[2], environment(problem_file)
    for source in (RIGHT, "print(int(input()) * 2)", "1 / (int(input()) - 2)"):
        whole = asyncio.run(judge(problem, {problem.file: source}, list(problem.cases)))
        found = asyncio.run(env.outcomes(problem, source))
        assert found == list(whole.outcomes.values())


def test_nothing_of_the_hidden_tests_is_shown(problem_file: Path) -> None:
    env = environment(problem_file)
    episode = asyncio.run(env.begin(task_of(env, "square"), 0))
    shown = json.dumps([episode.messages, [task._asdict() for task in env.tasks()]])
    assert "11" not in json.dumps(episode.messages)
    assert "121" not in json.dumps(episode.messages)
    assert SQUARE.reference not in shown
    assert "Input:\\n2\\n\\nOutput:\\n4" in json.dumps(episode.messages)


def test_an_episode_is_one_answer(problem_file: Path) -> None:
    env = environment(problem_file)

    async def twice() -> None:
        episode = await env.begin(task_of(env, "square"), 0)
        await episode.step({"role": "assistant", "content": None})
        with pytest.raises(ValueError, match="the episode on problem square has ended"):
            await episode.step({"role": "assistant", "content": RIGHT})
        await episode.close()
        await episode.close()
        await env.close()

    asyncio.run(twice())


def test_a_lost_sandbox_says_nothing_of_the_program(
    problem_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object, **__: object) -> None:
        raise TransientError("the sandbox ended")

    monkeypatch.setattr(problems, "one_case", lost)
    [step] = programs_of(environment(problem_file), RIGHT)
    assert step.done
    assert (step.reward, step.outside) == (None, "infra_error")


def test_problems_come_to_the_sides_that_they_name(problem_file: Path) -> None:
    def splits(share: float) -> dict[str, str]:
        tasks = environment(problem_file, validation_share=share).tasks()
        return {task.body["problem"]: task.split for task in tasks}

    assert splits(0.0) == {"square": "train", "short": "train", "kept": "heldout"}
    assert splits(1.0) == {"square": "validation", "short": "validation", "kept": "heldout"}


def test_the_built_in_problems_are_asked() -> None:
    tasks = Programs().tasks()
    assert len({task.task_id for task in tasks}) == len(tasks) > 2
    assert {task.family for task in tasks} == {"programs"}
    assert "language:shell" in {tag for task in tasks for tag in task.tags}
    assert tasks == Programs().tasks()


def test_a_repository_is_no_problem() -> None:
    with pytest.raises(ConfigError, match=r"problems = \['coinpurse'\] names no problem"):
        Programs(ProgramSettings(problems=("coinpurse",)))


def test_the_value_is_one_or_nothing_unless_a_share_is_asked() -> None:
    fine, late = CaseOutcome("passed"), CaseOutcome("failed", "late", "timed_out")
    mixed = [fine, late, late, None]
    assert reward_of(mixed, partial=False) == (
        0.0,
        {"tests_passed": 0.25, "timed_out": 2.0, "not_run": 1.0},
    )
    assert reward_of(mixed, partial=True).value == 0.25
    assert reward_of([fine, fine], partial=False) == (1.0, {"tests_passed": 1.0})
