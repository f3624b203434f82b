"""Rephrasing at a given latency: requests per second, requests in flight, tokens, memory.

    python benchmarks/bench_rephrase.py [--latency 2.0 0.05] [--in-flight 128] [--documents 400]
                                        [--corpus-mb 100] [--shards 12]

An endpoint of its own, a process that answers each request after the latency with the part of the
document as it came, so that the pipeline is measured and no rewriting. Texts are CPython's own
documentation. Cases: each latency with the whole document in view (`full`), and the shortest also
with the parts beside each (`neighbours`). Prints a JSON line each: requests/s over the whole run
and in its steady part (from when a tenth of the requests were answered until the last document was
begun), how many were in flight there on average and 19 times of 20, CPU time of a request, prompt
tokens by token of the source, and how many parts of documents came out of order. First, in the
fresh process, memory: a corpus of `--corpus-mb` is planned and its first `--shards` shards are
made, with the resident memory before, after planning, and at each quarter of the shards.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from flows.runtime.open_run import open_run
from records.store.dataset import Dataset
from synth.engine.plans import StagePlan
from synth.engine.run import Run
from synth.engine.stages import Stage
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.sources.sources import source_of
from synth.rephrasing.sources.texts import SourceText
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig

ANYTHING = FidelityConfig(max_copied=1.0)
"""What comes back is the source: copies are kept, so that every check runs to its end."""

SPREAD = 0.1
"""Each answer comes up to so much sooner or later: endpoints do not answer in step, and answers
that all come at once would measure how fast one process digests a burst."""

_PART = re.compile(r"## Rewrite this part\n(`{4,})text\n(.*?)\n?\1\n", re.DOTALL)

_NOTHING_WRITTEN = rb"## Written so far\n````text\n\n````"
"""In the JSON of a request for the first part of a document."""


class Responder(asyncio.Protocol):
    """HTTP/1.1 just far enough, so that the server is not what is measured."""

    latency_s = 0.0
    in_flight = 0
    seen: list[tuple[float, int, bool]] = []  # noqa: RUF012
    """When a request came or an answer left, how many were in flight then, and whether it was the
    first of a document."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if not found or len(body) < length:
            return
        self._buffer = b""
        if head.startswith(b"GET /seen"):
            self._send(json.dumps(Responder.seen).encode())
            Responder.seen = []
        elif head.startswith(b"GET"):
            self._send(b'{"object": "list", "data": [{"id": "m", "object": "model"}]}')
        else:
            self._count(1, first=_NOTHING_WRITTEN in body)
            loop = asyncio.get_running_loop()
            own = random.Random(len(Responder.seen)).uniform(1 - SPREAD, 1 + SPREAD)
            loop.call_later(self.latency_s * own, self._answer, body)

    def _answer(self, body: bytes) -> None:
        self._count(-1)
        text = json.loads(body)["messages"][1]["content"]
        found = _PART.search(text)
        part = found[2] if found else ""
        message = {"role": "assistant", "content": f"<rewrite>\n{part}\n</rewrite>"}
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": len(part) // 4}
        answer = {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": usage | {"total_tokens": sum(usage.values())},
        }
        self._send(json.dumps(answer).encode())

    def _send(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)

    def _count(self, change: int, *, first: bool = False) -> None:
        Responder.in_flight += change
        Responder.seen.append((time.monotonic(), Responder.in_flight, first))


def serve(port: Any, latency_s: float) -> None:
    async def run() -> None:
        Responder.latency_s = latency_s
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Responder, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def config_of(url: str, args: argparse.Namespace, context: str, corpus: Path) -> RephraseConfig:
    role = {"base_url": url, "models": [{"name": "m"}], "max_in_flight": args.in_flight}
    return RephraseConfig.model_validate(
        {
            "roles": {"rewriter": role},
            "sources": [
                SourceConfig(path=str(corpus), language="en", max_documents=args.documents)
            ],
            "context": context,
            "concurrency": args.in_flight * 5 // 4,  # those being checked have no request out
            "shard_size": 64,
            "fidelity": ANYTHING,
            "max_failed": 1.0,
        }
    )


def write_corpus(path: Path, size_mb: int) -> int:
    """CPython's documentation over and over, every text a little different; how many there are."""
    rows = source_of(SourceConfig(path="cpython")).texts()
    texts = [row.text for _, row in rows if isinstance(row, SourceText)]
    written = number = 0
    with path.open("w", encoding="utf-8") as out:
        while written < size_mb * 1_000_000:
            line = json.dumps({"text": f"Number {number}. {texts[number % len(texts)]}"})
            written += out.write(line + "\n")
            number += 1
    return number


def resident_mb() -> int:
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line
    ]
    return int(line.split()[1]) // 1024


