"""What the doubles refuse, in the status, the form and the words of their vendors."""

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.doubles.canonical import canonical
from tests.doubles.catalogue import DOUBLES
from tests.doubles.double import FLAGGED, KEY
from tests.doubles.server import serve
from tests.doubles.test_forms import SCHEMA, ask, client_of

TALK = [
    {"role": "system", "content": "You write lists."},
    {"role": "user", "content": "Write a short one."},
]
CALL = {
    "id": "call_abc",
    "type": "function",
    "function": {"name": "short_list", "arguments": "{}"},
}
TOOLS = [{"type": "function", "function": {"name": "short_list", "parameters": SCHEMA}}]
AFTER_CALL: list[dict[str, Any]] = [
    *TALK,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_abc", "content": "done"},
]
LONG = [{"role": "user", "content": "word " * 300_000}]


def post(name: str, messages: Any = TALK, **more: Any) -> httpx2.Response:
    double = DOUBLES[name]
    headers = {double.key_header: KEY if double.key_header == "api-key" else f"Bearer {KEY}"}
    with serve(double) as server:
        body = {"model": "offline-model", "messages": messages} | more
        url = f"{server.url}/chat/completions"
        return httpx2.post(url, json=body, headers=headers, params=dict(double.query), timeout=60)


def form(**more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "short_list", "schema": SCHEMA} | more}


REFUSED = {
    "openai: a field that it does not know": (
        *("openai", {"thinking": {"type": "enabled"}}, 400),
        {"error.code": "unknown_parameter", "error.param": "thinking"},
    ),
    "openai: moderation": (
        *("openai", {"messages": [{"role": "user", "content": FLAGGED}]}, 400),
        {"error.code": "invalid_prompt"},
    ),
    "openai: too many tokens of answer": (
        *("openai", {"max_tokens": 99_999}, 400),
        {"error.message": "max_tokens is too large: 99999"},
    ),
    "openai: too long a prompt": (
        *("openai", {"messages": LONG}, 400),
        {"error.code": "context_length_exceeded"},
    ),
    "openai: an open schema that is strict": (
        *("openai", {"response_format": form(strict=True, schema={"type": "object"})}, 400),
        {"error.message": "'additionalProperties' is required"},
    ),
    "openai_reasoning: max_tokens": (
        *("openai_reasoning", {"max_tokens": 9}, 400),
        {"error.message": "Use 'max_completion_tokens' instead", "error.param": "max_tokens"},
    ),
    "openai_reasoning: temperature": (
        *("openai_reasoning", {"temperature": 0.7}, 400),
        {"error.code": "unsupported_value", "error.param": "temperature"},
    ),
    "azure: moderation": (
        *("azure", {"messages": [{"role": "user", "content": FLAGGED}]}, 400),
        {
            "error.code": "content_filter",
            "error.innererror.code": "ResponsibleAIPolicyViolation",
        },
    ),
    "openrouter: moderation": (
        *("openrouter", {"messages": [{"role": "user", "content": FLAGGED}]}, 403),
        {"error.code": 403, "error.metadata.flagged_input": FLAGGED},
    ),
    "deepseek: JSON without the word": (
        *("deepseek", {"response_format": {"type": "json_object"}}, 400),
        {"error.message": "must contain the word 'json'"},
    ),
    "deepseek: a schema": (
        *("deepseek", {"response_format": form()}, 400),
        {"error.message": "response_format type is unavailable"},
    ),
    "deepseek_thinking: reasoning left out": (
        *("deepseek_thinking", {"messages": AFTER_CALL}, 400),
        {"error.message": "must be passed back"},
    ),
    "mistral: a seed": (
        *("mistral", {"seed": 1}, 422),
        {"message.detail.0.loc.1": "seed", "message.detail.0.type": "extra_forbidden"},
    ),
    "mistral: reasoning of earlier turns": (
        *("mistral", {"messages": [*TALK, {"role": "assistant", "reasoning_content": "x"}]}, 422),
        {"message.detail.0.loc.1": "messages.2.assistant.reasoning_content"},
    ),
    "mistral: ids of calls": (
        *("mistral", {"messages": AFTER_CALL}, 400),
        {"code": "3280", "message": "with a length of 9"},
    ),
    "gemini: a seed": (
        *("gemini", {"seed": 1}, 400),
        {"0.error.status": "INVALID_ARGUMENT", "0.error.message": 'Unknown name "seed"'},
    ),
    "anthropic: a message that says nothing": (
        *("anthropic", {"messages": [*TALK, {"role": "assistant", "content": ""}, TALK[1]]}, 400),
        {"error.message": "must be non-empty"},
    ),
    "anthropic: too long a prompt": (
        *("anthropic", {"messages": LONG}, 400),
        {"error.message": "prompt is too long"},
    ),
    "llama_cpp: two turns of a user": (
        *("llama_cpp", {"messages": [*TALK, TALK[1]]}, 500),
        {"error.type": "server_error", "error.message": "must alternate"},
    ),
    "llama_cpp: too long a prompt": (
        *("llama_cpp", {"messages": LONG}, 400),
        {"error.type": "exceed_context_size_error", "error.n_ctx": 131_072},
    ),
    "vllm_old_template: two turns of a user": (
        *("vllm_old_template", {"messages": [*TALK, TALK[1]]}, 400),
        {"error.code": 400, "error.message": "must alternate"},
    ),
    "vllm: no tools in a list of tools": (*("vllm", {"tools": []}, 400), {"error.code": 400}),
    "sglang: too long a prompt": (
        *("sglang", {"messages": LONG}, 400),
        {"object": "error", "message": "is longer than the model's context length"},
    ),
    "ollama: a model that it has not": (
        *("ollama", {"model": "other"}, 404),
        {"error.message": "model 'other' not found"},
    ),
}


