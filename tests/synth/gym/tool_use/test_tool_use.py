"""Tasks of a dataset as an environment: who does well is rewarded, and nobody else."""

import asyncio
import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from records.errors import ConfigError, ItemError, TransientError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.episode.config import DelegationConfig, EpisodeConfig
from synth.episode.users import user
from synth.episode.users.user import LlmUser, UserError
from synth.gym.core.environment import GymStep, Reward, RewardError
from synth.gym.tool_use.tool_use import ToolUse, origin_of, split_of_task
from synth.llm.wire.request import Message
from synth.prompts import templates
from synth.tasks.goals.goals import Variant
from tests.synth.clinic import calls, says
from tests.synth.gym.tool_use.playing import (
    SILENT,
    actions_of,
    played,
    recorded,
    settings_of,
    told,
)
from tests.trainer.played_dataset import make_dataset

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("tool_use") / "data", num_tasks=12)


@pytest.fixture(scope="module")
def rows(dataset: Path) -> dict[str, Row]:
    """The trajectories of tasks that the environment has."""
    playable = {task.task_id for task in ToolUse(settings_of(dataset)).tasks()}
    return {task: row for task, row in recorded(dataset).items() if task in playable}


@pytest.fixture(scope="module")
def right(dataset: Path, rows: Mapping[str, Row]) -> dict[str, tuple[list[Message], GymStep]]:
    """The recorded answers, given again."""
    return played(ToolUse(settings_of(dataset)), {t: actions_of(row) for t, row in rows.items()})


def reward_of(step: GymStep) -> Reward:
    assert step.done
    assert step.outside is None
    assert step.reward is not None
    return step.reward


def test_the_recorded_answers_are_worth_what_they_were(
    rows: Mapping[str, Row], right: Mapping[str, tuple[list[Message], GymStep]]
) -> None:
    for task, (_, step) in right.items():
        reward, was = reward_of(step), rows[task]["objective_reward"]
        assert reward.parts["objective_reward"] == pytest.approx(was)
        assert reward.value == pytest.approx(0.0 if reward.parts["left_open"] else was)
        assert reward.parts["calls"] == rows[task]["num_tool_calls"]
        assert any(name.startswith("criterion:") for name in reward.parts)
    assert sum(reward_of(step).value == 1 for _, step in right.values()) > 2


def test_a_success_is_worth_one_where_that_is_asked(
    dataset: Path,
    rows: Mapping[str, Row],
    right: Mapping[str, tuple[list[Message], GymStep]],
) -> None:
    env = ToolUse(settings_of(dataset, reward="success"))
    again = played(env, {task: actions_of(row) for task, row in rows.items()})
    for task, (messages, step) in again.items():
        assert messages == right[task][0]
        assert reward_of(step).parts == reward_of(right[task][1]).parts
        assert reward_of(step).value == reward_of(step).parts["success"]
    assert {reward_of(step).value for _, step in again.values()} >= {1.0}


BABBLE = says(" ".join(["indicodefinally pynamples extrapath ttribute olsystem."] * 12))
CLAIM = says("Everything is done as you asked: it is booked, changed and confirmed. Goodbye!")
MARKUP = says('<tool_call>{"name": "find_parcels", "arguments": {}}</tool_call>')
FALLS_APART = calls(("no_such_tool", {}), ("find_parcels", "{broken"))


@pytest.mark.parametrize(
    "action", [SILENT, BABBLE, CLAIM, MARKUP, FALLS_APART], ids=lambda a: str(a["content"])[:12]
)
def test_who_does_nothing_earns_nothing(
    action: Message, dataset: Path, rows: Mapping[str, Row]
) -> None:
    done = played(ToolUse(settings_of(dataset)), {task: [action] * 8 for task in rows})
    assert len(done) > 4
    assert {reward_of(step).value for _, step in done.values()} == {0.0}
    assert not any(reward_of(step).parts["success"] for _, step in done.values())


def test_tasks_that_are_earned_by_nothing_are_played_where_they_are_named(dataset: Path) -> None:
    usual = ToolUse(settings_of(dataset))
    named = ToolUse(settings_of(dataset, variants=get_args(Variant)))
    usually = {task.task_id for task in usual.tasks()}
    others = [task.task_id for task in named.tasks() if task.task_id not in usually]
    assert len(others) == usual.left_out["earned_by_nothing"] > 0
    assert not named.left_out["earned_by_nothing"]
    done = played(named, {task: [BABBLE] * 8 for task in others})
    assert all(reward_of(step).value > 0 for _, step in done.values())


