"""Told to misbehave, the offline model fails at the declared shares, and a retry can pass."""

import asyncio
import json
from collections import Counter
from typing import Any

import openai
import pytest

from offline_llm.app import create_app
from offline_llm.server.misbehaviour import Misbehaviour
from offline_llm.settings.settings import OfflineSettings
from tests.offline_llm.asking import is_near
from tests.offline_llm.conftest import served
from tests.offline_llm.simulator import HIVES

TRIALS = 600
SHARES: dict[str, Any] = {
    "rate_limit": 0.1,
    "server_error": 0.1,
    "truncated": 0.1,
    "malformed": 0.1,
    "prose": 0.1,
}


async def answers(bodies: list[dict[str, Any]], rates: Misbehaviour) -> list[tuple[int, bytes]]:
    """Status and body of each request, made in turn to one application."""
    app = create_app(OfflineSettings(misbehave=rates))
    got: list[tuple[int, bytes]] = []
    for body in bodies:
        sent: list[Any] = []

        async def receive(text: bytes = json.dumps(body).encode()) -> dict[str, Any]:
            return {"type": "http.request", "body": text, "more_body": False}

        async def send(message: Any, into: list[Any] = sent) -> None:
            into.append(message)

        scope = {"type": "http", "path": "/v1/chat/completions", "method": "POST"}
        await app(scope, receive, send)
        got.append((sent[0]["status"], sent[1]["body"]))
    return got


def body(seed: int) -> dict[str, Any]:
    say = {"role": "user", "content": "Please feed a hive. The hive is HV-07, the kilograms is 2."}
    return {
        "model": "offline-model-exact",
        "messages": [say],
        "tools": HIVES,
        "seed": seed,
    }


def kind_of(status: int, raw: bytes) -> str:
    if status != 200:
        return {429: "rate_limit", 500: "server_error", 504: "hang"}[status]
    try:
        message = json.loads(raw)["choices"][0]["message"]
    except ValueError:
        return "truncated"
    if "tool_calls" not in message:
        return "prose"
    try:
        json.loads(message["tool_calls"][0]["function"]["arguments"])
    except ValueError:
        return "malformed"
    return "right"


def test_failures_come_at_their_shares_and_the_same_way_in_any_process() -> None:
    rates = Misbehaviour(**SHARES)
    first = asyncio.run(answers([body(i) for i in range(TRIALS)], rates))
    assert first == asyncio.run(answers([body(i) for i in range(TRIALS)], rates))
    kinds = Counter(kind_of(*answer) for answer in first)
    for kind, share in (SHARES | {"right": 0.5}).items():
        assert is_near(kinds[kind], TRIALS, share), f"{kind}: {kinds[kind]} of {TRIALS}"


def test_a_retry_of_the_same_request_is_a_draw_of_its_own() -> None:
    rates = Misbehaviour(server_error=0.5)
    statuses = [s for s, _ in asyncio.run(answers([body(0)] * 40, rates))]
    assert is_near(statuses.count(500), 40, 0.5)


def test_a_hang_ends_in_a_time_out() -> None:
    rates = Misbehaviour(hang=1.0, hang_s=0.01)
    assert asyncio.run(answers([body(0)], rates))[0][0] == 504


def refusal(client: openai.OpenAI, asked: dict[str, Any]) -> openai.RateLimitError | None:
    try:
        client.chat.completions.create(**asked)
    except openai.RateLimitError as error:
        return error
    return None


def test_the_client_sees_retry_after_and_recovers_by_itself() -> None:
    with served(OfflineSettings(misbehave=Misbehaviour(rate_limit=0.5, retry_after_s=0.01))) as url:
        impatient = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        refused = [error for seed in range(40) if (error := refusal(impatient, body(seed)))]
        assert is_near(len(refused), 40, 0.5)
        assert {error.response.headers["retry-after"] for error in refused} == {"0.01"}
        patient = openai.OpenAI(base_url=url, api_key="none", max_retries=20)
        assert patient.chat.completions.create(**body(99)).choices


def test_shares_that_exceed_one_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 1"):
        Misbehaviour(rate_limit=0.6, hang=0.6)


@pytest.mark.parametrize("words", [None, "Hello"])
def test_a_verbose_endpoint_writes_three_times_as_much_and_means_the_same(
    words: str | None,
) -> None:
    asked = body(3)
    if words:
        asked["messages"] = [{"role": "user", "content": words}]
    plain, verbose = (
        json.loads(asyncio.run(answers([asked], Misbehaviour(verbosity=factor)))[0][1])
        for factor in (1.0, 3.0)
    )
    sizes = [whole["usage"]["completion_tokens"] for whole in (plain, verbose)]
    assert abs(sizes[1] - 3 * sizes[0]) <= 2
    said, again = (whole["choices"][0]["message"] for whole in (plain, verbose))
    assert again.get("tool_calls") == said.get("tool_calls")
    if words:
        assert again["content"] == "\n\n".join([said["content"]] * 3)
    else:
        assert said["tool_calls"]
        assert again["reasoning_content"]


def test_verbosity_keeps_to_the_token_limit() -> None:
    rates = Misbehaviour(verbosity=20.0)
    asked = body(3) | {"max_tokens": 40}
    usage = json.loads(asyncio.run(answers([asked], rates))[0][1])["usage"]
    assert usage["completion_tokens"] <= 40
