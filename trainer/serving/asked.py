"""What a request asks of this server, beyond what any server of the protocol reads of it.

A field that would change the answer and that this server cannot heed is refused by its name, never
passed over. Those that change nothing (`user`, `metadata`, ...) are.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from offline_llm.server.request import ChatRequest, RequestError, parse_chat

_READ = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
        *("max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "stop", "n"),
        *("stream", "stream_options", "logprobs", "top_logprobs"),
        *("return_token_ids", "prompt_token_ids"),
    }
)

_OF_NO_MATTER = frozenset(
    {
        *("user", "metadata", "store", "service_tier", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_retention"),
    }
)
"""Whom the request is from, and how a hosted server would keep it."""

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "top_logprobs": (0,),
    "modalities": (["text"],),
}
"""Fields that may be there as long as they say what holds without them, or null."""

MOST_STOPS = 16
"""Texts at which one answer ends; OpenAI takes four."""


class ChatAsked(NamedTuple):
    request: ChatRequest
    tools: list[dict[str, Any]]
    """As the request has them: the prompt declares all that is said of them."""
    temperature: float
    top_p: float
    stop: tuple[str, ...]
    """Texts before which the answer's words end."""
    logprobs: bool
    token_ids: bool
    """Whether the tokens of prompt and answer are to be told (`return_token_ids`)."""
    prompt_ids: list[int] | None
    """Tokens to read in place of what the messages come to (`prompt_token_ids`)."""


def chat_asked(body: Any) -> ChatAsked:
    """RequestError naming the field, its value and what is allowed."""
    request = parse_chat(body)
    for name, value in body.items():
        if name in _NEUTRAL:
            if value is not None and value not in _NEUTRAL[name]:
                raise _refused(name, value, f"left out: this server has no {name}")
        elif name not in _READ | _OF_NO_MATTER and value is not None:
            raise _refused(name, value, "left out: this server has no such field")
    if request.json_schema is not None and request.tools and request.tool_choice != "none":
        raise _refused("response_format", "json", "left out where tools may be called")
    for name in ("logprobs", "return_token_ids"):
        if body.get(name) and request.stream:
            raise _refused(name, body[name], "left out of a stream")
    return ChatAsked(
        request=request,
        tools=body.get("tools") or [],
        temperature=_value(body, "temperature", 1.0, "a number from 0 to 10", _from_0_to(10.0)),
        top_p=_value(
            body,
            "top_p",
            1.0,
            "a number above 0, at most 1",
            lambda p: p > 0 and _from_0_to(1.0)(p),
        ),
        stop=_stop(body.get("stop")),
        logprobs=_value(body, "logprobs", False, "true or false", _is_bool),
        token_ids=_value(body, "return_token_ids", False, "true or false", _is_bool),
        prompt_ids=_value(
            body, "prompt_token_ids", None, "a list of at least one token's number", _are_tokens
        ),
    )


def _refused(name: str, value: Any, allowed: str) -> RequestError:
    return RequestError(f"{name} must be {allowed}; got {repr(value)[:80]}", name)


def _value(
    body: Mapping[str, Any], name: str, usual: Any, allowed: str, is_allowed: Callable[[Any], bool]
) -> Any:
    value = body.get(name)
    if value is None:
        return usual
    try:
        if is_allowed(value):
            return value
    except TypeError:
        pass
    raise _refused(name, value, allowed)


def _from_0_to(most: float) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, bool) and 0 <= value <= most


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _are_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(n) is int and n >= 0 for n in value)


def _stop(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value or []
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise _refused("stop", value, "a text or a list of texts, none of them empty")
    if len(texts) > MOST_STOPS:
        raise _refused("stop", value, f"{MOST_STOPS} texts at most")
    return tuple(texts)
