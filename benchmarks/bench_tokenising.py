"""How many rows a second become tokens, by the number of processes.

    python -m benchmarks.bench_tokenising                   # 2,000 rows, about a minute
    python -m benchmarks.bench_tokenising --rows 20000 --processes 1 2 4

Conversations of eight turns with two tools each, about 850 tokens, in a file of JSON lines. From
the second process on the first million tokens are made alone, as in a run, and the start of the
others is part of the time. The files of all numbers of processes are compared.
"""

import argparse
import hashlib
import json
import random
import tempfile
import time
from pathlib import Path

from benchmarks.measured import show, spread
from trainer.data.corpus import LEARNT, MARK, TOKENS, make_corpus
from trainer.data.sources import CorpusConfig
from trainer.data.tokenizer import Tokenizer, train_tokenizer

WORDS = [
    "please",
    "look",
    "for",
    "the",
    "order",
    "number",
    "and",
    "tell",
    "me",
    "when",
    "it",
    "is",
    "to",
    "be",
    "sent",
    "from",
    "here",
]

VOCABULARY = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        rows = [conversation(random.Random(n)) for n in range(args.rows)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        tokenizer = train_tokenizer(
            path.read_text()[:2_000_000].splitlines(), vocab_size=VOCABULARY
        )
        times: dict[int, list[float]] = {number: [] for number in args.processes}
        made: set[str] = set()
        for repeat in range(args.repeats):
            for number, own in times.items():
                out = Path(folder) / f"{repeat}-{number}"
                took, digest = tokenised(path, tokenizer, out, number)
                own.append(took)
                made.add(digest)
        if len(made) != 1:
            raise SystemExit("the numbers of processes made different files")
    for number, seconds in times.items():
        parameters = {"rows": args.rows, "processes": number}
        rates = spread([args.rows / s for s in seconds], digits=0)
        show({"name": "bench_tokenising", "parameters": parameters, "unit": "rows/s", **rates})


def conversation(rng: random.Random) -> dict[str, object]:
    """A row such as datasets have."""
    tools = [
        {"name": f"tool_{n}", "description": words(rng, 12), "parameters": parameters(rng)}
        for n in range(2)
    ]
    messages: list[dict[str, object]] = [{"role": "system", "content": words(rng, 60)}]
    for turn in range(4):
        call = {"name": "tool_0", "arguments": {"order": rng.randrange(10**6), "turn": turn}}
        messages += [
            {"role": "user", "content": words(rng, 25)},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": json.dumps({"state": words(rng, 10)})},
            {"role": "assistant", "content": words(rng, 40)},
        ]
    return {"messages": messages, "tools": tools}


def parameters(rng: random.Random) -> dict[str, object]:
    about = {"type": "integer", "description": words(rng, 8)}
    return {"type": "object", "properties": {"order": about, "turn": about}}


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count)) + f" {rng.randrange(10**6)}."


def tokenised(path: Path, tokenizer: Tokenizer, out: Path, processes: int) -> tuple[float, str]:
    """Seconds, and a digest of what was made."""
    begun = time.perf_counter()
    make_corpus([CorpusConfig(path=str(path))], tokenizer, out, processes=processes)
    took = time.perf_counter() - begun
    content = b"".join((out / name).read_bytes() for name in (TOKENS, LEARNT, MARK))
    return took, hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    main()