@pytest.mark.parametrize(("name", "more", "status", "told"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_worded_as_the_vendor_does(
    name: str, more: dict[str, Any], status: int, told: dict[str, Any]
) -> None:
    answer = post(name, **more)
    assert answer.status_code == status, answer.text
    for path, wanted in told.items():
        value = answer.json()
        for key in path.split("."):
            value = value[int(key) if isinstance(value, list) else key]
        assert wanted in value if isinstance(wanted, str) else wanted == value, (path, value)


@pytest.mark.parametrize("name", ["vllm_old_template", "llama_cpp"])
def test_calls_and_their_results_do_not_break_alternation(name: str) -> None:
    talk = [*AFTER_CALL, {"role": "assistant", "content": "Done."}, TALK[1]]
    assert post(name, talk, tools=TOOLS).status_code == 200


def test_a_user_may_not_speak_after_a_tool_at_mistral() -> None:
    calls = [CALL | {"id": "a1b2c3d4e"}]
    talk = [
        *TALK,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a1b2c3d4e", "content": "done"},
    ]
    assert post("mistral", talk, tools=TOOLS).status_code == 200
    refused = post("mistral", [*talk, TALK[1]], tools=TOOLS)
    assert (refused.status_code, refused.json()["code"]) == (400, "3230")


def test_a_prompt_that_is_too_long_is_cut_in_silence_by_ollama() -> None:
    small = replace(DOUBLES["ollama"], context_tokens=8)
    with serve(small) as server, client_of(server) as client:
        assert ask(client).choices


def test_a_bearer_token_beside_the_key_is_refused_by_azure() -> None:
    double = DOUBLES["azure"]
    with serve(double) as server:
        headers = {"api-key": KEY, "authorization": "Bearer none"}
        body = {"model": "offline-model", "messages": TALK}
        url = f"{server.url}/chat/completions"
        query = dict(double.query)
        assert httpx2.post(url, json=body, headers=headers, params=query).status_code == 401


def test_empty_lines_come_before_a_whole_answer_of_deepseek() -> None:
    answer = post("deepseek")
    assert answer.text.startswith("\n")
    assert answer.json()["choices"]


@pytest.mark.parametrize(
    ("name", "comment"), [("openrouter", ": OPENROUTER PROCESSING"), ("deepseek", ": keep-alive")]
)
def test_comments_stand_between_the_events_of_a_stream(name: str, comment: str) -> None:
    lines = post(name, stream=True).text.splitlines()
    assert lines[0] == comment
    assert lines[-2] == "data: [DONE]" or lines[-1] == "data: [DONE]"


def test_streamed_calls_come_in_pieces_or_whole_with_an_index_or_without() -> None:
    def calls(name: str) -> list[dict[str, Any]]:
        text = post(name, tools=TOOLS, tool_choice="auto", stream=True).text
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
        return [call for delta in deltas for call in delta.get("tool_calls", [])]

    assert len(calls("openai")) > 1
    assert all(call["index"] == 0 for call in calls("openai"))
    (whole,) = calls("gemini")
    assert "index" not in whole
    assert json.loads(whole["function"]["arguments"])


def test_reasoning_is_a_part_of_the_total_and_not_of_the_completion_at_gemini() -> None:
    usage = post("gemini").json()["usage"]
    assert usage["total_tokens"] > usage["prompt_tokens"] + usage["completion_tokens"]


def test_what_was_read_before_is_told_as_cached() -> None:
    double, talk = DOUBLES["openai"], [{"role": "system", "content": "Be kind. " * 100}, TALK[1]]
    with serve(double) as server, client_of(server) as client:
        first, second = (ask(client, talk) for _ in range(2))
    found = [answer.usage.prompt_tokens_details for answer in (first, second)]
    assert found[0].cached_tokens == 0 < found[1].cached_tokens


def test_a_system_prompt_is_refused_or_found_in_the_first_message() -> None:
    double = DOUBLES["vllm_no_system"]
    assert post("vllm_no_system").json()["error"]["message"] == "System role not supported"
    joined = [{"role": "user", "content": f"{TALK[0]['content']}\n\n{TALK[1]['content']}"}]
    body = {"model": "offline-model", "messages": joined}
    assert canonical(double, body, limit=None).body["messages"] == TALK
