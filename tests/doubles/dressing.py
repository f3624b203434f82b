"""An answer of the offline model as a vendor's server gives it: form, reasoning, bill."""

import hashlib
import json
from typing import Any, NamedTuple

from records.sizes import count_tokens
from tests.doubles.canonical import Canonical
from tests.doubles.double import Double, Dressing

Body = dict[str, Any]

_AROUND: dict[Dressing, tuple[str, str]] = {
    "bare": ("", ""),
    "fence": ("```json\n", "\n```"),
    "FENCE": ("```JSON\n", "\n```\n"),
    "prose": ("Sure! Here is the JSON that you asked for:\n\n", ""),
    "remark": ("", "\n\nLet me know if you would like me to change anything {for you}."),
}
_THOUGHT = "Let me think about what is asked here, step by step. "


class Bill(NamedTuple):
    """Tokens of one answer as the server charges them: reasoning is a part of the completion."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0


def dressed(double: Double, whole: Body, asked: Canonical, *, key: str, cached: int) -> Body:
    """The completion `whole` with what the double does to it, and its usage in the double's form.
    `key` is a digest of the request."""
    choice = whole["choices"][0]
    message = choice["message"]
    words, calls = message.get("content") or "", message.get("tool_calls") or []
    if asked.asked == "tool":
        calls = [{"type": "function", "function": {"name": asked.tool, "arguments": words}}]
        words = ""
        if choice["finish_reason"] == "stop":
            choice["finish_reason"] = "tool_calls"
    elif asked.asked == "loose":
        picked = double.dressings[int(key[:8], 16) % len(double.dressings)]
        before, after = _AROUND[picked]
        words = before + words + (after if choice["finish_reason"] == "stop" else "")
    said = count_tokens(words) + sum(count_tokens(c["function"]["arguments"]) for c in calls)
    is_held = asked.asked == "enforced" and double.reasoning == "think"
    thinks = 0 if is_held or double.reasoning == "none" else double.reasoning_tokens
    choice["message"] = _message(double, words, calls, thinks, key=key)
    bill = Bill(whole["usage"]["prompt_tokens"], max(said, 1) + thinks, cached, thinks)
    return whole | {"usage": usage_of(double, bill), "bill": bill} | dict(double.more)


def spent_on_thoughts(double: Double, body: Body, *, limit: int, prompt: int) -> Body:
    """The answer of a model that reasoned until its limit and said nothing."""
    message = _message(double, "", [], limit, key="0" * 32)
    bill = Bill(prompt, limit, 0, limit)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "length"}
    head = {"id": "chatcmpl-0", "object": "chat.completion", "created": 0, "model": body["model"]}
    told = {"choices": [choice], "usage": usage_of(double, bill), "bill": bill}
    return head | told | dict(double.more)


def _message(double: Double, words: str, calls: list[Body], thinks: int, *, key: str) -> Body:
    message: Body = {"role": "assistant", "content": words}
    thought = (_THOUGHT * (thinks // count_tokens(_THOUGHT) + 1)).strip() if thinks else ""
    match double.reasoning:
        case "reasoning_content":
            message["reasoning_content"] = thought or None
        case "reasoning":
            message["reasoning"] = thought or None
            if double.errors == "openrouter" and thought:
                detail = {"type": "reasoning.text", "text": thought, "index": 0}
                message["reasoning_details"] = [detail]
        case "think" if thought:
            message["content"] = f"<think>\n{thought}\n</think>\n\n{words}"
        case "chunks" if thought:
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
            message["content"] = [thinking, {"type": "text", "text": words}]
        case _:
            pass
    if not message["content"]:
        if double.empty_content == "absent":
            del message["content"]
        else:
            message["content"] = None if double.empty_content == "null" and calls else ""
    if calls:
        message["tool_calls"] = [_call(double, call, f"{key}{i}") for i, call in enumerate(calls)]
    return message


def _call(double: Double, call: Body, key: str) -> Body:
    digest = hashlib.sha256(key.encode()).hexdigest()
    made = {"id": digest[:9] if double.call_id else f"call_{digest[:24]}", "type": "function"}
    function = dict(call["function"])
    if double.object_arguments:
        function["arguments"] = _parsed(function["arguments"])
    return made | {"function": function}


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:  # cut at the limit of the answer
        return arguments


def usage_of(double: Double, bill: Bill) -> Body:
    total = bill.prompt + bill.completion
    usage: Body = {"prompt_tokens": bill.prompt, "completion_tokens": bill.completion}
    usage["total_tokens"] = total
    read, thought = {"cached_tokens": bill.cached}, {"reasoning_tokens": bill.reasoning}
    match double.usage:
        case "plain":
            pass
        case "cached":
            usage |= {"prompt_tokens_details": read}
        case "openai":
            usage |= {"prompt_tokens_details": read, "completion_tokens_details": thought}
        case "openrouter":
            usage |= {"prompt_tokens_details": read, "completion_tokens_details": thought}
            usage["cost"] = round(total * 1e-7, 9)
        case "deepseek":
            usage |= {"prompt_tokens_details": read}
            usage["prompt_cache_hit_tokens"] = bill.cached
            usage["prompt_cache_miss_tokens"] = bill.prompt - bill.cached
            if bill.reasoning:
                usage["completion_tokens_details"] = thought
        case "sglang":
            usage |= {"prompt_tokens_details": None} | thought
        case "outside":
            usage["completion_tokens"] = bill.completion - bill.reasoning
    return usage
