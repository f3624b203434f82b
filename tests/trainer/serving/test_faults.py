"""What clients do wrong costs their own request, whose error names it; nothing takes the server."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from records.errors import ConfigError
from tests.trainer.serving.served import Served, served, untaught, until
from trainer.serving.server import key_in, listening_at

HELLO: dict[str, Any] = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Say hello."}],
    "seed": 1,
    "max_tokens": 8,
}

LONG = HELLO | {"max_tokens": 900, "temperature": 0}

TOOL = {"type": "function", "function": {"name": "sky", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untaught(tmp_path_factory.mktemp("untaught") / "model", ["say hello to the sky "] * 5)


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Served]:
    with served(model) as running:
        yield running


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True, "top_logprobs": 3}, "top_logprobs"),
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"functions": []}, "functions"),
        ({"reasoning_effort": "low"}, "reasoning_effort"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": "warm"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"stop": [""]}, "stop"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stream": True, "logprobs": True}, "logprobs"),
        ({"prompt_token_ids": [0, 10**6]}, "prompt_token_ids"),
        ({"tools": [TOOL], "response_format": {"type": "json_object"}}, "response_format"),
        ({"tool_choice": {"type": "function", "function": {"name": "rain"}}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        (
            {
                "tools": [{"type": "function", "function": {"name": "s", "parameters": False}}],
                "tool_choice": "required",
            },
            "tools[0].function.parameters",
        ),
    ],
)
def test_what_cannot_be_heeded_is_refused_by_its_name(
    server: Served, fields: dict[str, Any], param: str
) -> None:
    status, told, _ = server.post(HELLO | fields)
    assert status == 400
    assert told["error"]["type"] == "invalid_request_error"
    assert told["error"]["param"] == param
    assert param.split(".")[-1].split("[")[0] in told["error"]["message"]


def test_fields_that_say_nothing_new_are_taken(server: Served) -> None:
    usual = {"n": 1, "top_logprobs": 0, "presence_penalty": 0.0, "logit_bias": None, "user": "me"}
    status, told, _ = server.post(HELLO | usual | {"metadata": {"a": "b"}, "functions": None})
    assert status == 200
    assert told["usage"]["completion_tokens"] <= 8


NESTED = b"[" * 100_000

DEEP: dict[str, Any] = {}
for _ in range(400):
    DEEP = {"type": "object", "properties": {"a": DEEP}}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b"",
        NESTED,
        b"[]",
        json.dumps(HELLO)[:-1].encode() + b', "temperature": NaN}',
        json.dumps(HELLO | {"messages": [{"role": "user", "content": "\ud800"}]}).encode(),
        json.dumps(HELLO | {"messages": []}).encode(),
        json.dumps(HELLO | {"messages": [{"role": "user", "name": 7, "content": "a"}]}).encode(),
        json.dumps(HELLO | {"messages": [{"role": "tool", "content": "a"}]}).encode(),
    ],
    ids=range(10),
)
def test_bodies_that_are_no_requests_are_refused(server: Served, body: bytes) -> None:
    status, told, _ = server.post(body)
    assert status == 400, told
    assert told["error"]["message"]


def test_a_schema_without_end_costs_its_own_request(server: Served) -> None:
    deep = {"type": "function", "function": {"name": "deep", "parameters": DEEP}}
    status, told, _ = server.post(HELLO | {"tools": [deep], "tool_choice": "required"})
    assert status in (200, 400), told
    assert server.post(HELLO)[0] == 200


def test_other_models_routes_and_methods_are_not_found(server: Served) -> None:
    status, told, _ = server.post(HELLO | {"model": "other"})
    assert (status, told["error"]["code"]) == (404, "model_not_found")
    for path, wanted in (("/models/none", 404), ("/chat/completions", 405)):
        with pytest.raises(urllib.error.HTTPError) as failure:
            urllib.request.urlopen(f"{server.url}{path}")
        with failure.value as answer:
            assert answer.code == wanted
            assert json.loads(answer.read())["error"]["message"]
    with urllib.request.urlopen(f"{server.url}/models") as answer:
        (listed,) = json.loads(answer.read())["data"]
    assert (listed["id"], listed["max_model_len"]) == ("tiny", 1024)


def test_a_prompt_that_leaves_no_room_is_refused_and_a_long_answer_is_cut(server: Served) -> None:
    megabyte = [{"role": "user", "content": "hello sky " * 100_000}]
    for messages in (megabyte, [{"role": "user", "content": "\u2603" * 400}]):
        status, told, _ = server.post(HELLO | {"messages": messages})
        assert (status, told["error"]["code"]) == (400, "context_length_exceeded")
        assert "maximum context length is 1024" in told["error"]["message"]
    near = {"role": "user", "content": "\u2603" * 330}
    status, told, _ = server.post(LONG | {"messages": [near], "max_tokens": 2048})
    assert status == 200
    assert told["choices"][0]["finish_reason"] == "length"
    assert told["usage"]["total_tokens"] == 1024


def test_a_client_that_goes_frees_its_slot_and_its_place(model: Path) -> None:
    with served(model, slots=1, most_waiting=2) as server:
        server.gate.opened.clear()
        drawn = server.ask(LONG)
        until(lambda: server.app.decoding.in_flight == 1)
        waits = server.ask(LONG)
        until(lambda: server.app.decoding.in_flight == 2)
        waits.close()
        until(lambda: server.app.decoding.in_flight == 1)
        other = server.ask(HELLO)
        until(lambda: server.app.decoding.in_flight == 2)
        drawn.close()
        until(lambda: server.app.decoding.in_flight == 1)
        server.gate.opened.set()
        assert other.getresponse().status == 200
        other.close()
        until(lambda: server.app.decoding.in_flight == 0)
        assert server.gate.passes < 20  # what nobody wants is not drawn


def test_a_stream_that_nobody_reads_on_is_given_up(model: Path) -> None:
    with served(model, slots=1) as server:
        stream = server.ask(LONG | {"stream": True})
        assert stream.getresponse().read(20).startswith(b"data: ")
        server.gate.opened.clear()
        stream.close()
        until(lambda: server.app.decoding.in_flight == 0)
        server.gate.opened.set()
        assert server.post(HELLO)[0] == 200
        assert server.gate.passes < 800


def test_where_all_that_may_wait_is_waiting_one_is_told_to_come_again(model: Path) -> None:
    with served(model, slots=1, most_waiting=1) as server:
        server.gate.opened.clear()
        asked = []
        for number in (1, 2):
            asked.append(server.ask(HELLO))
            until(lambda number=number: server.app.decoding.in_flight == number)
        status, told, headers = server.post(HELLO)
        assert (status, told["error"]["code"]) == (429, "queue_full")
        assert int(headers["retry-after"]) > 0
        server.gate.opened.set()
        assert [connection.getresponse().status for connection in asked] == [200, 200]
        assert server.post(HELLO)[0] == 200
        for connection in asked:
            connection.close()


def test_told_to_stop_it_answers_what_is_there_and_nothing_new(model: Path) -> None:
    with served(model) as server:
        server.gate.opened.clear()
        here = server.ask(HELLO)
        until(lambda: server.app.decoding.in_flight == 1)
        server.app.begin_closing()
        status, told, headers = server.post(HELLO)
        assert (status, told["error"]["code"]) == (503, "shutting_down")
        assert int(headers["retry-after"]) > 0
        server.tell_to_stop()
        server.gate.opened.set()
        assert here.getresponse().status == 200
        here.close()
        server.thread.join(30)
        assert not server.thread.is_alive()
        with pytest.raises(ConnectionRefusedError):
            server.post(HELLO)


def test_weights_that_are_no_numbers_are_an_error_and_not_an_end(model: Path) -> None:
    with served(model) as server:
        head = server.app.decoding.sampler.model.lm_head.weight
        kept = head.detach().clone()
        with torch.no_grad():
            head.fill_(float("nan"))
        status, told, _ = server.post(HELLO)
        assert status == 500
        assert "weights are damaged" in told["error"]["message"]
        with torch.no_grad():
            head.copy_(kept)
        assert server.post(HELLO)[0] == 200


def test_only_who_has_the_key_is_answered(model: Path) -> None:
    with served(model, key="secret") as server:
        for shown in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}):
            status, told, _ = server.post(HELLO, **shown)
            assert (status, told["error"]["code"]) == (401, "invalid_api_key")
            assert "secret" not in told["error"]["message"]
        assert server.post(HELLO, authorization="Bearer secret")[0] == 200


def test_other_machines_need_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--key-env"):
        listening_at("0.0.0.0", 0, has_key=False)
    listening_at("0.0.0.0", 0, has_key=True).close()
    listening_at("localhost", 0, has_key=False).close()
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        key_in("NO_SUCH_KEY")
    with listening_at("127.0.0.1", 0, has_key=False) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--port {port} cannot be used"):
            listening_at("127.0.0.1", port, has_key=False)


def _start(model: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trainer", "serve", str(model), "--name", "tiny"]
    return subprocess.Popen(
        [*command, "--port", "0", "--device", "cpu", "--key-env", "SERVED_KEY"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SERVED_KEY": "secret", "OMP_NUM_THREADS": "1"},
    )


def _address(process: subprocess.Popen[str]) -> str:
    """Where the command says that it listens."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("tiny is served at http://127.0.0.1:")
    return line.split(" is served at ")[1].split(" ")[0]


def _said(url: str) -> str:
    request = urllib.request.Request(
        f"{url}/chat/completions",
        json.dumps(HELLO).encode(),
        {"content-type": "application/json", "authorization": "Bearer secret"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["choices"][0]["message"]["content"]


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_nothing_that_another_would_need(model: Path) -> None:
    """The second one is started meanwhile, which saves the test seconds; a signal ends it."""
    first, second = _start(model), _start(model)
    with first, second:
        try:
            said = _said(_address(first))
            first.kill()
            first.wait()
            assert _said(_address(second)) == said
            second.send_signal(signal.SIGTERM)
            assert second.wait(30) in (0, -signal.SIGTERM)
        finally:
            first.kill()
            second.kill()
