"""Every double, asked by the `openai` package: what it takes, in which forms it answers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema
import openai
import pytest

from tests.doubles.canonical import SCHEMA_WORDS, canonical
from tests.doubles.catalogue import DOUBLES
from tests.doubles.double import KEY, Double
from tests.doubles.server import DoubleServer, serve

SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["title", "count"],
    "additionalProperties": False,
}
TALK = [{"role": "user", "content": "Write a short list."}]
TOOL = {"type": "function", "function": {"name": "short_list", "parameters": SCHEMA}}
FORCED = {"type": "function", "function": {"name": "short_list"}}

every_double = pytest.mark.parametrize("double", DOUBLES.values(), ids=DOUBLES)


def client_of(server: DoubleServer, key: str = KEY) -> openai.OpenAI:
    query, url = dict(server.double.query), server.url
    if server.double.key_header == "api-key":
        return openai.AzureOpenAI(
            base_url=url, api_key=key, api_version=query["api-version"], max_retries=0
        )
    return openai.OpenAI(base_url=url, api_key=key, max_retries=0, default_query=query)


@contextmanager
def asked(double: Double, **options: Any) -> Iterator[openai.OpenAI]:
    with serve(double, **options) as server, client_of(server) as client:
        yield client


def with_schema(talk: list[dict[str, Any]]) -> list[dict[str, Any]]:
    words = SCHEMA_WORDS.format(name="short_list")
    text = f"{talk[-1]['content']}\n\n{words}\n\n```json\n{json.dumps(SCHEMA)}\n```"
    return [*talk[:-1], talk[-1] | {"content": text}]


def ask(
    client: openai.OpenAI, messages: Any = TALK, *, model: str = "offline-model", **more: Any
) -> Any:
    return client.chat.completions.create(model=model, messages=messages, **more)


def words_of(message: Any) -> str:
    """The text of a message, parts of reasoning left out."""
    content = message.content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return (content or "").rpartition("</think>")[2]


def json_within(text: str) -> Any:
    """The first JSON object in a text."""
    return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]


@every_double
def test_the_plainest_request_is_answered_in_words(double: Double) -> None:
    with asked(double) as client:
        answer = ask(client)
    assert words_of(answer.choices[0].message).strip()
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens >= answer.usage.prompt_tokens > 0


@every_double
def test_a_schema_in_response_format_is_kept_ignored_or_refused(double: Double) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "short_list", "schema": SCHEMA}}
    with asked(double) as client:
        if double.json_schema == "refused":
            with pytest.raises(openai.BadRequestError):
                ask(client, response_format=form)
            return
        text = words_of(ask(client, response_format=form).choices[0].message)
    if double.json_schema == "ignored":
        assert "{" not in text
    else:
        jsonschema.validate(json.loads(text), SCHEMA)


@every_double
def test_a_schema_in_words_is_obeyed_with_and_without_json_mode(double: Double) -> None:
    with asked(double) as client:
        loose = ask(client, with_schema(TALK))
        held = ask(client, with_schema(TALK), response_format={"type": "json_object"})
    jsonschema.validate(json_within(words_of(loose.choices[0].message)), SCHEMA)
    text = words_of(held.choices[0].message)
    made = json.loads(text) if double.json_object == "yes" else json_within(text)
    jsonschema.validate(made, SCHEMA)


@pytest.mark.parametrize("name", ["vllm", "openai", "openrouter", "ollama"])
def test_the_offline_model_is_asked_the_same_however_the_schema_is_told(name: str) -> None:
    double, body = DOUBLES[name], {"model": "offline-model", "seed": 5, "max_tokens": 900}
    form = {"type": "json_schema", "json_schema": {"name": "short_list", "schema": SCHEMA}}
    shaped = [
        body | {"messages": TALK, "response_format": form},
        body | {"messages": with_schema(TALK), "response_format": {"type": "json_object"}},
        body | {"messages": with_schema(TALK)},
        body | {"messages": TALK, "tools": [TOOL], "tool_choice": FORCED},
    ]
    first, *others = (canonical(double, one, limit=900).body for one in shaped)
    assert first == shaped[0]
    assert others == [first] * 3


@every_double
@pytest.mark.parametrize("choice", [FORCED, "required", "auto"], ids=["named", "required", "auto"])
def test_a_call_of_the_one_tool_carries_the_answer(double: Double, choice: Any) -> None:
    with asked(double) as client:
        if choice != "auto" and not double.forced_choice:
            with pytest.raises(openai.BadRequestError):
                ask(client, tools=[TOOL], tool_choice=choice)
            return
        answer = ask(client, tools=[TOOL], tool_choice=choice)
    (call,) = answer.choices[0].message.tool_calls
    jsonschema.validate(json.loads(call.function.arguments), SCHEMA)
    assert call.function.name == "short_list"
    assert answer.choices[0].finish_reason == "tool_calls"


@every_double
def test_a_stream_holds_what_the_whole_answer_does(double: Double) -> None:
    body: dict[str, Any] = {"tools": [TOOL], "tool_choice": "auto"}
    if double.known_fields is None or "stream_options" in double.known_fields:
        body["stream_options"] = {"include_usage": True}
    with asked(double) as client:
        whole = ask(client, tools=[TOOL], tool_choice="auto")
        chunks = list(ask(client, stream=True, **body))
        spoken = ask(client)
        pieces = [c.choices[0].delta.content for c in ask(client, stream=True) if c.choices]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    parts = [call.function.arguments for d in deltas for call in d.tool_calls or []]
    assert json.loads("".join(p for p in parts if p)) == json.loads(
        whole.choices[0].message.tool_calls[0].function.arguments
    )
    usage = [chunk.usage for chunk in chunks if chunk.usage]
    assert (usage[-1].total_tokens if usage else None) == whole.usage.total_tokens
    said = [piece for piece in pieces if isinstance(piece, str)]
    assert "".join(said).rpartition("</think>")[2] == words_of(spoken.choices[0].message)


@every_double
def test_models_are_listed_where_there_is_a_list(double: Double) -> None:
    with asked(double) as client:
        if double.models == "none":
            with pytest.raises(openai.NotFoundError):
                client.models.list()
            return
        listed = client.models.list().data
        names = [model.id for model in listed]
        wanted = "models/offline-model" if double.models == "prefixed" else "offline-model"
        assert wanted in names
        assert ask(client).choices
        if double.models == "prefixed":
            assert ask(client, model=wanted).choices


@every_double
def test_keys_and_parameters_of_the_url_are_wanted(double: Double) -> None:
    with serve(double) as server, client_of(server, key="another-key") as stranger:
        if double.api_key is None:
            assert ask(stranger).choices
            return
        with pytest.raises(openai.APIStatusError) as caught:
            ask(stranger)
        assert caught.value.status_code in (400, 401)
        if double.query:
            with client_of(server) as client, pytest.raises(openai.NotFoundError):
                ask(client, extra_query={"api-version": "2020-01-01"})


@every_double
def test_a_model_that_reasons_until_its_limit_says_nothing(double: Double) -> None:
    with asked(double) as client:
        field = "max_completion_tokens" if "max_tokens" in double.refused_fields else "max_tokens"
        few: dict[str, Any] = {field: 3}
        answer = ask(client, **few)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "length"
    if double.reasoning != "none":
        assert not words_of(message).strip()
        absent = "content" not in message.model_fields_set
        assert absent == (double.empty_content == "absent" and double.reasoning == "hidden")
