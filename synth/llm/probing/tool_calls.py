"""Do tool calls work? A model is asked to call a tool, and given the result.

Servers often list tools in the prompt and then fail to parse the model's calls, so that every
trajectory comes out as talk. That is told here, by name, before money is spent on it.
"""

import json
import re
from typing import Any

from synth.llm.client import LLM, Completion
from synth.llm.probing.questions import TOOL, WEATHER
from synth.llm.wire.answer import ChatAnswer

ROUNDS = 3
"""Calls in a row after which a model that was given the result each time goes round in circles."""

_PARSER = " (vLLM: --enable-auto-tool-choice --tool-call-parser, SGLang: --tool-call-parser)"
_WRONG_PARSER = f". The server reads this model's calls wrongly: set its parser{_PARSER}"
_MARKUP = re.compile(r"<\W?/?(tool_calls?|function|invoke)\b|\[TOOL_CALLS\]|<\|tool_call")
"""How the best known models spell calls, where nobody parses them."""

_RESULT = '{"city": "Lisbon", "sky": "clear", "celsius": 21}'


async def tool_problem(llm: LLM, role: str, item: str, rounds: int = ROUNDS) -> str | None:
    """What is wrong with a call and with the words after its result, or None. `rounds` answers at
    most are asked for."""
    messages: list[dict[str, Any]] = list(WEATHER)
    for number in range(rounds):
        answer = await llm.chat(role, messages, item=item, step=f"turn-{number}", tools=[TOOL])
        if number > 0 and not answer.tool_calls:
            return _ending_problem(answer)
        problem = call_problem(answer)
        if problem is not None:
            return problem
        calls = {"role": "assistant", "content": answer.content, "tool_calls": answer.tool_calls}
        if answer.reasoning:
            calls["reasoning_content"] = answer.reasoning
        messages.append(calls)
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": _RESULT}
            for call in answer.tool_calls
        ]
    return (
        f"it calls get_weather again after its result, {rounds} times in a row: results do not"
        " reach the model; check that the chat template writes messages of the role `tool`"
    )


def _ending_problem(answer: Completion) -> str | None:
    """What is wrong with the words after the tool's answer, or None."""
    words = answer.content.strip()
    if not words:
        return f"it ends without a word after the tool's answer{_silence(answer)}"
    return _markup_problem(words)


def call_problem(answer: Completion | ChatAnswer) -> str | None:
    """What is wrong with an answer that should call get_weather, or None."""
    if not answer.tool_calls:
        return _no_call_problem(answer)
    for call in answer.tool_calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name != "get_weather":
            return f"it called {name!r}, a tool it was not given{_WRONG_PARSER}"
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            return f"its arguments are no JSON object: {arguments[:80]!r}{_WRONG_PARSER}"
        if not isinstance(value.get("city"), str) or len(value) > 1:
            return (
                f"its arguments do not fit the tool's schema, which wants a city:"
                f" {arguments[:80]!r}{_WRONG_PARSER}"
            )
    return None


def _no_call_problem(answer: Completion | ChatAnswer) -> str:
    words = answer.content.strip()
    if not words:
        return f"it neither called nor said anything{_silence(answer)}"
    return _markup_problem(words) or (
        f"it talked instead of calling: {words[:80]!r}. Take a model that was trained to call"
        f" tools, or switch the server's tool calling on{_PARSER}"
    )


def _markup_problem(words: str) -> str | None:
    if _MARKUP.search(words) or ("get_weather" in words and "{" in words):
        return (
            f"it wrote the call as text: {words[:80]!r}. The server does not parse the calls of"
            f" this model; switch its tool-call parser on{_PARSER}"
        )
    return None


def _silence(answer: Completion | ChatAnswer) -> str:
    if answer.finish_reason == "length":
        return f": max_tokens was reached at {answer.completion_tokens}; raise it"
    if answer.reasoning:
        return (
            ": all its text is in reasoning_content; switch thinking off (extra_body) or fix the"
            " server's reasoning parser"
        )
    return (
        f" (finish_reason {answer.finish_reason!r}); ask the server without this program, and check"
        f" its chat template and tool-call parser{_PARSER}"
    )
