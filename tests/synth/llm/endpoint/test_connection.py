"""The connection: streams in pieces of any size, cut and broken ones, silence, plain answers."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from synth.llm.endpoint.connection import Endpoint, Sent
from synth.llm.endpoint.failures import SendError
from synth.llm.endpoint.gate import Gate
from synth.llm.endpoint.limiter import Limiter
from synth.llm.settings.config import RoleConfig
from synth.llm.wire.stream import StreamedAnswer, StreamError
from tests.doubles.catalogue import DOUBLES
from tests.doubles.double import Double
from tests.doubles.streams import events

PATH = "/chat/completions"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
CALLS = [
    {
        "id": f"call_{n}",
        "type": "function",
        "function": {"name": f"look_{n}", "arguments": json.dumps({"at": "ä" * 40, "n": n})},
    }
    for n in range(2)
]
MESSAGES: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Größe: 5 µm 🙂, und\nnoch\r\nmehr. " * 4},
    {"role": "assistant", "content": None, "tool_calls": CALLS},
    {"role": "assistant", "content": "done", "reasoning_content": "thinking \u2028 hard " * 6},
]


def whole_of(message: dict[str, Any]) -> dict[str, Any]:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": USAGE}


def stream_of(message: dict[str, Any], double: Double = DOUBLES["openai"]) -> bytes:
    return b"".join(events(double, whole_of(message), asks_usage=True))


def fed(pieces: Sequence[bytes]) -> dict[str, Any]:
    answer = StreamedAnswer()
    for piece in pieces:
        answer.feed(piece)
    body = json.loads(answer.body())
    assert answer.is_complete
    return body


@given(st.data(), st.sampled_from(MESSAGES), st.sampled_from(["openai", "openrouter", "mistral"]))
def test_pieces_of_any_size_give_the_same_body(
    data: st.DataObject, message: dict[str, Any], name: str
) -> None:
    raw = stream_of(message, DOUBLES[name])
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=30).map(sorted))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    body = fed(pieces)
    assert body["usage"] == USAGE
    assert body["choices"][0]["message"] == message


@pytest.mark.parametrize("message", MESSAGES)
def test_lines_that_end_in_two_characters_are_the_same_stream(message: dict[str, Any]) -> None:
    raw = stream_of(message).replace(b"\n", b"\r\n")
    assert fed([raw[at : at + 1] for at in range(len(raw))])["choices"][0]["message"] == message


def test_an_error_within_the_stream_is_raised_as_the_server_wrote_it() -> None:
    answer = StreamedAnswer()
    answer.feed(stream_of(MESSAGES[0])[:200].rpartition(b"data:")[0])
    with pytest.raises(StreamError) as caught:
        answer.feed(b'data: {"error": {"code": 502, "message": "gone"}}\n\n')
    assert caught.value.error == {"code": 502, "message": "gone"}


Responder = Callable[[web.Request], Any]


def ask(respond: Responder, *, idle_timeout_s: float = 20.0, timeout_s: float = 30.0) -> Sent:
    """What a server that responds so is told to have answered, streamed."""

    async def run() -> Sent:
        app = web.Application()
        app.router.add_post("/v1" + PATH, respond)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        config = RoleConfig(base_url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        gate = Gate(Limiter(1))
        endpoint = Endpoint(config, role="agent", max_in_flight=1, app=None, gate=gate)
        try:
            return await endpoint.stream(
                b"{}", path=PATH, timeout_s=timeout_s, idle_timeout_s=idle_timeout_s
            )
        finally:
            await endpoint.close()
            await runner.cleanup()

    return asyncio.run(run())


def streaming(
    pieces: Sequence[bytes],
    *,
    pause_s: float = 0.0,
    then: str = "end",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Responder:
    """Writes the pieces, and then ends, hangs, or resets the connection."""

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", **headers})
        await response.prepare(request)
        for piece in pieces:
            await asyncio.sleep(pause_s)
            await response.write(piece)
        if then == "hang":
            await asyncio.sleep(60.0)
        if then == "reset":
            assert request.transport is not None
            request.transport.abort()
        return response

    return respond


def failure_of(respond: Responder, **options: float) -> SendError:
    with pytest.raises(SendError) as caught:
        ask(respond, **options)
    return caught.value


RAW = stream_of(MESSAGES[0])


def test_a_streamed_answer_is_the_body_of_one_that_is_not() -> None:
    hint = {f"x-ratelimit-{what}-requests": "9" for what in ("limit", "remaining")}
    sent = ask(streaming([RAW[:100], RAW[100:]], headers=hint))
    assert json.loads(sent.raw)["choices"][0]["message"] == MESSAGES[0]
    assert sent.hint is not None
    assert sent.hint.requests is not None
    assert sent.hint.requests.limit == 9


def test_a_server_that_does_not_stream_is_understood() -> None:
    body = json.dumps(whole_of(MESSAGES[1])).encode()

    async def respond(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    assert ask(respond).raw == body


@pytest.mark.parametrize("then", ["end", "reset"])
def test_a_stream_that_is_cut_is_a_lost_connection(then: str) -> None:
    half = RAW[: len(RAW) // 2]
    assert failure_of(streaming([half], then=then)).status == "connection_lost"


def test_silence_in_the_middle_is_a_time_out() -> None:
    failure = failure_of(streaming([RAW[:100]], then="hang"), idle_timeout_s=0.2)
    assert failure.status == "timeout"
    assert "no more of the answer in 0.2 s" in failure.detail


def test_pieces_that_keep_coming_hold_off_the_idle_time_out_and_not_the_other() -> None:
    pieces = [b": still here\n\n"] * 12
    slow = streaming([*pieces, RAW], pause_s=0.05)
    assert json.loads(ask(slow, idle_timeout_s=0.4).raw)["usage"] == USAGE
    endless = streaming(pieces * 100, pause_s=0.05)
    failure = failure_of(endless, idle_timeout_s=0.4, timeout_s=0.5)
    assert failure.status == "timeout"
    assert "longer than 0.5 s" in failure.detail


@pytest.mark.parametrize(("code", "status"), [(502, "server_error"), (429, "rate_limited")])
def test_an_error_event_has_the_status_that_it_names(code: int, status: str) -> None:
    event = b'data: {"error": {"code": %d, "message": "no luck"}}\n\n' % code
    failure = failure_of(streaming([RAW[:0], event]))
    assert failure.status == status
    assert "no luck" in failure.detail


def test_what_is_no_stream_is_a_bad_body() -> None:
    assert failure_of(streaming([b"data: <html>\n\n"])).status == "bad_body"


def test_a_refusal_of_a_streamed_request_brings_its_status_and_its_wait() -> None:
    async def respond(request: web.Request) -> web.Response:
        return web.json_response({"error": {}}, status=529, headers={"retry-after": "3"})

    failure = failure_of(respond)
    assert (failure.status, failure.code, failure.retry_after_s) == ("overloaded", 529, 3.0)


def test_nobody_who_listens_is_unreachable() -> None:
    async def run() -> None:
        config = RoleConfig(base_url="http://127.0.0.1:9/v1")
        endpoint = Endpoint(config, role="agent", max_in_flight=1, app=None, gate=Gate(Limiter(1)))
        try:
            await endpoint.stream(b"{}", path=PATH, timeout_s=5.0, idle_timeout_s=5.0)
        finally:
            await endpoint.close()

    with pytest.raises(SendError) as caught:
        asyncio.run(run())
    assert caught.value.status == "unreachable"
