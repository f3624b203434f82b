"""Every reason on the closed list really ends an episode, and budgets count what they say."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from records.errors import BudgetError
from records.sizes import count_tokens
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from synth.episode.environment import OUTSIDE, TRUNCATED, EpisodeEnvironment, Reason
from synth.episode.rollout import RolloutConfig, plan_rollouts, run_rollout
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import BudgetConfig, RoleConfig
from tests.synth.clinic import CANCEL, FIND, QUIET, TASK, calls, catalogue, says
from tests.synth.scripted import ScriptedApp

ONE_WISH = TASK | {"user_brief": TASK["user_brief"] | {"wishes": TASK["user_brief"]["wishes"][:1]}}
Body = dict[str, Any]
Say = Callable[[Body], str | dict[str, Any]]


def is_users(body: Body) -> bool:
    return "response_format" in body


def turn(message: str, *, done: bool) -> str:
    return json.dumps({"message": message, "done": done})


def agent(*actions: str | dict[str, Any], user: str = turn("Thanks, bye.", done=True)) -> Say:
    """The agent's answers by how many it has given before, the last one again and again."""

    def answer(body: Body) -> str | dict[str, Any]:
        if is_users(body):
            return user
        given = sum(message["role"] == "assistant" for message in body["messages"])
        action = actions[min(given, len(actions) - 1)]
        return dict(action) if isinstance(action, dict) else action

    return answer


def down(body: Body) -> str:
    raise ConnectionError


DONE = "I have cancelled it."
CASES: dict[str, tuple[Row, Say]] = {
    "user_done": (ONE_WISH, agent(calls(CANCEL), DONE)),
    "refused": (ONE_WISH, agent({"content": "No.", "finish_reason": "content_filter"})),
    "max_turns": (ONE_WISH | {"max_turns": 3}, agent(calls(FIND))),
    "token_budget": (ONE_WISH | {"token_budget": 150}, agent(calls(FIND))),
    "format_error": (ONE_WISH, agent(calls(("no_such_tool", {})))),
    "user_error": (ONE_WISH, agent("Which one?", user=turn("It is AP-2044.", done=False))),
}


def rollout(task: Row, app: ScriptedApp, folder: Path, budget: Budget | None = None) -> Row:
    roles = {role: RoleConfig(retries=0) for role in ("agent", "user", "judge")}
    config = RolloutConfig(episode=QUIET)

    async def run() -> Row:
        (item,) = plan_rollouts([task], config=config, roles=roles)
        async with Gateway(roles, budget=budget, offline_app=lambda: app) as gateway:
            with ShardJournal(folder / "journal.sqlite") as journal:
                llm = LLM(gateway, journal, stage="rollouts", invocation_id="test")
                result = await run_rollout(
                    item, llm, journal, catalogue=catalogue(), config=config, roles=roles
                )
                (row,) = result.tables["trajectories"]
                asked = Counter[str]()
                for call in llm.rows():
                    asked[call["role"]] += call["prompt_tokens"] + call["completion_tokens"]
                return row | {"asked": asked}

    return asyncio.run(run())


@pytest.mark.parametrize("reason", CASES)
def test_it_ends_for_this_reason(reason: str, tmp_path: Path) -> None:
    task, say = CASES[reason]
    row = rollout(task, ScriptedApp(say), tmp_path)
    assert row["termination_reason"] == reason
    outcome = "error" if reason in OUTSIDE else "truncated" if reason in TRUNCATED else None
    assert row["outcome"] == (outcome or ("passed" if reason == "user_done" else "failed"))
    reported = {role: sum(count.values()) for role, count in row["token_counts"].items()}
    assert reported == {role: row["asked"][role] for role in ("agent", "user")}


def test_it_ends_for_an_endpoint_that_stays_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synth.episode.rollout.INFRA_WAIT_S", 0.0)
    row = rollout(ONE_WISH, ScriptedApp(down), tmp_path)
    assert (row["termination_reason"], row["outcome"]) == ("infra_error", "error")
    assert row["num_turns"] == 0


def test_it_ends_without_a_user_when_the_agent_speaks() -> None:
    async def play() -> str | None:
        env = EpisodeEnvironment(catalogue(), QUIET)
        await env.reset(TASK, 1)
        await env.step(says(DONE))
        await env.close()
        return env.state.reason

    assert asyncio.run(play()) == "agent_done"


def test_it_ends_when_the_budget_has_no_room_for_the_next_request(tmp_path: Path) -> None:
    app = ScriptedApp(agent(calls(CANCEL), DONE))
    with pytest.raises(BudgetError):
        rollout(ONE_WISH, app, tmp_path, Budget(BudgetConfig(tokens=9_000)))
    assert len(app.requests) < 3  # the agent's two turns and the user's


def test_the_list_is_closed_and_every_reason_is_tried_here() -> None:
    elsewhere = {"infra_error", "agent_done", "budget_stop"}  # the three tests above
    assert CASES.keys() | elsewhere == set(get_args(Reason))


def test_the_token_budget_counts_all_that_is_said_but_the_system_prompt() -> None:
    async def play() -> tuple[int, list[dict[str, Any]]]:
        env = EpisodeEnvironment(catalogue(), QUIET)
        await env.reset(TASK, 1)
        await env.step(calls(FIND, CANCEL))
        await env.step(says(DONE))
        await env.close()
        return env.state.tokens, env.state.messages

    tokens, messages = asyncio.run(play())
    texts = []
    for message in messages[1:]:
        texts.append(message["content"])
        for call in message.get("tool_calls", ()):
            texts.append(call["function"]["name"] + call["function"]["arguments"])
    assert tokens == sum(count_tokens(text) for text in texts)
