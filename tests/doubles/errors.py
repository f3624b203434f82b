"""Refusals as bytes: the words of a kind in the form of a vendor."""

import json
from typing import Any

from tests.doubles.double import Double, Words

USUAL_WORDS = {
    "auth": Words(
        status=401, message="Incorrect API key provided.", code="invalid_api_key", param=None
    ),
    "route": Words(status=404, message="There is no {field} here.", code="not_found"),
    "query": Words(status=404, type=None, message="Resource not found", code="404"),
    "body": Words(message="The body of the request is not valid: {value}"),
    "model": Words(
        status=404,
        message="The model `{model}` does not exist or you do not have access to it.",
        param="model",
        code="model_not_found",
    ),
    "unknown_field": Words(
        message="Unknown parameter: '{field}'.", param="{field}", code="unknown_parameter"
    ),
    "unsupported_parameter": Words(
        message="Unsupported parameter: '{field}' is not supported with this model.",
        param="{field}",
        code="unsupported_parameter",
    ),
    "unsupported_value": Words(
        message="Unsupported value: '{field}' does not support {value} with this model. Only the"
        " default ({limit}) value is supported.",
        param="{field}",
        code="unsupported_value",
    ),
    "message_field": Words(message="Unknown parameter: '{field}'.", param="{field}"),
    "mode": Words(
        message="Invalid parameter: 'response_format' of type '{value}' is not supported with this"
        " model.",
        param="response_format",
    ),
    "choice": Words(message="tool_choice {value} is not supported.", param="tool_choice"),
    "schema": Words(
        message="Invalid schema for response_format '{field}': In context={value}, {schema}",
        param="response_format",
    ),
    "word_json": Words(
        message="Prompt must contain the word 'json' in some form to use 'response_format' of type"
        " 'json_object'."
    ),
    "alternation": Words(
        message="Conversation roles must alternate user/assistant/user/assistant/..."
    ),
    "system": Words(message="System role not supported"),
    "order": Words(message="Unexpected role '{role}' after role '{value}'"),
    "empty": Words(message="messages: text content blocks must be non-empty"),
    "call_id": Words(message="Tool call id {value} is not valid."),
    "reasoning_back": Words(message="The reasoning of an earlier turn is missing."),
    "context": Words(
        message="This model's maximum context length is {limit} tokens. However, your messages"
        " resulted in {tokens} tokens. Please reduce the length of the messages.",
        param="messages",
        code="context_length_exceeded",
    ),
    "max_tokens": Words(
        message="max_tokens is too large: {value}. This model supports at most {limit} completion"
        " tokens, whereas you provided {value}.",
        param="{field}",
        code="invalid_value",
    ),
    "moderation": Words(
        message="Invalid prompt: your prompt was flagged as potentially violating our usage"
        " policy.",
        code="invalid_prompt",
    ),
    "rate": Words(
        status=429,
        message="Rate limit reached for {model} on {field} per min: Limit {limit}, Used {tokens}.",
        type="{field}",
        code="rate_limit_exceeded",
    ),
    "balance": Words(
        status=429,
        message="You exceeded your current quota, please check your plan and billing details.",
        type="insufficient_quota",
        code="insufficient_quota",
    ),
    "overloaded": Words(
        status=503,
        message="The engine is currently overloaded, please try again later",
        type="server_error",
    ),
}
"""Kind of refusal -> what OpenAI says, or what says as much."""


class RefusedError(Exception):
    """A request that is answered with an error; `values` fill the words of its kind."""

    def __init__(self, kind: str, **values: Any) -> None:
        super().__init__(kind)
        self.kind, self.values = kind, values


def refused(double: Double, refusal: RefusedError) -> tuple[int, bytes]:
    """The status and the body of the refusal."""
    words = double.words.get(refusal.kind) or USUAL_WORDS[refusal.kind]
    return words.status, json.dumps(_body(double, words, refusal.values)).encode()


def _body(double: Double, words: Words, values: dict[str, Any]) -> Any:
    message, kind = _filled(words.message, values), _filled(words.type, values)
    param, code = _filled(words.param, values), words.code
    more = {key: _all_filled(value, values) for key, value in words.more.items()}
    match double.errors:
        case "openai":
            told = {"message": message, "type": kind, "param": param, "code": code}
            return {"error": told | more}
        case "flat":
            number = code if code is not None else words.status
            told = {"object": "error", "message": message, "type": kind, "param": param}
            return told | {"code": number} | more
        case "llama_cpp":
            return {"error": {"code": words.status, "message": message, "type": kind} | more}
        case "mistral":
            told = {"object": "error", "message": message, "type": kind}
            return told | {"param": param, "code": code} | more
        case "gemini":
            return [{"error": {"code": words.status, "message": message, "status": kind} | more}]
        case "openrouter":
            return {"error": {"message": message, "code": words.status} | more}


def _filled(text: str | None, values: dict[str, Any]) -> str | None:
    for name, value in values.items():
        text = text and text.replace(f"{{{name}}}", str(value))
    return text


def _all_filled(value: Any, values: dict[str, Any]) -> Any:
    """Every text within it filled; a text that is one name alone becomes the value itself."""
    if isinstance(value, str):
        alone = value[1:-1] if value.startswith("{") and value.endswith("}") else ""
        return values[alone] if alone in values else _filled(value, values)
    if isinstance(value, dict):
        return {key: _all_filled(member, values) for key, member in value.items()}
    return [_all_filled(item, values) for item in value] if isinstance(value, list) else value
