"""The offline model over HTTP, which proposes the goals that it is told to and plays them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from offline_llm.jobs import answer_of
from offline_llm.server.request import parse_chat
from offline_llm.server.response import completion
from offline_llm.settings.settings import OfflineSettings
from tests.synth.llm.server import Body, answer


class GoalsEndpoint:
    """Proposes goals once and finds no fault with any. As the agent it makes the calls of each goal
    that the user has spoken of, one after the other, and is done. Whatever else is asked the
    offline model answers."""

    def __init__(self, goals: Mapping[str, Mapping[str, Any]]) -> None:
        """`goals`: by words that the user says of this one alone."""
        self._goals, self._open = goals, list(goals.values())

    def script(self, _: int, body: Body) -> Body:
        schema = body.get("response_format", {}).get("json_schema", {}).get("name")
        if schema == "calls":
            return answer(json.dumps({"calls": []}))
        if schema == "goals":
            goals, self._open = self._open, []
            return answer(json.dumps({"goals": goals}))
        if schema == "told":
            numbers = map(int, re.findall(r'"number": (\d+)', body["messages"][-1]["content"]))
            read = [{"number": n, "fault": "", "told": [], "other_fits": False} for n in numbers]
            return answer(json.dumps({"goals": read}))
        if body.get("tools") and (wanted := list(self._wanted(body["messages"]))):
            return self._played(body["messages"], wanted)
        request = parse_chat(body)
        made = completion(request, answer_of(request, settings=OfflineSettings()))
        return json.loads(json.dumps(made))

    def _played(self, messages: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> Body:
        made = sum(message["role"] == "tool" for message in messages)
        if made >= len(wanted):
            values = ", ".join(f"{name} {value}" for name, value in wanted[-1]["arguments"].items())
            return answer(f"It is done, with {values}.")
        call = wanted[made]
        function = {"name": call["tool"], "arguments": json.dumps(call["arguments"])}
        calls = [{"id": f"call_{made}", "type": "function", "function": function}]
        return answer(None, tool_calls=calls, finish_reason="tool_calls")

    def _wanted(self, messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Calls of the goals in the order in which the user spoke of them."""
        said: list[str] = []
        for message in messages:
            if message["role"] == "user":
                new = [w for w in self._goals if w in message["content"] and w not in said]
                for words in sorted(new, key=message["content"].index):
                    yield from self._goals[words]["calls"]
                said += new
