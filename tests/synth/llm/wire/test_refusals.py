"""Refusals in vendors' words, and what each of them changes: one entry of a profile, or nothing."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.llm.settings.profile import STRUCTURED, USUAL, Profile
from synth.llm.wire.error_body import words_of
from synth.llm.wire.refusals import Refusal, is_moderation, read_refusal
from synth.llm.wire.shape import shaped
from tests.doubles.catalogue import DOUBLES
from tests.doubles.errors import USUAL_WORDS, RefusedError, refused
from tests.examples import examples

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BODY: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "", "tool_calls": [CALL], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ],
    "max_tokens": 100_000,
    "seed": 7,
    "temperature": 0.7,
    "reasoning_effort": "high",
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
}
STREAMED = Profile(stream=True)


def read(
    body: Any, *, status: int = 400, profile: Profile | None = None, declared: Profile | None = None
) -> Refusal:
    used = (profile or Profile()).over(USUAL)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = shaped(BODY, used)
    return read_refusal(raw, status=status, sent=sent, profile=used, declared=declared or Profile())


def openai(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"} | more}


TOOL = Profile(structured="tool")
FIELDS: dict[str, tuple[Any, Profile, str, Any]] = {
    "openai: name of max_tokens": (
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
            " 'max_completion_tokens' instead.",
            param="max_tokens",
        ),
        *(Profile(), "max_tokens_field", "max_completion_tokens"),
    ),
    "openai: temperature": (
        openai("Unsupported value: 'temperature' does not support 0.7.", param="temperature"),
        *(Profile(), "sampling", False),
    ),
    "openai: system role of a reasoning model": (
        openai(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
        ),
        *(Profile(), "system_role", "user"),
    ),
    "openai: room of an answer": (
        openai(
            "max_tokens is too large: 100000. This model supports at most 16384 completion"
            " tokens, whereas you provided 100000."
        ),
        *(Profile(), "max_output_tokens", 16_384),
    ),
    "openai: an open schema": (
        openai("Invalid schema for response_format 'x': ...", param="response_format"),
        *(Profile(structured="json_schema_strict"), "structured", "json_schema"),
    ),
    "anthropic: room of an answer": (
        openai("max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens"),
        *(Profile(), "max_output_tokens", 64_000),
    ),
    "anthropic: room beside a long prompt": (
        openai("input length and `max_tokens` exceed context limit: 150000 + 100000 > 200000"),
        *(Profile(), "context_tokens", 200_000),
    ),
    "deepseek: room of an answer": (
        openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        *(Profile(), "max_output_tokens", 8_192),
    ),
    "groq: room of an answer": (
        openai(
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`"
            " is less than the `context_window` for this model"
        ),
        *(Profile(), "max_output_tokens", 8_192),
    ),
    "gemini: room of an answer": (
        openai(
            "Unable to submit request because it has a maxOutputTokens value of 100000 but the"
            " supported range is from 1 (inclusive) to 65537 (exclusive)."
        ),
        *(Profile(), "max_output_tokens", 65_536),
    ),
    "bedrock: room of an answer": (
        {"message": "The maximum tokens you requested exceeds the model limit of 4096."},
        *(Profile(), "max_output_tokens", 4_096),
    ),
    "vllm: room in the context": (
        openai(
            "This model's maximum context length is 40960 tokens. However, you requested 100200"
            " tokens (200 in the messages, 100000 in the completion)."
        ),
        *(Profile(), "context_tokens", 40_960),
    ),
    "tgi: room in the context": (
        {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193."},
        *(Profile(), "context_tokens", 8_193),
    ),
    "mistral: room in the context": (
        openai("Prompt contains 40000 tokens, too large for model with 32768 maximum context"),
        *(Profile(), "context_tokens", 32_768),
    ),
    "xai: effort": (
        {"code": "400", "error": "Model grok-4 does not support parameter reasoningEffort."},
        *(Profile(), "effort_field", "none"),
    ),
    "vllm: forced calls": (
        openai('"auto" tool choice requires --enable-auto-tool-choice to be set'),
        *(Profile(structured="tool", tool_choice="auto"), "structured", "prompt"),
    ),
    "ollama: a model without tools": (
        openai("registry.ollama.ai/library/gemma:2b does not support tools"),
        *(TOOL, "structured", "prompt"),
    ),
    "openai: the schema of a forced call": (
        openai("Invalid schema for function 'pet'", param="tools[0].function.parameters"),
        *(TOOL, "structured", "prompt"),
    ),
    "deepseek: forced calls": (
        openai("deepseek-reasoner does not support this tool_choice"),
        *(TOOL, "tool_choice", "required"),
    ),
    "mistral: reasoning of earlier turns": (
        {
            "message": {
                "detail": [
                    {
                        "loc": ["body", "messages.2.assistant.reasoning_content"],
                        "msg": "Extra inputs are not permitted",
                        "input": "hm",
                    }
                ]
            }
        },
        *(Profile(), "reasoning_field", "none"),
    ),
    "gemma: system": (openai("System role not supported"), Profile(), "system_role", "user"),
    "a server of two words for its status": (
        {"statusCode": 400, "error": "Bad Request", "message": "property seed should not exist"},
        *(Profile(), "seed", False),
    ),
    "openrouter: what stood behind it": (
        openai("Provider returned error", metadata={"raw": '{"detail":"seed: unknown field"}'}),
        *(Profile(), "seed", False),
    ),
    "a stream": (openai("Streaming is not supported."), STREAMED, "stream", False),
    "usage of a stream": (
        openai("Unrecognized request argument supplied: stream_options"),
        *(STREAMED, "stream_usage", False),
    ),
}


@pytest.mark.parametrize(("body", "profile", "entry", "value"), FIELDS.values(), ids=FIELDS)
def test_refusal_of_a_field_changes_one_entry_that_the_user_has_not_set(
    body: Any, profile: Profile, entry: str, value: Any
) -> None:
    refusal = read(body, profile=profile)
    assert (refusal.fault, refusal.entry, refusal.value) == ("field", entry, value)
    assert refusal.change.startswith(f"{entry}: ")
    declared = profile.model_copy(update={entry: getattr(profile.over(USUAL), entry) or 10**9})
    assert read(body, profile=profile, declared=declared).fault != "field"


BROKEN = BODY | {
    "messages": [
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{x"}}],
        }
    ]
}


def test_call_that_is_no_json_is_what_an_unclear_refusal_is_about() -> None:
    def of(message: str) -> Refusal:
        body = json.dumps(openai(message)).encode()
        sent = shaped(BROKEN, USUAL)
        return read_refusal(body, status=400, sent=sent, profile=USUAL, declared=Profile())

    assert of("Internal template error")[:3] == ("field", "call_arguments", "json")
    assert of("Your prompt was flagged.").fault == "moderated"
    assert of(OVERFLOWS[3]).fault == "context_length"


def said_by(name: str, kind: str, **values: Any) -> tuple[int, bytes]:
    return refused(DOUBLES[name], RefusedError(kind, **values))


OF_DOUBLES = {
    "mistral: seed": ("mistral", "unknown_field", {"field": "seed", "value": 7}, "seed"),
    "gemini: seed": ("gemini", "unknown_field", {"field": "seed"}, "seed"),
    "mistral: ids": ("mistral", "call_id", {"value": "call_1"}, "call_ids"),
    "deepseek: mode": ("deepseek", "mode", {"value": "json_schema"}, "structured"),
    "deepseek_thinking": ("deepseek_thinking", "reasoning_back", {}, "reasoning_back"),
    "vllm: turns": ("vllm_old_template", "alternation", {}, "alternation"),
    "llama_cpp: turns": ("llama_cpp", "alternation", {}, "alternation"),
    "vllm: system": ("vllm_no_system", "system", {}, "system_role"),
    "openai: thinking": ("openai", "unknown_field", {"field": "reasoning_effort"}, "effort_field"),
}


@pytest.mark.parametrize(("name", "kind", "values", "entry"), OF_DOUBLES.values(), ids=OF_DOUBLES)
def test_refusal_of_a_double_is_understood(
    name: str, kind: str, values: dict[str, Any], entry: str
) -> None:
    status, body = said_by(name, kind, **values)
    refusal = read(body, status=status)
    assert (refusal.fault, refusal.entry) == ("field", entry)


TRAPS = (
    "",
    "stream",
    "the seed of temperature, a JSON schema and tool_choice",
    "max_tokens at most 100, response_format, consecutive user",
    "reasoning_content must be passed back",
    "system message is not supported",
    "id with a length of 9",
)
MODERATIONS = [(name, *said_by(name, "moderation", value="")) for name in DOUBLES]
CONTENT: dict[str, Any] = {
    "dashscope": openai(
        "Input data may contain inappropriate content. {}", code="data_inspection_failed"
    ),
    "azure": {
        "error": {
            "message": "The response was filtered due to the prompt triggering Azure OpenAI's"
            " content management policy. {}",
            "code": "content_filter",
            "param": "prompt",
            "innererror": {"code": "ResponsibleAIPolicyViolation"},
        }
    },
    "gemini": [{"error": {"message": "The prompt was blocked due to safety: {}", "code": 400}}],
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_said_about_a_text_changes_no_entry(trap: str) -> None:
    for name, status, body in MODERATIONS:
        error = json.loads(body)
        told = (error[0] if isinstance(error, list) else error).get("error")
        holder: Any = told if isinstance(told, dict) else error
        holder["flagged_input"] = trap
        assert read(error, status=status, profile=STREAMED).fault == "moderated", name
    for name, body in CONTENT.items():
        told = json.loads(json.dumps(body).replace("{}", trap))
        assert read(told, profile=STREAMED).fault == "moderated", name
        assert is_moderation(json.dumps(told).encode())


@pytest.mark.parametrize("trap", TRAPS)
def test_what_repeats_the_request_changes_no_entry(trap: str) -> None:
    repeated = [
        {"detail": [{"loc": ["body", "x"], "msg": "Field required", "input": {trap: trap}}]},
        openai("Failed to generate JSON.", code="json_validate_failed", failed_generation=trap),
        openai(f"Invalid string: {trap}", param="messages.[1].content"),
        openai(f"Invalid name: {trap}", param="tools[0].function.name"),
    ]
    assert [read(body, profile=STREAMED).fault for body in repeated] == ["request"] * 4


OVERFLOWS = [
    "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000"
    " tokens (4000 in the messages, 900 in the response_format schemas, 100 in the functions).",
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "Prompt contains 5000 tokens, too large for model with 4096 maximum context length",
    "prompt is too long: 5000 tokens > 4096 maximum; stream or seed make no difference",
    "The input token count (5000) exceeds the maximum number of tokens allowed (4096).",
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 4096]",
    "Please reduce the length of the messages or completion. temperature, stream.",
]


@pytest.mark.parametrize("message", OVERFLOWS)
def test_prompt_that_is_too_long_teaches_the_context_alone(message: str) -> None:
    profile = STREAMED
    while (refusal := read(openai(message, param="messages"), profile=profile)).fault == "field":
        assert (refusal.entry, refusal.value) == ("context_tokens", 4096)
        profile = profile.model_copy(update={refusal.entry: refusal.value})
    assert refusal.fault == "context_length"


WORDS = [
    *(json.dumps(body) for body, *_ in FIELDS.values()),
    *(said_by(*of[:2], **of[2])[1].decode() for of in OF_DOUBLES.values()),
    *(words.message for words in USUAL_WORDS.values()),
    *TRAPS,
    *OVERFLOWS,
]
PROFILES = st.builds(
    Profile,
    structured=st.sampled_from((None, *STRUCTURED)),
    tool_choice=st.sampled_from((None, "named", "required", "auto")),
    max_tokens_field=st.sampled_from((None, "max_tokens", "max_completion_tokens")),
    max_output_tokens=st.none() | st.integers(1, 99),
    stream=st.booleans(),
    effort_field=st.sampled_from((None, "reasoning.effort", "enable_thinking", "thinking")),
)


@settings(max_examples=examples(40))
@given(PROFILES, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), st.integers(0, 3))
def test_chain_of_refusals_ends(profile: Profile, words: list[str], turn: int) -> None:
    """Whatever a server answers, in turns, each change is a new one."""
    seen: set[tuple[str, Any]] = set()
    for number in range(60):
        refusal = read(words[(number + turn) % len(words)].encode(), profile=profile)
        if refusal.fault == "field":
            change = (refusal.entry, refusal.value)
            assert change not in seen
            assert getattr(profile.over(USUAL), refusal.entry) != refusal.value
            seen.add(change)
            profile = profile.model_copy(update={refusal.entry: refusal.value})
    assert len(seen) < 40


@settings(max_examples=examples(80))
@given(
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(("error", "message", "detail", "param", "loc", "metadata", "raw")),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_body_can_be_read(body: bytes) -> None:
    assert isinstance(words_of(body), str)
    assert read(body).fault in ("field", "moderated", "context_length", "request")


def test_words_are_those_of_the_server() -> None:
    behind = openai("Provider returned error", metadata={"raw": "no seed, please"})
    assert words_of(json.dumps(behind).encode()) == "Provider returned error: no seed, please"
    assert words_of(b'{"error": "Bad Request", "message": "no seed"}') == "no seed"
    assert words_of(b'{"error": true, "message": "no seed"}') == "no seed"
    assert words_of(b'[{"error": {"code": 400, "message": "no seed"}}]') == "no seed"
    assert words_of(b"<html>busy</html>") == "<html>busy</html>"
