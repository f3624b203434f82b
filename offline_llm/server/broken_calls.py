"""Endpoints whose tool calling is broken as a whole, each in one of the known ways.

The model behind such an endpoint may be fine: most often the server fails to read its calls.
"""

import json
from typing import Any, Literal

BrokenCalls = Literal[
    "said_not_called",
    "call_as_text",
    "silent",
    "empty_ending",
    "arguments_not_json",
    "arguments_off_schema",
    "no_arguments",
    "wrong_name",
    "calls_again",
    "only_reasoning",
    "equal_ids",
    "finish_stop",
]
"""said_not_called: it says what it would call, and does not. call_as_text: the call stands in the
words, as markup. silent: neither words nor calls. empty_ending: it calls, and says nothing after
the result. arguments_not_json, arguments_off_schema, no_arguments, wrong_name: calls that no tool
can take. calls_again: the same call after every result, for ever. only_reasoning: all text, and the
call, are in `reasoning_content`. equal_ids: every call of a turn has the same id. finish_stop:
calls under finish_reason `stop`. The last two break nothing here: the client numbers calls anew and
looks for calls, not for reasons."""


def break_calls(whole: dict[str, Any], asked: list[dict[str, Any]], how: BrokenCalls) -> None:
    """Change a completion into what such an endpoint sends; `asked` are the request's messages."""
    choice = whole["choices"][0]
    message, calls = choice["message"], choice["message"].get("tool_calls") or []
    after_result = asked[-1]["role"] == "tool"
    if how == "empty_ending" and after_result:
        message["content"] = ""
    elif how == "calls_again" and after_result:
        previous = next(m for m in reversed(asked) if m["role"] == "assistant")
        message["content"] = None
        message["tool_calls"] = [
            call | {"id": f"{call['id']}_{len(asked)}"} for call in previous["tool_calls"]
        ]
        choice["finish_reason"] = "tool_calls"
    elif how == "only_reasoning":
        said = [message["content"] or "", *(json.dumps(call["function"]) for call in calls)]
        message["reasoning_content"] = "\n".join(filter(None, said))
        _without_calls(choice, "")
    elif calls:
        _spoil(choice, calls, how)


def _spoil(choice: dict[str, Any], calls: list[dict[str, Any]], how: BrokenCalls) -> None:
    functions = [call["function"] for call in calls]
    match how:
        case "said_not_called":
            _without_calls(choice, f"I will now call {functions[0]['name']} to find that out.")
        case "call_as_text":
            texts = [f'{{"name": "{f["name"]}", "arguments": {f["arguments"]}}}' for f in functions]
            _without_calls(choice, "\n".join(f"<tool_call>{text}</tool_call>" for text in texts))
        case "silent":
            _without_calls(choice, "")
        case "arguments_not_json":
            for function in functions:
                function["arguments"] = function["arguments"].replace('"', "'")
        case "arguments_off_schema":
            for function in functions:
                function["arguments"] = json.dumps({"input": function["arguments"]})
        case "no_arguments":
            for function in functions:
                function["arguments"] = ""
        case "wrong_name":
            for function in functions:
                function["name"] = f"functions.{function['name']}:0"
        case "equal_ids":
            for call in calls:
                call["id"] = "call_0"
        case "finish_stop":
            choice["finish_reason"] = "stop"


def _without_calls(choice: dict[str, Any], words: str) -> None:
    choice["message"].pop("tool_calls", None)
    choice["message"]["content"] = words
    choice["finish_reason"] = "stop"
