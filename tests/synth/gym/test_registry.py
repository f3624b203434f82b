"""Families by name: settings and tasks are checked."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from records.errors import ConfigError
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.questions import Questions
from synth.gym.maths.reasoning import ReasoningSettings
from synth.gym.registry import FAMILIES, Gym, GymConfig, GymSurroundings
from synth.tasks.goals.goals import Variant
from tests.trainer.played_dataset import make_dataset


class Own(Questions):
    family = "own"

    def __init__(self, tasks: Sequence[GymTask], family: str = "own") -> None:
        self._tasks, self.family = tasks, family

    def tasks(self) -> Sequence[GymTask]:
        return self._tasks

    def question(self, task: GymTask) -> str:
        return f"{self.family}?"

    def reward(self, task: GymTask, answer: str) -> Reward:
        return Reward(1.0)


def task(**changes: Any) -> GymTask:
    return GymTask("a", "own", "train", ("kind:x",), {})._replace(**changes)


SMALL = {
    "kinds": [{"kind": "number_riddle", "counts": {"train": 2, "validation": 0, "heldout": 0}}]
}


def test_a_family_is_made_of_its_settings_and_plays_its_tasks() -> None:
    config = GymConfig.model_validate({"families": {"reasoning": SMALL}})
    gym = Gym.of(config)

    async def played() -> float:
        (first, _) = gym.tasks()
        episode = await gym.environments[first.family].begin(first, 0)
        answer = {"role": "assistant", "content": f"<answer>{first.body['answer']}</answer>"}
        step = await episode.step(answer)
        await gym.close()
        assert step.reward is not None
        return step.reward.value

    assert list(gym.environments) == ["reasoning"]
    assert asyncio.run(played()) == 1.0


def test_settings_come_through_json_and_have_an_identity() -> None:
    config = GymConfig.model_validate({"families": {"reasoning": SMALL}})
    assert isinstance(config.families["reasoning"], ReasoningSettings)
    assert GymConfig.model_validate(config.model_dump(mode="json")) == config
    assert config.identity()["families"]["reasoning"]["seed"] == 0


@pytest.mark.parametrize(
    ("families", "words"),
    [
        ({"sums": {}}, "there is no family 'sums'; there are grounding, instructions, maths"),
        ({"reasoning": {"sed": 1}}, "reasoning: .*sed"),
        ({"maths": {}}, "maths: .*files"),
        (["reasoning"], "each with a table of settings"),
    ],
)
def test_settings_that_are_refused(families: Any, words: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s){words}"):
        GymConfig.model_validate({"families": families})


URL = "http://127.0.0.1:9/v1"


def test_roles_are_given_as_in_any_run_and_come_through_json() -> None:
    given = {"families": {"reasoning": SMALL}, "roles": {"all": {"base_url": URL, "models": "m"}}}
    config = GymConfig.model_validate(given)
    assert config.roles["judge"].base_url == URL
    assert GymConfig.model_validate(config.model_dump(mode="json")) == config
    assert "base_url" not in config.identity()["roles"]["judge"]


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"jugde": {"base_url": URL}}, "there is no role 'jugde'; there are .*judge"),
        ({"judge": {"models": "m"}}, "judge has no base_url"),
        ({"judge": {"base_url": URL, "tempreature": 0}}, "tempreature"),
    ],
)
def test_roles_that_are_refused(roles: Any, words: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s){words}"):
        GymConfig.model_validate({"families": {"reasoning": SMALL}, "roles": roles})


def test_what_asks_for_the_environments_ends_with_the_gym(tmp_path: Path) -> None:
    given = {"families": {"reasoning": SMALL}, "roles": {"judge": {"base_url": URL}}}
    config = GymConfig.model_validate(given)
    for _ in range(2):  # the journal of one that is closed can be opened again
        before = threading.active_count()
        gym = Gym.of(config, tmp_path)
        assert threading.active_count() == before + 1
        asyncio.run(gym.close())
        assert threading.active_count() == before


def test_an_environment_that_cannot_be_made_leaves_nobody_asking(tmp_path: Path) -> None:
    families = {"tool_use": {"dataset": str(tmp_path / "none")}}
    given = {"families": families, "roles": {"judge": {"base_url": URL}}}
    before = threading.active_count()
    with pytest.raises(ConfigError, match="is no dataset"):
        Gym.of(GymConfig.model_validate(given), tmp_path)
    assert threading.active_count() == before


def test_a_gym_without_environments_is_refused() -> None:
    with pytest.raises(ConfigError, match="gym names no environment"):
        Gym.of(GymConfig())


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([], "'own' has no tasks"),
        ([task(), task()], "task id 'a' comes again"),
        ([task(family="other")], "its family is 'other'"),
        ([task(split="test")], "its split is 'test'; there are train, validation, heldout"),
        ([task(task_id="")], "its id is no text"),
        ([task(tags=("easy",))], "a tag is FACET:VALUE"),
        ([task(body={"x": {1, 2}})], "its body is no JSON"),
        ([task(body={"x": float("nan")})], "its body is no JSON"),
    ],
)
def test_tasks_that_are_refused(tasks: list[GymTask], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Gym([Own(tasks)]).tasks()


def test_all_environments_are_closed_though_one_of_them_cannot_be() -> None:
    closed: list[str] = []

    class Closed(Own):
        async def close(self) -> None:
            closed.append(self.family)
            if self.family == "second":
                raise OSError("it does not end")

    gym = Gym([Closed([], name) for name in ("first", "second", "third")])
    with pytest.raises(OSError, match="it does not end"):
        asyncio.run(gym.close())
    assert sorted(closed) == ["first", "second", "third"]


def test_two_environments_cannot_have_one_name() -> None:
    with pytest.raises(ConfigError, match="several environments are called own"):
        Gym([Own([task()]), Own([task()])])


def test_two_families_cannot_have_tasks_of_one_id() -> None:
    families = [Own([task()]), Own([task(family="second")], "second")]
    with pytest.raises(ConfigError, match="comes again \\(first in 'own'\\)"):
        Gym(families).tasks()


@pytest.mark.slow
def test_every_family_s_environment_is_called_as_it_is_listed(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", num_tasks=1)
    settings: dict[str, Any] = {
        "grounding": {"files": [{"path": "rows.jsonl"}]},
        "maths": {"files": [{"path": "rows.jsonl"}]},
        "open": {"files": [{"path": "rows.jsonl"}]},
        # by name, since the only task may be one that is earned by nothing
        "tool_use": {"dataset": str(dataset), "variants": get_args(Variant)},
    }
    for name, family in FAMILIES.items():
        own = family.settings.model_validate(settings.get(name, {}))
        made = family.make(own, GymSurroundings())
        assert made.family == name
