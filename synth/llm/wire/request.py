"""One chat request before an endpoint's profile shapes it: what is hashed, and what ids hang on.

The same request has the same bytes wherever it is sent, so an answer that was paid for is found
again whatever the endpoint turned out to want.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from records.errors import ItemError
from records.model_names import in_digests
from records.seeds import seed_of
from synth.llm.settings.config import RoleConfig

Message = dict[str, Any]

AnswerForm = tuple[str, dict[str, Any]]
"""Name and JSON Schema of an answer."""


class PlainRequest(NamedTuple):
    body: dict[str, Any]
    """In the protocol's own form: `response_format` for an answer's form, and so on."""
    raw: bytes
    """The body as JSON: the same bytes for the same arguments."""
    max_tokens: int
    """Of the answer, at most."""
    messages: Sequence[Message]
    """With the reasoning that the body leaves out."""


def chat_request(
    config: RoleConfig,
    role: str,
    messages: Sequence[Message],
    *,
    item: str,
    round_: int = 0,
    tools: Sequence[dict[str, Any]] | None = None,
    form: AnswerForm | None = None,
    room: int = 1,
) -> PlainRequest:
    """`room` multiplies the role's `max_tokens`: of an answer that was cut.

    The seed hangs on item, round and role, so that it stays the same during a conversation. Text
    that UTF-8 cannot hold raises ItemError("unsendable_request").
    """
    body: dict[str, Any] = {
        "model": config.model_of(item, role),
        "messages": messages if config.send_reasoning else _without_reasoning(messages),
        "max_tokens": config.max_tokens * room,
        "seed": seed_of(item, f"llm:{role}", round_) >> 32,  # 31 bits: more than some servers read
    }
    if config.temperature is not None:
        body["temperature"] = config.temperature
    if config.top_p is not None:
        body["top_p"] = config.top_p
    if config.reasoning_effort is not None:
        body["reasoning_effort"] = config.reasoning_effort
    if tools:
        body["tools"] = tools
    if form is not None:
        schema = {"name": form[0], "schema": form[1]}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    body |= config.extra_body
    try:
        raw = to_json(body, inf_nan_mode="null")  # a quarter of json.dumps' time
    except ValueError as error:
        raise ItemError("unsendable_request", f"{role} for {item}: {error}") from error
    return PlainRequest(body, raw, config.max_tokens * room, messages)


def _without_reasoning(messages: Sequence[Message]) -> list[Message]:
    return [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        if "reasoning_content" in message
        else message
        for message in messages
    ]


def request_hash(body: bytes, model: str) -> str:
    """Digest of a request to the model. Keys of journals and ids of calls are made of it, so an
    offline model counts under its earlier name."""
    if (earlier := in_digests(model)) != model:
        body = body.replace(b'"model":' + to_json(model), b'"model":' + to_json(earlier), 1)
    return hashlib.sha256(body).hexdigest()[:16]
