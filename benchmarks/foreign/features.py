"""What a server does with each form of request that this project may send, one request each."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.foreign.asking import UNSAID, Reply, Server, ask, send
from synth.llm.probing.questions import TOOL

Message = dict[str, Any]


class Finding(NamedTuple):
    works: bool
    told: str = ""


Check = Callable[[Server], Finding]

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def greeting(city: str) -> Message:
    return {"role": "user", "content": f"Say hello to {city}."}


def question(city: str) -> Message:
    asked = f"What is the weather in {city} right now? Call the tool get_weather to find out."
    return {"role": "user", "content": asked}


def calling(city: str, *, arguments: str | None = None, content: str | None = "") -> Message:
    given = json.dumps({"city": city}) if arguments is None else arguments
    function = {"name": "get_weather", "arguments": given}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(city: str) -> Message:
    seen = {"city": city, "sky": "clear", "celsius": 21}
    return {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(seen)}


HELLO = greeting("Rome")
QUESTION = question("Lisbon")


def _answered(reply: Reply) -> Finding:
    said = reply.status == 200 and bool(reply.message.get("content"))
    return Finding(said, "" if said else reply.words)


def _called(reply: Reply) -> Finding:
    calls = reply.message.get("tool_calls") or []
    if not calls:
        content = str(reply.message.get("content"))
        told = reply.words if reply.status != 200 else f"stays text: {content[:70]}"
        return Finding(False, told)
    function = calls[0]["function"]
    try:
        whole = "city" in json.loads(function["arguments"])
    except ValueError:
        whole = reply.finish_reason == "length"  # forced to begin, and a small model may not end
    fits = function["name"] == "get_weather" and whole
    return Finding(fits, f"finish_reason {reply.finish_reason}")


def listed(server: Server) -> Finding:
    reply = send(f"{server.url}/models", None, server.key)
    value = reply.json
    entries = value.get("data", []) if isinstance(value, dict) else []
    names = [entry.get("id") for entry in entries]
    if reply.status != 200:
        return Finding(False, reply.words)
    return Finding(server.model in names, "" if server.model in names else f"lists {names[:3]}")


def usage(server: Server) -> Finding:
    reply = ask(server, [HELLO])
    found = (reply.json or {}).get("usage") or {}
    return Finding("completion_tokens" in found, ", ".join(sorted(found)))


def two_users(server: Server) -> Finding:
    return _answered(ask(server, [{"role": "system", "content": "Be brief."}, HELLO, HELLO]))


def developer(server: Server) -> Finding:
    return _answered(ask(server, [{"role": "developer", "content": "Be brief."}, HELLO]))


def parts(server: Server) -> Finding:
    content = [{"type": "text", "text": HELLO["content"]}]
    return _answered(ask(server, [{"role": "user", "content": content}]))


def _stream_of(reply: Reply) -> tuple[str, list[dict[str, Any]], bool]:
    """Content, calls' deltas, and whether a chunk has usage."""
    deltas = [
        choice.get("delta") or {} for chunk in reply.chunks for choice in chunk.get("choices") or []
    ]
    content = "".join(delta.get("content") or "" for delta in deltas)
    calls = [call for delta in deltas for call in delta.get("tool_calls") or []]
    return content, calls, any(chunk.get("usage") for chunk in reply.chunks)


def stream(server: Server) -> Finding:
    reply = ask(server, [HELLO], stream=True)
    if reply.status != 200 or not reply.chunks:
        return Finding(False, reply.words)
    content, _, counted = _stream_of(reply)
    end = "[DONE] at its end" if "data: [DONE]" in reply.body else "no [DONE] at its end"
    told = f"{len(reply.chunks)} chunks, {end}, usage {'unasked' if counted else 'not if unasked'}"
    return Finding(bool(content), told if content else f"no content; {told}")


def stream_usage(server: Server) -> Finding:
    reply = ask(server, [HELLO], stream=True, stream_options={"include_usage": True})
    return Finding(_stream_of(reply)[2] if reply.status == 200 else False)


def stream_calls(server: Server) -> Finding:
    reply = ask(server, [QUESTION], tools=[TOOL], stream=True)
    content, calls, _ = _stream_of(reply) if reply.status == 200 else (reply.words, [], False)
    written = "".join(call.get("function", {}).get("arguments") or "" for call in calls)
    return Finding(
        bool(calls) and "Lisbon" in written,
        f"{len(calls)} deltas" if calls else f"stays text: {content[:70]}",
    )


def tools(server: Server) -> Finding:
    return _called(ask(server, [QUESTION], tools=[TOOL]))


