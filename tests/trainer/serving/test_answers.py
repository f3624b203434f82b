"""Whoever asks the server is given what the policy gives who asks it in process, in OpenAI's form.

OpenAI's own client is the oracle of the forms.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import openai
import pytest

from tests.trainer.serving.served import CHAT, Served, served, untaught
from trainer.data.chat import parse_answer
from trainer.data.tokenizer import Tokenizer, load_tokenizer
from trainer.inference.drawing import Sampling
from trainer.inference.enforcer import Enforcer
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.inference.policies import ModelPolicy, PolicyRequest
from trainer.inference.sampler import AnswerDraft
from trainer.serving.answering import Answering, said_in
from trainer.serving.asked import chat_asked
from trainer.serving.prompting import Prompting

SKY: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "sky",
        "description": "Tells the sky.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Oslo", "Rome"]}, "now": {"type": "boolean"}},
            "required": ["city", "now"],
            "additionalProperties": False,
        },
    },
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
WIND: dict[str, Any] = {"type": "function", "function": {"name": "wind", "parameters": NOTHING}}

TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "You tell the sky. <|im_end|> is text."},
    {"role": "user", "content": [{"type": "text", "text": "How is it in "}, {"text": "Oslo?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "any",
                "type": "function",
                "function": {"name": "sky", "arguments": '{ "city":"Oslo" , "now":true}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "any", "content": '{"sky": "wolkig \u00e4"}'},
    {"role": "assistant", "content": "Cloudy."},
    {"role": "user", "content": "And the wind?"},
]

HELLO = [{"role": "user", "content": "Say hello."}]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [json.dumps(TALK), json.dumps([SKY, WIND]), "clear cloudy windy wolkig \u00e4 "] * 3
    return untaught(tmp_path_factory.mktemp("untaught") / "model", texts)


@pytest.fixture(scope="module")
def tokenizer(model: Path) -> Tokenizer:
    return load_tokenizer(model)


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Served]:
    with served(model) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as made:
        yield made


def ask(client: openai.OpenAI, messages: Any = HELLO, **fields: Any) -> Any:
    extra = {n: fields.pop(n) for n in ("return_token_ids", "prompt_token_ids") if n in fields}
    given: dict[str, Any] = {"max_tokens": 24, "seed": 3, **fields}
    return client.chat.completions.create(
        model="tiny", messages=messages, extra_body=extra or None, **given
    )


@pytest.mark.parametrize("temperature", [0.0, 1.3])
def test_tokens_in_and_out_are_those_of_the_policy(
    client: openai.OpenAI, model: Path, temperature: float
) -> None:
    sampling = Sampling(temperature=temperature, top_p=0.95, max_tokens=24)
    policy = ModelPolicy(model, sampling, chat=CHAT, slots=1, device="cpu")
    kept = EpisodeTokens()
    policy.answers([PolicyRequest(TALK, [SKY, WIND], 7, kept)])
    begin, end, _ = kept.answers[-1]
    told = ask(
        client,
        TALK,
        tools=[SKY, WIND],
        temperature=temperature,
        top_p=0.95,
        seed=7,
        return_token_ids=True,
        logprobs=True,
    )
    assert told.prompt_token_ids == kept.ids[:begin]
    assert told.choices[0].token_ids == kept.ids[begin:end]
    assert told.usage.prompt_tokens == begin
    assert told.usage.completion_tokens == end - begin
    logprobs = [one.logprob for one in told.choices[0].logprobs.content]
    assert logprobs == pytest.approx(kept.model_logprobs[begin:end], abs=1e-4)


def test_given_tokens_are_read_in_place_of_the_messages(client: openai.OpenAI) -> None:
    told = ask(client, TALK, tools=[SKY], temperature=0, return_token_ids=True)
    again = ask(
        client,
        HELLO,
        temperature=0,
        prompt_token_ids=told.prompt_token_ids,
        return_token_ids=True,
    )
    assert again.prompt_token_ids == told.prompt_token_ids
    assert again.choices[0].token_ids == told.choices[0].token_ids


def test_what_one_is_told_hangs_on_no_other_request(client: openai.OpenAI) -> None:
    """Of several lengths and ways of sampling, more than there are slots, all at once."""
    ways = [
        {"seed": n, "temperature": t, "top_p": p, "max_tokens": 5 + 7 * n, "return_token_ids": True}
        for n, (t, p) in enumerate([(0.0, 1.0), (1.0, 1.0), (1.0, 0.9), (0.7, 1.0), (1.0, 1.0)])
    ]
    alone = [ask(client, **way).choices[0].token_ids for way in ways]
    with ThreadPoolExecutor(len(ways)) as pool:
        together = list(pool.map(lambda way: ask(client, **way).choices[0].token_ids, ways))
    assert together == alone
    assert len({tuple(ids) for ids in alone}) == len(ways)


def test_a_forced_call_is_a_valid_call(client: openai.OpenAI) -> None:
    named = {"type": "function", "function": {"name": "wind"}}
    for choice, names in (("required", {"sky", "wind"}), (named, {"wind"})):
        for seed in range(3):
            choices = ask(
                client,
                tools=[SKY, WIND],
                tool_choice=choice,
                seed=seed,
                max_tokens=200,
                parallel_tool_calls=False,
            ).choices
            (call,) = choices[0].message.tool_calls
            assert call.function.name in names
            schema = {"sky": SKY, "wind": WIND}[call.function.name]["function"]["parameters"]
            jsonschema.validate(json.loads(call.function.arguments), schema)
            assert choices[0].finish_reason == "tool_calls"


def test_no_call_is_made_where_none_may_be(client: openai.OpenAI) -> None:
    for seed in range(3):
        message = ask(client, tools=[SKY], tool_choice="none", seed=seed).choices[0].message
        assert not message.tool_calls
        assert "<|tool_call" not in message.content


def test_an_answer_has_the_form_that_was_asked_for(client: openai.OpenAI) -> None:
    schema = SKY["function"]["parameters"]
    form = {"type": "json_schema", "json_schema": {"name": "sky", "schema": schema}}
    for seed in range(3):
        told = ask(client, response_format=form, seed=seed, max_tokens=200).choices[0]
        jsonschema.validate(json.loads(told.message.content), schema)
        assert told.finish_reason == "stop"


@pytest.mark.parametrize("asked", [{}, {"tools": [SKY], "tool_choice": "required"}])
def test_a_stream_says_what_the_whole_says(client: openai.OpenAI, asked: dict[str, Any]) -> None:
    given = {"temperature": 1.0, "max_tokens": 60, **asked}
    whole = ask(client, **given)
    words, calls, reason, usage = "", {}, None, None
    for chunk in ask(client, **given, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            words += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for call in choice.delta.tool_calls or ():
                calls[call.index] = (call.id, call.function.name, call.function.arguments)
    said = whole.choices[0]
    expected = [
        (c.id, c.function.name, c.function.arguments) for c in said.message.tool_calls or ()
    ]
    assert words == (said.message.content or "")
    assert [calls[n] for n in sorted(calls)] == expected
    assert reason == said.finish_reason
    assert usage == whole.usage
    assert bool(words) != bool(calls)


def test_words_end_before_a_text_to_stop_at_streamed_or_not(client: openai.OpenAI) -> None:
    given = {"temperature": 0, "max_tokens": 40}
    said = ask(client, **given).choices[0].message.content
    stop = said[9:12]
    told = ask(client, **given, stop=[stop, "never said"])
    pieces = ask(client, **given, stop=stop, stream=True)
    streamed = "".join(c.choices[0].delta.content or "" for c in pieces if c.choices)
    assert told.choices[0].message.content == streamed == said[: said.index(stop)]
    assert told.choices[0].finish_reason == "stop"
    assert told.usage.completion_tokens < 40


def test_a_free_answer_is_held_to_the_template_where_the_server_was_told_so(
    tokenizer: Tokenizer,
) -> None:
    asked = chat_asked({"model": "tiny", "messages": HELLO, "tools": [SKY]})

    def guide_of(constrained: bool) -> Enforcer | None:
        prompting = Prompting(tokenizer, CHAT, capacity=1024, constrained=constrained, where="here")
        return prompting.prepared(asked).guide

    assert guide_of(False) is None
    held = guide_of(True)
    assert held is not None
    allowed = held.allowed()
    assert allowed[tokenizer.special["<|tool_calls_section_begin|>"]]
    assert allowed[tokenizer.encode("S")[0]]
    assert not allowed[tokenizer.special["<|im_user|>"]]
    assert not allowed[tokenizer.special["<|tool_call_begin|>"]]


def _ids(tokenizer: Tokenizer, *parts: str) -> list[int]:
    made: list[int] = []
    for part in parts:
        made += [tokenizer.special[part]] if part in tokenizer.special else tokenizer.encode(part)
    return made


CALL = ("<|tool_call_begin|>", "functions.sky:0", "<|tool_call_argument_begin|>", '{"now": tr')

BROKEN = (
    ("Well ", "<|tool_calls_section_begin|>", *CALL),
    ("<|tool_calls_section_begin|>", *CALL, "<|tool_call_end|>"),
    ("<|tool_call_end|>", "Sky.", "<|im_end|>"),
    ("So ", "<|im_user|>", "user", "<|im_middle|>", "Hm", "<|im_end|>"),
    ("<think>", "for ever"),
)


@pytest.mark.parametrize("parts", BROKEN)
def test_an_answer_that_breaks_the_template_is_words(
    tokenizer: Tokenizer, parts: tuple[str, ...]
) -> None:
    """All that was written and no call, whole and as a stream that was begun before it broke."""
    ids = _ids(tokenizer, *parts)
    assert parse_answer(tokenizer, ids).broken
    spelt = "".join(part for part in parts if part != "<|im_end|>")
    assert said_in(tokenizer, ids, ()) == (spelt, None, ())
    asked = chat_asked({"model": "tiny", "messages": HELLO, "stream": True})
    draft = AnswerDraft([1], 0)
    answering = Answering(tokenizer, asked, draft)
    events: list[bytes] = []
    for token in ids:
        draft.ids.append(token)
        events += answering.news()
    draft.finish_reason = "stop"
    events += answering.ending()
    deltas = [json.loads(e[6:])["choices"][0]["delta"] for e in events if b"[DONE]" not in e]
    assert "".join(delta.get("content", "") for delta in deltas) == spelt
    assert not any("tool_calls" in delta for delta in deltas)


def test_letters_of_several_tokens_are_streamed_whole(tokenizer: Tokenizer) -> None:
    asked = chat_asked({"model": "tiny", "messages": HELLO, "stream": True})
    draft = AnswerDraft([1], 0, finish_reason=None)
    answering = Answering(tokenizer, asked, draft)
    text = "snow \u2603 on \U0001f3d4 it"
    pieces: list[str] = []
    for token in tokenizer.encode(text):
        draft.ids.append(token)
        pieces += [json.loads(e[6:])["choices"][0]["delta"]["content"] for e in answering.news()]
    assert len(pieces) > 5
    assert not any("\ufffd" in piece for piece in pieces)
    assert "".join(pieces) == text
