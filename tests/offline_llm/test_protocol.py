"""The protocol, as the plain `openai` package sees it over HTTP."""

import json
import subprocess
import sys
from typing import Any

import jsonschema
import openai
import pytest

from records.model_names import EARLIER
from records.sizes import count_tokens

MODEL = "offline-model"
EXACT = "offline-model-exact"


def tool(name: str, description: str, /, **params: str) -> dict[str, Any]:
    """A function whose parameters are required strings with these descriptions."""
    properties = {p: {"type": "string", "description": text} for p, text in params.items()}
    schema = {"type": "object", "properties": properties, "required": list(params)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


TOOLS: list[Any] = [
    tool(
        "find_members",
        "Find members by name. Returns members, each with member_id and name.",
        name="Name of the member.",
    ),
    tool(
        "find_shelves",
        "Find shelves by label. Returns shelves, each with shelf_id and label.",
        label="Label of the shelf.",
    ),
    tool(
        "reserve_shelf",
        "Reserve a shelf for a member. Returns reservation_id.",
        member_id="Id of the member, such as MB-1.",
        shelf_id="Id of the shelf, such as SH-1.",
    ),
]
ASK: list[Any] = [
    {"role": "system", "content": "You help. Today is 2026-03-02."},
    {
        "role": "user",
        "content": "Please reserve a shelf. The member name is Ada Thorne"
        ' and the shelf label is "top".',
    },
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3, "maxLength": 40},
        "size": {"type": "integer", "minimum": 2, "maximum": 9},
        "kind": {"enum": ["a", "b"]},
        "parts": {"type": "array", "items": {"type": "number"}, "minItems": 2},
    },
    "required": ["title", "size", "kind", "parts"],
    "additionalProperties": False,
}


def seeds(client: openai.OpenAI, **options: Any) -> list[Any]:
    """The answers of 24 conversations that differ in their seed only."""
    return [
        client.chat.completions.create(
            model=EXACT, messages=ASK, tools=TOOLS, seed=seed, **options
        ).choices[0]
        for seed in range(24)
    ]


def test_independent_lookups_come_as_parallel_calls_unless_forbidden(client: openai.OpenAI) -> None:
    counts = {len(choice.message.tool_calls) for choice in seeds(client)}
    assert counts == {1, 2}
    single = {len(c.message.tool_calls) for c in seeds(client, parallel_tool_calls=False)}
    assert single == {1}


def test_calls_carry_ids_and_arguments_that_the_schema_allows(client: openai.OpenAI) -> None:
    parameters = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}
    for choice in seeds(client):
        assert choice.finish_reason == "tool_calls"
        calls = choice.message.tool_calls
        assert len({call.id for call in calls}) == len(calls)
        for call in calls:
            arguments = json.loads(call.function.arguments)
            jsonschema.validate(arguments, parameters[call.function.name])


@pytest.mark.parametrize("choice", ["required", "reserve_shelf"])
def test_tool_choice_forces_a_call(client: openai.OpenAI, choice: str) -> None:
    wanted: Any = choice
    if choice != "required":
        wanted = {"type": "function", "function": {"name": choice}}
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Hello there"}],
        tools=TOOLS,
        tool_choice=wanted,
    )
    calls: Any = answer.choices[0].message.tool_calls
    assert len(calls) == 1
    if choice != "required":
        assert calls[0].function.name == choice
        assert json.loads(calls[0].function.arguments).keys() == {"member_id", "shelf_id"}


def test_tool_choice_none_answers_in_words(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL, messages=ASK, tools=TOOLS, tool_choice="none"
    )
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"


def test_structured_output_of_any_schema_is_valid(client: openai.OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "thing", "schema": SCHEMA}}
    answer = client.chat.completions.create(model=MODEL, messages=ASK[1:], response_format=form)
    jsonschema.validate(json.loads(answer.choices[0].message.content or ""), SCHEMA)


@pytest.mark.parametrize("with_tools", [True, False])
@pytest.mark.parametrize("max_tokens", [None, 8])
def test_the_stream_adds_up_to_the_whole_answer(
    client: openai.OpenAI, with_tools: bool, max_tokens: int | None
) -> None:
    options: dict[str, Any] = {"model": EXACT, "messages": ASK, "seed": 3}
    options |= {"tools": TOOLS} if with_tools else {}
    options |= {"max_tokens": max_tokens} if max_tokens else {}
    whole = client.chat.completions.create(**options)
    chunks: list[Any] = list(
        client.chat.completions.create(
            **options, stream=True, stream_options={"include_usage": True}
        )
    )
    content = ""
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for delta in choice.delta.tool_calls or []:
                call = calls.setdefault(delta.index, ["", "", ""])
                call[0] += delta.id or ""
                call[1] += delta.function.name or ""
                call[2] += delta.function.arguments or ""
    message = whole.choices[0].message
    assert content == (message.content or "")
    assert list(calls.values()) == [
        [c.id, c.function.name, c.function.arguments] for c in message.tool_calls or []
    ]
    reasons = [c.finish_reason for chunk in chunks for c in chunk.choices if c.finish_reason]
    assert reasons == [whole.choices[0].finish_reason]
    assert chunks[-1].usage == whole.usage
    assert (reasons == ["length"]) == (max_tokens is not None)


