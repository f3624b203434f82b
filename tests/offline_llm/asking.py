"""Asks the offline model in process, for tests that need many answers."""

import json
import math
from typing import Any

from offline_llm.jobs import answer_of
from offline_llm.server.request import parse_chat
from offline_llm.server.response import completion
from offline_llm.settings.settings import OfflineSettings

Message = dict[str, Any]


def ask(
    messages: list[Message], *, settings: OfflineSettings | None = None, **body: Any
) -> Message:
    """The assistant message to these messages."""
    whole = {"model": "offline-model", "messages": messages} | body
    request = parse_chat(json.loads(json.dumps(whole)))
    answer = answer_of(request, settings or OfflineSettings())
    return completion(request, answer)["choices"][0]["message"]


def ask_for(name: str, messages: list[Message], **body: Any) -> Any:
    """The value of a structured answer under the schema's name."""
    form = {"type": "json_schema", "json_schema": {"name": name, "schema": {"type": "object"}}}
    return json.loads(ask(messages, response_format=form, **body)["content"])


def is_near(hits: int, trials: int, rate: float) -> bool:
    """Within 4 standard deviations of the binomial, and half a hit: one in 15,000 by chance."""
    spread = math.sqrt(trials * rate * (1 - rate))
    return abs(hits - trials * rate) <= 4 * spread + 0.5
