"""Servers that people run themselves. Where each quirk was read stands in docs/endpoints.md."""

from tests.doubles.double import Double, StreamForm, Words

VLLM = Double(
    name="vllm",
    api_key=None,
    models="max_model_len",
    words={
        "body": Words(message="{value}", type="BadRequestError", code=400),
        "model": Words(
            status=404,
            message="The model `{model}` does not exist.",
            type="NotFoundError",
            code=404,
        ),
        "context": Words(
            message="This model's maximum context length is {limit} tokens. However, your prompt"
            " contains {tokens} input tokens. Please reduce the length of the input prompt.",
            type="BadRequestError",
            param="input_tokens",
            code=400,
        ),
        "alternation": Words(
            message="Conversation roles must alternate user/assistant/user/assistant/...",
            type="BadRequestError",
            code=400,
        ),
        "system": Words(message="System role not supported", type="BadRequestError", code=400),
    },
    context_tokens=131_072,
    dressings=("bare", "fence", "prose"),
    reasoning="reasoning",
    usage="plain",
)

VLLM_OLD_TEMPLATE = Double(
    name="vllm_old_template",
    api_key=None,
    models="max_model_len",
    words=VLLM.words,
    alternation=True,
    context_tokens=131_072,
    dressings=("bare", "FENCE", "remark"),
)
"""A model of 2023 behind vLLM: its chat template wants alternation."""

VLLM_NO_SYSTEM = Double(
    name="vllm_no_system",
    api_key=None,
    models="max_model_len",
    words=VLLM.words,
    alternation=True,
    system_role=False,
    context_tokens=131_072,
    dressings=("bare", "fence"),
)
"""A model behind vLLM whose chat template knows no system prompt, as the first Gemma's."""

SGLANG = Double(
    name="sglang",
    api_key=None,
    models="max_model_len",
    errors="flat",
    words={
        "body": Words(message="{value}", type="BadRequestError"),
        "model": Words(status=404, message="Model {model} not found", type="NotFoundError"),
        "context": Words(
            message="The input ({tokens} tokens) is longer than the model's context length"
            " ({limit} tokens).",
            type="BadRequestError",
        ),
    },
    context_tokens=131_072,
    dressings=("bare", "fence", "remark"),
    reasoning="think",  # as without --reasoning-parser
    usage="sglang",
)

LLAMA_CPP = Double(
    name="llama_cpp",
    api_key=None,
    models="n_ctx",
    errors="llama_cpp",
    words={
        "body": Words(message="{value}"),
        "model": Words(status=404, message="model not found: {model}", type="not_found_error"),
        "context": Words(
            message="request ({tokens} tokens) exceeds the available context size ({limit}"
            " tokens), try increasing it",
            type="exceed_context_size_error",
            more={"n_prompt_tokens": "{tokens}", "n_ctx": "{limit}"},
        ),
        "alternation": Words(  # an exception of the template is no fault of the request here
            status=500,
            message="Error: Jinja Exception: After the optional system message, conversation roles"
            " must alternate user and assistant roles except for tool calls and results.",
            type="server_error",
        ),
    },
    alternation=True,
    context_tokens=131_072,
    dressings=("bare", "fence", "prose", "remark"),
    reasoning="reasoning_content",
    usage="cached",
    more={"timings": {"cache_n": 0, "prompt_n": 1, "predicted_n": 1}},
)

OLLAMA = Double(
    name="ollama",
    api_key=None,
    words={
        "model": Words(
            status=404, message="model '{model}' not found", type="not_found_error", code=None
        ),
        "body": Words(message="{value}"),
    },
    ignored_fields=frozenset({"max_completion_tokens"}),
    context_tokens=131_072,
    cuts_prompts=True,
    dressings=("bare", "fence", "prose"),
    reasoning="reasoning",
    empty_content="empty",
    usage="plain",
    stream=StreamForm(whole_calls=True, call_index=False),
    more={"system_fingerprint": "fp_ollama"},
)
