"""The faults that stand in and around the doubles, and the books that a double keeps."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest

from tests.doubles.catalogue import DOUBLES
from tests.doubles.dressing import Bill
from tests.doubles.faults import FAILURES, Outage, RandomFaults, Spent, cutting_idle, refusing
from tests.doubles.quotas import Quota, duration
from tests.doubles.server import DoubleServer, serve
from tests.doubles.test_forms import ask, client_of

OPENAI, VLLM = DOUBLES["openai"], DOUBLES["vllm"]


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_200.0

    def __call__(self) -> float:
        return self.now


def statuses(server: DoubleServer, count: int) -> list[int]:
    """Of so many plain requests; 0 for one that got no answer."""
    found = []
    with client_of(server) as client:
        for _ in range(count):
            try:
                ask(client)
                found.append(200)
            except openai.APIStatusError as error:
                found.append(error.status_code)
            except openai.APIConnectionError:
                found.append(0)
    return found


def test_a_fixed_window_gives_everything_back_at_its_end() -> None:
    clock = Hands()
    with serve(OPENAI, quota=Quota(requests=3, clock=clock)) as server:
        clock.now += 50.0
        assert statuses(server, 4) == [200, 200, 200, 429]
        clock.now += 10.0
        assert statuses(server, 4) == [200, 200, 200, 429]


def test_a_sliding_window_gives_back_what_is_a_window_old() -> None:
    clock = Hands()
    with serve(OPENAI, quota=Quota(requests=2, kind="sliding", clock=clock)) as server:
        assert statuses(server, 1) == [200]
        clock.now += 40.0
        assert statuses(server, 2) == [200, 429]
        clock.now += 20.0
        assert statuses(server, 2) == [200, 429]


def test_tokens_of_answers_use_up_a_window() -> None:
    with serve(OPENAI, quota=Quota(tokens=10, clock=Hands())) as server:
        assert statuses(server, 2) == [200, 429]


def test_a_refusal_says_when_to_come_again_in_the_form_that_is_wanted() -> None:
    def headers(**options: Any) -> httpx2.Headers:
        with serve(OPENAI, quota=Quota(requests=1, clock=Hands(), **options)) as server:
            with client_of(server) as client:
                ask(client)
                with pytest.raises(openai.RateLimitError) as caught:
                    ask(client)
            return caught.value.response.headers

    assert headers()["retry-after"] == "60"
    assert headers()["x-ratelimit-reset-requests"] == "1m0s"
    assert headers(retry_after="milliseconds")["retry-after-ms"] == "60000"
    assert headers(retry_after="date")["retry-after"].endswith("GMT")
    assert "retry-after" not in headers(retry_after="none", headers="none")
    assert headers(headers="mistral")["x-ratelimit-remaining-req-minute"] == "0"
    assert headers(headers="azure")["x-ratelimit-reset-requests"] == "60"
    assert headers(headers="anthropic")["anthropic-ratelimit-requests-reset"].endswith("Z")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0ms"), (0.12, "120ms"), (1, "1s"), (1.5, "1.5s"), (360, "6m0s"), (3661, "1h1m1s")],
)
def test_durations_are_written_as_openai_writes_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_random_faults_are_the_same_for_a_seed_and_all_of_them_happen() -> None:
    def run(seed: int) -> tuple[list[int], dict[str, int]]:
        faults = RandomFaults(0.5, seed=seed)
        with serve(VLLM, faults=[faults]) as server:
            return statuses(server, 60), dict(faults.made)

    first, made = run(1)
    assert run(1) == (first, made)
    assert run(2)[0] != first
    assert set(made) == set(FAILURES)
    assert set(first) >= {0, 200, 429, 500, 503, 529}


def test_an_answer_that_was_cut_off_is_charged_and_told_apart() -> None:
    with serve(VLLM, faults=[RandomFaults(0.5, seed=3, failures=("cut",))]) as server:
        found = statuses(server, 20)
    cut, whole = server.tokens(delivered=False), server.tokens(delivered=True)
    lost = found.count(0)
    assert 0 < lost < 20
    assert cut == Bill(*(value * lost // (20 - lost) for value in whole))
    assert server.statuses[0] == lost


@pytest.mark.parametrize("failure", ["cut", "error"])
def test_a_stream_can_end_in_the_middle(failure: Any) -> None:
    with serve(DOUBLES["openrouter"], faults=[RandomFaults(1.0, failures=(failure,))]) as server:
        with client_of(server) as client, pytest.raises((openai.APIError, httpx2.HTTPError)) as e:
            list(ask(client, stream=True))
        assert (failure == "error") == ("Provider disconnected" in str(e.value))
    assert server.tokens(delivered=True) == Bill(0, 0)


def test_an_outage_begins_and_ends_on_command() -> None:
    outage = Outage()
    with serve(VLLM, faults=[outage]) as server:
        assert statuses(server, 1) == [200]
        outage.now = "503"
        assert statuses(server, 2) == [503, 503]
        outage.now = None
        assert statuses(server, 1) == [200]
        with refusing(server):
            assert statuses(server, 2) == [0, 0]
        assert statuses(server, 1) == [200]
    assert outage.met == 2


def test_an_account_can_be_spent() -> None:
    with serve(DOUBLES["deepseek"], faults=[Spent(DOUBLES["deepseek"], after=2)]) as server:
        assert statuses(server, 4) == [200, 200, 402, 402]


def test_a_proxy_cuts_silent_answers_and_passes_those_that_stream() -> None:
    with serve(VLLM, latency_s=0.6) as slow, cutting_idle(slow, idle_s=0.2) as cutter:
        slow.url = cutter.url
        assert statuses(slow, 2) == [0, 0]
        assert cutter.cut == 2
    assert slow.tokens(delivered=True) == Bill(0, 0)
    assert len(slow.answered) == 2
    with serve(VLLM, chunk_s=0.05) as server, cutting_idle(server, idle_s=1.0) as cutter:
        with client_of(server).with_options(base_url=cutter.url) as client:
            assert len(list(ask(client, stream=True))) > 3
        assert cutter.cut == 0


def test_the_books_agree_with_what_clients_were_told() -> None:
    with serve(OPENAI) as server, client_of(server) as client:

        def told(number: int) -> tuple[int, int]:
            usage = ask(client, [{"role": "user", "content": "go " * number}]).usage
            return usage.prompt_tokens, usage.completion_tokens

        with ThreadPoolExecutor(8) as pool:
            pairs = list(pool.map(told, range(1, 33)))
    bill = server.tokens(delivered=True)
    assert (bill.prompt, bill.completion) == (sum(p for p, _ in pairs), sum(c for _, c in pairs))
    assert len(server.requests) == 32
    assert server.most_in_flight <= 8


def test_a_server_comes_up_again_on_the_same_port() -> None:
    with serve(VLLM) as server:
        before = server.port
        with refusing(server):
            time.sleep(0)
        assert server.port == before
        assert json.loads(httpx2.get(f"{server.url}/models").text)["data"]
