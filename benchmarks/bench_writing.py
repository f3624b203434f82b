"""How many prompt tokens rewriter and judge read for a document, and how many of them twice.

    python benchmarks/bench_writing.py [--documents 6] [--wrong 0.15] [--judged 0.4] [--parts 4]

Documents of 4,096 tokens are joined from the sources of the tuning half of `benchmarks/rewrites`.
The real prompts are rendered and sent to nobody: each part is answered by itself and some of its
words again, so that it grows as rewrites by other minds do; a share of the parts is sent back once,
and of a share the judge is asked.
Prints a JSON line for each context: prompt tokens by written token in all, and those that begin no
earlier request of the same document, which is what an endpoint with a cache of beginnings reads;
prompt tokens of the judge by token of the source; and what a request for the genre adds.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any, get_args

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import machine, show
from benchmarks.rewrites import RewrittenPart, texts_of
from records.seeds import rng_of
from records.sizes import count_tokens
from synth.llm.client import Completion
from synth.prompts.templates import render
from synth.rephrasing.fidelity.part_judge import PartToJudge, judged_parts
from synth.rephrasing.structure.chunks import Document
from synth.rephrasing.writing.form import PartFault
from synth.rephrasing.writing.genres import BEGINNING, genres
from synth.rephrasing.writing.instructions import instructions
from synth.rephrasing.writing.part_checks import BEFORE
from synth.rephrasing.writing.parts import PartCheck, PartContext, Writer, WrittenPart

SIZE = 4096
"""Tokens of a document."""


class Endpoint:
    """Stands in for `LLM`: answers every part with itself and finds everything faithful."""

    def __init__(self, parts: dict[int, str]) -> None:
        self._parts = parts
        self.written = 0
        self.requests: dict[str, list[str]] = {"rewriter": [], "judge": []}

    async def chat(self, role: str, talk: Sequence[dict[str, Any]], **_: Any) -> Completion:
        self.requests[role].append("\n".join(message["content"] for message in talk))
        asked = talk[1]["content"].rpartition("## Rewrite these parts\n")[2]
        said = (
            f'<rewrite part="{number}">\n{text}\n</rewrite>'
            for number, text in self._parts.items()
            if f"Part {number}:\n" in asked
        )
        return Completion("\n".join(said), [], None, "stop", "none", 0, 0, False)

    async def structured(self, role: str, talk: Sequence[dict[str, Any]], **_: Any) -> Any:
        self.requests[role].append("\n".join(message["content"] for message in talk))
        numbers = talk[1]["content"].rpartition("Judge part")[2].strip("s .").split(", ")
        found = {"differences": [], "verdict": "faithful"}
        return {"parts": [{"number": int(number)} | found for number in numbers]}


class Check:
    """Sends some parts back once, and asks the judge about some."""

    def __init__(self, llm: Any, document: str, wrong: float, judged: float, rng: Random) -> None:
        self._llm, self._document = llm, document
        self._wrong, self._judged, self._rng = wrong, judged, rng
        self._back: set[int] = set()

    async def __call__(self, parts: Sequence[WrittenPart], /, *, step: str) -> list[PartCheck]:
        fault = PartFault("number_changed", "the part has 40; the rewrite has 41", is_of_fact=True)
        checks = []
        for part in parts:
            is_back = part.number not in self._back and self._rng.random() < self._wrong
            self._back |= {part.number} if is_back else set()
            checks.append(PartCheck(fault if is_back else None))
        asked = [
            PartToJudge(part.number, part.source, part.rewrite)
            for part, check in zip(parts, checks, strict=True)
            if check.fault is None and self._rng.random() < self._judged
        ]
        if asked:
            start = next(part.start for part in parts if part.number == asked[0].number)
            before = self._document[max(0, start - BEFORE) : start]
            await judged_parts(
                self._llm, asked, before=before, form="Reasoned essay.", item="i", step=step
            )
        return checks


def documents(parts: Sequence[RewrittenPart], number: int) -> Iterator[str]:
    """Sources one after another in an order of their own, cut to the size."""
    sources = list(dict.fromkeys(part.source for part in parts if part.language == "en"))
    for place in range(number):
        mixed = rng_of("bench_writing", "documents", place).sample(sources, len(sources))
        text = ""
        while mixed and count_tokens(text) < SIZE:
            text += f"{mixed.pop()}\n\n"
        while count_tokens(text) > SIZE:
            text = text.rpartition(" ")[0]
        yield text


def grown(text: str, growth: float) -> str:
    """With so many more words, which are its own."""
    words = [word for word in text.split() if "[[" not in word and "]]" not in word]
    return " ".join((text, *words[: round((growth - 1) * len(words))]))


async def requests_of(
    text: str, context: PartContext, given: Any, place: int, growth: float
) -> Endpoint:
    rng = rng_of("bench_writing", context, place)
    document = Document(text, chunk_tokens=256)
    work = {n: grown(document.work(part), growth) for n, part in enumerate(document.parts, 1)}
    endpoint = Endpoint(work)
    llm: Any = endpoint
    made = await Writer(
        document,
        llm,
        item="i",
        style=rng.choice(list(instructions("styles").values())),
        perspective=rng.choice(list(instructions("perspectives").values())),
        context=context,
        check=Check(llm, text, given.wrong, given.judged, rng),
        may_replace=True,
        max_tokens=8192,
        parts_per_request=given.parts,
    ).write()
    endpoint.written = count_tokens(made.text)
    return endpoint


def read_anew(requests: Sequence[str]) -> int:
    """Tokens of each after its longest beginning that an earlier one has, too."""
    tokens = 0
    for number, request in enumerate(requests):
        known = max((len(_beginning(request, one)) for one in requests[:number]), default=0)
        tokens += count_tokens(request[known:])
    return tokens


def _beginning(one: str, other: str) -> str:
    """That both have."""
    pairs = zip(one, other, strict=False)
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--wrong", type=float, default=0.15, help="share of parts sent back once")
    parser.add_argument("--judged", type=float, default=0.4, help="share of parts judged")
    parser.add_argument("--parts", type=int, default=4, help="parts a request")
    given = parser.parse_args()
    parts = texts_of("tuning")
    honest = [part for part in parts if part.change is None]
    sizes = [(count_tokens(part.rewrite), count_tokens(part.source)) for part in honest]
    growth = sum(rewrite for rewrite, _ in sizes) / sum(source for _, source in sizes)
    texts = list(documents(parts, given.documents))
    asked = render("genre", genres=list(genres().values()), beginning=texts[0][:BEGINNING])
    show({"machine": machine(), "parameters": vars(given), "growth": round(growth, 2)})
    for context in get_args(PartContext):
        ends = [
            asyncio.run(requests_of(text, context, given, number, growth))
            for number, text in enumerate(texts)
        ]
        written = sum(end.written for end in ends)
        rewriter = [end.requests["rewriter"] for end in ends]
        judge = [end.requests["judge"] for end in ends]
        source = sum(map(count_tokens, texts))
        show(
            {
                "context": context,
                "prompt_by_written": round(_size(r for of in rewriter for r in of) / written, 2),
                "read_anew_by_written": round(sum(map(read_anew, rewriter)) / written, 2),
                "requests": round(mean(map(len, rewriter)), 1),
                "judge_by_source": round(_size(r for of in judge for r in of) / source, 2),
                "judge_read_anew_by_source": round(sum(map(read_anew, judge)) / source, 2),
                "genre_by_written": round(_size(m["content"] for m in asked[0]) / SIZE, 2),
            }
        )


def _size(requests: Iterator[str]) -> int:
    return sum(map(count_tokens, requests))


if __name__ == "__main__":
    main()
