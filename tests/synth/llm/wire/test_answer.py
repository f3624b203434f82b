"""What servers count, and how they call an answer that was cut."""

import json
from typing import Any

import pytest

from synth.llm.settings.config import TokenUsage
from synth.llm.wire.answer import ChatAnswer, read_answer


def read(message: Any, usage: Any = None, reason: str | None = "stop", **more: Any) -> ChatAnswer:
    body = {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}
    settings: dict[str, Any] = {"call_prefix": "call_x", "fallback_usage": (70, 30)} | more
    return read_answer(json.dumps(body).encode(), **settings)


COUNTED = {"prompt_tokens": 10, "completion_tokens": 5}
USAGES: dict[str, tuple[Any, TokenUsage]] = {
    "none": (None, TokenUsage(70, 30)),
    "no usage but a list": ([], TokenUsage(70, 30)),
    "plain": (COUNTED, TokenUsage(10, 5)),
    "negative and true": (
        {"prompt_tokens": -1, "completion_tokens": True},
        TokenUsage(70, 30),
    ),
    "openai": (
        COUNTED
        | {
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        TokenUsage(10, 5, 4, 3),
    ),
    "deepseek": (COUNTED | {"prompt_cache_hit_tokens": 4}, TokenUsage(10, 5, 4)),
    "sglang": (
        COUNTED | {"prompt_tokens_details": None, "reasoning_tokens": 3},
        TokenUsage(10, 5, 0, 3),
    ),
    "anthropic": (COUNTED | {"cache_read_input_tokens": 4}, TokenUsage(10, 5, 4)),
    "gemini: reasoning only in the total": (
        COUNTED | {"total_tokens": 22},
        TokenUsage(10, 12, 0, 7),
    ),
    "more cached than there was": (COUNTED | {"cached_tokens": 99}, TokenUsage(10, 5, 10)),
}


@pytest.mark.parametrize(("usage", "wanted"), USAGES.values(), ids=USAGES)
def test_usage_is_read_in_every_form(usage: Any, wanted: TokenUsage) -> None:
    assert read({"content": "x"}, usage).usage == wanted


def test_cached_tokens_are_looked_for_where_the_profile_says() -> None:
    usage = COUNTED | {"prompt_cache_hit_tokens": 4, "own": {"cache": {"hits": 2}}}
    assert read({"content": "x"}, usage, cached_usage="own.cache.hits").cached_tokens == 2


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_cut_answer_is_called_so(reason: str) -> None:
    assert read({"content": "x"}, reason=reason).finish_reason == "length"


def test_answer_is_the_forced_call() -> None:
    call = {"id": "a", "function": {"name": "pet", "arguments": {"name": "Rex"}}}
    answer = read({"content": None, "tool_calls": [call]}, answer_in_call=True)
    assert (json.loads(answer.content), answer.tool_calls) == ({"name": "Rex"}, [])
    assert read({"content": "words"}, answer_in_call=True).content == "words"


def test_calls_have_ids_of_their_own() -> None:
    calls = [{"id": given, "function": {"name": "f", "arguments": "{}"}} for given in "aab"]
    answer = read({"content": "", "tool_calls": [*calls, {"function": {}}, 3]}, reason=None)
    ids = [call["id"] for call in answer.tool_calls]
    assert ids == ["a", "call_x_1", "b", "call_x_3", "call_x_4"]
    assert answer.finish_reason == "tool_calls"
