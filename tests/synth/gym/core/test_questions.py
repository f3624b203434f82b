"""The shortest environment: one question, one answer, one reward, and nothing after it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import TransientError
from synth.gym.core.environment import GymEpisode, GymStep, GymTask, Reward, RewardError
from synth.gym.core.questions import Questions, text_of_action

TASK = GymTask("t1", "echo", "train", ("kind:echo",), {"word": "yes"})


class Echo(Questions):
    """What is asked for is worth 1, `bad` is worth what no reward is, and `down` fails."""

    family = "echo"

    def tasks(self) -> Sequence[GymTask]:
        return [TASK]

    def question(self, task: GymTask) -> str:
        return f"Say {task.body['word']}."

    def reward(self, task: GymTask, answer: str) -> Reward:
        if answer == "down":
            raise TransientError("the scorer is down")
        if answer == "broken":
            raise KeyError("a fault of the environment")
        return Reward(7.0 if answer == "bad" else float(answer == task.body["word"]))


def begun() -> GymEpisode:
    return asyncio.run(Echo().begin(TASK, seed=3))


def played(content: object) -> GymStep:
    return asyncio.run(begun().step({"role": "assistant", "content": content}))


def test_the_prompt_is_the_system_s_words_and_the_question() -> None:
    episode = begun()
    assert [message["role"] for message in episode.messages] == ["system", "user"]
    assert episode.messages[0]["content"] == Echo.system
    assert episode.messages[1]["content"] == "Say yes."
    assert list(episode.tools) == []


@given(st.text())
def test_any_text_ends_the_episode_with_its_reward_and_no_observation(answer: str) -> None:
    if answer in ("down", "broken", "bad"):
        return
    assert played(answer) == GymStep([], True, Reward(float(answer == "yes")))


def test_the_action_is_the_last_message() -> None:
    episode = begun()
    action = {"role": "assistant", "content": "no"}
    asyncio.run(episode.step(action))
    assert episode.messages[-1] == action
    assert len(episode.messages) == 3


@pytest.mark.parametrize("first", ["yes", "no", "down"])
def test_there_is_no_second_answer(first: str) -> None:
    episode = begun()
    asyncio.run(episode.step({"role": "assistant", "content": first}))
    with pytest.raises(ValueError, match="t1 has ended"):
        asyncio.run(episode.step({"role": "assistant", "content": "yes"}))


def test_the_seed_changes_nothing_where_nothing_is_drawn() -> None:
    episodes = [asyncio.run(Echo().begin(TASK, seed)) for seed in range(3)]
    assert episodes[0].messages == episodes[1].messages == episodes[2].messages


def test_a_reward_that_is_none_has_its_name() -> None:
    with pytest.raises(RewardError, match="reward_out_of_range"):
        played("bad")


def test_a_failure_outside_the_answer_gives_no_reward_and_says_why() -> None:
    assert played("down") == GymStep([], True, None, "the scorer is down")


def test_a_fault_of_the_environment_is_not_taken_for_the_policy_s() -> None:
    with pytest.raises(KeyError):
        played("broken")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("yes", "yes"),
        ("", ""),
        (None, ""),
        ([{"type": "text", "text": "y"}, {"type": "text", "text": "es"}], "yes"),
        ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "yes"}, "x"], "yes"),
        ([{"type": "text", "text": None}], ""),
        ([], ""),
        (7, ""),
        ({"text": "yes"}, ""),
    ],
)
def test_the_text_of_an_action(content: Any, text: str) -> None:
    assert text_of_action({"role": "assistant", "content": content}) == text


def test_a_message_without_content_is_an_empty_answer() -> None:
    step = asyncio.run(begun().step({"role": "assistant", "tool_calls": [{"id": "1"}]}))
    assert step.reward == Reward(0.0)


def test_closing_twice_does_no_harm() -> None:
    async def closed() -> None:
        environment = Echo()
        episode = await environment.begin(TASK, 0)
        await episode.close()
        await episode.close()
        await environment.close()

    asyncio.run(closed())


def test_a_slow_check_may_be_made_elsewhere() -> None:
    class Slow(Echo):
        async def graded(self, task: GymTask, answer: str) -> Reward:
            return await asyncio.to_thread(self.reward, task, answer)

    async def both() -> list[GymStep]:
        episodes = [await Slow().begin(TASK, 0) for _ in range(2)]
        answers = ("yes", "no")
        return await asyncio.gather(
            *(
                e.step({"role": "assistant", "content": a})
                for e, a in zip(episodes, answers, strict=True)
            )
        )

    rewards = [step.reward for step in asyncio.run(both())]
    assert rewards == [Reward(1.0), Reward(0.0)]