def test_usage_is_counted_and_max_tokens_is_kept(client: openai.OpenAI) -> None:
    limited = client.chat.completions.create(model=EXACT, messages=ASK, max_tokens=5)
    assert limited.choices[0].finish_reason == "length"
    assert limited.usage
    assert limited.usage.completion_tokens <= 5
    free = client.chat.completions.create(model=EXACT, messages=ASK)
    text = free.choices[0].message.content or ""
    assert free.usage
    assert free.usage.completion_tokens == count_tokens(text)
    assert free.usage.total_tokens == free.usage.prompt_tokens + free.usage.completion_tokens
    assert text.startswith(limited.choices[0].message.content or "?")


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"model": "no-such"}, 404, "no-such"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, 400, "robot"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, r"messages\[0\].content"),
        ({"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, 400, "tool_call"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, 400, "a b"),
        ({"tool_choice": "required"}, 400, "tool_choice"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"response_format": {"type": "xml"}}, 400, "xml"),
        ({"n": 2}, 400, "n must be 1"),
    ],
)
def test_bad_requests_get_an_error_that_names_the_fault(
    client: openai.OpenAI, change: dict[str, Any], status: int, said: str
) -> None:
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "x"}]}
    with pytest.raises(openai.APIStatusError, match=said) as caught:
        client.post("/chat/completions", cast_to=object, body=body | change)
    assert caught.value.status_code == status
    error = caught.value.response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_wrong_routes_methods_and_bodies_are_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.get("/nothing", cast_to=object)
    with pytest.raises(openai.APIStatusError) as caught:
        client.get("/chat/completions", cast_to=object)
    assert caught.value.status_code == 405
    with pytest.raises(openai.BadRequestError, match="not JSON"):
        client.post("/chat/completions", cast_to=object, content=b"{oops")


def test_models_are_listed(client: openai.OpenAI) -> None:
    served = {MODEL, EXACT, "offline-model-clumsy"}
    assert {model.id for model in client.models.list()} == served


def test_earlier_names_of_models_get_the_same_answers(client: openai.OpenAI) -> None:
    for model, earlier in EARLIER.items():
        one, other = (
            client.chat.completions.create(model=name, messages=[{"role": "user", "content": "Hi"}])
            for name in (model, earlier)
        )
        assert (one.id, one.choices, one.model) == (other.id, other.choices, model)
    vectors = client.embeddings.create(model=EARLIER[MODEL], input=["a shelf"])
    assert vectors.model == MODEL


def test_embeddings_of_like_texts_lie_closer(client: openai.OpenAI) -> None:
    texts = ["reserve a shelf for a member", "reserve the shelf for members", "the moon is far"]
    data = client.embeddings.create(model=MODEL, input=texts, dimensions=128).data
    a, b, c = (item.embedding for item in data)
    assert len(a) == 128
    assert sum(x * x for x in a) == pytest.approx(1.0, abs=1e-5)

    def cosine(u: list[float], v: list[float]) -> float:
        return sum(x * y for x, y in zip(u, v, strict=True))

    assert cosine(a, b) > cosine(a, c) + 0.3
    plain = client.embeddings.create(
        model=MODEL, input=texts, dimensions=128, encoding_format="float"
    )
    assert plain.data[0].embedding == pytest.approx(a, abs=1e-6)


ONCE = """
import asyncio, sys
from offline_llm.app import create_app
body = sys.stdin.buffer.read()
sent = []
async def receive(): return {"type": "http.request", "body": body, "more_body": False}
async def send(message): sent.append(message)
scope = {"type": "http", "path": "/v1/chat/completions", "method": "POST"}
asyncio.run(create_app()(scope, receive, send))
sys.stdout.buffer.write(sent[1]["body"])
"""


def test_another_process_gives_the_same_bytes(client: openai.OpenAI) -> None:
    body: dict[str, Any] = {"model": MODEL, "messages": ASK, "tools": TOOLS, "seed": 7}
    here = client.chat.completions.with_raw_response.create(**body)
    there = subprocess.run(
        [sys.executable, "-c", ONCE],
        input=json.dumps(body).encode(),
        capture_output=True,
        check=True,
    )
    assert there.stdout == here.http_response.content
