"""How much of what a run sends a server has read before, from the prompt's first byte on.

    python benchmarks/bench_prefixes.py [--tasks 40] [--tools 150] [--documents 12]

Servers keep the beginnings of prompts in a cache, and vendors take less for what they find there.
Makes a run, an evolution and a rephrasing in small with the offline model, and prints a JSON line
for each role in each stage: the share of its prompts' bytes that are the beginning of an earlier
request of the same role in the same run too. A prompt is taken to be its tools and then its
messages, as chat templates lay it out. The generator is asked the same way by every model, so the
figure is one of the prompts; agents and users of other words would move theirs a little.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show
from flows.runtime.open_run import open_run
from synth.catalogue.evolution.config import EvolveConfig
from synth.catalogue.evolution.evolve import evolve
from synth.engine.job_config import JobConfig
from synth.engine.run import Run
from synth.episode.tools.simulator import SimulateConfig
from synth.llm.gateway import Exchange
from synth.pipeline.config import BUILT_IN, RunConfig
from synth.pipeline.stages import STAGES
from synth.rephrasing.rephrase import rephrase
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig

PLAYED = ("add_allergy", "device_switch", "book_appointment", "cancel_order", "file_claim")
"""Tools that a model plays, so that the simulator is asked."""


class Repeats:
    """Of one role: how much of each prompt begins an earlier one."""

    def __init__(self) -> None:
        self._earlier: list[bytes] = []
        self.requests: defaultdict[str, int] = defaultdict(int)
        self.sent: defaultdict[str, int] = defaultdict(int)
        self.repeated: defaultdict[str, int] = defaultdict(int)

    def add(self, stage: str, prompt: bytes) -> None:
        at = bisect_left(self._earlier, prompt)  # the likest stand beside it in their order
        self.requests[stage] += 1
        self.sent[stage] += len(prompt)
        self.repeated[stage] += max(
            (_common(prompt, other) for other in self._earlier[max(at - 1, 0) : at + 1]), default=0
        )
        self._earlier.insert(at, prompt)


def _common(a: bytes, b: bytes) -> int:
    """Bytes at the beginning that are the same in both."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[:middle] == b[:middle] else (low, middle - 1)
    return low


def prompt_of(body: bytes) -> bytes:
    asked = json.loads(body)
    parts = [asked.get("tools", []), *asked.get("messages", [asked.get("input")])]
    return "\n".join(json.dumps(part, ensure_ascii=False) for part in parts).encode()


async def measure(config: JobConfig, folder: Path) -> dict[str, Repeats]:
    """By role; stages whose names differ by a number count as one."""
    found: defaultdict[str, Repeats] = defaultdict(Repeats)

    def on_exchange(exchange: Exchange) -> None:
        stage = exchange.stage.rstrip("0123456789").rstrip("-")
        found[exchange.role].add(stage, prompt_of(exchange.body))

    async with open_run(config, str(folder), command="bench", on_exchange=on_exchange) as run:
        await _make(run)
    return found


async def _make(run: Run[Any]) -> None:
    match run.config:
        case EvolveConfig():
            await evolve(run, Run.run_stage)
        case RephraseConfig():
            await rephrase(run, Run.run_stage)
        case _:
            for kind in STAGES:
                await run.run_stage(kind(run))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=40, help="tasks of the run")
    parser.add_argument("--tools", type=int, default=150, help="tools of the evolution")
    parser.add_argument("--documents", type=int, default=12, help="texts of each source")
    options = parser.parse_args()
    sources = (
        SourceConfig(path="cpython", max_documents=options.documents),
        SourceConfig(path="maths", kind="maths", max_documents=options.documents),
    )
    jobs: list[JobConfig] = [
        RunConfig(
            num_tasks=options.tasks,
            domains=(BUILT_IN,),
            servers=(),
            code=(),
            workers=1,
            simulate=SimulateConfig(tools=PLAYED),
        ),
        EvolveConfig(count=options.tools, specialise=2, batch_size=10, workers=1),
        RephraseConfig(sources=sources, judge="all", max_failed=1.0, workers=1),
    ]
    for job in jobs:
        with tempfile.TemporaryDirectory() as folder:
            found = asyncio.run(measure(job, Path(folder) / "d"))
        for role, repeats in found.items():
            for stage, requests in repeats.requests.items():
                sent = repeats.sent[stage]
                show(
                    {
                        "name": "prefixes",
                        "parameters": {"job": job.KIND, "stage": stage, "role": role},
                        "value": round(repeats.repeated[stage] / sent, 3),
                        "unit": "share of prompt bytes that began an earlier request",
                        "n": requests,
                        "kb": round(sent / 1000, 1),
                    }
                )


if __name__ == "__main__":
    main()
