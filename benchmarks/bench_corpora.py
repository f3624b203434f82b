"""What it takes to plan the rephrasing of a large corpus: memory, time and items.

    python -m benchmarks.bench_corpora                      # 200 MB, about a minute
    python -m benchmarks.bench_corpora --bytes 10e9

Makes a JSONL of so many bytes, plans it window by window in a process of its
own, and prints that process's peak of resident memory. Plans are what a run writes of them; nothing
is made.
"""

import argparse
import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measured import show
from flows.runtime.open_run import open_run
from synth.rephrasing.stage import RephraseStage
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig

TEXT_CHARS = 3000
"""Of a text on average, about 600 tokens: as a page of the web, cleaned."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=float, default=200e6, help="of the corpus")
    parser.add_argument("--rewrites", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the corpus; default a temporary one")
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.plan is not None:
        print(json.dumps(planned(args.plan, args.rewrites)))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        corpus = Path(folder) / "corpus.jsonl"
        texts = make_corpus(corpus, int(args.bytes))
        command = [sys.executable, "-m", "benchmarks.bench_corpora", "--plan", str(corpus)]
        command += ["--rewrites", str(args.rewrites)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout)
        parameters = {"bytes": corpus.stat().st_size, "texts": texts, "rewrites": args.rewrites}
    show({"name": "bench_corpora", "parameters": parameters, **figures})


def make_corpus(path: Path, size: int) -> int:
    """Write texts that differ until there are so many bytes; how many there are."""
    rng = random.Random(0)
    words = [
        "".join(rng.choices("abcdefghijklmnoprstuvwy", k=rng.randint(2, 9))) for _ in range(5000)
    ]
    paragraphs = [" ".join(rng.choices(words, k=100)) + "." for _ in range(2000)]
    texts = written = 0
    with path.open("w") as file:
        while written < size:
            number = rng.randint(1, 2 * TEXT_CHARS // 650)
            text = "\n\n".join([f"Text {texts}.", *rng.choices(paragraphs, k=number)])
            written += file.write(json.dumps({"text": text}) + "\n")
            texts += 1
    return texts


def planned(corpus: Path, rewrites: int) -> dict[str, float | int]:
    """Plan every window as a run does, in this process."""
    config = RephraseConfig(
        sources=(SourceConfig(path=str(corpus), language="en"),), rewrites=rewrites, shard_size=1000
    )
    return asyncio.run(_planned(config, corpus.parent / "dataset"))


async def _planned(config: RephraseConfig, folder: Path) -> dict[str, float | int]:
    begun, items, windows = time.monotonic(), 0, 0
    async with open_run(config, str(folder), command="bench_corpora") as run:
        before_mb = _peak_mb()
        for window in RephraseStage(run).windows():
            items += run.plan(window).num_items
            windows += 1
    return {
        "items": items,
        "windows": windows,
        "seconds": round(time.monotonic() - begun, 1),
        "peak_rss_mb": _peak_mb(),
        "peak_rss_before_mb": before_mb,
    }


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
