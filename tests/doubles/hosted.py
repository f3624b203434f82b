"""Other vendors' endpoints. Where each quirk was read stands in docs/endpoints.md."""

from tests.doubles.double import Double, StreamForm, Words

_DEEPSEEK_WORDS = {
    "auth": Words(
        status=401,
        message="Authentication Fails, your api key is invalid",
        type="authentication_error",
        code="invalid_request_error",
    ),
    "mode": Words(
        message="This response_format type is unavailable now", code="invalid_request_error"
    ),
    "word_json": Words(
        message="Prompt must contain the word 'json' in some form to use 'response_format' of type"
        " 'json_object'.",
        code="invalid_request_error",
    ),
    "choice": Words(
        message="deepseek-reasoner does not support this tool_choice", code="invalid_request_error"
    ),
    "max_tokens": Words(
        message="Invalid max_tokens value, the valid range of max_tokens is [1, {limit}]",
        code="invalid_request_error",
    ),
    "reasoning_back": Words(
        message="The reasoning_content in the thinking mode must be passed back to the API.",
        code="invalid_request_error",
    ),
    "balance": Words(
        status=402,
        message="Insufficient Balance",
        type="unknown_error",
        code="invalid_request_error",
    ),
}

DEEPSEEK = Double(
    name="deepseek",
    base_path="",
    words=_DEEPSEEK_WORDS,
    ignored_fields=frozenset({"max_completion_tokens", "seed"}),
    json_schema="refused",
    needs_word_json=True,
    max_output_tokens=8_192,
    context_tokens=131_072,
    dressings=("bare", "fence"),
    empty_content="empty",
    usage="deepseek",
    stream=StreamForm(comments="keep-alive", usage_with_choice=True),
    blank_lines=True,
)

DEEPSEEK_THINKING = Double(
    name="deepseek_thinking",
    base_path="",
    words=_DEEPSEEK_WORDS,
    ignored_fields=frozenset({"max_completion_tokens", "seed"}),
    json_schema="refused",
    needs_word_json=True,
    forced_choice=False,
    reasoning_back=True,
    max_output_tokens=65_536,
    context_tokens=131_072,
    dressings=("bare", "fence"),
    reasoning="reasoning_content",
    empty_content="empty",
    usage="deepseek",
    stream=StreamForm(comments="keep-alive", usage_with_choice=True),
    blank_lines=True,
)

MISTRAL = Double(
    name="mistral",
    errors="mistral",
    known_fields=frozenset(
        {
            *("model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop"),
            *("random_seed", "metadata", "response_format", "tools", "tool_choice"),
            *("presence_penalty", "frequency_penalty", "n", "prediction", "parallel_tool_calls"),
            *("reasoning_effort", "prompt_mode", "safe_prompt"),
        }
    ),
    message_fields=frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "prefix"}),
    words={
        "auth": Words(status=401, message="Unauthorized", type=None),
        "unknown_field": Words(
            status=422,
            message="Extra inputs are not permitted: {field}",
            more={
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "{field}"],
                            "msg": "Extra inputs are not permitted",
                            "input": "{value}",
                        }
                    ]
                }
            },
        ),
        "message_field": Words(
            status=422,
            message="Extra inputs are not permitted: {role}",
            more={
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "{role}"],
                            "msg": "Extra inputs are not permitted",
                            "input": "{value}",
                        }
                    ]
                }
            },
        ),
        "order": Words(
            message="Unexpected role '{role}' after role '{value}'",
            type="invalid_request_message_order",
            code="3230",
        ),
        "call_id": Words(
            message="Tool call id was {value} but must be a-z, A-Z, 0-9, with a length of 9.",
            type="invalid_function_call",
            code="3280",
        ),
        "model": Words(message="Invalid model: {model}", type="invalid_model", code="1500"),
        "rate": Words(status=429, message="Rate limit exceeded", type="rate_limited", code="1300"),
    },
    user_after_tool=False,
    call_id=r"[a-zA-Z0-9]{9}",
    context_tokens=131_072,
    dressings=("bare", "fence", "prose"),
    empty_content="empty",
    usage="plain",
    rate_headers="mistral",
    stream=StreamForm(usage="always", usage_with_choice=True, whole_calls=True),
)

MISTRAL_THINKING = Double(
    name="mistral_thinking",
    errors="mistral",
    known_fields=MISTRAL.known_fields,
    message_fields=MISTRAL.message_fields,
    words=MISTRAL.words,
    user_after_tool=False,
    call_id=MISTRAL.call_id,
    context_tokens=131_072,
    dressings=("bare", "fence"),
    reasoning="chunks",
    usage="plain",
    rate_headers="mistral",
    stream=MISTRAL.stream,
)

GEMINI = Double(
    name="gemini",
    base_path="/v1beta/openai",
    models="prefixed",
    errors="gemini",
    refused_fields=dict.fromkeys(
        ("seed", "frequency_penalty", "chat_template_kwargs", "reasoning", "thinking", "top_k"),
        "unknown_field",
    ),
    words={
        "auth": Words(
            message="API key not valid. Please pass a valid API key.", type="INVALID_ARGUMENT"
        ),
        "unknown_field": Words(
            message='Invalid JSON payload received. Unknown name "{field}": Cannot find field.',
            type="INVALID_ARGUMENT",
            more={
                "details": [
                    {
                        "@type": "type.googleapis.com/google.rpc.BadRequest",
                        "fieldViolations": [{"description": 'Unknown name "{field}"'}],
                    }
                ]
            },
        ),
        "model": Words(status=404, message="models/{model} is not found", type="NOT_FOUND"),
        "context": Words(
            message="The input token count ({tokens}) exceeds the maximum number of tokens allowed"
            " ({limit}).",
            type="INVALID_ARGUMENT",
        ),
        "rate": Words(
            status=429,
            message="Resource has been exhausted (e.g. check quota).",
            type="RESOURCE_EXHAUSTED",
            more={
                "details": [
                    {
                        "@type": "type.googleapis.com/google.rpc.RetryInfo",
                        "retryDelay": "{seconds}s",
                    }
                ]
            },
        ),
        "overloaded": Words(
            status=503, message="The model is overloaded. Please try again.", type="UNAVAILABLE"
        ),
    },
    context_tokens=1_048_576,
    dressings=("bare", "fence"),
    reasoning="hidden",
    empty_content="absent",
    usage="outside",
    stream=StreamForm(whole_calls=True, call_index=False, calls_finish="stop"),
)

ANTHROPIC = Double(
    name="anthropic",
    ignored_fields=frozenset({"seed", "reasoning_effort"}),
    json_schema="ignored",
    json_object="ignored",
    fixed_values={"n": 1},
    empty_messages=False,
    words={
        "auth": Words(status=401, message="invalid x-api-key", type="authentication_error"),
        "model": Words(status=404, message="model: {model}", type="not_found_error"),
        "context": Words(message="prompt is too long: {tokens} tokens > {limit} maximum"),
        "max_tokens": Words(
            message="max_tokens: {value} > {limit}, which is the maximum allowed number of output"
            " tokens for {model}"
        ),
        "rate": Words(
            status=429,
            message="This request would exceed your rate limit of {limit} {field} per minute.",
            type="rate_limit_error",
        ),
        "overloaded": Words(status=529, message="Overloaded", type="overloaded_error"),
    },
    max_output_tokens=64_000,
    context_tokens=200_000,
    dressings=("bare", "fence", "prose", "remark"),
    usage="plain",
    rate_headers="anthropic",
    stream=StreamForm(usage="asked"),
)
