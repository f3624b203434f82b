"""What of the protocol is used beside tools, against a server written with the official package.

It runs in a sandbox, in either era. That a server may do a thing at any moment is shown by drawing
the moments.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from records.errors import BudgetError
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.protocol.questions import (
    MOST_ASKED,
    AnswerServer,
    ServerAnswer,
    ServerQuestion,
    recorded_answers,
)
from sandboxes.mcp.protocol.results import McpResult
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import McpServer, open_server

pytestmark = pytest.mark.usefixtures("sandboxed")

T = TypeVar("T")
ERAS = ("handshake", "modern")
OFFERED = ["list_resources", "read_resource", "desk_list_prompts", "get_prompt"]

ANN = {"guest": "Ann", "nights": 2}
TEXT = {
    "role": "assistant",
    "content": {"type": "text", "text": "short"},
    "model": "m",
    "stopReason": "endTurn",
}
NOTICES = ("progress", "log", "changed", "completed", "roots")
NOISE = (*NOTICES, "cancelled", "ping", "form", "taken_back")
"""In the modern era a server sends no requests of its own."""


def desk(*arguments: str, **changes: Any) -> ServerConfig:
    path = Path(__file__).parent / "asking_server.py"
    made = server_of_command(f"python {path} {' '.join(arguments)}")
    return made.model_copy(update={"name": "desk", **changes})


def with_server(config: ServerConfig, work: Callable[[McpServer], Awaitable[T]]) -> T:
    async def go() -> T:
        async with open_server(config) as server:
            return await work(server)

    return asyncio.run(go())


def accepting(content: dict[str, Any] = ANN) -> AnswerServer:
    async def answer(question: ServerQuestion, number: int) -> ServerAnswer:
        if question.method == "sampling/createMessage":
            return ServerAnswer(TEXT)
        return ServerAnswer({"action": "accept", "content": content})

    return answer


async def book(server: McpServer, answers: AnswerServer | None = None) -> McpResult:
    return await server.call("book", {"room": "7"}, answers)


@pytest.mark.parametrize("era", ERAS)
def test_resources_and_prompts_are_tools_that_read(era: str) -> None:
    async def work(server: McpServer) -> None:
        tools = {tool["name"]: tool for tool in await server.list_tools()}
        assert list(tools)[-4:] == OFFERED
        assert all(tools[name]["annotations"] == {"readOnlyHint": True} for name in OFFERED)

        listed = json.loads((await server.call("list_resources", {})).text)
        uris = [one["uri"] for one in listed["resources"]]
        assert uris == ["note://hello", "note://logo"]
        assert [one["uriTemplate"] for one in listed["resourceTemplates"]] == [
            "note://rooms/{room}"
        ]
        for uri, text in [
            ("note://hello", "Welcome to the desk."),
            ("note://logo", "[image/png]"),
            ("note://rooms/5", "Room 5 has a view."),
        ]:
            assert await server.call("read_resource", {"uri": uri}) == McpResult(text, False)
        assert (await server.call("read_resource", {"uri": "note://none"})).is_error

        assert (await server.call("list_prompts", {})).text == "mine"
        prompts = json.loads((await server.call("desk_list_prompts", {})).text)["prompts"]
        assert [one["name"] for one in prompts] == ["greeting"]
        assert [one["required"] for one in prompts[0]["arguments"]] == [True, False]
        filled = await server.call("get_prompt", {"name": "greeting", "arguments": {"guest": "Bo"}})
        assert filled.text == "user: Greet Bo, warmly: no."

        for wrong in ({}, {"uri": 5}, {"uri": "note://\ud800"}, {"uri": "note://hello", "more": 1}):
            result = await server.call("read_resource", wrong)
            assert (result.is_error, result.error_code) == (True, "invalid_arguments")

    with_server(desk(era), work)


@pytest.mark.slow
def test_they_are_imported_like_other_tools_where_the_server_has_some() -> None:
    rows = {row["name"]: row for row in asyncio.run(import_server(desk()))}
    assert [rows[name]["drop_reason"] for name in OFFERED] == [None] * 4
    assert {rows[name]["server"] for name in rows} == {"desk"}
    assert rows["read_resource"]["input_schema"]["required"] == ["uri"]
    empty = asyncio.run(import_server(desk("empty")))
    assert [row["name"] for row in empty] == ["book", "shorten", "noisy"]


@pytest.mark.parametrize("era", ERAS)
def test_forms_and_texts_are_answered_and_written_down(era: str) -> None:
    async def work(server: McpServer) -> None:
        booked = await book(server, accepting())
        assert booked.text == 'Room 7: {"guest":"Ann","nights":2,"board":"none"}'
        (form,) = booked.exchanges
        assert form.method == "elicitation/create"
        assert form.params["message"] == "Who stays in room 7?"
        assert form.params["requestedSchema"]["required"] == ["guest", "nights"]
        assert form.result == {"action": "accept", "content": ANN}

        words = await server.call("shorten", {"text": "a long one"}, accepting())
        told = {"content": TEXT["content"], "model": "m", "stop_reason": "endTurn"}
        assert json.loads(words.text) == told
        (asked,) = words.exchanges
        assert asked.params["messages"][0]["content"]["text"] == "Shorten: a long one"
        assert (asked.params["systemPrompt"], asked.params["maxTokens"]) == (
            "You shorten texts.",
            3,
        )
        assert await book(server, recorded_answers(booked.exchanges)) == booked

    with_server(desk(era), work)


@pytest.mark.parametrize("era", ERAS)
def test_what_does_not_fit_the_form_is_declined(era: str) -> None:
    async def work(server: McpServer) -> None:
        for content in ({}, {"guest": "Ann", "nights": 10}, ANN | {"board": "caviar"}):
            booked = await book(server, accepting(content))
            assert booked.text == "Room 7 stays free: decline"
            assert booked.exchanges[0].result == {"action": "decline"}
            assert booked.exchanges[0].refusal

    with_server(desk(era), work)


@pytest.mark.parametrize("era", ERAS)
def test_without_anybody_and_switched_off_it_is_declined_and_refused(era: str) -> None:
    async def without(server: McpServer) -> None:
        assert (await book(server)).text == "Room 7 stays free: decline"
        refused = await server.call("shorten", {"text": "x"})
        assert refused.is_error
        assert "No text is written: nobody is there to answer" in refused.text

    async def off(server: McpServer) -> None:
        assert (await book(server, accepting())).text == "Room 7 stays free: decline"
        refused = await server.call("shorten", {"text": "x"}, accepting())
        assert refused.is_error
        assert "sampling/createMessage is switched off for this server" in refused.text
        assert refused.exchanges == ()

    with_server(desk(era), without)
    with_server(desk(era, elicitation=False, sampling=False), off)


def test_switches_are_part_of_a_definition_only_where_they_are_off() -> None:
    plain = desk().identity()
    assert "elicitation" not in plain
    assert desk(sampling=False).identity() == plain | {"sampling": False}


@pytest.mark.parametrize("era", ERAS)
def test_what_goes_wrong_with_an_answer_is_the_callers_and_the_server_lives(era: str) -> None:
    async def broke(question: ServerQuestion, number: int) -> ServerAnswer:
        raise BudgetError("nothing is left")

    async def work(server: McpServer) -> None:
        with pytest.raises(BudgetError, match="nothing is left"):
            await book(server, broke)
        assert (await book(server, accepting())).text.startswith("Room 7: {")

    with_server(desk(era), work)


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_is_given_up_while_somebody_thinks_leaves_the_server_to_others(
    era: str,
) -> None:
    async def work(server: McpServer) -> None:
        asked = asyncio.Event()

        async def never(question: ServerQuestion, number: int) -> ServerAnswer:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        call = asyncio.create_task(book(server, never))
        await asked.wait()
        call.cancel()
        assert (await asyncio.gather(call, return_exceptions=True))[0].__class__ is (
            asyncio.CancelledError
        )
        assert (await book(server, accepting())).text.startswith("Room 7: {")

    with_server(desk(era), work)


def test_the_time_to_think_of_an_answer_is_not_the_servers() -> None:
    asked = asyncio.Event()

    async def slow(question: ServerQuestion, number: int) -> ServerAnswer:
        asked.set()
        await asyncio.sleep(2.5)
        return ServerAnswer({"action": "accept", "content": ANN})

    async def work(server: McpServer) -> None:
        await server.list_tools()
        assert (await book(server, slow)).text.startswith("Room 7: {")

    with_server(desk("handshake", call_timeout_s=2.0), work)
    assert asked.is_set()


def test_calls_at_once_are_each_asked_for_themselves() -> None:
    def of(guest: str) -> AnswerServer:
        return accepting(ANN | {"guest": guest})

    async def work(server: McpServer) -> list[McpResult]:
        calls = (server.call("book", {"room": str(n)}, of(f"guest {n}")) for n in range(8))
        return await asyncio.gather(*calls)

    for n, result in enumerate(with_server(desk("handshake"), work)):
        assert result.text.startswith(f'Room {n}: {{"guest":"guest {n}"')
        assert [one.params["message"] for one in result.exchanges] == [f"Who stays in room {n}?"]


@pytest.mark.parametrize(("era", "noise"), [("handshake", NOISE), ("modern", NOTICES)])
def test_whatever_a_server_does_beside_answering_does_not_disturb_a_call(
    era: str, noise: tuple[str, ...]
) -> None:
    rng = Random(20261123)
    orders = [*(rng.choices(noise, k=rng.randint(1, 12)) for _ in range(40)), [*noise]]

    async def work(server: McpServer) -> None:
        for order in orders:
            result = await server.call("noisy", {"order": order}, accepting())
            assert (result.text, result.is_error) == (" ".join(order), False)
            asked = sum(what in ("form", "taken_back") for what in order)
            assert len(result.exchanges) == min(asked, MOST_ASKED)
            assert {one.result["action"] for one in result.exchanges if one.result} <= {"accept"}
        assert (await book(server, accepting())).text.startswith("Room 7: {")

    with_server(desk(era), work)
