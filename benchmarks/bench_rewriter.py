"""What the offline rewriter makes of real texts, and which of its declared mistakes are found.

    python benchmarks/bench_rewriter.py [--documents 40] [--seed 0]

Texts are CPython's topics and the set of mathematics, whole, part by part as `synth rephrase` does
it; the checks are those of a run. For each style: the share of rewrites that are kept, how much of
them is copied, how alike two styles' rewrites of one text are. For each declared mistake, made in
every part of texts of one part: how many of the rewrites are dropped that were kept without it.
The rewriter is the offline model: none of these numbers says how a model rewrites.
"""

import argparse
import pydoc_data.topics
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import machine, show
from offline_llm.jobs import answer_of
from offline_llm.server.request import parse_chat
from offline_llm.settings.rates import RewriterErrors
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of
from synth.prompts.templates import render
from synth.render.intervals import wilson
from synth.rephrasing.fidelity.checks import TextKind, fidelity_of, verdict
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.sources.built_in import MathsProblems
from synth.rephrasing.structure.chunks import Document
from synth.rephrasing.writing.answers import parts_in
from synth.rephrasing.writing.instructions import LEARNING_NOTES, instruction, instructions

NONE = dict.fromkeys(RewriterErrors.model_fields, 0.0)
CHUNK_TOKENS = 256
LONGEST = 9_000
"""Characters of a topic."""


class Task(NamedTuple):
    kind: TextKind
    name: str
    text: str
    style: str
    answer: str | None = None


class Made(NamedTuple):
    text: str
    reason: str | None
    copied: float
    parts: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=40, help="of each sort")
    parser.add_argument("--seed", type=int, default=0, help="draws texts and perspectives")
    options = parser.parse_args()
    show({"machine": machine()})
    texts = topics(options.documents, options.seed)
    notes = list(mathematics())
    for style in instructions("styles"):
        show(of_style([Task("knowledge", name, text, style) for name, text in texts.items()]))
    show(of_style(notes[: options.documents * 2]))
    show(alike(texts))
    short = [name for name, text in texts.items() if num_parts(text) <= 2]
    styles = list(instructions("styles"))
    few = [Task("knowledge", n, texts[n], styles[k % len(styles)]) for k, n in enumerate(short)]
    for kind in RewriterErrors.model_fields:
        show(of_mistake(kind, few, "knowledge"))
        show(of_mistake(kind, notes[: options.documents * 2], "maths"))


def topics(num: int, seed: int) -> dict[str, str]:
    fitting = {n: t for n, t in pydoc_data.topics.topics.items() if 400 < len(t) <= LONGEST}
    drawn = rng_of("bench_rewriter", "topics", seed).sample(sorted(fitting), min(num, len(fitting)))
    return {name: fitting[name] for name in drawn}


def mathematics() -> Iterator[Task]:
    for _, text in MathsProblems().texts():
        if text.language == "en":
            yield Task("maths", text.name, text.text, LEARNING_NOTES, text.answer)


def num_parts(text: str) -> int:
    return len(Document(text, chunk_tokens=CHUNK_TOKENS).parts)


@lru_cache(maxsize=4096)
def made(task: Task, mistake: str | None = None) -> Made:
    """The rewrite of a whole text, and the verdict of the code layers on it."""
    settings = OfflineSettings(
        rewriter_errors=RewriterErrors(**(NONE | ({mistake: 1.0} if mistake else {})))
    )
    document = Document(task.text, chunk_tokens=CHUNK_TOKENS)
    text, marked, seconds = "", [], 0.0
    for number, part in enumerate(document.parts):
        rewritten = "\n\n".join(document.markers(part))
        if not part.is_verbatim:
            request = asked(task, document, "".join(marked), document.work(part))
            start = time.perf_counter()
            answer = answer_of(request, settings).content
            seconds += time.perf_counter() - start
            rewritten = parts_in(answer, {1: task.text})[1]
        gap = document.gap_before(number, marked[-1], rewritten) if number else ""
        marked.append(gap + rewritten)
        text += gap + document.restored(rewritten)
    fidelity = fidelity_of(task.text, text, kind=task.kind, answer=task.answer)
    reason = verdict(fidelity.columns(), FidelityConfig())
    return Made(text, reason, fidelity.copied, len(document.parts), seconds)


def asked(task: Task, document: Document, written: str, part: str) -> Any:
    kind = "maths" if task.kind == "maths" else "styles"
    perspectives = list(instructions("perspectives").values())
    prompt = render(
        "rewrite_chunk",
        source=document.source(document.parts),
        style=instruction(kind, task.style).text,
        perspective=rng_of(task.name, "perspective").choice(perspectives).text,
        written=written,
        parts=[{"number": 1, "text": part}],
        asked="part 1",
        **dict.fromkeys(("before", "after", "kept"), ""),
    )
    return parse_chat({"model": "offline-model", "messages": prompt.messages})


def of_style(tasks: list[Task]) -> dict[str, Any]:
    results = [made(task) for task in tasks]
    reasons = [made_.reason for made_ in results if made_.reason]
    return {
        "style": tasks[0].style,
        **rate(len(results) - len(reasons), len(results), "kept"),
        "copied": round(mean(one.copied for one in results), 2),
        "ms_a_part": round(
            1e3 * sum(r.seconds for r in results) / sum(r.parts for r in results), 2
        ),
        "dropped": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
    }


def alike(texts: dict[str, str]) -> dict[str, Any]:
    """Jaccard similarity of the word 3-grams of two styles' rewrites of one text."""
    shares = []
    for name, text in texts.items():
        pair = rng_of(name, "pair").sample(list(instructions("styles")), 2)
        a, b = (grams(made(Task("knowledge", name, text, style)).text) for style in pair)
        shares.append(len(a & b) / len(a | b))
    return {"alike": round(mean(shares), 2), "most": round(max(shares), 2), "pairs": len(shares)}


def grams(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return set(zip(words, words[1:], words[2:], strict=False))


def of_mistake(mistake: str, tasks: list[Task], group: str) -> dict[str, Any]:
    """Of what was kept without the mistake and differs by it."""
    spoiled = [
        made(task, mistake).reason
        for task in tasks
        if made(task).reason is None and made(task, mistake).text != made(task).text
    ]
    found = [reason for reason in spoiled if reason]
    reasons = {reason: found.count(reason) for reason in sorted(set(found))}
    return {
        "mistake": mistake,
        "group": group,
        **rate(len(found), len(spoiled), "found"),
        "by": reasons,
    }


def rate(hits: int, n: int, what: str) -> dict[str, Any]:
    low, high = wilson(hits, n)
    return {what: hits, "of": n, "interval": [round(low, 2), round(high, 2)]}


if __name__ == "__main__":
    main()