def forced(choice: Any) -> Check:
    """Forced is a call that the question does not ask for."""

    def check(server: Server) -> Finding:
        reply = ask(server, [HELLO], tools=[TOOL], tool_choice=choice)
        return _called(reply)

    return check


def results(server: Server) -> Finding:
    talk = [QUESTION, calling("Lisbon"), result("Lisbon")]
    return _answered(ask(server, talk, tools=[TOOL]))


def null_content(server: Server) -> Finding:
    talk = [QUESTION, calling("Lisbon", content=None), result("Lisbon")]
    return _answered(ask(server, talk, tools=[TOOL]))


def broken_arguments(server: Server) -> Finding:
    """A model wrote such a call earlier, was told so, and the conversation goes on."""
    talk = [QUESTION, calling("Lisbon", arguments='{"city": "Lis'), result("Lisbon")]
    reply = ask(server, talk, tools=[TOOL])
    return Finding(reply.status == 200, "" if reply.status == 200 else reply.words)


def taken(**fields: Any) -> Check:
    """The field is no reason to refuse the request, which says nothing about its effect."""

    def check(server: Server) -> Finding:
        reply = ask(server, [HELLO], **fields)
        return Finding(reply.status == 200, "" if reply.status == 200 else reply.words)

    return check


def shaped(response_format: Mapping[str, Any], fits: Callable[[Any], bool]) -> Check:
    def check(server: Server) -> Finding:
        reply = ask(server, [HELLO], response_format=response_format)
        if reply.status != 200:
            return Finding(False, reply.words)
        content = str(reply.message.get("content"))
        if reply.finish_reason == "length":  # a small model may not find the end of a form
            begun = content.lstrip().startswith("{")
            return Finding(begun, f"cut, begins {content[:60]}")
        try:
            return Finding(fits(json.loads(content)), f"answers {content[:60]}")
        except ValueError:
            return Finding(False, f"taken without a word, answers {content[:60]}")

    return check


def _greets(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("text"), str)


def cut(field: str) -> Check:
    def check(server: Server) -> Finding:
        reply = ask(server, [HELLO], **{"max_tokens": UNSAID, field: 2})
        told = f"finish_reason {reply.finish_reason}" if reply.status == 200 else reply.words
        return Finding(reply.finish_reason == "length", told)

    return check


def tells(expected: int, *, messages: Sequence[Message] = (HELLO,), **how: Any) -> Check:
    """A failure with the status that says what it is, and words under error.message."""

    def check(server: Server) -> Finding:
        reply = ask(server, messages, **how)
        value = reply.json
        error = value.get("error") if isinstance(value, dict) else None
        named = isinstance(error, dict) and bool(error.get("message"))
        return Finding(reply.status == expected and named, reply.words)

    return check


JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "greeting", "schema": SCHEMA}}

FEATURES: dict[str, Check] = {
    "the model is in GET /models": listed,
    "an answer in words": lambda server: _answered(ask(server, [HELLO])),
    "usage": usage,
    "system, user, user": two_users,
    "role developer": developer,
    "content as a list of parts": parts,
    "stream": stream,
    "stream with usage when asked": stream_usage,
    "tool calls are parsed": tools,
    "tool calls are parsed in a stream": stream_calls,
    "results of tools": results,
    "results after content null": null_content,
    "a call of arguments that are no JSON, earlier in the talk": broken_arguments,
    "tool_choice by name, against the question": forced(
        {"type": "function", "function": {"name": "get_weather"}}
    ),
    "tool_choice required, against the question": forced("required"),
    "parallel_tool_calls is taken": taken(tools=[TOOL], parallel_tool_calls=False),
    "response_format json_schema binds": shaped(JSON_SCHEMA, _greets),
    "response_format json_object binds": shaped(
        {"type": "json_object"}, lambda value: isinstance(value, dict)
    ),
    "seed is taken": taken(seed=7),
    "top_k is taken": taken(top_k=5),
    "a field that nobody knows is taken": taken(no_such_field=1),
    "reasoning_effort is taken": taken(reasoning_effort="low"),
    "chat_template_kwargs are taken": taken(chat_template_kwargs={"enable_thinking": False}),
    "thinking is taken": taken(thinking={"type": "disabled"}),
    "temperature null is taken": taken(temperature=None),
    "max_tokens cuts": cut("max_tokens"),
    "max_completion_tokens cuts": cut("max_completion_tokens"),
    "unknown model: 404 with words": tells(404, model="no-such-model"),
    "wrong key: 401 with words": tells(401, key="wrong-key"),
    "no messages: 400 with words": tells(400, messages=[]),
    "body is no JSON: 400 with words": tells(400, raw=b"{"),
}
