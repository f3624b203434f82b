"""A model that is scored on a task over several conversations sees one of them at a time."""

import asyncio
from collections.abc import Sequence

from synth.episode.environment import EpisodeEnvironment
from tests.synth.clinic import CANCEL, QUIET, ScriptedUser, catalogue
from tests.synth.returning import COMES_BACK, SEVERAL
from trainer.data.chat import AssistantAnswer
from trainer.evaluation.playing import Chosen, begun
from trainer.inference.policies import PolicyRequest


class Counted:
    """Knows how long a prompt is, and is not asked for more."""

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        raise AssertionError("the test answers itself")

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        return len(asked.messages)


def test_nothing_of_an_earlier_conversation_is_shown() -> None:
    env = EpisodeEnvironment(catalogue(), QUIET, user=lambda _task, _persona: ScriptedUser())
    call = {"function": {"name": CANCEL[0], "arguments": '{"appointment_id": "AP-1004"}'}}

    async def play() -> list[PolicyRequest]:
        episode, asked = await begun(env, Chosen(SEVERAL, 0, "clinic")), []
        for answer in (
            AssistantAnswer("Here they are.", [], None),
            AssistantAnswer("", [call], None),
        ):
            asked.append(episode.asked(Counted()))
            await episode.step(answer)
        asked.append(episode.asked(Counted()))
        await env.close()
        return asked

    first, second, third = asyncio.run(play())
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert [message["role"] for message in second.messages] == ["system", "user"]
    assert second.messages[1]["content"] == COMES_BACK
    assert [message["role"] for message in third.messages][2:] == ["assistant", "tool"]
    assert len({request.seed for request in (first, second, third)}) == 3
    assert first.tokens is not second.tokens is third.tokens
