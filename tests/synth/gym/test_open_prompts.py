"""Prompts without a verifiable answer: rows become tasks to rank, and no episode rewards itself."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError
from synth.gym.core.environment import GymTask
from synth.gym.core.ranked import MOST_RULES, RubricRule, is_ranked, rubric_of
from synth.gym.registry import Gym, GymConfig

ROWS: list[dict[str, Any]] = [
    {"prompt": "Cheer me up.", "topic": "mood"},
    {"prompt": "Name a colour.", "system": "Be short.", "rubric": "one word\nonly"},
    {"prompt": "Cheer me up.", "topic": "mood"},
    {"prompt": "Plan a day.", "rubric": ["is kind", {"rule": "has times", "mandatory": True}]},
]


def gym_of(folder: Path, rows: list[Any], **other: Any) -> Gym:
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    files = [{"path": str(path), **other}]
    return Gym.of(GymConfig.model_validate({"families": {"open": {"files": files}}}))


def test_rows_are_tasks_to_rank_each_once_with_their_rubric(tmp_path: Path) -> None:
    tasks = gym_of(tmp_path, ROWS, tags=("topic",)).tasks()
    assert [task.body["prompt"] for task in tasks] == [
        "Cheer me up.",
        "Name a colour.",
        "Plan a day.",
    ]
    assert all(is_ranked(task) and task.split == "train" for task in tasks)
    assert "topic:mood" in tasks[0].tags
    assert [rubric_of(task) for task in tasks] == [
        [],
        [RubricRule("one word only")],
        [RubricRule("is kind"), RubricRule("has times", True)],
    ]
    assert [t.task_id for t in gym_of(tmp_path, ROWS, most=2).tasks()] == [
        t.task_id for t in gym_of(tmp_path, ROWS).tasks()[:2]
    ]


def test_an_episode_is_one_answer_and_ends_without_a_reward(tmp_path: Path) -> None:
    gym = gym_of(tmp_path, ROWS)
    task = gym.tasks()[1]

    async def played() -> None:
        episode = await gym.environments["open"].begin(task, 0)
        assert episode.messages == [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Name a colour."},
        ]
        step = await episode.step({"role": "assistant", "content": "Red"})
        assert (step.done, step.reward, step.outside) == (True, None, None)
        with pytest.raises(ValueError, match="ended"):
            await episode.step({"role": "assistant", "content": "Blue"})
        await episode.close()
        await gym.close()

    asyncio.run(played())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"question": "What?"}, "column 'prompt' is None.*its columns are question"),
        ({"prompt": " "}, "a text is wanted"),
        ({"prompt": "a", "system": 3}, "column 'system' is 3, and no text"),
        ({"prompt": "a", "rubric": [{"rul": "b"}]}, "is no rule of a rubric"),
        ({"prompt": "a", "rubric": [" "]}, "is no rule of a rubric"),
        ({"prompt": "a", "rubric": {"rule": "b", "mandatory": "yes"}}, "is no rule of a rubric"),
        ({"prompt": "a", "rubric": ["b"] * (MOST_RULES + 1)}, "at most 12 rules, got 13"),
        ("words", "is no object with columns"),
    ],
)
def test_rows_that_cannot_be_read_are_told(tmp_path: Path, row: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"row 2 of .*{words}"):
        gym_of(tmp_path, [ROWS[0], row]).tasks()


def test_other_tasks_are_not_ranked() -> None:
    assert not is_ranked(GymTask("a", "sums", "train", ("kind:sum",), {"rubric": "x"}))
