"""Endpoints of OpenAI's family. Where each quirk was read stands in docs/endpoints.md."""

from tests.doubles.double import Double, StreamForm, Words

_MODERATED = {
    "moderation": Words(
        message="Invalid prompt: your prompt was flagged as potentially violating our usage"
        " policy. Please try again with a different prompt.",
        code="invalid_prompt",
    ),
}

OPENAI = Double(
    name="openai",
    strict_schemas=True,
    refused_fields={"chat_template_kwargs": "unknown_field", "thinking": "unknown_field"},
    words=_MODERATED,
    max_output_tokens=16_384,
    context_tokens=128_000,
    usage="openai",
    rate_headers="openai",
    more={"service_tier": "default", "system_fingerprint": "fp_0"},
)

OPENAI_REASONING = Double(
    name="openai_reasoning",
    strict_schemas=True,
    refused_fields={
        "max_tokens": "max_tokens_name",
        "top_p": "unsupported_parameter",
        "parallel_tool_calls": "unsupported_parameter",
        "chat_template_kwargs": "unknown_field",
        "thinking": "unknown_field",
    },
    fixed_values={"temperature": 1},
    words=_MODERATED
    | {
        "max_tokens_name": Words(
            message="Unsupported parameter: 'max_tokens' is not supported with this model. Use"
            " 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
    },
    max_output_tokens=100_000,
    context_tokens=200_000,
    reasoning="hidden",
    usage="openai",
    rate_headers="openai",
)

AZURE = Double(
    name="azure",
    base_path="/openai/deployments/offline-model",
    key_header="api-key",
    query={"api-version": "2024-10-21"},
    models="none",
    strict_schemas=True,
    refused_fields=OPENAI.refused_fields,
    words={
        "auth": Words(
            status=401,
            type=None,
            message="Access denied due to invalid subscription key or wrong API endpoint.",
            code="401",
        ),
        "moderation": Words(
            message="The response was filtered due to the prompt triggering Azure OpenAI's content"
            " management policy. Please modify your prompt and retry.",
            type=None,
            param="prompt",
            code="content_filter",
            more={
                "status": 400,
                "innererror": {
                    "code": "ResponsibleAIPolicyViolation",
                    "content_filter_result": {
                        "hate": {"filtered": False, "severity": "safe"},
                        "jailbreak": {"filtered": False, "detected": False},
                        "violence": {"filtered": True, "severity": "medium"},
                    },
                },
            },
        ),
        "rate": Words(
            status=429,
            type=None,
            message="Requests to the ChatCompletions_Create Operation have exceeded the {field}"
            " rate limit of your pricing tier. Please retry after {seconds} seconds.",
            code="429",
        ),
    },
    max_output_tokens=16_384,
    context_tokens=128_000,
    usage="openai",
    rate_headers="azure",
    stream=StreamForm(empty_choices_first=True),
    more={"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]},
)

OPENROUTER = Double(
    name="openrouter",
    base_path="/api/v1",
    errors="openrouter",
    words={
        "auth": Words(status=401, message="No auth credentials found"),
        "model": Words(message="{model} is not a valid model ID"),
        "mode": Words(
            status=404, message="No endpoints found that can handle the requested parameters."
        ),
        "moderation": Words(
            status=403,
            message="The input was flagged by moderation. No credits were charged.",
            more={
                "metadata": {
                    "reasons": ["violence"],
                    "flagged_input": "{value}",
                    "provider_name": "OpenAI",
                    "model_slug": "offline-model",
                }
            },
        ),
        "rate": Words(status=429, message="Rate limit exceeded: {field} per minute"),
        "balance": Words(status=402, message="Insufficient credits. Add more and retry."),
    },
    context_tokens=131_072,
    dressings=("bare", "fence", "prose"),
    reasoning="reasoning",
    usage="openrouter",
    stream=StreamForm(comments="OPENROUTER PROCESSING", usage="always"),
    more={"provider": "DeepInfra"},
)
