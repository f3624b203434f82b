"""The judge of rewritten parts, by rule: whether each sentence of one text is said in the other.

It compares words, numbers and negations with the sentence of the other that shares most with it.
What is put in wholly other words it takes for absent, and on top of that it errs at declared rates.
"""

import re
from typing import Any

from offline_llm.reading.sections import sections
from offline_llm.reading.words import found, sentences, stem_set
from offline_llm.server.request import ChatRequest
from offline_llm.settings.settings import OfflineSettings
from records.seeds import rng_of

_FENCE = re.compile(r"\A`{4,}\w*\n|\n`{4,}(?s:\n.*|)\Z")
_ASKED = re.compile(r"\bJudge parts? (\d[\d, ]*)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NEGATION = re.compile(r"\b(?:not|never|cannot|no|none|nobody|nothing|without|\w+n't)\b", re.I)
_SAID = 0.2
"""Share of a sentence's stems from which on the text says it."""
_SAME = 0.8
"""From here on a negation on one side only contradicts."""
_QUOTED = 12
"""Words of a quotation."""


def judge_claims(request: ChatRequest, settings: OfflineSettings) -> dict[str, Any]:
    read = sections(request)
    asked = _ASKED.findall(request.messages[-1]["content"])
    numbers = re.findall(r"\d+", asked[-1]) if asked else []
    return {"parts": [_judged(request, settings, read, number) for number in numbers]}


def _judged(
    request: ChatRequest, settings: OfflineSettings, read: dict[str, str], number: str
) -> dict[str, Any]:
    names = (f"part {number}", f"rewrite {number}")
    part, rewrite = (_FENCE.sub("", read.get(name, "")) for name in names)
    found: list[dict[str, str]] = []
    for side, text, other in (("rewrite", rewrite, part), ("part", part, rewrite)):
        lines = [clause for line in sentences(other) for clause in re.split(r"(?<=;)\s+", line)]
        for place, sentence in enumerate(sentences(text)):
            verdict, errors = _decided(sentence, lines, other), settings.claims_errors
            draw = rng_of(request.key, f"claims:{number}:{side}:{place}").random()
            if draw < errors.blames if verdict == "said" else draw >= errors.misses:
                quote = " ".join(sentence.split()[:_QUOTED])
                found.append({"part": "", "rewrite": "", side: quote, "what": verdict})
    verdict = "unfaithful" if found else "faithful"
    return {"number": int(number), "differences": found[:12], "verdict": verdict}


def _decided(sentence: str, lines: list[str], text: str) -> str:
    """Whether the text, whose lines these are, says the sentence, goes against it or lacks it."""
    wanted = stem_set(sentence)
    if not lines:
        return "absent"
    scores = [_shared(wanted, stem_set(*lines[max(0, i - 1) : i + 2])) for i in range(len(lines))]
    alone = [_shared(wanted, stem_set(line)) for line in lines]
    best = max(range(len(lines)), key=lambda i: (scores[i] + alone[i], -i))
    numbers = {n.replace(",", "") for n in _NUMBER.findall(sentence)}
    strange = numbers - {n.replace(",", "") for n in _NUMBER.findall(text)}
    if not wanted:
        return "said"
    if scores[best] < _SAID or (strange and alone[best] < _SAME):
        return "absent"
    denied = len(_NEGATION.findall(sentence)) % 2 != len(_NEGATION.findall(lines[best])) % 2
    if strange or (alone[best] >= _SAME and denied):
        return "contradicted"
    return "said"


def _shared(wanted: frozenset[str], known: frozenset[str]) -> float:
    return sum(found(word, known) for word in wanted) / max(1, len(wanted))
