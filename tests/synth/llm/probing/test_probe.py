"""The probe tells working endpoints from the ways in which tool calling is known to fail."""

import asyncio
from typing import Any, get_args

import pytest

from offline_llm.app import create_app
from offline_llm.server.broken_calls import BrokenCalls
from offline_llm.server.misbehaviour import Misbehaviour
from offline_llm.settings.settings import OfflineSettings
from records.errors import BudgetError, ConfigError
from synth.llm.budget import Budget
from synth.llm.probing.probe import probe
from synth.llm.settings.config import BudgetConfig, RoleConfig
from tests.synth.llm.server import Body, Fault, Script, answer, serve
from tests.synth.llm.test_client import role


def call(name: str = "get_weather", arguments: str = '{"city": "Lisbon"}') -> Body:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": "c", "type": "function", "function": function}]
    return answer(None, tool_calls=calls, finish_reason="tool_calls")


def working(number: int, body: Body) -> Body:
    """Calls when it may, then tells the result; fills in a form that it is given."""
    if "response_format" in body:
        return answer('{"city": "Lisbon", "celsius": 21, "rains": false}')
    assert [tool["function"]["name"] for tool in body["tools"]] == ["get_weather"]
    last = body["messages"][-1]
    return answer("It is 21 degrees.") if last["role"] == "tool" else call()


def probed(script: Script, name: str = "agent", **changes: Any) -> list[Any]:
    async def run() -> list[Any]:
        async with serve(script) as server:
            rows = await probe(
                {name: role(server.url, **changes)},
                calls_tools=[name] if name == "agent" else [],
                invocation_id="inv",
            )
            assert len(rows) == len(server.requests)
            return rows

    return asyncio.run(run())


def test_working_endpoint_passes_at_two_requests_a_model() -> None:
    rows = probed(working, models=[{"name": "m"}, {"name": "other"}])
    assert [row["model"] for row in rows] == ["m", "m", "other", "other"]
    assert {row["stage"] for row in rows} == {"probe"}


def test_endpoint_that_fails_now_and_then_passes() -> None:
    """Neither a 429 nor one answer in prose is a verdict."""

    def script(number: int, body: Body) -> Body | Fault:
        flaky = {0: Fault(429), 1: answer("I would call the tool."), 2: Fault(500)}
        return flaky[number] if number in flaky else working(number, body)

    assert len(probed(script)) == 5


def test_role_without_tools_fills_in_one_form() -> None:
    assert [row["step"] for row in probed(working, "judge")] == ["form-json_schema"]


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (answer("I will check the weather."), "it talked instead of calling: 'I will check"),
        (answer('{"name": "get_weather", "arguments": {}}'), "wrote the call as text.*vLLM: --en"),
        (answer("<tool_call>get_weather"), "wrote the call as text"),
        (
            answer(None, reasoning_content="I should call it"),
            "all its text is in reasoning",
        ),
        (answer(" "), r"neither called nor said anything \(finish_reason 'stop'\)"),
        (call(arguments="city=Lisbon"), "no JSON object: 'city=Lisbon'"),
        (call(arguments="[1]"), "no JSON object"),
        (call(name="weather"), "'weather', a tool it was not given"),
        (call(arguments="{}"), "do not fit the tool's schema"),
        (call(arguments='{"city": 3}'), "do not fit the tool's schema"),
    ],
)
def test_failure_is_told_by_name(first: Body, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"roles\.agent: tool calls of m .*{words}"):
        probed(lambda *_: first)


def test_silence_after_the_tools_answer_is_a_failure() -> None:
    def script(number: int, body: Body) -> Body:
        return answer(None) if body["messages"][-1]["role"] == "tool" else call()

    with pytest.raises(ConfigError, match="without a word after the tool's answer"):
        probed(script)


def test_the_same_call_after_every_result_is_a_failure() -> None:
    with pytest.raises(ConfigError, match=r"again after its result, 2 times in a row.*template"):
        probed(lambda *_: call())