def test_words_that_code_cannot_read_earn_nothing_anywhere(
    dataset: Path, rows: Mapping[str, Row]
) -> None:
    done = played(ToolUse(settings_of(dataset)), {task: [BABBLE] * 4 for task in rows})
    tasks = {t["task_id"]: t for t in Dataset.open(dataset).rows("tasks", ("task_id", "rubric"))}
    for task, (_, step) in done.items():
        kinds = {c["kind"] for c in tasks[task]["rubric"]["criteria"] if c["mandatory"]}
        if "communicate" in kinds:
            assert reward_of(step).value == 0


def lying(actions: list[Message]) -> list[Message]:
    """Of each number that is told one more."""

    def lie(message: Message) -> Message:
        text = message.get("content") or ""
        return {**message, "content": re.sub(r"(?<= is )\d+\b", lambda n: f"{int(n[0]) + 1}", text)}

    return [*map(lie, actions)]


def test_what_is_told_falsely_is_counted_and_is_no_success(
    dataset: Path, rows: Mapping[str, Row], right: Mapping[str, tuple[list[Message], GymStep]]
) -> None:
    liars = {
        t: lying(actions_of(r)) for t, r in rows.items() if lying(actions_of(r)) != actions_of(r)
    }
    env = ToolUse(settings_of(dataset, reward="success", plain_retelling=True))
    done = played(env, liars)
    caught = {t for t, (_, s) in done.items() if reward_of(s).parts["unshown_values"]}
    assert caught
    assert not any(reward_of(done[task][1]).value for task in caught)
    assert not any(reward_of(right[task][1]).parts["false_statements"] for task in caught)


