"""An environment is one file; its faults are told as the file's, and cost one episode only."""

import asyncio
import hashlib
import re
from pathlib import Path

import pytest

from records.errors import ConfigError, ItemError, TransientError
from synth.gym.core.environment import GymTask, RewardError
from synth.gym.files import EnvironmentFile, load_environment
from synth.gym.registry import Gym, GymConfig

DOCUMENT = Path(__file__).parents[3] / "docs" / "gym.md"

EXAMPLE = re.search(r"```python\n# my_sums\.py\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def written(tmp_path: Path, text: str) -> EnvironmentFile:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return EnvironmentFile.model_validate(str(path))


def example() -> str:
    assert EXAMPLE is not None
    return EXAMPLE[1]


def replaced(old: str, new: str) -> str:
    text = example()
    assert old in text
    return text.replace(old, new)


def test_the_document_s_example_is_short() -> None:
    assert len(example().splitlines()) < 40


def test_the_document_s_example_rewards_what_is_right_alone(tmp_path: Path) -> None:
    file = written(tmp_path, example())
    gym = Gym.of(GymConfig(files=(file,)))

    async def value(task: GymTask, reply: str) -> float:
        episode = await gym.environments[task.family].begin(task, 0)
        step = await episode.step({"role": "assistant", "content": reply})
        assert step.reward is not None
        assert episode.messages[-1]["content"] == reply
        await episode.close()
        return step.reward.value

    tasks = gym.tasks()
    assert {task.split for task in tasks} == {"train", "validation", "heldout"}
    for task in tasks[:5]:
        right = str(task.body["a"] + task.body["b"])
        assert asyncio.run(value(task, f"<answer>{right}</answer>")) == 1.0
        for reply in ("", right, "<answer>1 or 2</answer>", f"<answer>{right}1</answer>"):
            assert asyncio.run(value(task, reply)) == 0.0
    asyncio.run(gym.close())


def test_a_path_is_all_that_a_config_says_and_its_content_is_remembered(tmp_path: Path) -> None:
    file = written(tmp_path, example())
    assert file.sha256 == hashlib.sha256(example().encode()).hexdigest()
    assert file.identity() == {"sha256": file.sha256}
    again = EnvironmentFile.model_validate(file.model_dump(mode="json"))
    assert again == file


def test_a_file_that_was_edited_since_is_not_run(tmp_path: Path) -> None:
    file = written(tmp_path, example())
    Path(file.path).write_text(example() + "\n# edited\n")
    with pytest.raises(ValueError, match="was edited since"):
        EnvironmentFile.model_validate(file.model_dump(mode="json"))
    with pytest.raises(ConfigError, match="was edited after the run was configured"):
        load_environment(file)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("no.py", r"no\.py cannot be read: No such file"),
        ("mine.txt", "path of a Python file, such as my_sums.py"),
        (7, "path of a Python file"),
        (None, "path of a Python file"),
    ],
)
def test_what_names_no_file(given: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        EnvironmentFile.model_validate(given)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ny = (\n", r"mine\.py cannot be loaded: line 2: SyntaxError"),
        ("x = 1\ny = z\n", r"mine\.py cannot be loaded: line 2: NameError: .*'z'"),
        ("x = 1\n", r"must define ENVIRONMENT = MyQuestions\(\).* is None"),
        ("ENVIRONMENT = 3\n", "its ENVIRONMENT is 3"),
    ],
)
def test_a_file_that_defines_no_environment(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        load_environment(written(tmp_path, text))


def test_a_class_in_the_place_of_an_environment_is_told(tmp_path: Path) -> None:
    text = replaced("ENVIRONMENT = MySums()", "ENVIRONMENT = MySums")
    with pytest.raises(ConfigError, match="must define ENVIRONMENT"):
        load_environment(written(tmp_path, text))


def test_a_family_that_is_no_name_is_told(tmp_path: Path) -> None:
    text = replaced('family = "my_sums"', 'family = "my sums"')
    with pytest.raises(ConfigError, match=r"ENVIRONMENT\.family is 'my sums'; name it"):
        load_environment(written(tmp_path, text))


def test_a_family_that_is_taken_is_told(tmp_path: Path) -> None:
    text = replaced('family = "my_sums"', 'family = "reasoning"')
    config = GymConfig.model_validate(
        {"families": {"reasoning": {}}, "files": [written(tmp_path, text)]}
    )
    with pytest.raises(ConfigError, match="give the one in your file another `family`"):
        Gym.of(config)


def test_tasks_that_fail_name_the_line(tmp_path: Path) -> None:
    text = replaced("return [", "return [0 / 0] + [")
    with pytest.raises(ConfigError, match=r"tasks\(\) failed: line \d+: ZeroDivisionError"):
        load_environment(written(tmp_path, text)).tasks()


def test_tasks_that_are_none_are_told(tmp_path: Path) -> None:
    text = replaced("return [", "return ['a task'] + [")
    with pytest.raises(ConfigError, match="tasks\\(\\) gave 'a task', which is no GymTask"):
        load_environment(written(tmp_path, text)).tasks()


def reward_of(tmp_path: Path, body: str) -> None:
    """Play one episode of the example whose reward is told by `body`."""
    text = replaced("        found = ", f"        {body}\n        found = ")
    environment = load_environment(written(tmp_path, text))

    async def play() -> None:
        episode = await environment.begin(environment.tasks()[0], 0)
        await episode.step({"role": "assistant", "content": "<answer>1</answer>"})

    asyncio.run(play())


def test_a_reward_that_fails_costs_its_episode_and_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=r"mine\.py: step\(\): line \d+: KeyError") as caught:
        reward_of(tmp_path, "{}['missing']")
    assert caught.value.reason == "environment_raised"


def test_a_reward_that_is_none_has_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match="reward_out_of_range: 2"):
        reward_of(tmp_path, "return Reward(2.0)")


def test_a_question_that_fails_costs_its_episode(tmp_path: Path) -> None:
    text = replaced("return f", "return 1 + f")
    environment = load_environment(written(tmp_path, text))
    with pytest.raises(ItemError, match=r"begin\(\): line \d+: TypeError"):
        asyncio.run(environment.begin(environment.tasks()[0], 0))


def test_what_may_pass_by_itself_stays_what_it_is(tmp_path: Path) -> None:
    text = "from records.errors import TransientError\n" + replaced(
        "return f", "raise TransientError('busy')\n        return f"
    )
    environment = load_environment(written(tmp_path, text))
    with pytest.raises(TransientError, match="busy"):
        asyncio.run(environment.begin(environment.tasks()[0], 0))
