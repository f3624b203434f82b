"""Requests per second of our client beside raw aiohttp and the `openai` package.

    python benchmarks/bench_llm_client.py [--requests 768] [--in-flight 128] [--repeats 3]

One server of its own, a process that answers each request after 50 ms. Requests have 10 messages
and 10 tools, 8 KB; no two are alike, so our cache is written and never hit. Cases take turns, so
that a change of the machine's load meets all of them. Prints one JSON line per case: median
requests/s, its range, and CPU time of the client per request. The streamed cases read an answer of
200 chunks: raw, to its end and unparsed, and ours.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import jsonschema_rs
import openai
from openai.types.chat import ChatCompletion

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from records.store.journal import ShardJournal
from synth.llm.budget import Budget
from synth.llm.client import LLM
from synth.llm.gateway import Gateway
from synth.llm.settings.config import BudgetConfig, RoleConfig
from synth.llm.wire.json_text import value_in

ANSWER_AFTER_S = 0.05
CHUNKS = 200
"""Of a streamed answer."""

WARM_UP = 128

Ask = Callable[[int], Awaitable[None]]
"""Send request number i and use its answer."""

_SENTENCE = "The order was placed on Monday and the customer would like to have it changed. "

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"change_order_{n}",
            "description": "Change one field of an order. Returns the order as it is afterwards.",
            "parameters": {
                "type": "object",
                "properties": {
                    "order_id": {"type": "string", "description": "Id, such as OR-1001."},
                    "quantity": {"type": "integer", "minimum": 1, "description": "New quantity."},
                    "note": {"type": "string", "description": "A note for the warehouse."},
                },
                "required": ["order_id"],
                "additionalProperties": False,
            },
        },
    }
    for n in range(10)
]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "celsius": {"type": "integer"}},
    "required": ["city", "celsius"],
    "additionalProperties": False,
}


def messages_of(number: int) -> list[dict[str, Any]]:
    return [
        {"role": ("user", "assistant")[n % 2], "content": f"{number}-{n}: {_SENTENCE * 4}"}
        for n in range(10)
    ]


def body_of(number: int) -> dict[str, Any]:
    return {"model": "m", "messages": messages_of(number), "tools": TOOLS, "max_tokens": 256}


def _streamed(content: str) -> bytes:
    """An answer of so many chunks as a chunked HTTP response. JSON may end in blanks."""
    pieces = [content, *[" "] * (CHUNKS - 1)]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas = [{"index": 0, "delta": {"content": p}, "finish_reason": None} for p in pieces]
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 2000, "completion_tokens": CHUNKS, "total_tokens": 2000 + CHUNKS}
    events = [head | {"choices": [choice]} for choice in (*deltas, last)]
    events.append(head | {"choices": [], "usage": usage})
    lines = [b"data: %b\n\n" % json.dumps(event).encode() for event in events]
    chunks = [b"%x\r\n%b\r\n" % (len(line), line) for line in (*lines, b"data: [DONE]\n\n")]
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks) + b"0\r\n\r\n"
    )


class Responder(asyncio.Protocol):
    """HTTP/1.1 just far enough for these clients, so that the server is not what is measured."""

    _content = json.dumps({"city": "Lisbon", "celsius": 21})
    _body = json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": _content},
                }
            ],
            "usage": {"prompt_tokens": 2000, "completion_tokens": 20, "total_tokens": 2020},
        }
    ).encode()
    response = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(_body), _body)
    )

    streamed = _streamed(_content)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if found and len(body) >= int(length):
            self._buffer = b""
            loop = asyncio.get_running_loop()
            is_stream = b'"stream":true' in body or b'"stream": true' in body
            answer = self.streamed if is_stream else self.response
            loop.call_later(ANSWER_AFTER_S, self._transport.write, answer)


def serve(port: Any) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Responder, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def raw_aiohttp(url: str, stack: AsyncExitStack) -> Ask:
    connector = aiohttp.TCPConnector(limit=0)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))

    async def ask(number: int) -> None:
        async with session.post(f"{url}/chat/completions", json=body_of(number)) as response:
            assert (await response.json())["choices"]

    return ask


async def openai_client(url: str, stack: AsyncExitStack) -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(
        base_url=url,
        api_key="none",
        max_retries=0,
        timeout=openai.Timeout(600, connect=60),
        http_client=openai.DefaultAioHttpClient(timeout=openai.Timeout(600, connect=60)),
    )
    return await stack.enter_async_context(client)


async def openai_create(url: str, stack: AsyncExitStack) -> Ask:
    client = await openai_client(url, stack)

    async def ask(number: int) -> None:
        assert (await client.chat.completions.create(**body_of(number))).choices

    return ask


async def openai_post(url: str, stack: AsyncExitStack) -> Ask:
    client = await openai_client(url, stack)

    async def ask(number: int) -> None:
        done = await client.post("/chat/completions", cast_to=ChatCompletion, body=body_of(number))
        assert done.choices

    return ask


async def openai_post_streamed(url: str, stack: AsyncExitStack) -> Ask:
    client = await openai_client(url, stack)

    async def ask(number: int) -> None:
        events = await client.post(
            "/chat/completions",
            cast_to=object,
            body=body_of(number) | {"stream": True, "stream_options": {"include_usage": True}},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
        size = 0
        async for piece in events.response.aiter_raw():
            size += len(piece)
        assert size > CHUNKS

    return ask


def ours(
    budget: BudgetConfig, *, stream: bool = False
) -> Callable[[str, AsyncExitStack], Awaitable[Ask]]:
    async def start(url: str, stack: AsyncExitStack) -> Ask:
        """Cache and ledger are always on; the answer is validated against its schema."""
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        journal = stack.enter_context(ShardJournal(Path(folder) / "shard.sqlite"))
        config = RoleConfig.model_validate(
            {
                "base_url": url,
                "models": [{"name": "m"}],
                "max_tokens": 256,
                "max_in_flight": 512,
                "profile": {"stream": stream},
            }
        )
        gateway = await stack.enter_async_context(Gateway({"agent": config}, budget=Budget(budget)))
        llm = LLM(gateway, journal, stage="bench", invocation_id="bench")
        validator = jsonschema_rs.validator_for(SCHEMA)

        async def ask(number: int) -> None:
            done = await llm.chat(
                "agent",
                messages_of(number),
                item=f"item-{number}",
                step="0",
                tools=TOOLS,
            )
            assert value_in(done.content, validator)
            assert not done.cached

        return ask

    return start


CASES: dict[str, Callable[[str, AsyncExitStack], Awaitable[Ask]]] = {
    "raw_aiohttp": raw_aiohttp,
    "openai_create": openai_create,
    "openai_post": openai_post,
    "ours": ours(BudgetConfig()),
    "ours_with_budget": ours(BudgetConfig(usd=1e6, tokens=10**12)),
    "openai_post_streamed": openai_post_streamed,
    "ours_streamed": ours(BudgetConfig(), stream=True),
}


class Run(NamedTuple):
    requests_per_s: float
    cpu_ms: float


async def measure(case: str, url: str, requests: int, in_flight: int) -> Run:
    async with AsyncExitStack() as stack:
        ask = await CASES[case](url, stack)

        async def worker(numbers: Any) -> None:
            for number in numbers:
                await ask(number)

        async def drive(numbers: Any) -> None:
            await asyncio.gather(*(worker(numbers) for _ in range(in_flight)))

        await drive(iter(range(-WARM_UP, 0)))
        cpu, wall = time.process_time(), time.perf_counter()
        await drive(iter(range(requests)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Run(requests / wall, cpu / requests * 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=768)
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{mine.recv()}/v1"
    runs: dict[str, list[Run]] = {case: [] for case in CASES}
    for _ in range(args.repeats):
        for case in CASES:
            runs[case].append(asyncio.run(measure(case, url, args.requests, args.in_flight)))
    server.terminate()
    params = {
        "in_flight": args.in_flight,
        "body_bytes": len(json.dumps(body_of(0))),
        "answer_after_s": ANSWER_AFTER_S,
        "requests": args.requests,
        "openai": openai.__version__,
        "aiohttp": aiohttp.__version__,
    }
    for case, done in runs.items():
        cpu_ms = round(statistics.median(run.cpu_ms for run in done), 3)
        rates = spread([run.requests_per_s for run in done], 1)
        line = {"name": f"llm_client/{case}", "parameters": params, **rates, "unit": "requests/s"}
        show(line | {"cpu_ms_per_request": cpu_ms})


if __name__ == "__main__":
    main()