def test_the_same_task_seed_and_actions_lead_to_the_same_in_another_process(
    dataset: Path, rows: Mapping[str, Row], tmp_path: Path
) -> None:
    task = max(rows, key=lambda t: len(rows[t]["messages"]))
    actions = actions_of(rows[task])
    here = told(ToolUse(settings_of(dataset), journal=tmp_path / "a"), task, actions, 7)
    assert here["requests"] > 0
    journals = [str(tmp_path / "b"), str(tmp_path / "a")]
    program = [sys.executable, "-m", "tests.synth.gym.tool_use.playing"]
    done = subprocess.run(
        [*program, str(dataset), task, "7", *journals],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    there: list[dict[str, Any]] = json.loads(done.stdout)
    assert there == [here, here | {"requests": 0}]


def test_another_seed_is_another_user_and_the_same_task(
    dataset: Path, rows: Mapping[str, Row]
) -> None:
    env = ToolUse(settings_of(dataset))
    actions = {task: actions_of(row) for task, row in rows.items()}
    first, second = played(env, actions, 1), played(env, actions, 2)
    for task in rows:
        assert first[task][0][:2] == second[task][0][:2]
    assert played(env, actions, 1) == first  # opened again, in a loop of its own


def test_nothing_is_left_out_in_silence(dataset: Path) -> None:
    whole = ToolUse(settings_of(dataset))
    db = Dataset.open(dataset).connect()
    (count,) = db.execute("SELECT count(*) FROM rl").fetchall()[0]
    assert len(whole.tasks()) + whole.left_out.total() == count
    plans = {t.task_id: len(t.body["reference_plan"]) for t in whole.tasks()}
    shortest = min((t for t in whole.tasks() if plans[t.task_id]), key=lambda t: plans[t.task_id])
    fewest, level = plans[shortest.task_id], shortest.body["complexity"]
    some = ToolUse(settings_of(dataset, max_calls=fewest, complexities=(level,)))
    kept = {task.task_id for task in some.tasks()}
    assert kept == {
        task.task_id
        for task in whole.tasks()
        if plans[task.task_id] <= fewest and f"level:{level}" in task.tags
    }
    assert 0 < len(kept) < len(plans)
    assert len(kept) + some.left_out.total() == count
    normal = ToolUse(settings_of(dataset, variants=("normal",)))
    assert {task.body["variant"] for task in normal.tasks()} == {"normal"}
    assert len(normal.tasks()) + normal.left_out.total() == count
    with pytest.raises(ConfigError, match=r"no task to play of splits = \[\]; .* other_split"):
        ToolUse(settings_of(dataset, splits=()))


def test_tasks_are_json_and_in_an_order_that_does_not_change(dataset: Path) -> None:
    tasks = ToolUse(settings_of(dataset)).tasks()
    assert tasks == ToolUse(settings_of(dataset)).tasks()
    assert [t.task_id for t in tasks] == sorted(t.task_id for t in tasks)
    for task in tasks:
        assert json.loads(json.dumps(task.body)) == task.body
        assert task.split == ("heldout" if task.body["split"] != "train" else task.split)


def test_a_share_of_the_training_split_chooses_the_checkpoint() -> None:
    origins = [f"task-{number}" for number in range(4000)]
    drawn = [split_of_task("train", origin, 0.25) for origin in origins]
    assert 0.22 < drawn.count("validation") / len(drawn) < 0.28
    assert drawn == [split_of_task("train", origin, 0.25) for origin in origins]
    assert split_of_task("train", "a", 0.0) == "train"
    assert split_of_task("train", "a", 1.0) == "validation"
    held = ("heldout_values", "heldout_task", "heldout_tool", "heldout_domain")
    assert {split_of_task(split, "a", 1.0) for split in held} == {"heldout"}


def test_derived_tasks_have_the_origin_of_the_task_that_they_come_from() -> None:
    parents = {"root": None, "child": "root", "grandchild": "child", "alone": None, "late": "gone"}
    rows: dict[str, Row] = {i: {"task_id": i, "parent_task_id": p} for i, p in parents.items()}
    assert {i: origin_of(row, rows) for i, row in rows.items()} == {
        "root": "root",
        "child": "root",
        "grandchild": "root",
        "alone": "alone",
        "late": "gone",
    }


def raising(error: Exception) -> Any:
    async def reply(*_: object) -> None:
        raise error

    return reply


@pytest.mark.parametrize(
    ("error", "outside"),
    [
        (TransientError("the endpoint is down"), "infra_error"),
        (UserError("it says nothing usable"), "user_error"),
        (ItemError("moderated"), "user_error"),
    ],
)
def test_what_fails_around_the_policy_is_no_reward(
    error: Exception,
    outside: str,
    dataset: Path,
    rows: Mapping[str, Row],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LlmUser, "reply", raising(error))
    done = played(ToolUse(settings_of(dataset)), {task: [CLAIM] for task in rows})
    assert {(step.done, step.reward, step.outside) for _, step in done.values()} == {
        (True, None, outside)
    }


def test_a_budget_that_is_spent_is_no_reward(dataset: Path, rows: Mapping[str, Row]) -> None:
    env = ToolUse(settings_of(dataset, budget={"tokens": 1}))
    done = played(env, {task: [CLAIM] for task in rows})
    assert {step.outside for _, step in done.values()} == {"budget_stop"}
    assert not any(step.reward for _, step in done.values())


@pytest.mark.parametrize(
    ("value", "reason"), [(math.nan, "reward_no_number"), (1.5, "reward_out_of_range")]
)
def test_a_reward_that_is_none_is_named(
    value: float,
    reason: str,
    dataset: Path,
    rows: Mapping[str, Row],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("synth.episode.environment.objective_reward", lambda *_: value)
    task = next(iter(rows))
    with pytest.raises(RewardError) as raised:
        played(ToolUse(settings_of(dataset)), {task: actions_of(rows[task])})
    assert raised.value.reason == reason


def test_an_episode_that_has_ended_takes_no_step(dataset: Path, rows: Mapping[str, Row]) -> None:
    env = ToolUse(settings_of(dataset))

    async def work() -> None:
        episode = await env.begin(env.tasks()[0], 0)
        assert [message["role"] for message in episode.messages] == ["system", "user"]
        assert episode.tools
        assert (await episode.step(SILENT)).done
        with pytest.raises(ValueError, match="the episode has ended"):
            await episode.step(SILENT)
        await episode.close()
        await episode.close()
        await env.close()

    asyncio.run(work())


def test_a_policy_plays_alone(dataset: Path) -> None:
    delegates = EpisodeConfig(delegation=DelegationConfig(share=0.5))
    with pytest.raises(ValueError, match=r"delegation\.share must be 0"):
        settings_of(dataset, episode=delegates)


def test_users_are_asked_with_the_prompts_of_the_dataset_s_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "prompts"
    own.mkdir()
    text = (templates.FOLDER / "user_turn.md").read_text()
    (own / "user_turn.md").write_text(f"{text}\nWrite as one who is in a hurry.\n")
    dataset = make_dataset(tmp_path / "data", num_tasks=4, prompts=str(own))
    rendered: list[str] = []

    def note(name: str, **values: Any) -> templates.Prompt:
        prompt = templates.render(name, **values)
        rendered.extend(str(message["content"]) for message in prompt.messages)
        return prompt

    monkeypatch.setattr(user, "render", note)
    env = ToolUse(settings_of(dataset))
    played(env, {env.tasks()[0].task_id: [SILENT]})
    assert any("one who is in a hurry" in text for text in rendered)
