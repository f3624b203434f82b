"""Roles that environments ask: once for each question, from any loop, and never in the policy's
time."""

import asyncio
import json
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from records.errors import ConfigError, TransientError
from synth.gym.core.asking import Asking
from synth.llm.settings.config import BudgetConfig, RoleConfig
from tests.synth.llm.server import Body, Fault, Script, answer, in_thread

SCHEMA = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}},
    "required": ["passed"],
    "additionalProperties": False,
}
HELLO = [{"role": "user", "content": "Is it so?"}]


def judge(url: str, **changes: Any) -> dict[str, RoleConfig]:
    settings: dict[str, Any] = {"base_url": url, "models": ["m"], "retries": 1, "backoff_s": 0.001}
    return {"judge": RoleConfig.model_validate(settings | changes)}


def says(value: Any) -> Script:
    return lambda number, body: answer(json.dumps(value))


async def closing(asking: Asking, work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    finally:
        await asking.close()


def ask_once(asking: Asking) -> Any:
    return asyncio.run(closing(asking, asking.ask("judge", HELLO, SCHEMA)))


def test_where_nobody_plays_the_role_there_is_no_answer_and_nothing_runs() -> None:
    before = threading.active_count()
    asking = Asking()
    with pytest.raises(TransientError, match=r"nobody plays the role judge; set gym\.roles\.judge"):
        ask_once(asking)
    assert threading.active_count() == before
    asking.close_now()


def test_the_same_question_is_paid_once_by_many_loops_and_by_later_runs(tmp_path: Path) -> None:
    with in_thread(says({"passed": True})) as server:
        for _ in range(2):
            asking = Asking(judge(server.url), journal=tmp_path / "roles.sqlite")
            found: list[Any] = []

            def work(asking: Asking = asking, found: list[Any] = found) -> None:
                found.append(asyncio.run(asking.ask("judge", HELLO, SCHEMA)))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            asking.close_now()
            assert found == [{"passed": True}] * 4
        assert len(server.requests) == 1


def test_other_questions_are_other_requests(tmp_path: Path) -> None:
    with in_thread(says({"passed": False})) as server:
        asking = Asking(judge(server.url), journal=tmp_path / "roles.sqlite")
        other = [{"role": "user", "content": "Is it not so?"}]

        async def work() -> None:
            both = asking.ask("judge", HELLO, SCHEMA), asking.ask("judge", other, SCHEMA)
            assert await asyncio.gather(*both) == [{"passed": False}] * 2

        asyncio.run(closing(asking, work()))
        assert len(server.requests) == 2


def test_a_slow_answer_is_none_and_is_not_paid_again(tmp_path: Path) -> None:
    over = threading.Event()

    def slow(number: int, body: Body) -> Body:
        over.wait(5)
        return answer('{"passed": true}')

    with in_thread(slow) as server:
        asking = Asking(judge(server.url), journal=tmp_path / "roles.sqlite", patience_s=0.2)
        began = time.monotonic()
        with pytest.raises(TransientError, match=r"judge has no answer after 0\.2 s"):
            asyncio.run(asking.ask("judge", HELLO, SCHEMA))
        assert time.monotonic() - began < 3
        over.set()
        for _ in range(50):  # until the answer is there
            try:
                assert asyncio.run(asking.ask("judge", HELLO, SCHEMA)) == {"passed": True}
                break
            except TransientError:
                pass
        else:
            pytest.fail("the answer that came late is lost")
        asking.close_now()
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "script",
    [
        lambda number, body: Fault(status=500, body=b'{"error": {"message": "broken"}}'),
        lambda number, body: Fault(status=400, body=b'{"error": {"message": "no such field"}}'),
        says("no object"),
        says({"passed": "perhaps"}),
        lambda number, body: answer("{", finish_reason="length"),
    ],
    ids=["broken", "refused", "no object", "another form", "cut off"],
)
def test_what_goes_wrong_with_a_role_says_nothing_about_the_policy(script: Script) -> None:
    with in_thread(script) as server, pytest.raises(TransientError):
        ask_once(Asking(judge(server.url)))


def test_a_server_that_is_not_there_is_waited_for_no_longer_than_there_is_patience() -> None:
    asking = Asking(judge("http://127.0.0.1:9/v1"), patience_s=0.5)
    with pytest.raises(TransientError):
        ask_once(asking)


def test_a_budget_that_is_spent_is_no_word_about_the_policy() -> None:
    with in_thread(says({"passed": True})) as server:
        asking = Asking(judge(server.url), budget=BudgetConfig(tokens=1))
        with pytest.raises(TransientError, match="budget"):
            ask_once(asking)
        assert not server.requests


def test_a_key_that_is_not_set_is_told_at_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGES_KEY", raising=False)
    before = threading.active_count()
    with pytest.raises(ConfigError, match="JUDGES_KEY"):
        Asking(judge("http://127.0.0.1:9/v1", api_key_env="JUDGES_KEY"))
    assert threading.active_count() == before


def test_closing_twice_is_once_and_nobody_can_be_asked_afterwards() -> None:
    with in_thread(says({"passed": True})) as server:
        asking = Asking(judge(server.url))
        assert ask_once(asking) == {"passed": True}
        asking.close_now()
        with pytest.raises(TransientError):
            ask_once(asking)