async def measure_memory(args: argparse.Namespace, port: int, folder: str) -> None:
    corpus = Path(folder) / "corpus.jsonl"
    texts = await asyncio.to_thread(write_corpus, corpus, args.corpus_mb)
    every = argparse.Namespace(**(vars(args) | {"documents": None}))
    config = config_of(f"http://127.0.0.1:{port}/v1", every, "full", corpus)
    async with open_run(config, str(Path(folder) / "d"), command="bench") as run:
        stage, resident = RephraseStage(run), [resident_mb()]
        cpu = time.process_time()
        plan = await asyncio.to_thread(run.plan, stage)
        planning_s = time.process_time() - cpu
        resident.append(resident_mb())
        quarter = max(1, args.shards // 4)
        for start in range(0, args.shards, quarter):
            part = plan.open_shards[start : start + quarter]
            await asyncio.gather(*(one_shard(run, stage, plan, index) for index in part))
            resident.append(resident_mb())
    params = {"corpus_mb": args.corpus_mb, "texts": texts, "shards": args.shards}
    show(
        {
            "name": "rephrase/memory",
            "parameters": params | {"items": plan.num_items, "shard_size": config.shard_size},
            "resident_mb": resident,
            "planning_cpu_s": round(planning_s, 1),
        }
    )


async def one_shard(run: Run[Any], stage: Stage, plan: StagePlan, index: int) -> None:
    async for _ in run.run_shards(stage, plan, [index]):
        pass


async def rephrased(config: RephraseConfig, folder: str) -> tuple[float, float]:
    """Seconds and CPU seconds of the stage, planning left out."""
    async with open_run(config, folder, command="bench") as run:
        stage = RephraseStage(run)
        plan = await asyncio.to_thread(run.plan, stage)
        cpu, wall = time.process_time(), time.monotonic()

        async def one(index: int) -> None:
            async with run.turn(stage, plan, [index]):
                await one_shard(run, stage, plan, index)

        await asyncio.gather(*map(one, plan.open_shards))
        return time.monotonic() - wall, time.process_time() - cpu


def steady(seen: list[tuple[float, int, bool]]) -> dict[str, Any]:
    """While there are documents to begin, but for the start: the rate, and requests in flight."""
    answered = [at for (_, before, _), (at, n, _) in pairwise(seen) if n < before]
    start, end = answered[len(answered) // 10], max(at for at, _, first in seen if first)
    middle = [(at, n) for at, n, _ in seen if start <= at <= end]
    weighed = sum(n * (after - at) for (at, n), (after, _) in pairwise(middle))
    return {
        "steady_s": round(end - start, 1),
        "steady_requests_per_s": round(sum(start <= at <= end for at in answered) / (end - start)),
        "in_flight_mean": round(weighed / (end - start), 1),
        "in_flight_p5": sorted(n for _, n in middle)[len(middle) // 20],
    }


@contextmanager
def endpoint(latency_s: float) -> Iterator[int]:
    """The port of one."""
    mine, theirs = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    server = spawn.Process(target=serve, args=(theirs, latency_s), daemon=True)
    server.start()
    try:
        yield mine.recv()
    finally:
        server.terminate()


def measure(args: argparse.Namespace, latency_s: float, context: str) -> None:
    with endpoint(latency_s) as port, tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.jsonl"
        write_corpus(corpus, 2)
        config = config_of(f"http://127.0.0.1:{port}/v1", args, context, corpus)
        dataset_path = str(Path(folder) / "d")
        wall, cpu = asyncio.run(rephrased(config, dataset_path))
        seen = asyncio.run(_seen(port))
        dataset = Dataset.open(dataset_path)
        rows = dataset.rows("rephrasings")
        calls = dataset.rows("llm_calls", ["item_id", "step", "started_at", "stage", "latency_s"])
        calls = [call for call in calls if call["stage"] == "rephrase"]
    source, prompt = sum(r["source_tokens"] for r in rows), sum(r["prompt_tokens"] for r in rows)
    params = {
        "latency_s": latency_s,
        "context": context,
        "in_flight": args.in_flight,
        "documents": len(rows),
        "requests": len(calls),
    }
    show(
        {
            "name": f"rephrase/{context}@{latency_s:g}s",
            "parameters": params,
            "requests_per_s": round(len(calls) / wall, 1),
            "unit": "requests/s",
            **steady(seen),
            "cpu_ms_per_request": round(cpu / len(calls) * 1e3, 2),
            "prompt_tokens_per_source_token": round(prompt / source, 2),
            "parts_out_of_order": out_of_order(calls),
            "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
    )


async def _seen(port: int) -> list[tuple[float, int, bool]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**28)
    writer.write(b"GET /seen HTTP/1.1\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    found = json.loads(await reader.readexactly(length))
    writer.close()
    return [(at, n, first) for at, n, first in found]


def out_of_order(calls: list[dict[str, Any]]) -> int:
    """Parts that were asked for before the answer to the part before had come."""
    of_item: dict[str, list[dict[str, Any]]] = {}
    for call in calls:
        of_item.setdefault(call["item_id"], []).append(call)
    wrong = 0
    for own in of_item.values():
        own.sort(key=lambda call: call["step"])
        for one, other in pairwise(own):
            gap = (other["started_at"] - one["started_at"]).total_seconds()
            wrong += gap < one["latency_s"] - 0.001
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--latency", type=float, nargs="+", default=[2.0, 0.05])
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--corpus-mb", type=int, default=100)
    parser.add_argument("--shards", type=int, default=12)
    args = parser.parse_args()
    with endpoint(0.0) as port, tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure_memory(args, port, folder))
    for latency_s in args.latency:
        measure(args, latency_s, "full")
    measure(args, min(args.latency), "neighbours")


if __name__ == "__main__":
    main()
