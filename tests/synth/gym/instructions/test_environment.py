"""The environment: tasks by the seed, splits by content, tags, episodes, prompts of the user."""

import asyncio
import json
from collections import defaultdict
from pathlib import Path

import pytest
from pydantic import ValidationError

from records.errors import ConfigError
from synth.gym.core.environment import GymEnvironment, GymTask
from synth.gym.instructions.environment import Instructions, InstructionsConfig
from synth.gym.instructions.kinds import KINDS
from synth.matching.word_runs import words_of

TASKS = Instructions(InstructionsConfig(tasks=300, seed=5)).tasks()


def topic(task: GymTask) -> str:
    return task.body["request"].split(" about ", 1)[1].rsplit(" for ", 1)[0]


def test_tasks_hang_on_the_settings_alone() -> None:
    again = Instructions(InstructionsConfig(tasks=300, seed=5))
    assert again.tasks() == TASKS
    assert json.loads(json.dumps([task.body for task in TASKS])) == [task.body for task in TASKS]
    assert len({task.task_id for task in TASKS}) == len(TASKS)
    more = Instructions(InstructionsConfig(tasks=310, seed=5)).tasks()
    assert more[:300] == TASKS
    other = Instructions(InstructionsConfig(tasks=300, seed=6)).tasks()
    assert {task.task_id for task in other}.isdisjoint(task.task_id for task in TASKS)


def test_no_topic_stands_in_two_splits_whatever_the_seed() -> None:
    other = Instructions(InstructionsConfig(tasks=300, seed=6)).tasks()
    splits: defaultdict[str, set[str]] = defaultdict(set)
    for task in (*TASKS, *other):
        splits[topic(task)].add(task.split)
    assert all(len(found) == 1 for found in splits.values())
    assert {task.split for task in TASKS} == {"train", "validation", "heldout"}


def test_tags_say_what_a_task_is_about() -> None:
    levels = set[str]()
    for task in TASKS:
        kinds = [one["kind"] for one in task.body["constraints"]]
        assert {f"kind:{kind}" for kind in kinds} <= set(task.tags)
        assert f"level:{len(kinds)}" in task.tags
        levels.add(f"level:{len(kinds)}")
        assert sum(tag.startswith("domain:") for tag in task.tags) == 1
    assert levels == {f"level:{number}" for number in range(1, 6)}
    assert {tag for task in TASKS for tag in task.tags} >= {f"kind:{kind}" for kind in KINDS}


def test_the_question_holds_the_request_and_every_constraint() -> None:
    environment = Instructions(InstructionsConfig(tasks=300, seed=5))
    for task in TASKS:
        question = environment.question(task)
        assert question.startswith(task.body["request"])
        level = len(task.body["constraints"])
        assert question.count("\n- ") == (level if level > 1 else 0)


def test_an_episode_is_one_answer() -> None:
    environment: GymEnvironment = Instructions(
        InstructionsConfig(tasks=1, kinds=("words_at_most",), levels=(1,))
    )

    async def play() -> None:
        (task,) = environment.tasks()
        for content, value in (("The roof leaks, so take a bucket.", 1), ("", 0), (None, 0)):
            episode = await environment.begin(task, 0)
            assert episode.messages[-1]["role"] == "user"
            step = await episode.step({"role": "assistant", "content": content})
            assert step.done
            assert step.reward is not None
            assert step.reward.value == value
            await episode.close()

    asyncio.run(play())


def test_prompts_of_the_user_take_the_place_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    prompts = [f"Write about place number {number}." for number in range(40)]
    rows = [{"prompt": prompt} for prompt in prompts] + [{"prompt": prompts[0].upper()}]
    file.write_text("\n".join(map(json.dumps, rows)))
    text = tmp_path / "prompts.txt"
    text.write_text("\r\n".join(prompts))
    tasks = {}
    for path in (file, text):
        config = InstructionsConfig(tasks=80, prompts=str(path), heldout_share=0.3)
        tasks[path] = Instructions(config).tasks()
        assert {task.body["request"] for task in tasks[path]} == set(prompts)
    assert tasks[file] == tasks[text]
    splits: defaultdict[str, set[str]] = defaultdict(set)
    for task in tasks[file]:
        splits[" ".join(words_of(task.body["request"]))].add(task.split)
    assert all(len(found) == 1 for found in splits.values())
    assert len({task.split for task in tasks[file]}) == 3


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.jsonl", '{"question": "?"}', "row 0 holds no prompt"),
        ("a.jsonl", '{"prompt": 3}', "row 0 holds no prompt"),
        ("a.txt", "\n \n", "holds no prompts"),
    ],
)
def test_a_file_without_prompts_is_an_error(
    name: str, content: str, error: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=error):
        Instructions(InstructionsConfig(prompts=str(tmp_path / name)))


@pytest.mark.parametrize(
    "settings",
    [
        {"levels": [0]},
        {"levels": [6]},
        {"levels": []},
        {"kinds": ["no_such"]},
        {"validation_share": 0.6, "heldout_share": 0.6},
        {"tasks": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        InstructionsConfig.model_validate(settings)