def test_a_second_call_before_the_words_is_none() -> None:
    def script(number: int, body: Body) -> Body:
        return answer("It is 21 degrees.") if len(body["messages"]) > 4 else call()

    assert len(probed(script)) == 3


BROKEN: dict[BrokenCalls, str] = {
    "said_not_called": "it talked instead of calling: 'I will now call.*Take a model",
    "call_as_text": "it wrote the call as text: '<tool_call>.*switch its tool-call parser on",
    "silent": "it neither called nor said anything.*check",
    "empty_ending": "it ends without a word after the tool's answer.*check",
    "arguments_not_json": "arguments are no JSON object.*set its parser",
    "arguments_off_schema": "arguments do not fit the tool's schema.*set its parser",
    "no_arguments": "arguments are no JSON object: ''",
    "wrong_name": "called 'functions.get_weather:0', a tool it was not given.*set its parser",
    "calls_again": "again after its result, 2 times in a row.*check that the chat template",
    "only_reasoning": "all its text is in reasoning_content; switch thinking off",
}
HARMLESS: set[BrokenCalls] = {"equal_ids", "finish_stop"}


def probe_of(how: BrokenCalls) -> list[Any]:
    app = create_app(OfflineSettings(misbehave=Misbehaviour(tool_calls=how)))
    coming = probe(
        {"agent": RoleConfig()},
        calls_tools=["agent"],
        invocation_id="inv",
        offline_app=lambda: app,
    )
    return asyncio.run(coming)


def test_every_failure_that_the_offline_provider_imitates_is_looked_at() -> None:
    assert BROKEN.keys() | HARMLESS == set(get_args(BrokenCalls))


@pytest.mark.parametrize("how", BROKEN)
def test_offline_provider_with_broken_calls_is_refused_by_name(how: BrokenCalls) -> None:
    with pytest.raises(ConfigError, match=rf"roles\.agent: tool calls of .*{BROKEN[how]}"):
        probe_of(how)


@pytest.mark.parametrize("how", sorted(HARMLESS))
def test_what_the_client_puts_right_is_not_refused(how: BrokenCalls) -> None:
    assert {row["status"] for row in probe_of(how)} == {"ok"}


@pytest.mark.parametrize("name", ["agent", "judge"])
def test_unknown_model_is_refused_with_those_that_are_there(name: str) -> None:
    unknown = Fault(404, b'{"error": {"message": "The model gpt-9 does not exist."}}')
    with pytest.raises(
        ConfigError, match=rf"roles\.{name}\.models: .*gpt-9 does not exist.*lists m, other"
    ):
        probed(lambda *_: unknown, name, models=[{"name": "gpt-9"}])


def test_model_that_is_served_and_not_listed_is_used() -> None:
    assert len(probed(working, models=[{"name": "a-deployment"}])) == 2


def test_embedding_model_that_is_not_listed_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"roles\.embedder\.models: .* no 'e5', only m, other"):
        probed(working, "embedder", models=[{"name": "e5"}])


def test_server_that_refuses_tools_is_a_configuration_error() -> None:
    refusal = Fault(400, b'{"error": {"message": "tool choice requires --enable-auto"}}')
    with pytest.raises(ConfigError, match=r"m fails the probe: .*requires --enable-auto"):
        probed(lambda *_: refusal)


@pytest.mark.parametrize("name", ["agent", "judge"])
def test_unreachable_endpoint_is_refused_at_once(name: str) -> None:
    config = RoleConfig(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, match=rf"roles\.{name}: http://127\.0\.0\.1:9/v1"):
        asyncio.run(probe({name: config}, calls_tools=[], invocation_id="inv"))


def test_probe_spends_within_the_budget() -> None:
    async def run() -> None:
        async with serve(working) as server:
            budget = Budget(BudgetConfig(tokens=10))
            coming = probe(
                {"agent": role(server.url)},
                calls_tools=["agent"],
                invocation_id="inv",
                budget=budget,
            )
            with pytest.raises(BudgetError, match="the run: tokens 0 spent of 10"):
                await coming
            assert server.requests == []

    asyncio.run(run())
