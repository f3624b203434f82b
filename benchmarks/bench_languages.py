"""How languages are told: wrong and untold answers of `language_of`, and its speed.

    python -m benchmarks.bench_languages

`languages/texts.txt` holds four sentences of each language, and lines that are in none. Sentences
are asked one by one, and two by two as paragraphs; texts of two languages in turn are mixed, and
nothing should be told of them. The threshold was chosen on the first two sentences of each
language; the last two are reported apart.
"""

import resource
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from benchmarks.measured import show
from synth.rephrasing.fidelity.language import UNTOLD, language_of

TEXTS = Path(__file__).with_name("languages") / "texts.txt"


def sentences_by_language() -> dict[str, list[str]]:
    """Under "und" the lines that are in no language."""
    found: dict[str, list[str]] = {}
    own: list[str] = []
    for line in TEXTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("@@ "):
            own = found.setdefault(line.removeprefix("@@ "), [])
        else:
            own.append(line)
    return found


def measure(name: str, texts: Iterable[tuple[str, str]]) -> None:
    texts = list(texts)
    language_of.cache_clear()
    begun = time.process_time()
    told = [language_of(text) for _, text in texts]
    took = time.process_time() - begun
    wrong = [(one, code) for (code, _), one in zip(texts, told, strict=True) if one != code]
    size = sum(len(text.encode()) for _, text in texts)
    show(
        {
            "texts": name,
            "n": len(texts),
            "wrong": sum(one != UNTOLD for one, _ in wrong),
            "untold": sum(one == UNTOLD for one, _ in wrong),
            "mistakes": wrong,
            "mb_per_s": round(size / took / 1e6, 2),
        }
    )


def main() -> None:
    by_language = sentences_by_language()
    nowhere = by_language.pop(UNTOLD)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    language_of("This sentence has the model loaded.")
    took = time.process_time() - begun
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    show({"loading_s": round(took, 2), "peak_mb": peak})
    for half, chosen in (("chosen on", slice(0, 2)), ("reported", slice(2, 4))):
        halves = [(code, own[chosen]) for code, own in by_language.items()]
        measure(f"sentences, {half}", [(code, one) for code, own in halves for one in own])
        measure(f"paragraphs, {half}", [(code, " ".join(own)) for code, own in halves])
    measure("documents", [(code, "\n\n".join(own * 8)) for code, own in by_language.items()])
    mixed = [" ".join((*one, *other)) for one, other in pairwise(by_language.values())]
    measure("mixed", [(UNTOLD, text) for text in mixed])
    measure("no language", [(UNTOLD, line) for line in nowhere])


if __name__ == "__main__":
    main()
